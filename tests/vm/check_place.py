#!/usr/bin/env python3
"""check_place.py FOLDER NODES - compare what was recorded of placement with what the programs know."""
import glob
import json
import math
import os
import sys

folder, nodes = sys.argv[1], int(sys.argv[2])
# Those of the last recording.
MORE = ("spread-huge", "local-thp", "moves-thp", "shared-a", "shared-b")
problems = []
unseen = []


def read(name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def edges(name):
    found = read(name)
    return found["edges"] if isinstance(found, dict) else found


def check(good, what):
    if not good:
        problems.append(what)


def shares(amounts):
    total = sum(amounts.values())
    return {int(n): a / total for n, a in amounts.items() if a} if total else {}


def of(vector, node):
    return vector.get(node, 0)


def verdict(cosine):
    return "local" if cosine > .8 else "mixed" if cosine >= .5 else "cross" if cosine >= .3 else "remote"


def pid_of(edge):
    source = edge["source"]
    return int((source["id"] if isinstance(source, dict) else source).split(":")[1].split("#")[0])


def value(edge, name):
    return edge.get(name, edge.get("fields", {}).get(name))


def check_program(kind, truth):
    name, times = truth["name"], truth["cpu_ns"]
    # In order: where it was bound to, and where it moved to.
    truth["cpu_ns"] = {str(cpu): used for cpu, used in times}
    found = [e for e in edges(f"{kind}-numa_access.json") if pid_of(e) == truth["pid"]]
    check(len(found) == 1, f"{name}: {len(found)} relations")
    if len(found) != 1:
        return
    edge = found[0]
    # One CPU on each node, of the same number.
    cpu, want_cpu = shares(value(edge, "numa_index_to_cpu_runtime")), shares(truth["cpu_ns"])
    for n in set(cpu) | set(want_cpu):
        check(abs(of(cpu, n) - of(want_cpu, n)) < .02, f"{name}: CPU share of node {n}: {of(cpu, n):.3f}, "
              f"not {of(want_cpu, n):.3f} ({value(edge, 'numa_index_to_cpu_runtime')}, it says {truth['cpu_ns']})")
    held = {n: m["anon"] + m["shared"] + m["huge"] for n, m in value(edge, "memory_bytes").items()}
    memory, want_memory = shares(held), shares(truth["bytes"])
    error = value(edge, "share_error")
    # The stated error is that of one share at 95 %; all shares of all programs are looked at here.
    allowed = 2 * error + .005
    for n in set(memory) | set(want_memory):
        check(abs(of(memory, n) - of(want_memory, n)) < allowed, f"{name}: memory share of node {n}: "
              f"{of(memory, n):.4f}, not {of(want_memory, n):.4f}, error {error:.4f}")
    check(error < .05, f"{name}: error {error}")
    check(kind != "exact" or error == 0, f"{name}: an exact look has an error")
    total, want_total = sum(held.values()), sum(truth["bytes"].values())
    check(abs(total - want_total) < .02 * want_total + 262144, f"{name}: {total} bytes, not {want_total}")
    dot = sum(of(want_cpu, n) * m for n, m in want_memory.items())
    cosine = dot / math.sqrt(sum(c * c for c in want_cpu.values()) * sum(m * m for m in want_memory.values()))
    check(abs(value(edge, "similarity") - cosine) < .03 + 2 * error, f"{name}: similarity "
          f"{value(edge, 'similarity'):.3f}, not {cosine:.3f}")
    check(abs(value(edge, "local_share") - dot) < .03 + 2 * error, f"{name}: local share")
    check(verdict(value(edge, "similarity")) == verdict(cosine) or min(abs(cosine - c) for c in (.3, .5, .8)) < .03,
          f"{name}: verdict")
    # What the product itself says of it.
    rows = read(f"{kind}-rows.json")["processes"]
    row = [r for r in rows if r["id"].split("#")[0] == f"process:{truth['pid']}"]
    check(len(row) == 1, f"{name}: {len(row)} rows")
    for r in row:
        check(abs(r["remote_share"] - (1 - dot)) < .03 + 2 * error, f"{name}: remote share {r['remote_share']:.3f}, "
              f"not {1 - dot:.3f}")
        check(r["verdict"] == verdict(cosine) or min(abs(cosine - c) for c in (.3, .5, .8)) < .03,
              f"{name}: verdict {r['verdict']} with {cosine:.3f}")
    huge = sum(m["huge"] for m in value(edge, "memory_bytes").values())
    check((huge > 0) == (truth["pages"] == "huge"), f"{name}: {huge} bytes of huge pages")
    print(f"{name}: CPU {cpu}, memory { {n: round(m, 4) for n, m in memory.items()} } +-{error:.4f}, "
          f"similarity {value(edge, 'similarity'):.3f} ({cosine:.3f}), local {value(edge, 'local_share'):.3f}")
    threads = [e for e in edges(f"{kind}-access_with_proc_status.json") if pid_of(e) == truth["pid"]]
    check(len(threads) <= 1, f"{name}: {len(threads)} threads")
    if not threads:
        unseen.append(name)
    for t in threads:
        check(value(t, "cpus_allowed_list") in truth["cpu_ns"],
              f"{name}: allowed {value(t, 'cpus_allowed_list')}")
        check(value(t, "cpus_accessed_list") == ",".join(sorted(truth["cpu_ns"])),
              f"{name}: used {value(t, 'cpus_accessed_list')}")


def check_shared():
    """The segment that two processes map has a place of its own, and counts once in the sums."""
    want = read("shared-a.json")["bytes"]
    # Their few private pages are in there, too.
    size, found = 32 << 20, [n for n in read("shared_memory.json") if value(n, "shm_name") == "place"]
    check(len(found) == 1, f"{len(found)} shared segments")
    for n in found:
        by_node, error = value(n, "memory_bytes"), value(n, "share_error")
        check(by_node is not None, "where the shared segment lies is not known")
        if by_node is None:
            continue
        check(abs(sum(by_node.values()) - size) < size // 50, f"shared segment: {by_node}")
        for node in set(shares(by_node)) | {0, 2}:
            check(abs(of(shares(by_node), node) - (.5 if node in (0, 2) else 0)) < 2 * error + .005,
                  f"shared segment: {shares(by_node)} +-{error:.4f}, truth {want}")
        print(f"shared segment: {shares(by_node)} +-{error:.4f}")
    once = sum(m["shared_bytes"] or 0 for m in read("more-rows.json")["memory"])
    check(.95 * size < once < 1.25 * size, f"shared memory in sums: {once}, not {size}")


def check_machine():
    found = {int(n["numa_id"]): n for n in read("numa.json")} if isinstance(read("numa.json"), list) else \
        {int(value(n, "numa_id")): n for n in read("numa.json")["entities"]}
    check(sorted(found) == list(range(nodes + 1)), f"nodes {sorted(found)}")
    for n, it in found.items():
        cpus = str(n) if n < nodes else ""
        check(value(it, "cpu_set") == cpus, f"node {n}: CPUs '{value(it, 'cpu_set')}'")
        distances = value(it, "distance_to_all_numa")
        check(distances.get(str(nodes)) == (10 if n == nodes else 40), f"node {n}: distances {distances}")
    # Memory of the far programs was asked of CPUs of other nodes.
    check(value(found[3], "other_pages") >= 24 * 256, f"node 3: {value(found[3], 'other_pages')} pages for others")


def check_findings(programs):
    """Who has its memory on another node is named as a cause of remote memory, with what to do; nobody else is."""
    found = [f for f in read("findings.json")["findings"] if f["rule"] == "remote-memory" or
             any(a["rule"] == "remote-memory" for a in f["also"])]
    named = {s["id"].split("#")[0] for f in found for s in f["subjects"]}
    far = [p for p in programs if p["name"].startswith("far-")]
    check(len(far) == 3, f"{len(far)} programs far from their memory")
    for p in far:
        check(named & {f"process:{p['pid']}", f"thread:{p['pid']}"}, f"{p['name']} ({p['pid']}) is not among {named}")
    for p in programs:
        if p["name"] == "local":
            check(f"process:{p['pid']}" not in named, f"local ({p['pid']}) is named")
    lines = [c for f in found for c in f["commands"]] + [a for f in found for a in f["advice"]]
    check(any(c.startswith("numactl --cpunodebind=3 --membind=3 ") for c in lines), f"no line of numactl for node 3: {lines}")
    check(all(f["severity"] in ("warning", "critical") for f in found), f"severity {[f['severity'] for f in found]}")
    print("findings:", [(f["severity"], f["rule"], f["title"]) for f in found])


def main():
    programs = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        truth = read(os.path.basename(path))
        if isinstance(truth, dict) and "cpu_ns" in truth and "bytes" in truth:
            kind = "exact" if truth["name"] == "exact" else "more" if truth["name"] in MORE else "place"
            check_program(kind, truth)
            if kind == "place":
                programs.append(truth)
    # Masks are those of threads that a look found alive, and an emulated machine may look too late.
    check(len(unseen) <= 1, f"no threads of {unseen}")
    check_shared()
    check_machine()
    check_findings(programs)
    for text in problems:
        print("wrong:", text)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
