#!/usr/bin/python3
"""The program of known paths agrees with itself, and its checker refuses all but the truth.

usage: test_paths_itself.py PATHS_PROGRAM

Needs no profiler: a perfect recording is made from the truth, then spoiled in one place after the
other.
"""
import collections
import copy
import json
import os
import subprocess
import sys
import tempfile

import check_paths

CHECKER = os.path.abspath(check_paths.__file__)
KEYS = {"pipe_inode": ("inode", "dev"), "file": ("inode", "dev"), "eventfd": ("eventfd_id", None),
        "posix_queue": ("inode", "ipcns"), "sysv_queue": ("msqid", "ipcns"),
        "sysv_sem": ("semid", "ipcns"), "socket": ("inode", None)}


class Maker:
    """Writes down what a recorder without fault would have seen."""

    def __init__(self, truth):
        self.entities, self.edges, self.flows = {}, [], []
        self.status = []
        for case in map(check_paths.Case, truth["cases"]):
            self.make(case)

    def process(self, pid):
        ident = f"process:{pid}"
        self.entities[ident] = {"id": ident, "type": "process", "pid": pid}
        return ident

    def thread(self, pid, tid):
        ident = f"thread:{tid}"
        self.entities[ident] = {"id": ident, "type": "thread", "tid": tid,
                                "process": self.process(pid)}
        return ident

    def thing(self, o):
        kind, number, where = check_paths.object_key(o)
        ident = f"{kind}:{number}:{where}"
        first, second = KEYS[kind]
        type_ = "unix_socket" if kind == "socket" else kind
        e = {"id": ident, "type": type_, first: number, "path": o["path"], "name": o["path"], "fs_type": "ext4"}
        if second:
            e[second] = where
        self.entities[ident] = e
        return ident

    def make(self, case):
        for a in case.accesses:
            thread = self.thread(a["pid"], a["tid"])
            self.access(a, thread, self.thing(case.objects[a["object"]]))
        for (source, target, kind), pair in check_paths.wanted_flows(case)[0].items():
            self.flow(source, target, kind, pair)
        self.split_shared(case)
        for m in case.moves:
            edge = {"source": self.process(m["from"]), "target": self.process(m["to"])}
            if "object" in m:
                o = case.objects[m["object"]]
                edge.update(type="fd_passed", object=self.thing(o), descriptors=m["count"],
                            kind=check_paths.passed_kind(o),
                            via="pidfd_getfd" if case.name == "getfd" else "SCM_RIGHTS")
            else:
                edge.update(type="memory_copy", bytes=m["bytes"], calls=m["count"])
            self.edges.append(edge)

    def access(self, a, thread, thing):
        writes = a["dir"] == "write"
        edge = {"type": "write_to" if writes else "read_from",
                "source": thread if writes else thing, "target": thing if writes else thread,
                "bytes": a["bytes"], "calls": a["calls"], "zero_waits": None}
        if thing.startswith("sysv_sem"):
            edge.update(bytes=None, zero_waits=0)
        if a["dir"] == "zero":
            edge.update(calls=0, zero_waits=a["calls"])
        for old in self.edges:
            if all(old.get(k) == edge[k] for k in ("type", "source", "target")):
                old["calls"] += edge["calls"]
                old["zero_waits"] += edge["zero_waits"]
                return
        self.edges.append(edge)

    def flow(self, source, target, kind, pair):
        row = {"source": {"pid": source}, "target": {"pid": target}, "kind": kind, **pair.values}
        row["bytes"], row["messages"] = row["bytes_sent"], row["messages_sent"]
        self.flows.append(row)

    def split_shared(self, case):
        """Of several users of one thing: all to the first of a sum, nothing to the others."""
        rows = {(f["source"]["pid"], f["target"]["pid"], f["kind"]): f for f in self.flows}
        for end, keys, n in check_paths.wanted_flows(case)[1]:
            for k in keys:
                rows[k][f"bytes_{end}"] = rows[k][f"messages_{end}"] = 0
            rows[keys[0]][f"bytes_{end}"], rows[keys[0]][f"messages_{end}"] = n

    def write(self, folder):
        for name, value in (("entities", list(self.entities.values())), ("edges", self.edges),
                            ("flows", self.flows), ("summary", {"status": self.status})):
            with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as f:
                json.dump(value, f)


class Spoiler:
    """Runs the checker on a recording that is wrong in one way."""

    def __init__(self, folder, truth):
        self.folder, self.right = folder, Maker(truth)
        self.truth = os.path.join(folder, "truth.json")
        self.wrong = 0

    def expect(self, name, change, want):
        maker = copy.deepcopy(self.right)
        change(maker)
        maker.write(self.folder)
        run = subprocess.run([sys.executable, CHECKER, self.truth, self.folder],
                             capture_output=True, text=True, check=False)
        if run.returncode != want:
            self.wrong += 1
            print(f"WRONG: {name}: exit {run.returncode}\n{run.stdout[-1500:]}{run.stderr}")


def first(rows, **fields):
    return next(r for r in rows if all(r.get(k) == v for k, v in fields.items()))


def pipe_edge(m, type_="write_to"):
    end = "target" if type_ == "write_to" else "source"
    return next(e for e in m.edges if e["type"] == type_ and e[end].startswith("pipe_inode"))


def add(rows, key, n=1):
    return lambda m: rows(m).__setitem__(key, rows(m)[key] + n)


def drop_type(type_):
    return lambda m: m.edges.remove(first(m.edges, type=type_))


def passed_edge(m):
    return first(m.edges, type="fd_passed")


def sem_edge(m):
    return next(e for e in m.edges if e["type"] == "read_from" and e["zero_waits"])


def blind_flow(truth):
    case = next(c for c in truth["cases"] if c["case"] == "drainunix")
    return case["flows"][0]["from"], case["flows"][0]["to"]


def spoil_flows(s, truth):
    source, target = blind_flow(truth)

    def unseen(value, says):
        def change(m):
            row = next(f for f in m.flows if (f["source"]["pid"], f["target"]["pid"]) ==
                       (source, target))
            row["bytes_received"] = row["messages_received"] = value
            if says:
                m.status.append({"source": "sock", "state": "blind", "reason": "not by splice(2)"})
        return change

    s.expect("a flow is missing", lambda m: m.flows.pop(3), 1)
    s.expect("no flows", lambda m: m.flows.clear(), 1)
    s.expect("a flow to the wrong process",
             lambda m: m.flows[0]["target"].update(pid=m.flows[5]["target"]["pid"]), 1)
    s.expect("a flow of the wrong kind", lambda m: m.flows[0].update(kind="fifo"), 1)
    s.expect("a flow too many", lambda m: m.flows.append({**m.flows[0], "kind": "eventfd"}), 1)
    s.expect("a flow with a stranger", lambda m: m.flows.append(
        {**m.flows[0], "target": {"pid": 1}}), 1)
    s.expect("strangers' flow", lambda m: m.flows.append(
        {**m.flows[0], "source": {"pid": 1}, "target": {"pid": 2}}), 0)
    for field in ("bytes_sent", "bytes_received", "messages_sent", "messages_received"):
        s.expect(f"{field} is off", add(lambda m: first(m.flows, kind="pipe"), field), 1)
        s.expect(f"{field} of a share is off", add(lambda m: first(
            m.flows, kind="eventfd"), field), 1)
    s.expect("blind and says nothing", unseen(None, False), 1)
    s.expect("blind and says so", unseen(None, True), 0)
    s.expect("blind and a zero", unseen(0, True), 1)


def spoil_edges(s):
    s.expect("an edge is missing", lambda m: m.edges.pop(0), 1)
    s.expect("an edge twice", lambda m: m.edges.append(dict(m.edges[0])), 1)
    s.expect("no edges", lambda m: m.edges.clear(), 1)
    s.expect("bytes not measured", lambda m: pipe_edge(m).update(bytes=None), 1)
    for field in ("bytes", "calls"):
        s.expect(f"{field} written off", add(pipe_edge, field), 1)
        s.expect(f"{field} read off", add(lambda m: pipe_edge(m, "read_from"), field, -1), 1)
    s.expect("zero waits are off", add(sem_edge, "zero_waits"), 1)
    s.expect("zero waits are told as reads", add(sem_edge, "calls"), 1)
    s.expect("bytes of a semaphore", lambda m: sem_edge(m).update(bytes=0), 1)
    s.expect("the wrong thread", lambda m: pipe_edge(m).update(source=m.edges[-40]["target"]), 1)
    s.expect("no memory copy", drop_type("memory_copy"), 1)
    s.expect("a copy in the wrong direction", lambda m: first(m.edges, type="memory_copy").update(
        source=first(m.edges, type="memory_copy")["target"],
        target=first(m.edges, type="memory_copy")["source"]), 1)
    s.expect("copied bytes are off", add(lambda m: first(m.edges, type="memory_copy"), "bytes"), 1)
    s.expect("no passed descriptor", drop_type("fd_passed"), 1)
    s.expect("too many passed", add(passed_edge, "descriptors"), 1)
    s.expect("passed another way", lambda m: passed_edge(m).update(via="ptrace"), 1)
    s.expect("passed another kind", lambda m: passed_edge(m).update(kind="tty"), 1)
    s.expect("passed another object", lambda m: passed_edge(m).update(object=None), 1)


def fold_files(of, says):
    """The files of the thread of one case become one."""
    def change(m):
        threads = {f"thread:{a['tid']}" for a in of["accesses"]}
        m.entities["file:0"] = {"id": "file:0", "type": "file", "inode": 0, "dev": "0:0",
                                "path": None, "fs_type": None}
        for type_, thread, thing in (("write_to", "source", "target"),
                                     ("read_from", "target", "source")):
            mine = [e for e in m.edges if e["type"] == type_ and e[thread] in threads]
            m.edges = [e for e in m.edges if e not in mine]
            m.edges.append({**mine[0], thing: "file:0", "bytes": sum(e["bytes"] for e in mine),
                            "calls": sum(e["calls"] for e in mine)})
        if says:
            m.status.append({"source": "ipc", "state": "blind", "reason": "files were folded"})
    return change


def spoil_folded(s, truth):
    case = next(c for c in truth["cases"] if c["case"] == "memory")
    s.expect("folded, and says so", fold_files(case, True), 0)
    s.expect("folded, and says nothing", fold_files(case, False), 1)

    def inexact(m):
        fold_files(case, True)(m)
        m.edges[-1]["bytes"] += 1
    s.expect("folded, a byte off", inexact, 1)


def spoil_objects(s):
    def another_name(m):
        edge = pipe_edge(m)
        other = {**m.entities[edge["target"]], "id": "pipe_inode:again"}
        m.entities[other["id"]] = other
        m.edges[m.edges.index(edge)] = {**edge, "target": other["id"]}

    def fifo(m):
        return next(e for e in m.entities.values() if e["type"] == "pipe_inode" and e["dev"])

    def queue(m):
        return next(e for e in m.entities.values() if e["type"] == "posix_queue")

    s.expect("one pipe as two entities", another_name, 1)
    s.expect("a FIFO without a path", lambda m: fifo(m).update(path=None), 1)
    s.expect("a FIFO of another device", lambda m: fifo(m).update(dev="0:77"), 1)
    s.expect("a queue with another name", lambda m: queue(m).update(name="/other"), 1)
    s.expect("a queue of another namespace", lambda m: queue(m).update(ipcns=1), 1)


def consistent(truth):
    """What the program says of itself: nothing is received that was not sent."""
    for case in truth["cases"]:
        done = collections.Counter()
        for a in case["accesses"]:
            if a["dir"] != "zero":
                done[(a["object"], a["dir"])] += a["bytes"]
        for i, o in enumerate(case["objects"]):
            if o["kind"] in check_paths.CHANNELS and o["kind"] != "eventfd":
                assert done[(i, "read")] <= done[(i, "write")], (case["case"], o)
        for f in case["flows"]:
            assert f["bytes_sent"] == f["bytes_received"] > 0, (case["case"], f)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "truth.json")
        subprocess.run([sys.argv[1], "--out", path], check=True, timeout=90)
        truth = check_paths.load(path)
        consistent(truth)
        s = Spoiler(folder, truth)
        s.expect("the truth", lambda m: None, 0)
        spoil_flows(s, truth)
        spoil_edges(s)
        spoil_folded(s, truth)
        spoil_objects(s)
    skipped = [c["case"] for c in truth["cases"] if c["skipped"]]
    print(f"{len(truth['cases'])} cases, {len(skipped)} skipped {skipped}, {s.wrong} wrong verdicts")
    return 1 if s.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
