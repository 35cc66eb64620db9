#!/usr/bin/env python3
"""test_preempts.py - who takes the CPU of whom, and how threads are ranked, as the kernel has it.

WITTY: the product. Needs root. Two real-time processes compute on one CPU, so that little else gets there, and one of
higher priority takes it from them again and again. The test waits for turns of that one, not for a time.
"""
import json
import os
import subprocess
import sys
import tempfile

WITTY = os.environ["WITTY"]
TURNS = 100
COMPUTE = "while True: pass"
REST = "import time; time.sleep(600)"
# A line for each time that it has had the CPU.
TAKE = """
import sys, time
for n in range(100000):
    time.sleep(0.01)
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass
    sys.stdout.write("x\\n")
    sys.stdout.flush()
"""
failures = []


def check(what, good, *more):
    if not good:
        failures.append(" ".join([what, *map(str, more)]))


def start(code, cpu, policy, priority, nice):
    def rank():
        os.sched_setaffinity(0, {cpu})
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, preexec_fn=rank)


def show(path, *what):
    done = subprocess.run([WITTY, "show", path, *what, "--limit", "0", "--format", "json"], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=120)
    return json.loads(done.stdout)


def rows(found, name):
    return found[name] if isinstance(found, dict) else found


def tid_of(end):
    return int((end["id"] if isinstance(end, dict) else end).split(":")[1].split("#")[0])


def value(row, name):
    return row.get(name, row.get("fields", {}).get(name))


def record(path, taker):
    """From before the first of some turns until after the last one."""
    program = subprocess.Popen([WITTY, "record", "-d", "10m", "-o", path], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    while program.poll() is None and not os.path.exists(path):
        taker.stdout.readline()
    for _ in range(TURNS):
        taker.stdout.readline()
    program.terminate()
    _, said = program.communicate(timeout=120)
    check("record", program.returncode == 0, said)


def judge(path, ranks):
    threads = {int(value(t, "tid")): t for t in rows(show(path, "entities", "--type", "thread"), "entities")}
    names = {tid: name for name, (tid, _) in ranks.items()}
    for name, (tid, want) in ranks.items():
        got = tuple(value(threads[tid], key) for key in ("policy", "nice", "rt_priority"))
        check(f"{name} is ranked", got == want, got, want)
    times = {}
    for e in rows(show(path, "edges", "--type", "preempts"), "edges"):
        times.setdefault(tid_of(e["target"]), {})[tid_of(e["source"])] = value(e, "times")
    for name in ("first", "second"):
        tid = ranks[name][0]
        taken = {names.get(source): n for source, n in times.get(tid, {}).items()}
        lost = value(threads[tid], "involuntary_switches")
        print(f"{name}: lost its CPU {lost} times, to {taken}")
        check(f"{name}: the real-time one takes its CPU", taken.get("taker", 0) > 0, taken)
        check(f"{name}: never more often than it was lost", 0 < sum(times.get(tid, {}).values()) <= lost, taken, lost)
    check("nobody of less priority takes it from that one", not times.get(ranks["taker"][0], {}).get(ranks["first"][0]), times)


def main():
    if os.geteuid():
        print("SKIP: needs root")
        return 77
    cpu = max(os.sched_getaffinity(0))
    first = start(COMPUTE, cpu, os.SCHED_RR, 1, 0)
    second = start(COMPUTE, cpu, os.SCHED_RR, 1, 0)
    rests = start(REST, cpu, os.SCHED_BATCH, 0, 3)
    taker = start(TAKE, cpu, os.SCHED_RR, 7, 0)
    try:
        with tempfile.TemporaryDirectory(prefix="witty-preempts-") as folder:
            path = os.path.join(folder, "x.wpdb")
            record(path, taker)
            judge(path, {"first": (first.pid, ("rr", 0, 1)), "second": (second.pid, ("rr", 0, 1)),
                         "taker": (taker.pid, ("rr", 0, 7)), "rests": (rests.pid, ("batch", 3, 0))})
    finally:
        for p in (first, second, taker, rests):
            p.kill()
            p.wait()
            p.stdout.close()
    print("\n".join(failures) or "as the kernel says")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
