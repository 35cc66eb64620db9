#!/usr/bin/env python3
"""test_waitfor.py - programs that are held up in known ways: the roots, patterns and hangs of one recording of all.

WITTY: the product; DIAG: the program of bench/diagnosis, which says which of its threads are to blame. Needs root.
All run at once, so that CPUs are short: who waits for whom must come out all the same.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

WITTY, DIAG = os.environ["WITTY"], os.environ["DIAG"]
# Of each try: on a busy host all get less far.
SECONDS = 4, 12, 36

# case, options, what has to be found of it: a pattern or a hang, the role that is its root (None: no single one)
CASES = [
    ("convoy", [], "pattern", "lock_convoy", "holder"),
    ("barrier", [], "pattern", "barrier", "slow"),
    # On a busy host the giver has little of a CPU: with many takers enough is woken for nothing all the same.
    ("herd", ["--threads", "16", "--size", "4000"], "pattern", "thundering_herd", "giver"),
    ("pipe-full", [], "pattern", "back_pressure", "receiver"),
    ("pipe-empty", [], "pattern", "slow_producer", "loader"),
    ("upstream", [], "chain", "client", "back"),
    ("rank-slow", [], "ranks", None, "slow"),
    ("rank-stopped", ["--after", "0"], "hang", "stopped", "slow"),
    ("deadlock", ["--after", "0"], "hang", "deadlock", "taker"),
    ("idle-server", [], "quiet", None, None),
    ("sleepers", [], "quiet", None, None),
]
failures = []


def check(what, good, *more):
    if not good:
        failures.append(" ".join([what, *map(str, more)]))


def show(path, *args):
    return subprocess.run([WITTY, "show", path, "waitfor", *args], check=True, stdout=subprocess.PIPE).stdout


def start(case, options, folder):
    p = subprocess.Popen([DIAG, case, "--threads", "3", "--size", "8000", "--seconds", "900", "--dir", folder, *options],
                         stdout=subprocess.PIPE)
    return p, json.loads(p.stdout.readline())


def threads_of(truth, role):
    return {f"thread:{r['tid']}" for r in truth["roles"] if r["role"] == role}


def all_threads(truth):
    return {f"thread:{r['tid']}" for r in truth["roles"]}


def check_chain(case, w, truth, waiter, root):
    """The largest part of what that role waited for must be the root, whoever it went through."""
    waiters, roots = threads_of(truth, waiter), threads_of(truth, root)
    chains = [c for c in w["chains"] if c["waiter"]["first_thread"] in waiters]
    check(f"{case}: one chain of all {waiter}s", len(chains) == 1, len(chains))
    for c in chains:
        blamed = sum(p["ns"] for p in c["parts"] if p["thread"] in roots)
        check(f"{case}: {root} is the root", blamed * 2 > c["waited_ns"], blamed, c["waited_ns"])
        check(f"{case}: through the front end", any(p["through"] for p in c["parts"]))


def check_case(w, truth, kind, name, root):
    case, mine = truth["case"], all_threads(truth)
    roots = threads_of(truth, root)
    if kind == "pattern":
        found = [p for p in w["patterns"] if p["kind"] == name and set(p["threads"]) & mine]
        check(f"{case}: {name}", found, [(p["kind"], p["text"]) for p in w["patterns"] if set(p["threads"]) & mine])
        for p in found:
            check(f"{case}: root of {name}", p["root"] in roots, p["root"], roots)
            check(f"{case}: threads of {name}", set(p["threads"]) <= mine, p["threads"])
    elif kind == "hang":
        found = [h for h in w["hangs"] if h["thread"] in mine]
        check(f"{case}: {name}", [h["kind"] for h in found] == [name], found)
        for h in found:
            check(f"{case}: who hangs", h["thread"] in roots, h["thread"])
            check(f"{case}: who is held up", h["threads"] and set(h["threads"]) <= mine, h["threads"])
    elif kind == "chain":
        check_chain(case, w, truth, name, root)
    elif kind == "ranks":
        pids = {f"process:{r['pid']}" for r in truth["roles"]}
        found = [s for s in w["ranks"] if set(s["ranks"]) == pids]
        check(f"{case}: ranks", len(found) == 1, len(found))
        for s in found:
            check(f"{case}: straggler", s["uneven"] and s["fixed"] and s["thread"] in roots, s["text"], s["why"])
    else:
        check(f"{case}: no hang", not [h for h in w["hangs"] if h["thread"] in mine])
        check(f"{case}: no pattern", not [p for p in w["patterns"] if set(p["threads"]) & mine],
              [p["text"] for p in w["patterns"] if set(p["threads"]) & mine])
    if kind != "hang":
        check(f"{case}: no hang", not [h for h in w["hangs"] if h["thread"] in mine], w["hangs"])


def check_sums(w):
    for c in w["chains"]:
        check("parts of a chain", sum(p["ns"] for p in c["parts"]) == c["waited_ns"], c["waiter"]["text"])
    for p in w["paths"]:
        check("parts of a path", sum(x["ns"] for x in p["parts"]) == p["to_ns"] - p["from_ns"], p["thread"])
    check("single waits are known", w["seen_from_ns"])


def check_path(path, w, truth):
    """An interval in the middle of what is known, back from the end of a thread that waits for another one."""
    summary = json.loads(subprocess.run([WITTY, "show", path, "--format", "json"], check=True, stdout=subprocess.PIPE).stdout)
    thread = sorted(threads_of(truth, "waiter"))[0]
    begin, end = w["seen_from_ns"], w["paths"][0]["to_ns"]
    first = (begin + (end - begin) // 4 - summary["start_ns"]) // 1000000
    last = (begin + (end - begin) // 4 * 3 - summary["start_ns"]) // 1000000
    p = json.loads(show(path, thread, "--from", f"{first}ms", "--to", f"{last}ms", "--format", "json"))
    length = p["to_ns"] - p["from_ns"]
    check("length of the interval", length == (last - first) * 1000000, length)
    at = p["from_ns"]
    for s in p["steps"]:
        check("no gap", s["from_ns"] == at, s["from_ns"], at)
        at = s["to_ns"]
    check("up to the end", at == p["to_ns"])
    owner = threads_of(truth, "holder")
    check("the path is the owner's", sum(x["ns"] for x in p["parts"] if x["thread"] in owner) * 2 > length, p["parts"][:4])


def judge(path, running, seconds):
    pids = [x for p, _ in running for x in ("-p", str(p.pid))]
    subprocess.run([WITTY, "record", "-d", f"{seconds}s", "-o", path, *pids], check=True, stdout=subprocess.DEVNULL)
    text = show(path, "--format", "json")
    check("the same once more", text == show(path, "--format", "json"))
    w = json.loads(text)
    check_sums(w)
    for (_, _, kind, name, root), (_, truth) in zip(CASES, running):
        check_case(w, truth, kind, name, root)
    check_path(path, w, running[0][1])
    for args in ([], ["--idle"], ["--format", "md"]):
        check("text", b"keeper[" in show(path, *args), args)


def main():
    if os.geteuid():
        print("SKIP: needs root")
        return 77
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("SKIP: this kernel has no BTF")
        return 77
    running = []
    with tempfile.TemporaryDirectory(prefix="test_waitfor.") as folder:
        try:
            for case, options, *_ in CASES:
                running.append(start(case, options, folder))
            # Those that hang do so by now.
            time.sleep(0.5)
            for seconds in SECONDS:
                failures.clear()
                judge(f"{folder}/waits{seconds}.wpdb", running, seconds)
                if not failures:
                    break
                print(f"{len(failures)} failures in {seconds} s: {failures}")
        finally:
            for p, _ in running:
                p.kill()
                p.wait()
    for f in failures:
        print("FAILED:", f)
    print(f"{len(CASES)} programs, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
