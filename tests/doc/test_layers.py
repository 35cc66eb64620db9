#!/usr/bin/env python3
"""test_layers.py BUILDDIR [CC] - hygiene of the sources: what the build alone does not refuse.

No "../" in an include, each .c begins with a comment (after blank lines), header names are
unique, each header compiles alone with the folders of its own layer and those below, and a
header of a layer that is not below does not compile.
"""
import concurrent.futures
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


def compiler(cc, build, layer, *words):
    """A command that compiles what it reads, as a file of the layer."""
    command = [cc, "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-x", "c", *words]
    for name in visible(layer):
        # Headers that the build makes (the registry) stand in the build folder.
        for top in (SRC, os.path.join(build, "src")):
            command.append("-I" + os.path.join(top, name))
            command.append("-I" + os.path.join(top, name, "bpf"))
    return command + ["-"]


def compiles(cc, build, layer, header):
    """Whether a file of the layer may include the header, by its bare name."""
    done = subprocess.run(compiler(cc, build, layer, "-fsyntax-only"), input=f'#include "{os.path.basename(header)}"\n',
                          text=True, capture_output=True, check=False)
    return done.returncode == 0, done.stderr.strip()


def found(cc, build, layer, names):
    """Those of the headers that a file of the layer finds."""
    text = "".join(f'#if __has_include("{name}")\nFOUND "{name}"\n#endif\n' for name in names)
    done = subprocess.run(compiler(cc, build, layer, "-E"), input=text, text=True, capture_output=True, check=True)
    return [line.split('"')[1] for line in done.stdout.splitlines() if line.startswith("FOUND ")]


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
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = pool.map(lambda h: compiles(cc, build, *headers[h]), headers)
        for name, (good, why) in zip(headers, tried):
            checked += 1
            if not good:
                first = next((line for line in why.splitlines() if "error:" in line), why)
                problems.append(f"{headers[name][0]}/{name}: does not compile alone: {first}")
    for layer in layers:
        below = visible(layer)
        others = [name for name, (owner, _) in headers.items() if owner not in below]
        checked += len(others)
        for name in found(cc, build, layer, others):
            problems.append(f"{headers[name][0]}/{name}: {layer} can include it, but lies below")
        # That what it may include is found shows that looking for headers works.
        mine = [name for name, (owner, _) in headers.items() if owner == layer]
        if len(found(cc, build, layer, mine)) != len(mine):
            problems.append(f"{layer}: does not find headers of its own")
    if not checked:
        problems.append("no header was found")
    for text in problems:
        print(text)
    print(f"{checked} includes tried, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
