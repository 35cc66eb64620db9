#!/usr/bin/env python3
"""test_bottlenecks.py - what `bottlenecks`, `report --format md` and `diff` say of openEuler's capture, and of
hostile names; statuses for pipelines; the same bytes each time.

WITTY names the program, WITTY_CAPTURE the capture (../shared/data beside the repository).
"""
import json
import os
import subprocess
import sys
import tempfile

WITTY = os.environ["WITTY"]
HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURE = os.environ.get("WITTY_CAPTURE", os.path.join(HERE, "../../../shared/data/openeuler-vllm-tp4.json"))
# Worker: expected remote share in %, cosine, CPU time on the node of its NPU in % at most.
GOLDEN = {1895087: (94.1, 0.100, 1), 1895088: (90.2, 0.180, 1), 1895089: (43.8, 0.861, 3), 1895090: (91.4, 0.110, 1)}
LAYERS = ["compute", "memory", "interconnect", "network", "storage", "control plane", "data plane"]
failures = []


def check(what, good, *more):
    if not good:
        failures.append(" ".join([what, *map(str, more)]))


def run(*args, status=0):
    done = subprocess.run([WITTY, *args], capture_output=True, text=True, timeout=120, check=False)
    check(f"{args}: exit {done.returncode}", done.returncode == status, done.stderr)
    return done.stdout


def placement():
    """Where the four workers run, against where their devices and their memory are."""
    said = json.loads(run("bottlenecks", CAPTURE, "--format", "json"))
    check("no window, no rates", said["window_ns"] is None and all(f["lost_ns"] is None for f in said["findings"]))
    first = said["findings"][0]
    names = {first["rule"], *(p["rule"] for p in first["also"])}
    check("one finding on placement", names == {"off-device-node", "remote-memory", "shared-node", "thread-off-node"}, names)
    check("its root is who started the workers", first["root"]["id"] == "process:1894856", first["root"])
    check("critical", first["severity"] == "critical" and first["layer"] == "interconnect")
    check("about the workers", {s["id"] for s in first["subjects"]} == {f"process:{p}" for p in GOLDEN})
    for pid, (remote, cosine, home) in GOLDEN.items():
        values = {v["name"]: v["value"] for v in first["values"] if v["entity"] == f"process:{pid}"}
        check("remote share", abs(values["accesses expected to leave the node"] - remote) < 0.1, pid, values)
        check("cosine", abs(values["cosine of CPU time and memory by node"] - cosine) < 0.001, pid, values)
        check("time at home", values["CPU time on the node of its device"] < home, pid, values)
    check("lines that bind", any(c.startswith("taskset -a -p -c 144-167 1895087") for c in first["commands"]) and
          "migratepages 1895090 all 4" in first["commands"], first["commands"])
    check("honest", "often gains little" in first["expectation"])


def verdicts():
    """What a file of totals since the start cannot tell is not evaluated, with what is missing."""
    said = json.loads(run("bottlenecks", CAPTURE, "--format", "json"))
    by = {v["rule"]: v for v in said["rules"]}
    for rule in ("cpu-wait", "too-many-threads", "lock-convoy", "straggler", "hang", "disk-wait", "page-faults",
                 "cache-misses", "memory-bandwidth", "nic-saturated", "rdma-retransmits", "device-idle", "busy-thread"):
        check(rule + " is not evaluated", by[rule]["verdict"] == "not evaluated" and by[rule]["missing"] and by[rule]["how"])
    check("clear where there is something to see", by["not-as-declared"]["verdict"] == "clear")
    check("all layers", {v["layer"] for v in said["rules"]} == set(LAYERS))
    check("no rates", any("since the start" in t for t in said["cannot_tell"]), said["cannot_tell"])
    text = run("bottlenecks", CAPTURE)
    check("text has them", all(f"{r}: not known: " in text for r in by if by[r]["verdict"] == "not evaluated"))


def report():
    """All seven layers, each with findings or without, and advice by priority."""
    text = run("report", CAPTURE, "--format", "md")
    for i, name in enumerate(LAYERS):
        check(f"layer {i + 1}", f"\n## Layer {i + 1}: {name}\n" in text)
    for part in ("# Bottleneck report", "## Summary", "**P0**: 1;", "### 3.1 ", "## Advice by priority", "| P0 |", "## Roadmap",
                 "- [ ] ", "## Appendix"):
        check("report has " + part, part in text)
    check("section of the report", "BOTTLENECKS, the gravest first" in run("report", CAPTURE))
    check("member of the report", json.loads(run("report", CAPTURE, "--format", "json"))["bottlenecks"]["counts"]["critical"] == 1)


def same_bytes():
    for args in (("bottlenecks", CAPTURE), ("bottlenecks", CAPTURE, "--format", "json"), ("report", CAPTURE, "--format", "md"),
                 ("diff", CAPTURE, CAPTURE, "--all")):
        check(f"{args} twice", run(*args) == run(*args))


def statuses(folder):
    run("bottlenecks", CAPTURE, "--fail-on", "critical", status=3)
    run("bottlenecks", CAPTURE, "--fail-on", "notice", "--format", "json", status=3)
    run("bottlenecks", CAPTURE, "--fail-on", "info", status=2)
    run("bottlenecks", CAPTURE, "--format", "html", status=2)
    run("bottlenecks", CAPTURE, CAPTURE, status=2)
    run("bottlenecks", os.path.join(folder, "none"), status=1)
    loose = os.path.join(folder, "limits")
    with open(loose, "w", encoding="ascii") as f:
        f.write("remote.finding = 99 %\n")
    said = json.loads(run("bottlenecks", CAPTURE, "--limits", loose, "--format", "json"))
    values = [v for f in said["findings"] for v in f["values"] if v["limit_name"] == "remote.finding"]
    check("limits of a file", values and all(v["limit"] == 99 for v in values), values)
    empty = write(folder, "empty.json", {"nodes": [], "edges": []})
    run("bottlenecks", empty, "--fail-on", "notice")
    check("nothing is evaluated", all(v["verdict"] == "not evaluated" for v in
                                      json.loads(run("bottlenecks", empty, "--format", "json"))["rules"]))


def write(folder, name, graph):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(graph, f)
    return path


def capture():
    with open(CAPTURE, encoding="utf-8") as f:
        whole = json.load(f)
    return whole.get("content", whole)


def hostile(folder):
    """Names come from the host: they may hold anything, and may not get out of their line."""
    graph, name = capture(), "x\x1b[31m`|<b>\n## Owned\n"
    for n in [*graph["nodes"], *(e[k] for e in graph["edges"] for k in ("source_node", "target_node"))]:
        if n["entity_type"] == "ProcessEntity" and n["pid"] == 1895087:
            n["name"] = name
    path = write(folder, "hostile.json", graph)
    for args in (("bottlenecks", path), ("bottlenecks", path, "--format", "md"), ("report", path, "--format", "md"),
                 ("diff", CAPTURE, path, "--all"), ("diff", CAPTURE, path, "--all", "--format", "md")):
        text = run(*args)
        check(f"{args}: controls", not any(ord(c) < 32 and c != "\n" for c in text))
        check(f"{args}: a line of its own", "\n## Owned" not in text)
        if args[-1] == "md":
            check(f"{args}: HTML", "<b>" not in text)
    json.loads(run("bottlenecks", path, "--format", "json"))


def changes(folder):
    """The same capture with the memory of all where they run most: less grave."""
    graph = capture()
    for e in graph["edges"]:
        if e["edge_type"] != "NumaAccessEdge":
            continue
        affinity = e["numa_access_info"]["numa_affinity_info"]
        shares = affinity["cpu_runtime_pct_in_each_numa"]
        if any(shares):
            pages = [100000 if s == max(shares) else 0 for s in shares]
            affinity["mem_pages_in_each_numa"] = pages
            e["numa_access_info"]["dirty_anon_pages"] = {str(i): n for i, n in enumerate(pages)}
    local = write(folder, "local.json", graph)
    better = json.loads(run("diff", CAPTURE, local, "--format", "json", "--fail-on", "notice"))
    worse = json.loads(run("diff", local, CAPTURE, "--format", "json", "--fail-on", "critical", status=3))
    fates = [(f["rule"], f["change"], f["severity_then"], f["severity_now"]) for f in better["findings"]]
    check("it got better", ("off-device-node", "better", "critical", "warning") in fates, fates)
    check("and worse the other way", ("off-device-node", "worse") in [(f["rule"], f["change"]) for f in worse["findings"]])
    check("without a window no rates", better["then"]["window_ns"] is None and not better["flows"] and not better["threads"])
    same = json.loads(run("diff", CAPTURE, CAPTURE, "--format", "json", "--fail-on", "notice"))
    check("nothing changed", {f["change"] for f in same["findings"]} == {"same"})
    run("diff", CAPTURE, status=2)
    run("diff", CAPTURE, os.path.join(folder, "none"), status=1)


def main():
    if not os.path.exists(CAPTURE):
        print(f"SKIP: no capture at {CAPTURE}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        placement()
        verdicts()
        report()
        same_bytes()
        statuses(folder)
        hostile(folder)
        changes(folder)
    for f in failures:
        print("FAILED", f)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
