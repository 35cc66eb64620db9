"""Queues and shared memory of Python's multiprocessing."""
import os

from real.bench import shared_by

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS, BYTES = 400, 3000


def queues(b):
    """Two queues, which are pipes with semaphores; a table in shared memory; the tracker of it."""
    name = "queues"
    seen, lines, truth = b.watch(
        ["/usr/bin/python3", f"{HERE}/tasks.py", str(TASKS), str(BYTES), b.held()], 3,
        lambda reports: shared_by([r["pid"] for r in reports]))
    parent = next(r for r in lines if r["role"] == "parent")
    workers = [r for r in lines if r["role"] == "worker"]
    pid = parent["pid"]
    # Who wrote for two readers cannot be known for each of them, but in sum.
    b.line(f"{name}: tasks put", parent["put_bytes"],
           sum(seen.sum("pipe", pid, w["pid"], "bytes_sent") for w in workers))
    b.hops(f"{name}: tasks got, each worker", {(pid, w["pid"]): w["got_bytes"] for w in workers},
           {(pid, w["pid"]): seen.sum("pipe", pid, w["pid"], "bytes_received") for w in workers})
    b.hops(f"{name}: answers put, each worker", {(w["pid"], pid): w["put_bytes"] for w in workers},
           {(w["pid"], pid): seen.sum("pipe", w["pid"], pid, "bytes_sent") for w in workers})
    b.line(f"{name}: answers got", parent["got_bytes"],
           sum(seen.sum("pipe", w["pid"], pid, "bytes_received") for w in workers))
    ours = {r["pid"] for r in lines}
    b.demand(f"{name}: no pipe between workers",
             not seen.pairs("pipe", {w["pid"] for w in workers}), "there is")
    b.same_memory(name, truth, seen, ours)
    check_table(b, seen, parent, ours)
    check_turns(b, seen, {w["pid"] for w in workers})
    trackers = {f["target"]["pid"] for f in seen.flows if f["kind"] == "pipe"
                and f["source"]["pid"] == pid} - ours
    b.demand(f"{name}: tracker told by all", len(trackers) == 1 and
             seen.pairs("pipe", ours | trackers) >= {(p, t) for p in ours for t in trackers},
             f"{trackers}")


def check_table(b, seen, parent, ours):
    found = [(o["shm_size"], set(modes.values())) for o, modes in seen.mapped(ours)
             if o["shm_name"] == parent["table"] and set(modes) == ours]
    b.demand("queues: table of all, rw", found == [(parent["table_bytes"], {"rw"})], f"{found}")


def check_turns(b, seen, workers):
    """One worker reads the pipe, the other waits for its turn on a semaphore in shared memory."""
    proven = [m for m in seen.memory if m["object"]["shm_name"].startswith("sem.")
              and any({w["source"]["pid"], w["target"]["pid"]} == workers for w in m["wakes"])]
    b.demand("queues: turns by a semaphore",
             proven and all(m["direction"] == "proven by wake-ups" for m in proven),
             "no wake-up between workers within a semaphore")
