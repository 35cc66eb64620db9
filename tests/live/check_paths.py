#!/usr/bin/python3
"""Compare a recording with the ground truth that tests/live/paths wrote down.

usage: check_paths.py TRUTH.json DIR [--verbose] [--table]

DIR has edges.json, entities.json, flows.json and summary.json of `witty-profiler show FILE …
--format json`. Compared are who read and wrote what (each thread; io_uring: each process, since a
thread of the kernel may do it), which process gave data to which other one, copied memory, passed
descriptors, and that each object is one entity. The exit status is 0 only when nothing is missing,
nothing is extra, and no byte and no call is wrong. A case may name a blind spot: what is missing
there is forgiven if a status row of the recording says that word.
"""
import argparse
import collections
import json
import os
import re
import sys

FLOW_KINDS = ("pipe", "fifo", "eventfd", "posix_queue", "sysv_queue", "memory_copy", "tcp", "unix",
              "udp")
CHANNELS = ("pipe", "fifo", "eventfd", "posix_queue", "sysv_queue")
# What a program reads when it is executed again: the first bytes of its libraries.
LOADED = re.compile(r"\.so(\.\d+)*$")
# Where a busy host has too many files for one look, those of a thread are told as one.
FOLDED = ("file", 0, "0:0")


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class Case:
    """A case of the truth, and what was found wrong with it."""

    def __init__(self, row):
        self.name, self.mechanism = row["case"], row["mechanism"]
        self.skipped, self.blind = row["skipped"], row["blind"]
        self.objects = row["objects"]
        self.names = {p["pid"]: p["name"] for p in row["processes"] if p["pid"]}
        self.per_process = self.mechanism.startswith("io_uring")
        self.accesses, self.moves, self.flows = row["accesses"], row["moves"], row["flows"]
        self.expected = self.found = self.extra = self.folded = 0
        self.byte_error = 0
        # Blind is either what one end of a flow did, or all of the case.
        self.blind_flow = any(f["blind_receive"] for f in self.flows)
        self.forgivable, self.faults = [], []

    def fault(self, text, forgivable=False):
        (self.forgivable if forgivable else self.faults).append(text)

    def number(self, what, field, got, want, blind=False):
        """Compare one number; an absent one may be a blind spot, a wrong one is not."""
        if got == want:
            return
        if field.startswith("bytes"):
            self.byte_error += abs((got or 0) - (want or 0))
        self.fault(f"wrong: {what}: {field} {'null' if got is None else got}, should be {want}",
                   got is None and (blind or not self.blind_flow))

    def missing(self, what):
        self.fault(f"missing: {what}", not self.blind_flow)

    def surplus(self, what):
        self.extra += 1
        self.fault(f"extra: {what}")


def object_key(o):
    """Identity of an object of the truth, in the words of the recording's entities."""
    kind, where = o["kind"], o["dev"]
    if kind == "pipe":
        return "pipe_inode", o["id"], None
    if kind == "fifo":
        return "pipe_inode", o["id"], where
    if kind == "file":
        return "file", o["id"], where
    if kind == "eventfd":
        return "eventfd", o["id"], None
    if kind == "socket":
        return "socket", o["id"], None
    return kind, o["id"], o["ns"]


def entity_key(e):
    kind = e["type"]
    if kind in ("pipe_inode", "file"):
        return kind, e["inode"], e.get("dev")
    if kind == "eventfd":
        return kind, e["eventfd_id"], None
    if kind == "posix_queue":
        return kind, e["inode"], e["ipcns"]
    if kind == "sysv_queue":
        return kind, e["msqid"], e["ipcns"]
    if kind == "sysv_sem":
        return kind, e["semid"], e["ipcns"]
    if kind == "unix_socket":
        return "socket", e["inode"], None
    return kind, e["id"], None


def object_text(key):
    return f"{key[0]} {key[1]}" + (f" of {key[2]}" if key[2] else "")


class Recording:
    """The recording, by the keys that the truth has."""

    def __init__(self, folder):
        def part(name):
            return load(os.path.join(folder, name + ".json"))

        self.entities = {e["id"]: e for e in part("entities")}
        self.edges, self.flows, self.summary = part("edges"), part("flows"), part("summary")

    def pid(self, process_id):
        return self.entities[process_id]["pid"] if process_id in self.entities else None

    def thread(self, thread_id):
        """(pid, tid)"""
        e = self.entities[thread_id]
        return self.pid(e["process"]), e["tid"]

    def says(self, word):
        return any(word in f"{s['source']} {s['reason']}" and s["state"] != "ok"
                   for s in self.summary["status"])


def take_accesses(rec, by_pid, ignored_devs):
    """{case: {(pid, tid, object, dir): [edge]}} of the edges that touch processes of the truth."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for edge in rec.edges:
        if edge["type"] not in ("write_to", "read_from"):
            continue
        writes = edge["type"] == "write_to"
        thread, thing = (edge["source"], edge["target"]) if writes else \
                        (edge["target"], edge["source"])
        pid, tid = rec.thread(thread)
        entity = rec.entities[thing]
        if pid not in by_pid or entity.get("dev") in ignored_devs and entity["type"] == "file":
            continue
        case = by_pid[pid]
        if case.name == "exec" and not writes and (
                LOADED.search(entity.get("path") or "") or entity_key(entity) == FOLDED):
            continue
        key = (pid, 0 if case.per_process else tid, entity_key(entity),
               "write" if writes else "read")
        found[case][key].append(edge)
    return found


def wanted_accesses(case):
    """{(pid, tid, object, dir): {bytes, calls, zero}}: waits for zero are told with the reads."""
    want = collections.defaultdict(lambda: {"bytes": 0, "calls": 0, "zero": 0})
    for a in case.accesses:
        tid = 0 if case.per_process else a["tid"]
        key = object_key(case.objects[a["object"]])
        w = want[(a["pid"], tid, key, "write" if a["dir"] == "write" else "read")]
        w["bytes"] += a["bytes"]
        w["zero" if a["dir"] == "zero" else "calls"] += a["calls"]
    return want


def total(edges, field):
    values = [e.get(field) for e in edges]
    return None if all(v is None for v in values) else sum(v or 0 for v in values)


def unfold(case, want, found):
    """Take out what is right in sum: files of a thread that are told as one, if that is said."""
    for (pid, tid, thing, way) in [k for k in found if k[2] == FOLDED]:
        edges = found[(pid, tid, thing, way)]
        parts = [k for k in want if k not in found and k[2][0] == "file" and
                 (k[0], k[1], k[3]) == (pid, tid, way)]
        sums = [sum(want[k][unit] for k in parts) for unit in ("bytes", "calls")]
        if not parts or sums != [total(edges, "bytes"), total(edges, "calls")]:
            continue
        del found[(pid, tid, thing, way)]
        for k in parts:
            del want[k]
        case.folded += len(parts)


def check_accesses(case, rec, found):
    want = wanted_accesses(case)
    if rec.says("folded"):
        unfold(case, want, found)
    for key, w in want.items():
        pid, tid, thing, way = key
        what = f"{case.names.get(pid)} [{tid or pid}] {way} {object_text(thing)}"
        case.expected += 1
        edges = found.pop(key, None)
        if not edges:
            case.missing(f"{what}: {w['bytes']} bytes, {w['calls']} calls")
            case.byte_error += w["bytes"]
            continue
        case.found += 1
        is_sem = thing[0] == "sysv_sem"
        case.number(what, "bytes", total(edges, "bytes"), None if is_sem else w["bytes"])
        case.number(what, "calls", total(edges, "calls"), w["calls"])
        if is_sem and way == "read":
            case.number(what, "zero_waits", total(edges, "zero_waits"), w["zero"])
        if len(edges) > 1 and not case.per_process:
            case.fault(f"identity: {what} is told by {len(edges)} edges")
    for (pid, tid, thing, way), edges in found.items():
        case.surplus(f"{case.names.get(pid)} [{tid or pid}] {way} {object_text(thing)}: "
                     f"{total(edges, 'bytes')} bytes, {total(edges, 'calls')} calls")


def check_identity(case, rec, found):
    """One entity for one object, and the name of it where it has one."""
    ids = collections.defaultdict(set)
    for (_, _, key, _), edges in found.items():
        for e in edges:
            ids[key].add(e["target"] if e["type"] == "write_to" else e["source"])
    for o in case.objects:
        mine = ids.get(object_key(o), set())
        if len(mine) > 1:
            case.fault(f"identity: {o['kind']} {o['id']} is {len(mine)} entities: {sorted(mine)}")
        for i in mine:
            check_name(case, o, rec.entities[i])


def check_name(case, o, entity):
    if o["kind"] == "posix_queue" and entity["name"] != o["path"]:
        case.fault(f"name: {entity['id']} is {entity['name']}, should be {o['path']}")
    if o["kind"] == "file" and entity["fs_type"] is None:
        case.fault(f"file system: that of {entity['id']} is not told")
    if o["kind"] not in ("fifo", "file") or "memfd:" in o["path"]:
        return
    folder, name = os.path.split(o["path"])
    # Who uses a file by io_uring need not have a descriptor that could be looked at.
    if case.per_process and entity["path"] == name:
        return
    if not (entity["path"] or "").startswith(folder + "/") and "(deleted)" not in o["path"]:
        case.fault(f"name: {entity['id']} is {entity['path']}, should be in {folder}")


class Pair:
    """What a flow has to say; a part that several share is only known in sum."""

    def __init__(self):
        self.values = dict.fromkeys(("bytes_sent", "messages_sent", "bytes_received",
                                     "messages_received"), 0)
        self.shared = {"sent": False, "received": False}
        self.blind = False

    def add(self, end, bytes_, calls):
        self.values[f"bytes_{end}"] += bytes_
        self.values[f"messages_{end}"] += calls


def sides(case, index):
    """({pid: [bytes, calls]} of writers, the same of readers) of one object."""
    ends = {"write": {}, "read": {}}
    for a in case.accesses:
        if a["object"] == index and a["dir"] in ends:
            e = ends[a["dir"]].setdefault(a["pid"], [0, 0])
            e[0] += a["bytes"]
            e[1] += a["calls"]
    return ends["write"], ends["read"]


def wanted_flows(case):
    """({(from, to, kind): Pair}, [sum that several pairs share])"""
    pairs, sums = collections.defaultdict(Pair), []
    for index, o in enumerate(case.objects):
        if o["kind"] not in CHANNELS:
            continue
        writers, readers = sides(case, index)
        for w, sent in writers.items():
            for r, received in readers.items():
                p = pairs[(w, r, o["kind"])]
                p.shared["sent"] |= len(readers) > 1
                p.shared["received"] |= len(writers) > 1
                p.add("sent", *sent)
                p.add("received", *received)
        if len(readers) > 1:
            sums += [("sent", [(w, r, o["kind"]) for r in readers], n) for w, n in writers.items()]
        if len(writers) > 1:
            sums += [("received", [(w, r, o["kind"]) for w in writers], n)
                     for r, n in readers.items()]
    for f in case.flows:
        p = pairs[(f["from"], f["to"], f["kind"])]
        p.add("sent", f["bytes_sent"], f["messages_sent"])
        p.add("received", f["bytes_received"], f["messages_received"])
        p.blind |= f["blind_receive"]
    for m in case.moves:
        if "object" not in m:
            p = pairs[(m["from"], m["to"], "memory_copy")]
            p.add("sent", m["bytes"], m["count"])
            p.add("received", m["bytes"], m["count"])
    return pairs, merge_sums(sums)


def merge_sums(sums):
    """The same flows may go over several objects."""
    merged = {}
    for end, keys, n in sums:
        both = merged.setdefault((end, tuple(keys)), [0, 0])
        both[0] += n[0]
        both[1] += n[1]
    return [(end, keys, n) for (end, keys), n in merged.items()]


def check_flow(case, key, pair, row):
    what = f"flow {case.names.get(key[0])} -> {case.names.get(key[1])} {key[2]}"
    for end in ("sent", "received"):
        for unit in ("bytes", "messages"):
            field = f"{unit}_{end}"
            if pair.shared[end]:
                continue
            if unit == "messages" and key[2] in ("tcp", "unix", "udp"):
                continue
            if key[2] == "memory_copy":
                continue
            case.number(what, field, row[field], pair.values[field],
                        pair.blind and end == "received")
    if key[2] == "memory_copy":
        case.number(what, "bytes", row["bytes"], pair.values["bytes_sent"])
        case.number(what, "messages", row["messages"], pair.values["messages_sent"])


def check_flows(case, rows):
    pairs, sums = wanted_flows(case)
    got = {}
    for key, pair in pairs.items():
        case.expected += 1
        row = rows.pop(key, None)
        if row is None:
            case.missing(f"flow {case.names.get(key[0])} -> {case.names.get(key[1])} {key[2]}: "
                         f"{pair.values['bytes_sent']} bytes")
            case.byte_error += pair.values["bytes_sent"]
            continue
        case.found += 1
        got[key] = row
        check_flow(case, key, pair, row)
    for end, keys, want in sums:
        have = [got[k] for k in keys if k in got]
        if not have:
            continue
        what = f"{len(keys)} flows that share a {keys[0][2]}, in sum"
        case.number(what, f"bytes_{end}", total(have, f"bytes_{end}"), want[0])
        case.number(what, f"messages_{end}", total(have, f"messages_{end}"), want[1])
    for (source, target, kind), row in rows.items():
        case.surplus(f"flow {case.names.get(source, source)} -> {case.names.get(target, target)} "
                     f"{kind}: {row['bytes']} bytes")


def check_copies(case, rec, edges):
    want = {(m["from"], m["to"]): m for m in case.moves if "object" not in m}
    for (source, target), m in want.items():
        what = f"memory_copy {case.names[source]} -> {case.names[target]}"
        case.expected += 1
        mine = [e for e in edges if (rec.pid(e["source"]), rec.pid(e["target"])) ==
                (source, target)]
        edges = [e for e in edges if e not in mine]
        if not mine:
            case.missing(f"{what}: {m['bytes']} bytes")
            case.byte_error += m["bytes"]
            continue
        case.found += 1
        case.number(what, "bytes", total(mine, "bytes"), m["bytes"])
        case.number(what, "calls", total(mine, "calls"), m["count"])
    for e in edges:
        case.surplus(f"memory_copy {e['source']} -> {e['target']}: {e['bytes']} bytes")


def passed_kind(o):
    return "memfd" if "memfd:" in o["path"] else o["kind"]


def passed_text(case, key):
    source, target, kind, thing = key
    name = object_text(thing) if thing else kind
    return f"passed {case.names.get(source)} -> {case.names.get(target)} {kind}, {name}"


def check_passes(case, rec, edges):
    """By kind and object; a socket may have no entity, as long as nothing went through it."""
    want, got = collections.Counter(), collections.Counter()
    for m in case.moves:
        if "object" in m:
            o = case.objects[m["object"]]
            thing = None if o["kind"] == "socket" else object_key(o)
            want[(m["from"], m["to"], passed_kind(o), thing)] += m["count"]
    via = "pidfd_getfd" if case.mechanism == "pidfd_getfd" else "SCM_RIGHTS"
    for e in edges:
        thing = rec.entities.get(e["object"])
        key = (rec.pid(e["source"]), rec.pid(e["target"]), e["kind"],
               entity_key(thing) if thing and e["kind"] != "socket" else None)
        got[key] += e["descriptors"]
        if e["via"] != via:
            case.fault(f"wrong: {passed_text(case, key)}: via {e['via']}, should be {via}")
    for key, n in want.items():
        what = passed_text(case, key)
        case.expected += 1
        if key not in got:
            case.missing(what)
            continue
        case.found += 1
        case.number(what, "descriptors", got.pop(key), n)
    for key, n in got.items():
        case.surplus(f"{passed_text(case, key)}, {n} times")


def of_processes(rec, edge_type, by_pid):
    """{case: edges of that type that touch its processes}"""
    found = collections.defaultdict(list)
    for e in rec.edges:
        if e["type"] != edge_type:
            continue
        case = by_pid.get(rec.pid(e["source"])) or by_pid.get(rec.pid(e["target"]))
        if case:
            found[case].append(e)
    return found


def flows_of(rec, by_pid):
    found = collections.defaultdict(dict)
    for row in rec.flows:
        source, target = row["source"].get("pid"), row["target"].get("pid")
        case = by_pid.get(source) or by_pid.get(target)
        if case and row["kind"] in FLOW_KINDS:
            found[case][(source, target, row["kind"])] = row
    return found


def judge(truth, rec):
    cases = [Case(row) for row in truth["cases"]]
    by_pid = {pid: c for c in cases for pid in c.names}
    accesses = take_accesses(rec, by_pid, {truth["proc_dev"]})
    flows = flows_of(rec, by_pid)
    copies = of_processes(rec, "memory_copy", by_pid)
    passes = of_processes(rec, "fd_passed", by_pid)
    for c in cases:
        if c.skipped:
            continue
        check_identity(c, rec, accesses[c])
        check_accesses(c, rec, accesses[c])
        check_flows(c, flows[c])
        check_copies(c, rec, copies[c])
        check_passes(c, rec, passes[c])
    return cases


def is_forgiven(case, rec):
    return bool(case.blind) and rec.says(case.blind)


def is_good(case, rec):
    return not case.faults and (not case.forgivable or is_forgiven(case, rec))


def row_of(mechanism, cases, rec):
    played = [c for c in cases if not c.skipped]
    expected, found = sum(c.expected for c in played), sum(c.found for c in played)
    extra = sum(c.extra for c in played)
    notes = [f"{c.name} skipped: {c.skipped}" for c in cases if c.skipped]
    notes += [f"{c.name}: blind, and says so" for c in played
              if c.forgivable and is_good(c, rec)]
    notes += [f"{c.name}: {c.folded} folded, and says so" for c in played if c.folded]
    notes += [f"{c.name} FAILED" for c in played if not is_good(c, rec)]
    return (mechanism, len(played), expected, found / expected if expected else 1,
            found / (found + extra) if found + extra else 1, sum(c.byte_error for c in played),
            ", ".join(notes) or "ok")


def print_table(cases, rec, verbose, mark):
    form = mark + "{:<24}{:>6}{:>7}{:>8}{:>10}{:>11}  {}"
    print(form.format("mechanism", "cases", "facts", "recall", "precision", "byte error", "note"))
    for mechanism in dict.fromkeys(c.mechanism for c in cases):
        row = row_of(mechanism, [c for c in cases if c.mechanism == mechanism], rec)
        print(form.format(*row[:3], f"{row[3]:.4f}", f"{row[4]:.4f}", *row[5:]))
    for c in cases:
        lines = c.faults + c.forgivable
        for line in lines[:None if verbose else 6]:
            print(f"    {c.name}: {line}")
        if len(lines) > 6 and not verbose:
            print(f"    {c.name}: and {len(lines) - 6} more")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("truth")
    p.add_argument("folder")
    p.add_argument("--verbose", action="store_true", help="print each fault")
    p.add_argument("--table", action="store_true", help="mark the table for tests/run.py")
    a = p.parse_args()
    rec = Recording(a.folder)
    cases = judge(load(a.truth), rec)
    if not any(c.expected for c in cases) and not all(c.skipped for c in cases):
        quiet = {"silent"}
        if not {c.name for c in cases} <= quiet:
            sys.exit(f"error: '{a.truth}' expects nothing")
    print_table(cases, rec, a.verbose, "| " if a.table else "")
    bad = [c.name for c in cases if not is_good(c, rec)]
    print(f"{len(cases)} cases, {sum(c.expected for c in cases)} facts, {len(bad)} cases failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
