#!/usr/bin/env python3
"""test_hotspots.py - profiles of threads in a real recording against what the kernel counts for them.

WITTY: the product; HOTSPOTS: the program whose threads are known. Needs root. The threads rest when the recording
begins and when it ends: what /proc/PID/task/TID/schedstat and status say of the time in between is what the
recording has to say, however busy the host is. Classes and causes are those that the program is made for.
"""
import json
import os
import subprocess
import sys
import tempfile

from recorder import Recorder

WITTY, HOTSPOTS = os.environ["WITTY"], os.environ["HOTSPOTS"]
SECONDS = 3
failures = []


def check(what, good, *more):
    if not good:
        failures.append(" ".join([what, *map(str, more)]))


def read(path):
    with open(path) as f:
        return f.read()


def counters(pid, tids):
    """{tid: [ns that it ran, ns in run queues, voluntary and involuntary switches]}, as the kernel has them by now"""
    found = {}
    for tid in tids:
        folder = f"/proc/{pid}/task/{tid}/"
        run, queue, _ = map(int, read(folder + "schedstat").split())
        status = dict(line.split(":", 1) for line in read(folder + "status").splitlines() if ":" in line)
        found[tid] = [run, queue, int(status["voluntary_ctxt_switches"]), int(status["nonvoluntary_ctxt_switches"])]
    return found


def stolen_ns():
    """What others than this machine's threads took of its CPUs so far: interrupts, and a host of guests."""
    words = list(map(int, read("/proc/stat").split("\n", 1)[0].split()[1:]))
    return (words[5] + words[6] + words[7]) * 10 ** 9 // os.sysconf("SC_CLK_TCK")


def record(path):
    """Returns what hotspots says, the names of its threads, what the kernel says, and the CPUs that they may use."""
    program = subprocess.Popen([HOTSPOTS, str(SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        names = {int(tid): name for name, tid in (program.stdout.readline().split() for _ in range(9))}
        recorder = Recorder(path, interval="1s")
        stolen = stolen_ns()
        before = counters(program.pid, names)
        program.stdin.write("\n")
        program.stdin.flush()
        check("the program ends", program.stdout.readline() == "end\n")
        after = counters(program.pid, names)
        stolen = stolen_ns() - stolen
        recorder.stop()
        truth = {tid: [b - a for a, b in zip(before[tid], after[tid])] for tid in names}
        allowed = read(f"/proc/{program.pid}/status").split("Cpus_allowed_list:")[1].split()[0]
    finally:
        program.kill()
        program.wait()
    said = [subprocess.run([WITTY, "hotspots", path, "--format", "json"], stdout=subprocess.PIPE, text=True, check=True).stdout
            for _ in range(2)]
    check("the same bytes each time", said[0] == said[1])
    return json.loads(said[0]), names, truth, stolen, allowed


def compare(name, t, truth, stolen):
    """
    Shares within four points, and rates within 15 a second and a twentieth: before the kernel was asked first and after it
    was asked last they rest, but for some naps. It takes what was stolen of a CPU off the time that a thread ran.
    """
    seconds = t["base_ns"] / 1e9
    run, queue, voluntary, involuntary = truth
    stolen = stolen * 100 / t["base_ns"]
    for key, value, slack in (("cpu_pct", run * 100 / t["base_ns"], 4 + stolen),
                              ("runq_pct", queue * 100 / t["base_ns"], 4 + stolen),
                              ("voluntary_s", voluntary / seconds, 15 + voluntary / seconds / 20),
                              ("involuntary_s", involuntary / seconds, 15 + involuntary / seconds / 20)):
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
        found, names, truth, stolen, allowed = record(path)
        threads = {t["thread"]["tid"]: t for t in found["threads"]}
        by_name = {name: threads[tid] for tid, name in names.items()}
        for tid, name in names.items():
            t = threads[tid]
            compare(name, t, truth[tid], stolen)
            check(f"{name} was seen all the time", t["base_ns"] >= SECONDS * 1e9, t["base_ns"])
            if t["cpus_allowed"]:
                check(f"{name} mask", t["cpus_allowed"] == allowed, t["cpus_allowed"], allowed)
        meanings(by_name, {name: tid for tid, name in names.items()})
    print("\n".join(failures) or "as the kernel says")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
