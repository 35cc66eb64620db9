#!/usr/bin/env python3
"""test_commands.py - what the documents say can be typed: WITTY names the program.

Each `witty-profiler COMMAND` in README.md, docs/ and skills/ exists, as do the long options that follow it
on the same line, and README.md names every command that the program has.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WITTY = os.environ["WITTY"]
CALL = re.compile(r"\bwitty-profiler[ \t]+([a-z]+)\b([^`\n#|>]*)")
# What begins like a command in a code block or between backticks; prose is left alone.
CODE = re.compile(r"`(witty-profiler [^`]+)`|^(?: {4}|\t)(.*witty-profiler .*)$", re.M)


def help_of(*args):
    done = subprocess.run([WITTY, *args, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def calls(path):
    """Yield (command, rest of the line) of each call in the code of a document."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for spans in CODE.findall(text):
        for match in CALL.finditer(spans[0] or spans[1]):
            yield match.group(1), match.group(2)


def main():
    listed = help_of().split("commands:", 1)[1].split("\n\n", 1)[0]
    commands = {line.split()[0] for line in listed.splitlines() if line.strip()}
    helps = {command: help_of(command) for command in commands}
    wrong, named = [], set()
    for path in [os.path.join(ROOT, "README.md"), *glob.glob(ROOT + "/docs/**/*.md", recursive=True),
                 *glob.glob(ROOT + "/skills/*/SKILL.md")]:
        where = os.path.relpath(path, ROOT)
        for command, rest in calls(path):
            if command not in commands:
                wrong.append(f"{where}: no command 'witty-profiler {command}'")
                continue
            if where == "README.md":
                named.add(command)
            ours = rest.split(" -- ", 1)[0]
            for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", ours):
                if not re.search(re.escape(option) + r"(?![a-z-])", helps[command]):
                    wrong.append(f"{where}: no option '{option}' of 'witty-profiler {command}'")
    wrong += [f"README.md: does not name 'witty-profiler {c}'" for c in sorted(commands - named)]
    print("\n".join(wrong) or f"{len(commands)} commands, all there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
