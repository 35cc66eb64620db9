#!/usr/bin/env python3
"""test_analysis.py - what the server tells of a window is what a recording of the same window tells: findings, threads, chains
of waits, in the order of events; and what it tells of a change. Needs root and BPF."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from server import LONG, WITTY, Server, run

WINDOW = "6s"
# One thread holds a lock most of the time, others want it: who holds them up is known from single waits only. The
# threads are of one process, so that its own interpreter's lock is held up as well.
HOLDER = """
import sys, threading, time
lock = threading.Lock()
def hold():
    while True:
        with lock:
            end = time.monotonic() + 0.02
            while time.monotonic() < end:
                pass
        time.sleep(0.004)
def want():
    while True:
        with lock:
            pass
        time.sleep(0.004)
threading.Thread(target=hold, daemon=True).start()
for _ in range(3):
    threading.Thread(target=want, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Holders:
    def __enter__(self):
        self.p = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.p.stdout.readline() == "ready\n"
        return self.p

    def __exit__(self, *what):
        self.p.communicate("")


def of_file(verb, path, *options, of=None):
    done = subprocess.run([WITTY, verb, path, *([of] if of else []), "--format", "json", *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def held(s, number):
    """Whether a lock was what held threads up, rather than other work of this machine."""
    answer = s.get(f"/api/v1/findings?snapshot={number}")
    return answer.status == 200 and {f["rule"] for f in answer.json()["analysis"]} & {"gil", "serial-thread", "hot-lock"}


def both(s, state):
    """A snapshot that was analysed, and the recording of just its intervals; in it the holder is found."""
    end_at = time.monotonic() + 2 * LONG
    while True:
        assert time.monotonic() < end_at, "no snapshot and recording of the same intervals"
        name = s.until(lambda: s.ask("POST", "/api/v1/recordings").json().get("name"), "a recording can be asked for")
        s.until(lambda: any(r["name"] == name for r in s.get("/api/v1/recordings").json()), name)
        path = os.path.join(state, name)
        summary = of_file("show", path, of="summary")
        end = summary["start_ns"] + summary["window_ns"]
        same = [x for x in s.get("/api/v1/snapshots").json() if x["end_ns"] == end]
        if same and same[0]["start_ns"] == summary["start_ns"]:
            s.until(lambda: s.get("/api/v1/snapshots").json()[-1]["analysed"], "an analysis")
            number = same[0]["snapshot"]
            # The kernel keeps so many of the newest waits: on a busy host some may be gone when the file is written.
            chains = s.get(f"/api/v1/wait-chains?snapshot={number}")
            if not held(s, number):
                continue
            if chains.status == 200 and chains.json()["analysis"]["seen_from_ns"] == of_file("show", path, of="waitfor")["seen_from_ns"]:
                return number, path


def same():
    with tempfile.TemporaryDirectory() as d, Holders() as p:
        os.chmod(d, 0o700)
        with Server("--state-dir", d, "--keep", WINDOW, "-p", str(p.pid), ebpf=True, interval="2s", window=WINDOW) as s:
            s.until(lambda: s.get("/status").content["intervals"] >= 3, "a whole window")
            number, path = both(s, d)
            for route, verb, options in (("bottlenecks", "bottlenecks", ()), ("hotspots", "hotspots", ("--limit", "50"))):
                live = s.get(f"/api/v1/{route}?snapshot={number}").json()["analysis"]
                read = of_file(verb, path, *options)
                assert live == read, difference(live, read)
            findings = s.get(f"/api/v1/findings?snapshot={number}").json()["analysis"]
            assert {f["rule"] for f in findings} & {"gil", "serial-thread", "hot-lock"}, findings
            chains = s.get(f"/api/v1/wait-chains?snapshot={number}").json()["analysis"]
            whole = of_file("show", path, of="waitfor")
            assert chains["chains"] and chains["seen_from_ns"] and chains == whole, difference(chains, whole)
            between(s, findings)
            at_a_finding(s, d)


def between(s, findings):
    """What held at any time between two, and when; a time before all of them has none."""
    got = s.get("/api/v1/findings/between").json()
    assert got["complete_from_ns"] <= min(f["first_ns"] for f in got["findings"]) + 60 * 10**9, got
    # One that is Notice or above in the newest analysis is there, with all that was said of it.
    rules = {f["finding"]["rule"] for f in got["findings"]}
    notable = {f["rule"] for f in findings if f["severity"] != "info"}
    assert notable and notable <= rules, (rules, findings)
    for f in got["findings"]:
        assert f["first_ns"] < f["last_ns"] and f["analyses"] >= 1 and f["finding"]["why"], f
        inside = s.get(f"/api/v1/findings/between?from_at={f['first_ns']}&to_at={f['first_ns'] + 1}").json()["findings"]
        assert f["finding"] in [x["finding"] for x in inside], (f, inside)
    before = min(f["first_ns"] for f in got["findings"]) - 1
    assert s.get(f"/api/v1/findings/between?to_at={before}").json()["findings"] == []
    assert s.get("/api/v1/findings/between?from_at=2&to_at=1").status == 400


def at_a_finding(s, state):
    """A finding had the minutes before it written, with its single waits: the finding is in there."""
    by_rule = lambda: [r["name"] for r in s.get("/api/v1/recordings").json() if not r["name"].endswith("-asked.wpdb")]

    def found():
        # What was written goes up to the moment of writing: on a busy machine that may be another picture.
        for name in by_rule():
            at = os.path.join(state, name)
            if re.search(r"Z-(.*)\.wpdb$", name)[1] in {f["rule"] for f in of_file("bottlenecks", at)["findings"]}:
                return at
        return None
    path = s.until(found, "the recording of a finding that has it")
    assert of_file("show", path, of="waitfor")["seen_from_ns"], "single waits"


def difference(a, b, at=""):
    """Where two documents differ, for people."""
    if type(a) is not type(b):
        return f"{at}: {a!r} and {b!r}"
    if isinstance(a, dict):
        return "; ".join(filter(None, (difference(a.get(k), b.get(k), f"{at}/{k}") for k in sorted(a.keys() | b.keys()))))[:2000]
    if isinstance(a, list) and len(a) == len(b):
        return "; ".join(filter(None, (difference(x, y, f"{at}/{i}") for i, (x, y) in enumerate(zip(a, b)))))[:2000]
    return "" if a == b else f"{at}: {str(a)[:200]} and {str(b)[:200]}"


LATE = """
import sys
print("ready", flush=True)
sys.stdin.readline()
while True:
    pass
"""


def change():
    """A thread that begins to work is a change of some significance: intervals tell how much figures scatter."""
    with subprocess.Popen([sys.executable, "-c", LATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            with Server("-p", str(p.pid), ebpf=True, interval="500ms", window="4s") as s:
                s.until(lambda: s.get("/status").content["intervals"] >= 9, "a whole window")
                quiet = s.get("/api/v1/snapshots").json()[-1]
                p.stdin.write("work\n")
                p.stdin.flush()
                def changed():
                    threads = s.get(f"/api/v1/diff?from_at={quiet['end_ns']}").json()["analysis"]["threads"]
                    return [t for t in threads if t["cpu_pct"]["significant"] and t["cpu_pct"]["now"] > t["cpu_pct"]["then"]]
                s.until(changed, "the change")
        finally:
            p.kill()


if os.geteuid():
    print("SKIP: needs root")
    sys.exit(77)
run([same, change])
