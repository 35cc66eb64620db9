#!/usr/bin/env python3
"""test_stall.py - a process that holds the lock of its memory map stalls no recording, for however long.

WITTY: the product. Needs root, and FUSE.
"""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

from recorder import WITTY, Recorder, verdict

HERE = os.path.dirname(os.path.abspath(__file__))
# Intervals that have to come while the lock is held: whoever waits for it makes none.
INTERVALS = 3


def start_holder(folder):
    holder = subprocess.Popen([sys.executable, os.path.join(HERE, "maplock.py"), folder], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    line = holder.stdout.readline().split()
    if not line or line[0] != "holds":
        print(*line)
        sys.exit(holder.wait() or 1)
    return holder


def record(folder, *options):
    """The lock is taken once observation has begun, and held until after its end."""
    path = os.path.join(folder, "stall.wpdb")
    recorder = Recorder(path, "--force", *options, interval="500ms")
    holder = start_holder(folder)
    try:
        before = recorder.intervals()
        recorder.until("intervals while the lock is held", lambda: recorder.intervals() >= before + INTERVALS)
        recorder.end()
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
    return path


def begins_whole(path, *options):
    """The first look takes its time: what threads do meanwhile is of the first interval, not left out of it."""
    if "--no-ebpf" in options:
        return []
    db = sqlite3.connect(path)
    length = db.execute("SELECT end_ns - start_ns FROM interval WHERE n = 0").fetchone()[0]
    seen = db.execute("SELECT max(run_ns + runq_ns + blocked_ns) FROM series_thread WHERE interval = 0").fetchone()[0] or 0
    db.close()
    print(f"first interval: {length / 1e6:.0f} ms, of which a thread was observed for {seen / 1e6:.0f} ms")
    return [] if seen > .6 * length else ["threads were not observed from the beginning of the first interval"]


def check(folder, *options):
    path = record(folder, *options)
    problems = begins_whole(path, *options)
    db = sqlite3.connect(path)
    rows = db.execute("SELECT start_ns, end_ns FROM interval ORDER BY start_ns").fetchall()
    db.close()
    losses = {(r["source"], r["cause"]): r["count"] for r in json.loads(subprocess.run(
        [WITTY, "show", path, "summary", "--format", "json"], stdout=subprocess.PIPE, text=True,
        check=True).stdout)["lost"]}
    # With --numa-exact a look may take long; then the others tell.
    if not [s for s, cause in losses if cause == "memory_map_locked"]:
        problems.append("nothing says that a memory map was locked")
    edges = json.loads(subprocess.run([WITTY, "show", path, "edges", "--type", "numa_access", "--limit", "0",
                                       "--format", "json"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    found = {e["source"] for e in edges}
    if f"process:{os.getpid()}" not in found:
        problems.append("the others are to be known")
    print(f"{' '.join(options) or 'default'}: {len(rows)} intervals, the longest {max(b - a for a, b in rows) / 1e9:.2f} s, "
          f"{len(found)} processes known, {losses}")
    return problems


def main():
    with tempfile.TemporaryDirectory() as folder:
        problems = check(folder) + check(folder, "--numa-exact") + check(folder, "--no-ebpf")
    return verdict(problems, "no look waits for a lock")


if __name__ == "__main__":
    sys.exit(main())
