#!/usr/bin/python3
"""Compare recorded waits with what tests/live/waits wrote down about itself.

usage: check_waits.py TRUTH.json WAITS.json WAKES.json THREADS.json FUTEXES.json [--without-wakers] [--without-cause]

The last four are what `witty-profiler show FILE waits|wakes|entities --type thread|entities --type futex
--format json` printed.
For each case: the cause and the kind of object are those of the program, the time agrees within 5 %,
nobody but the one who did it is named as who ended the waits, and a mutex is with the one who has it. For each thread of the host: time
running, runnable and blocked sum up to the time that it was observed, within 1 %.
"""
import argparse
import json
import sys

KERNEL_KINDS = {"timer": ("timer",), "disk": ("disk", "interrupt")}
SLACK_NS = 2_000_000  # of all 40 calls of a case together: making them takes time, too


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def time_error(want, waited, thread):
    """The clock around the calls holds the delay until the thread runs again: it is known, too."""
    measured = want["waited_ns"]
    if waited > measured * 1.05 + SLACK_NS:
        return f"{waited / 1e6:.1f} ms, measured {measured / 1e6:.1f}"
    delays = thread["runq_ns"] + thread["run_ns"]
    if waited + delays < measured * 0.95 - SLACK_NS:
        return f"{waited / 1e6:.1f} ms and {delays / 1e6:.1f} ms of delay, measured {measured / 1e6:.1f}"
    return None


def object_error(want, rows):
    types = {r["object"]["type"] for r in rows}
    if types != {want["type"]}:
        return "object " + ",".join(sorted(types))
    ids = {r["object"]["id"] for r in rows}
    if want["object"] and not any(i.startswith(want["object"]) or i.endswith(want["object"]) for i in ids):
        return f"object {sorted(ids)[0]}, should be {want['object']}"
    return None


def is_right(want, waker):
    if waker["type"] == "thread":
        if waker["tid"] in want["wakers"]:
            return True
        # The disk's driver may finish in a thread of the kernel, which has no command line.
        return want["waker"] == "disk" and waker["tid"] != want["tid"]
    # What a loopback or veth device takes in is mostly, not always, taken in by the sender itself.
    if want["cause"] == "socket" and waker.get("kind") == "network":
        return True
    return waker.get("kind") in KERNEL_KINDS.get(want["waker"], ())


def waker_error(want, rows, waited):
    # A sanitizer's own locks are waited for too, for microseconds.
    wrong = [r for r in rows if not is_right(want, r["waker"]) and r["waited_ns"] > waited * 0.01]
    named = sum(r["waited_ns"] for r in rows)
    threads = sum(r["waited_ns"] for r in rows if r["waker"]["type"] == "thread")
    if want["waker"] == "thread" and threads < waited * 0.5:
        return f"threads ended {threads / 1e6:.1f} ms only"
    if wrong:
        return "woken by " + ",".join(sorted(r["waker"]["id"] for r in wrong))
    # Some hosts run threads at which no program runs: what those wake, or a disk that interrupts them, has no waker.
    if named < waited * (0.5 if want["cause"] == "disk" else 0.9):
        return f"no waker for {(waited - named) / 1e6:.1f} ms"
    return None


def check_case(want, data, args):
    cause = "other" if args.without_cause else want["cause"]
    waits = [r for r in data["waits"] if r["waiter"]["tid"] == want["tid"] and r["cause"] == cause]
    wakes = [r for r in data["wakes"] if r["waiter"]["tid"] == want["tid"] and r["cause"] == cause]
    thread = data["threads"].get(want["tid"])
    waited = sum(r["waited_ns"] for r in waits)
    if not waits or not thread:
        causes = {r["cause"] for r in data["waits"] if r["waiter"]["tid"] == want["tid"]}
        return waited, "no such wait; " + (",".join(sorted(causes)) or "none at all")
    errors = []
    if not args.without_cause:
        errors.append(object_error(want, waits))
        errors.append(time_error(want, waited, thread))
    if not args.without_wakers and not args.without_cause:
        errors.append(waker_error(want, wakes, waited))
    return waited, "; ".join(e for e in errors if e)


def check_owners(truth, futexes):
    """Each mutex of the program belongs to the thread that the other one waited for."""
    owners = {f["id"]: f["owner_thread"] for f in futexes}
    return [f"{w['case']}: is with {owners.get(w['object'])}, should be thread:{w['wakers'][0]}" for w in truth
            if w["case"] in ("mutex", "mutex_pi") and w["possible"]
            and owners.get(w["object"]) != f"thread:{w['wakers'][0]}"]


def check_same_objects(truth, data):
    """Waits of several threads on one thing must be on one entity."""
    groups = {}
    for want in truth:
        if "same_object" in want:
            ids = {r["object"]["id"] for r in data["waits"]
                   if r["waiter"]["tid"] == want["tid"] and r["cause"] == want["cause"]}
            groups.setdefault(want["same_object"], []).append(ids)
    return [f"{name}: {groups[name]} should be one object" for name in groups
            if any(ids != groups[name][0] or len(ids) != 1 for ids in groups[name])]


def check_sums(threads, own):
    """Threads whose parts do not sum up to the time that they were observed: those of the workload, and
    all others. A kernel may keep a switch of a thread from all tracers, while one of its own programs runs:
    among the others of a busy host that is met now and then."""
    bad, others = [], []
    for t in threads:
        if t["observed_ns"] is None:
            continue
        parts = t["run_ns"] + t["runq_ns"] + t["blocked_ns"]
        if abs(parts - t["observed_ns"]) > max(t["observed_ns"] * 0.01, 50_000):
            (bad if t["tid"] in own else others).append(
                       f"thread {t['tid']} {t['name']}: running {t['run_ns']}, runnable {t['runq_ns']}, "
                       f"blocked {t['blocked_ns']}, observed {t['observed_ns']}")
    return bad, others


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("truth")
    parser.add_argument("waits")
    parser.add_argument("wakes")
    parser.add_argument("threads")
    parser.add_argument("futexes")
    parser.add_argument("--without-wakers", action="store_true", help="this kernel does not tell who wakes")
    parser.add_argument("--without-cause", action="store_true", help="it does not tell what is waited for")
    args = parser.parse_args()
    truth = load(args.truth)["waits"]
    threads = load(args.threads)
    data = {"waits": load(args.waits), "wakes": load(args.wakes),
            "threads": {t["tid"]: t for t in threads}}
    failed = 0
    print(f"{'case':<16} {'cause':<11} {'object':<13} {'measured':>10} {'recorded':>10}  ")
    for want in truth:
        if not want["possible"]:
            print(f"{want['case']:<16} {want['cause']:<11} {'-':<13} not possible here")
            continue
        waited, error = check_case(want, data, args)
        failed += bool(error)
        print(f"{want['case']:<16} {want['cause']:<11} {want['type']:<13} {want['waited_ns'] / 1e6:>7.1f} ms "
              f"{waited / 1e6:>7.1f} ms  {error or 'right'}")
    sums, others = check_sums(threads, {w["tid"] for w in truth if w["possible"]})
    same = [] if args.without_cause else check_same_objects(truth, data) + check_owners(truth, load(args.futexes))
    for line in sums[:10] + same:
        print("FAILED:", line)
    observed = sum(t["observed_ns"] is not None for t in threads)
    if len(others) > max(1, observed // 100):
        sums += others
        for line in others[:10]:
            print("FAILED:", line)
    print(f"{len(truth) - failed} of {len(truth)} waits right; parts sum up for "
          f"{observed - len(set(sums + others))} of "
          f"{observed} threads")
    return 1 if failed or sums or same else 0


if __name__ == "__main__":
    sys.exit(main())
