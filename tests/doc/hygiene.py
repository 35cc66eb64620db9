#!/usr/bin/python3
"""Source hygiene: layers, headers, comments and sizes, checked on the tree itself.

Usage: hygiene.py BUILD_DIR (for generated headers). CC names the compiler (default gcc).
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SRC = os.path.join(TOP, "src")
# Each layer and those it may include; the layers below those come with them.
BELOW = {
    "base": [], "model": ["base"], "graph": ["model"], "store": ["graph"], "analyze": ["graph"],
    "probe": ["base"], "device": ["base"], "collect": ["graph", "probe", "device"],
    "session": ["collect", "store", "analyze"], "render": ["graph", "analyze"],
    "serve": ["session", "render"], "cli": ["serve"],
}
# Folders of a layer besides its own.
SUBFOLDERS = {"probe": ["probe/bpf"]}
# A licence line may come before the sentence.
COMMENT_FIRST = re.compile(r"(// SPDX[^\n]*\n)?/\*")
MAX_FILE_LINES = 800
FILES_IN_FOLDER = range(3, 16)


def closure(layer):
    seen = {layer}
    for below in BELOW[layer]:
        seen |= closure(below)
    return seen


def files(suffix, under=SRC):
    for folder, _, names in os.walk(under):
        for name in sorted(names):
            if name.endswith(suffix):
                yield os.path.join(folder, name)


def headers_of(layer):
    folder = os.path.join(SRC, layer)
    if not os.path.isdir(folder):
        return []
    return [n for n in sorted(os.listdir(folder)) if n.endswith(".h")]


def compiles(header, layer, build_dir):
    """(True, "") when a file that only includes the header compiles with the layer's folders."""
    command = [os.environ.get("CC", "gcc"), "-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only",
               '-DWITTY_VERSION="0"', "-x", "c"]
    for below in sorted(closure(layer)):
        for folder in [below] + SUBFOLDERS.get(below, []):
            command += ["-I", os.path.join(SRC, folder),
                        "-I", os.path.join(build_dir, "src", folder)]
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write(f'#include "{header}"\n')
        f.flush()
        done = subprocess.run(command + [f.name], capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    return done.returncode == 0, errors[0] if errors else done.stderr


def check_texts(wrong, warned):
    for path in list(files(".c")) + list(files(".h")) + list(files(".c", TOP + "/tests")):
        name = os.path.relpath(path, TOP)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if re.search(r'#\s*include\s*[<"][^>"]*\.\./', text):
            wrong.append(f"{name}: '../' in an include")
        if path.endswith(".c") and path.startswith(SRC) and not COMMENT_FIRST.match(text):
            wrong.append(f"{name}: does not start with a sentence that says what it is for")
        if text.count("\n") > MAX_FILE_LINES:
            warned.append(f"{name}: {text.count(chr(10))} lines, more than {MAX_FILE_LINES}")
    for folder, _, names in os.walk(SRC):
        if names and len(names) not in FILES_IN_FOLDER:
            warned.append(f"{os.path.relpath(folder, TOP)}: {len(names)} files")


def check_layers(wrong, build_dir):
    alone = upward = 0
    for layer in BELOW:
        for header in headers_of(layer):
            ok, why = compiles(header, layer, build_dir)
            alone += 1
            if not ok:
                wrong.append(f"src/{layer}/{header}: does not compile alone: {why}")
        for above in BELOW:
            if above in closure(layer):
                continue
            for header in headers_of(above):
                upward += 1
                # Not found is the only good reason: a header that is broken proves nothing.
                if f"{header}: No such file" not in compiles(header, layer, build_dir)[1]:
                    wrong.append(f"layer {layer} can include {above}/{header}")
    print(f"{alone} headers compiled alone, {upward} includes out of order tried")
    if alone == 0 or upward == 0:
        wrong.append("no header was found: the layers have moved?")


def main():
    wrong, warned = [], []
    check_texts(wrong, warned)
    check_layers(wrong, sys.argv[1])
    for name in ("LICENSE", "LICENSES/BSD-2-Clause.txt", "LICENSES/GPL-2.0-only.txt"):
        if not os.path.exists(os.path.join(TOP, name)):
            wrong.append(f"{name} is missing")
    for line in warned:
        print(f"note: {line}")
    for line in wrong:
        print(f"wrong: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
