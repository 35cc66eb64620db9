#!/usr/bin/env python3
"""test_layers.py BUILDDIR [CC] - hygiene of the sources: what the build alone does not refuse.

No "../" in an include, each .c begins with a comment (after blank lines), header names are
unique, each header compiles alone with the folders of its own layer and those below, and a
header of a layer that is not below does not compile.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SRC = os.path.join(ROOT, "src")
# docs/ARCHITECTURE.md: a layer and what lies directly below it.
BELOW = {
    "base": [],
    "model": ["base"],
    "graph": ["model"],
    "store": ["graph"],
    "analyze": ["graph"],
    "probe": ["base"],
    "device": ["base"],
    "collect": ["graph", "probe", "device"],
    "session": ["collect", "store", "analyze"],
    "render": ["graph", "analyze"],
    "serve": ["session", "render"],
    "cli": ["serve", "session", "render"],
}
FILE_LINES_MAX = 800


def visible(layer):
    """The layer and all that it may include."""
    seen, todo = [], [layer]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.append(name)
            todo += BELOW[name]
    return seen


def sources(layer, suffixes):
    for folder, dirs, files in os.walk(os.path.join(SRC, layer)):
        dirs.sort()
        for name in sorted(files):
            if name.endswith(suffixes) and not name.endswith((".bpf.c", ".bpf.h")):
                yield os.path.join(folder, name)


def compiles(cc, build, layer, header):
    """Whether a file of the layer may include the header, by its bare name."""
    command = [cc, "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
               "-Wno-unused-parameter", "-fsyntax-only", "-x", "c", "-"]
    for name in visible(layer):
        # Headers that the build makes (the registry) stand in the build folder.
        for top in (SRC, os.path.join(build, "src")):
            command.append("-I" + os.path.join(top, name))
            command.append("-I" + os.path.join(top, name, "bpf"))
    done = subprocess.run(command, input=f'#include "{os.path.basename(header)}"\n', text=True,
                          capture_output=True, check=False)
    return done.returncode == 0, done.stderr.strip()


def check_text(path, problems):
    short = os.path.relpath(path, ROOT)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if re.search(r'#\s*include\s*["<][^">]*\.\./', text):
        problems.append(f"{short}: '../' in an include")
    if path.endswith(".c") and not text.lstrip().startswith("/*"):
        problems.append(f"{short}: does not begin with a sentence on what it is for")
    if text.count("\n") > FILE_LINES_MAX:
        print(f"note: {short}: {text.count(chr(10))} lines, more than {FILE_LINES_MAX}")


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: test_layers.py BUILDDIR [CC]")
    build = sys.argv[1]
    cc = sys.argv[2] if len(sys.argv) > 2 else "cc"
    problems, headers, checked = [], {}, 0
    layers = [name for name in BELOW if os.path.isdir(os.path.join(SRC, name))]
    for layer in layers:
        for path in sources(layer, (".c", ".h")):
            check_text(path, problems)
        for path in sources(layer, (".h",)):
            name = os.path.basename(path)
            if name in headers:
                problems.append(f"{name}: in {headers[name][0]} and in {layer}")
            if os.path.dirname(path) == os.path.join(SRC, layer):
                headers[name] = (layer, path)
    for name, (owner, path) in headers.items():
        good, why = compiles(cc, build, owner, path)
        checked += 1
        if not good:
            first = next((line for line in why.splitlines() if "error:" in line), why)
            problems.append(f"{owner}/{name}: does not compile alone: {first}")
    for layer in layers:
        for name, (owner, path) in headers.items():
            if owner in visible(layer):
                continue
            checked += 1
            if compiles(cc, build, layer, path)[0]:
                problems.append(f"{owner}/{name}: {layer} can include it, but lies below")
    if not checked:
        problems.append("no header was found")
    for text in problems:
        print(text)
    print(f"{checked} includes tried, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
