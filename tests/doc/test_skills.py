#!/usr/bin/env python3
"""test_skills.py - skills/ is valid by the rules of Agent Skills, and what it says is current. WITTY names the program.

Front matter: `name` is the folder's, of 1 to 64 characters a-z, 0-9 and single hyphens; `description` has 1 to 1024
characters; `compatibility` at most 500. A SKILL.md has fewer than 150 lines; links go one level deep, to files that
exist, and each reference is linked to. Commands in it exist: test_commands.py looks at those.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
WANTED = {"dataflow-topology-restore", "hotspot-thread-discovery", "bottleneck-identification"}
LINES_MAX = 150


def front_matter(text):
    """Members of the simple kind that these have: `key: one line`."""
    match = re.match(r"---\n(.*?)\n---\n", text, re.S)
    if not match:
        return None
    found = {}
    for line in match.group(1).split("\n"):
        key, sign, value = line.partition(": ")
        # A colon with a blank within a plain value would begin another mapping.
        if not sign or key in found or ": " in value or value.startswith(("'", '"', "[", "{", "&", "*", "|", ">")) or " #" in value:
            return None
        found[key] = value.strip()
    return found


def check_skill(path, wrong):
    folder, where = os.path.dirname(path), os.path.relpath(path, ROOT)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    head = front_matter(text)
    if head is None:
        wrong.append(f"{where}: no front matter that can be read")
        return
    name, about = head.get("name", ""), head.get("description", "")
    if name != os.path.basename(folder) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > 64:
        wrong.append(f"{where}: name '{name}'")
    if not 1 <= len(about) <= 1024 or "Use it" not in about:
        wrong.append(f"{where}: a description has 1 to 1024 characters and says when: {len(about)}")
    if len(head.get("compatibility", "x")) > 500:
        wrong.append(f"{where}: compatibility is too long")
    wrong += [f"{where}: unknown member '{k}'" for k in set(head) - KNOWN]
    if text.count("\n") >= LINES_MAX:
        wrong.append(f"{where}: {text.count(chr(10))} lines, fewer than {LINES_MAX} are allowed")
    links = set(re.findall(r"\]\(([^)]+)\)", text))
    here = {os.path.relpath(p, folder) for p in glob.glob(folder + "/references/*")}
    wrong += [f"{where}: link to '{x}', which is not there" for x in links - here]
    wrong += [f"{where}: no link to '{x}'" for x in here - links]


def main():
    paths = glob.glob(os.path.join(ROOT, "skills", "*", "SKILL.md"))
    wrong = [f"no skill '{x}'" for x in WANTED - {os.path.basename(os.path.dirname(p)) for p in paths}]
    for path in paths:
        check_skill(path, wrong)
    made = subprocess.run([os.path.join(ROOT, "tools", "skill_references.py"), "--check"], capture_output=True, text=True,
                          check=False)
    if made.returncode:
        wrong.append(made.stdout.strip() + made.stderr.strip())
    print("\n".join(wrong) or f"{len(paths)} skills, valid and current")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
