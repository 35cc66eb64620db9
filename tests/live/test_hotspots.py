#!/usr/bin/env python3
"""test_hotspots.py - profiles of threads in a real recording against what the kernel counts for them.

WITTY: the product; HOTSPOTS: the program whose threads are known. Needs root. While the recording goes on,
/proc/PID/task/TID/schedstat and status are read again and again, so that their figures at both ends of the
window are known; classes and causes are those that the program is made for.
"""
import bisect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

WITTY, HOTSPOTS = os.environ["WITTY"], os.environ["HOTSPOTS"]
SECONDS = 3
failures = []


def check(what, good, *more):
    if not good:
        failures.append(" ".join([what, *map(str, more)]))


def read(path):
    with open(path) as f:
        return f.read()


class Truth(threading.Thread):
    """Counters of each thread over time: (ns since 1970, run ns, run queue ns, voluntary, involuntary)."""

    def __init__(self, pid, tids):
        super().__init__(daemon=True)
        self.pid, self.rows, self.stop = pid, {tid: [] for tid in tids}, False

    def run(self):
        while not self.stop:
            for tid, rows in self.rows.items():
                folder = f"/proc/{self.pid}/task/{tid}/"
                run, queue, _ = map(int, read(folder + "schedstat").split())
                now = time.time_ns()
                status = dict(line.split(":", 1) for line in read(folder + "status").splitlines() if ":" in line)
                rows.append((now, run, queue, int(status["voluntary_ctxt_switches"]),
                             int(status["nonvoluntary_ctxt_switches"])))
            time.sleep(0.03)

    def at(self, tid, when, column):
        rows = self.rows[tid]
        i = min(max(bisect.bisect(rows, (when,)), 1), len(rows) - 1)
        (t0, *a), (t1, *b) = rows[i - 1], rows[i]
        part = min(max((when - t0) / max(t1 - t0, 1), 0), 1)
        return a[column] + (b[column] - a[column]) * part

    def between(self, tid, start, end):
        return [self.at(tid, end, c) - self.at(tid, start, c) for c in range(4)]


def record(path):
    """Returns what hotspots says, the names of its threads, and the truth."""
    program = subprocess.Popen([HOTSPOTS, "100"], stdout=subprocess.PIPE, text=True)
    try:
        names = dict(reversed(program.stdout.readline().split()) for _ in range(9))
        truth = Truth(program.pid, [int(t) for t in names])
        truth.start()
        done = subprocess.run([WITTY, "record", "-d", f"{SECONDS}s", "-o", path], capture_output=True, text=True,
                              timeout=90)
        check("record", done.returncode == 0, done.stderr)
        time.sleep(0.1)
        truth.stop = True
        truth.join()
        allowed = read(f"/proc/{program.pid}/status").split("Cpus_allowed_list:")[1].split()[0]
    finally:
        program.kill()
        program.wait()
    said = [subprocess.run([WITTY, "hotspots", path, "--format", "json"], capture_output=True, text=True, check=True,
                           timeout=60).stdout for _ in range(2)]
    check("the same bytes each time", said[0] == said[1])
    return json.loads(said[0]), {int(t): n for t, n in names.items()}, truth, allowed


def window(path):
    summary = json.loads(subprocess.run([WITTY, "show", path, "--format", "json"], capture_output=True, text=True,
                                        check=True, timeout=60).stdout)
    return summary["start_ns"], summary["start_ns"] + summary["window_ns"]


def figures(t):
    return [t["cpu_pct"], t["runq_pct"], t["voluntary_s"], t["involuntary_s"]]


def kernel(truth, tid, start, length):
    run, queue, voluntary, involuntary = truth.between(tid, start, start + length)
    return [run * 100 / length, queue * 100 / length, voluntary * 1e9 / length, involuntary * 1e9 / length]


def offset(threads, truth, start, end):
    """The scheduler is observed from when all is attached: where in the window that is, is found by all threads."""
    def distance(at):
        return sum(abs(a - b) / (10 + b) for tid in truth.rows
                   for a, b in zip(figures(threads[tid]), kernel(truth, tid, start + at, threads[tid]["base_ns"])))
    room = max(end - start - max(threads[tid]["base_ns"] for tid in truth.rows), 0)
    return min((room * i // 100 for i in range(101)), key=distance)


def compare(name, t, want):
    """Shares within four points, rates within an eighth: both ends of the window are known to 30 ms at best."""
    for key, value, slack in zip(("cpu_pct", "runq_pct", "voluntary_s", "involuntary_s"), want,
                                 (4, 4, 15 + want[2] / 8, 15 + want[3] / 8)):
        print(f"{name:6} {key:14} {t[key]:9.1f} kernel {value:9.1f}")
        check(f"{name} {key}", abs(t[key] - value) < slack, t[key], "kernel", value)
    check(f"{name} adds up", abs(t["cpu_pct"] + t["runq_pct"] + t["blocked_pct"] - 100) < 2.5,
          t["cpu_pct"], t["runq_pct"], t["blocked_pct"])
    check(f"{name} score", t["possible"] >= 3 and t["points"] <= t["possible"])


def meanings(by_name, tids):
    spin, calls = by_name["spin"], by_name["calls"]
    check("spin is user mode", spin["user_pct"] > 90, spin["user_pct"])
    check("calls is not", calls["user_pct"] < 50, calls["user_pct"])
    check("CPU is hot above its limit", any("CPU " in r["text"] for r in spin["reasons"]) == (spin["cpu_pct"] > 80))
    check("spin computes", spin["class"] == "compute" or spin["cpu_pct"] < 70, spin["class"], spin["class_why"])
    check("pings communicate", by_name["pings"]["class"] == "communication", by_name["pings"]["class"])
    # On a host that has no CPU for them, that is what holds them up.
    def cause(name, want):
        t = by_name[name]
        check(f"cause of {name}", t["cause"] == ("waits for a CPU" if t["runq_pct"] > 10 else want), t["cause"],
              t["cause_why"])
    check("naps are not late", by_name["naps"]["waits"][0]["idle"], by_name["naps"]["waits"])
    cause("naps", "none")
    waits = by_name["waits"]
    check("waits for a lock", waits["waits"][0]["cause"] == "futex" and not waits["waits"][0]["idle"], waits["waits"])
    cause("waits", "synchronisation")
    check("for its owner", waits["cause"] != "synchronisation" or waits["root"] == f"thread:{tids['owns']}",
          waits["root"], waits["root_why"])
    check("the owner wakes it", waits["wakers"][0]["waker"]["tid"] == tids["owns"], waits["wakers"])
    owner = by_name["owns"]["waiters"][0]
    check("the owner is waited for", owner["waiter"]["tid"] == tids["waits"] and
          owner["waited_ns"] > 0.8 * waits["waits"][0]["waited_ns"], owner, waits["waits"])
    moved = {b["kind"]: b for b in by_name["moves"]["data"]}
    taken = {b["kind"]: b for b in by_name["takes"]["data"]}
    check("bytes", moved["pipe"]["out_bytes"] > 0 and moved["pipe"]["out_bytes"] % 65536 == 0 and
          abs(moved["pipe"]["out_bytes"] - taken["pipe"]["in_bytes"]) <= 2 * 65536, moved, taken)


def main():
    if os.geteuid():
        print("SKIP: needs root")
        return 77
    with tempfile.TemporaryDirectory(prefix="witty-hot-") as folder:
        path = os.path.join(folder, "hot.wpdb")
        found, names, truth, allowed = record(path)
        start, end = window(path)
        threads = {t["thread"]["tid"]: t for t in found["threads"]}
        by_name = {name: threads[tid] for tid, name in names.items()}
        at = start + offset(threads, truth, start, end)
        print(f"observed from {(at - start) / 1e9:.2f} s of {(end - start) / 1e9:.2f} s on")
        for tid, name in names.items():
            t = threads[tid]
            compare(name, t, kernel(truth, tid, at, t["base_ns"]))
            check(f"{name} was seen all the time", t["base_ns"] >= 0.95 * SECONDS * 1e9, t["base_ns"])
            if t["cpus_allowed"]:
                check(f"{name} mask", t["cpus_allowed"] == allowed, t["cpus_allowed"], allowed)
        meanings(by_name, {name: tid for tid, name in names.items()})
    print("\n".join(failures) or "as the kernel says")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
