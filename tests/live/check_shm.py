#!/usr/bin/env python3
"""check_shm.py TRUTH SHARED [--by-proc] - compare what the shared-memory workload did with a recording.

TRUTH: one JSON object a line, as tests/live/shm.c writes it; SHARED: `show FILE shared-memory --format
json`. --by-proc: recorded without BPF, where the resident part of files is not known.
Prints a line for each kind: objects, how many were found and how many of those found are true.
"""
import collections
import json
import sys


def load(path, by_proc):
    facts = collections.OrderedDict()
    with open(path) as f:
        for line in f:
            fact = json.loads(line)
            # Without BPF open files are not looked through.
            if by_proc and not fact["bytes"]:
                continue
            facts.setdefault(fact["object"], []).append(fact)
    return facts


def mappers(item):
    return {m["process"]["pid"]: m for m in item["mappers"]}


def is_that(item, facts):
    """Whether the recorded object is the one of these facts: by the processes that map it and identity."""
    entity, first = item["object"], facts[0]
    if entity["kind"] != first["kind"] or {f["pid"] for f in facts} != set(mappers(item)):
        return False
    for f in facts:
        if f["inode"] and f["inode"] != entity["inode"]:
            return False
        if f["dev"] != "0:0" and f["dev"] != entity["dev"]:
            return False
        if f["name"] and f["name"] != entity["shm_name"]:
            return False
    return True


def differences(item, facts, by_proc):
    entity, maps = item["object"], mappers(item)
    for f in facts:
        m = maps[f["pid"]]
        want = {"memory_bytes": f["bytes"] or None, "mode": f["mode"],
                "resident_bytes": f["rss"] if len(facts) > 1 and f["kind"] not in ("dmabuf", "device") else None}
        for key, value in want.items():
            if m[key] != value:
                yield f"pid {f['pid']} {key}: {m[key]}, not {value}"
        if (entity["shm_size"] or 0) != f["size"]:
            yield f"size {entity['shm_size']}, not {f['size']}"
        resident = None if by_proc and f["kind"] == "file" else f["resident"]
        if f["resident"] >= 0 and f["kind"] not in ("dmabuf", "device") and entity["resident_bytes"] != resident:
            yield f"resident {entity['resident_bytes']}, not {resident}"
    if bool(entity["unlinked"]) != facts[0]["unlinked"]:
        yield f"unlinked {entity['unlinked']}, not {facts[0]['unlinked']}"
    if entity["kind"] in ("file", "posix", "tmpfs") and not (entity["fs_type"] and entity["path"]):
        yield f"no file system or path: {entity['fs_type']}, {entity['path']}"
    if facts[0]["room"]:
        space = entity["fs_bytes"], entity["fs_used_bytes"]
        if space != (facts[0]["room"], facts[0]["resident"]):
            yield f"room {space}, not {facts[0]['room']}, {facts[0]['resident']}"
    writes = sum("w" in f["mode"] for f in facts)
    wakes = {(a["pid"], b["pid"]) for a in facts for b in facts if a["wakes"] == "from" and b["wakes"] == "to"}
    direction = "mapped, direction unknown" if writes and len(facts) > 1 else None
    if wakes and not by_proc:
        direction = "proven by wake-ups"
        # The waiter may have to take turns with the waker.
        seen = {(w["source"]["pid"], w["target"]["pid"]) for w in item["wakes"]}
        if not wakes <= seen:
            yield f"wake-ups {sorted(seen)}, not {sorted(wakes)}"
    if item["direction"] != direction:
        yield f"direction {item['direction']}, not {direction}"


def main():
    by_proc = "--by-proc" in sys.argv
    truth = load(sys.argv[1], by_proc)
    with open(sys.argv[2]) as f:
        recorded = json.load(f)
    ours = {f["pid"] for facts in truth.values() for f in facts}
    left = [r for r in recorded if ours & set(mappers(r))]
    table = collections.defaultdict(lambda: [0, 0, 0])
    bad = []
    for name, facts in truth.items():
        kind = facts[0]["kind"]
        if not facts[0]["listed"]:
            continue
        table[kind][0] += 1
        found = [r for r in left if is_that(r, facts)]
        if len(found) != 1:
            bad.append(f"{name}: {len(found)} objects, not 1")
            continue
        left.remove(found[0])
        table[kind][1] += 1
        wrong = list(differences(found[0], facts, by_proc))
        table[kind][2] += not wrong
        bad += [f"{name}: {w}" for w in wrong]
    for r in left:
        table[r["object"]["kind"]][0] += 0
        bad.append(f"not in the workload: {r['object']['id']!r} {r['object']['kind']} of "
                   f"{sorted(mappers(r))}")
    print(f"{'kind':12}{'objects':>8}{'found':>8}{'exact':>8}{'false':>8}")
    for kind, (n, found, exact) in sorted(table.items()):
        false = sum(r["object"]["kind"] == kind for r in left)
        print(f"{kind:12}{n:8}{found:8}{exact:8}{false:8}")
    for line in bad:
        print("WRONG:", line)
    if not truth:
        sys.exit("no facts in the truth")
    sys.exit(1 if bad else 0)


main()
