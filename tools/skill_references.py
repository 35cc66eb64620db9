#!/usr/bin/env python3
"""skill_references.py [--check] - write skills/*/references from what the program says of itself.

Types come from docs/schema.md, limits from docs/limits.md, rules from docs/rules.md, which the program prints and tests
keep current; roles, shapes and patterns from the names that reports use. With --check nothing is written; the status
says whether all of it is current.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MADE = "Made by tools/skill_references.py from what witty-profiler says of itself; a test keeps it current.\n"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def types():
    """(heading, name, doc) of each type in the schema."""
    heading = None
    for block in re.split(r"\n(?=#{2,3} )", read("docs/schema.md")):
        if block.startswith("## "):
            heading = block[3:].split("\n", 1)[0]
        name = re.match(r"### `([a-z0-9_]+)`", block)
        if name:
            doc = block.split("\n", 1)[1].strip().split("\n\n", 1)[0].replace("\n", " ")
            yield heading, name.group(1), re.sub(r"\s*openEuler name:.*$", "", doc)


def entities_and_edges():
    text, last = "# Entities and edges\n\n" + MADE, None
    for heading, name, doc in types():
        if heading != last:
            text += f"\n## {heading}\n\n| type | meaning |\n| --- | --- |\n"
            last = heading
        text += f"| `{name}` | {doc} |\n"
    return text


def names(function):
    """The texts of a table in src/analyze/topology/names.c."""
    body = re.search(function + r"\([^)]*\)\n\{(.*?)\n\}", read("src/analyze/topology/names.c"), re.S).group(1)
    found = re.findall(r'"([^"]+)"', body.split("_Static_assert")[0])
    assert len(found) > 2, function
    return found


def dataflow_patterns():
    text = "# Roles, shapes and patterns\n\n" + MADE
    for title, function, more in (
            ("Roles of processes", "role_name", "Each with a confidence and one sentence of evidence."),
            ("Shapes of the traffic within a group", "shape_name", "What the matrix of bytes looks like."),
            ("Patterns", "parallelism_name",
             "A shape together with what command lines and environment declare; `declared` and `observed` tell which.")):
        text += f"\n## {title}\n\n{more}\n\n" + "".join(f"- {n}\n" for n in names(function))
    return text


def communication_primitives():
    """Kinds of flows, and the relations that carry an amount of data."""
    kinds = re.search(r"\| `kind` \| ([^|]+) \|", read("docs/json.md"))
    text = ("# Communication primitives\n\n" + MADE + "\n## Kinds of flows between processes\n\n" +
            "".join(f"- {k.strip()}\n" for k in kinds.group(1).split(",")) +
            "\n## Relations that move data\n\n| relation | meaning |\n| --- | --- |\n")
    for heading, name, doc in types():
        if "ntit" not in heading and name in CARRIERS:
            text += f"| `{name}` | {doc} |\n"
    return text


CARRIERS = {"flow", "send_to_socket", "receive_from_socket", "read_from", "write_to", "memory_copy", "access", "connect_to",
            "fd_passed", "ipc", "connection", "block_io", "device_link"}


def limits(title, *groups):
    """Rows of the table of limits whose names begin with one of the groups."""
    text = f"# {title}\n\n" + MADE + ("\nReplace them by `--limits FILE`, or choose a preset.\n\n"
                                      "| limit | what is compared with it | default | hpc | server | reason |\n"
                                      "| --- | --- | ---: | ---: | ---: | --- |\n")
    rows = [line for line in read("docs/limits.md").splitlines() if line.startswith("| `")]
    wanted = [r for r in rows if not groups or r[3:].startswith(groups)]
    assert wanted, groups
    return text + "\n".join(wanted) + "\n"


def catalogue():
    text = "# Bottleneck catalogue\n\n" + MADE
    for block in re.split(r"\n(?=#{2,3} )", read("docs/rules.md")):
        layer = re.match(r"## (Layer .*)", block)
        rule = re.match(r"### `([a-z0-9-]+)`: (.*)", block)
        if layer:
            text += f"\n## {layer.group(1)}\n\n| rule | means | fires when | do first |\n| --- | --- | --- | --- |\n"
        if rule:
            fires = re.search(r"- \*\*Fires when\*\* (.*)", block).group(1)
            advice = re.search(r"- \*\*Advice\*\* (.*)", block).group(1)
            text += "| " + " | ".join(x.replace("|", "\\|") for x in (f"`{rule.group(1)}`", rule.group(2), fires, advice)) + " |\n"
    return text


def references():
    return {
        "dataflow-topology-restore/references/entities-and-edges.md": entities_and_edges(),
        "dataflow-topology-restore/references/communication-primitives.md": communication_primitives(),
        "dataflow-topology-restore/references/dataflow-patterns.md": dataflow_patterns(),
        "hotspot-thread-discovery/references/limits.md": limits("Limits of score and causes", "hot.", "p0", "p1", "p2", "cause."),
        "hotspot-thread-discovery/references/thread-classes.md": limits("Classes of threads", "class."),
        "hotspot-thread-discovery/references/numa.md": limits("NUMA affinity", "numa.", "remote."),
        "hotspot-thread-discovery/references/context-switches.md": limits("Context switches", "switches."),
        "bottleneck-identification/references/bottleneck-catalogue.md": catalogue(),
        "bottleneck-identification/references/limits.md": limits("Limits"),
    }


def main():
    check, stale = "--check" in sys.argv[1:], []
    for name, text in references().items():
        path = os.path.join(ROOT, "skills", name)
        if os.path.exists(path) and read(path) == text:
            continue
        stale.append(name)
        if not check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    for name in stale:
        print(f"skills/{name}: {'not current: tools/skill_references.py' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
