#!/usr/bin/env python3
"""test_overhead.py - what is recorded while hooks are kept within a bound that they would break.

Pipes with known traffic, and a bound that is broken at once: sums of threads have to be right to a message, the split
close, and the recording has to say that it is one. Without a bound nothing is estimated.

WITTY: the product. Needs root.
"""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

WITTY = os.environ["WITTY"]
ASKED, ANSWERED, LARGE, SMALL = 100, 40, 300, 100
PATIENCE = 90  # seconds for what a busy machine makes rare
INTERVALS = 4  # with calls watched in turns

# To and fro through two pipes; two more that somebody else reads. Until it is told to end.
PROGRAM = f"""
import json, os, signal, sys
ask, answer, large, small = (os.pipe() for _ in range(4))
ends = [fd for pair in (ask, answer, large, small) for fd in pair]
def keep(*kept):
    for fd in ends:
        if fd not in kept:
            os.close(fd)
if not os.fork():
    keep(ask[0], answer[1])
    while os.read(ask[0], {ASKED}):
        os.write(answer[1], bytes({ANSWERED}))
    os._exit(0)
if not os.fork():
    keep(large[0], small[0])
    while os.read(large[0], {LARGE}) and os.read(small[0], {SMALL}):
        pass
    os._exit(0)
keep(ask[1], answer[0], large[1], small[1])
going, rounds = [True], 0
signal.signal(signal.SIGUSR1, lambda *_: going.clear())
inodes = [os.fstat(fd).st_ino for fd in (ask[1], answer[0], large[1], small[1])]
print("ready", flush=True)
sys.stdin.readline()
while going:
    os.write(ask[1], bytes({ASKED}))
    os.read(answer[0], {ANSWERED})
    os.write(large[1], bytes({LARGE}))
    os.write(small[1], bytes({SMALL}))
    rounds += 1
for fd in (ask[1], large[1], small[1]):
    os.close(fd)
os.wait()
os.wait()
print(json.dumps([rounds, inodes]), flush=True)
sys.stdin.readline()
"""


def until(what, condition, recorder, said):
    """@p said: the file in which it writes its errors."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if recorder.poll() is not None or time.monotonic() > end:
            with open(said, encoding="utf-8", errors="replace") as f:
                raise TimeoutError(f"no {what}; the recorder's status is {recorder.poll()}, and it said: {f.read() or 'nothing'}")
        time.sleep(0.05)


def show(path, *part):
    done = subprocess.run([WITTY, "show", path, *part, "--format", "json"], check=True, capture_output=True)
    return json.loads(done.stdout)


def intervals(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM interval").fetchone()[0]
    except sqlite3.Error:
        return 0


def hooks(pid):
    """How many programs of a process run at each return of a system call."""
    n = 0
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as f:
                n += "tp_name:\tsys_exit\n" in f.read()
        except OSError:
            pass
    return n


def record(folder, bound):
    """(path, rounds, inodes) of a recording during which the program went to and fro."""
    path, said = os.path.join(folder, bound), os.path.join(folder, "said")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        program.stdout.readline()
        with open(said, "w", encoding="utf-8") as err, \
                subprocess.Popen([WITTY, "record", "-o", path, "--max-overhead", bound, "-p", str(program.pid)],
                                 stdout=err, stderr=err) as recorder:
            try:
                until("recording", lambda: intervals(path), recorder, said)
                program.stdin.write("\n")
                program.stdin.flush()
                if bound != "off":
                    until("turns", lambda: not hooks(recorder.pid), recorder, said)
                begin = intervals(path)
                until("intervals", lambda: intervals(path) >= begin + (INTERVALS if bound != "off" else 2), recorder, said)
                program.send_signal(signal.SIGUSR1)
                truth = json.loads(program.stdout.readline())
            finally:
                recorder.send_signal(signal.SIGINT)
                recorder.wait()
                program.kill()
    return path, *truth


def moved(path):
    """{(inode, direction): (bytes, estimated bytes)} of pipes, {(inode, direction): bytes} of all that the thread
    moved that used this pipe last, and {(inode, direction): that thread}."""
    found, threads, sums = {}, {}, {}
    for e in show(path, "edges", "--limit", "1000"):
        if e["type"] not in ("write_to", "read_from"):
            continue
        ends = e["source"], e["target"]
        thread, pipe = ends if e["type"] == "write_to" else reversed(ends)
        sums[thread, e["type"]] = sums.get((thread, e["type"]), 0) + e["bytes"]
        if pipe.startswith("pipe_inode:"):
            key = int(pipe.split(":")[1]), e["type"]
            found[key] = e["bytes"], e.get("estimated_bytes") or 0
            threads[key] = thread
    return found, {key: sums[thread, key[1]] for key, thread in threads.items()}, threads


def check_sums(what, rows, tolerance):
    problems = []
    for (name, want, got) in rows:
        if abs(want - got) > tolerance(want):
            problems.append(f"{what}: {name}: {got} bytes instead of {want}")
    return problems


def unassigned(path):
    """Bytes of threads that no look had seen yet: on a busy machine a look may find nobody at work."""
    return sum(l["count"] for l in show(path, "summary")["lost"] if l["cause"] == "unwatched_bytes_of_unknown_object")


def compare(path, rounds, inodes):
    """(problems, bytes that were estimated): sums of threads, the split of one, and whole pipes."""
    found, whole, _ = moved(path)
    told = unassigned(path)
    got = lambda i, way: found.get((inodes[i], way), (0, 0))[0]
    wrote = [got(0, "write_to"), got(2, "write_to"), got(3, "write_to")]
    exact = [("asked, by the one who reads", rounds * ASKED, got(0, "read_from")),
             ("answers, by the one who writes", rounds * ANSWERED, got(1, "write_to")),
             ("answers, by the one who reads", rounds * ANSWERED, got(1, "read_from")),
             # What it prints at its end included: that pipe has a part in the split, if a look saw it.
             ("all that one thread wrote", rounds * (ASKED + LARGE + SMALL), whole.get((inodes[2], "write_to"), 0)),
             ("all that one thread read", rounds * (LARGE + SMALL), got(2, "read_from") + got(3, "read_from"))]
    split = [("asked", rounds * ASKED, wrote[0]), ("large", rounds * LARGE, wrote[1]),
             ("small", rounds * SMALL, wrote[2])]
    # The program that starts reads a little of what it is made of, beside its pipes.
    problems = check_sums("sum", exact, lambda want: 2 * LARGE + told)
    problems += check_sums("split", split, lambda want: want / 10 + told)
    return problems, sum(estimated for _, estimated in found.values())


def waits_add_up(path):
    """Times of threads stay exact, whatever was not looked at."""
    waited, threads = {}, {}
    for e in show(path, "edges", "--limit", "1000"):
        if e["type"] == "waits_for":
            waited[e["source"]] = waited.get(e["source"], 0) + e["waited_ns"]
    for n in show(path, "entities", "--type", "thread"):
        threads[n["id"]] = n.get("blocked_ns") or 0
    return [f"waits of {t} make {waited.get(t, 0)} ns, it was blocked for {ns} ns" for t, ns in threads.items()
            if t in waited and abs(waited[t] - ns) > ns / 50 + 2e6]


def wakers(path, inodes, in_turns):
    """Who is answered was woken by the one who answers, nearly always, and as often as it waited. In turns, not more often:
    who ends the waits of an interval in which no look saw one end is not known."""
    threads = moved(path)[2]
    asks, answers = (threads.get((inodes[i], way)) for i, way in ((1, "read_from"), (1, "write_to")))
    waits, woken = 0, {}
    for e in show(path, "edges", "--limit", "1000"):
        if e["type"] == "waits_for" and e["source"] == asks:
            waits += e["waits"]
        if e["type"] == "wakes" and e["target"] == asks:
            woken[e["source"]] = woken.get(e["source"], 0) + e["wakeups"]
    times = sum(woken.values())
    if not (0 if in_turns else waits * 0.95 - 2) < times < waits * 1.05 + 2 or woken.get(answers, 0) < times * 0.8:
        return [f"{asks} waited {waits} times, and was woken: {woken}; {answers} answers it"]
    return []


def overhead(path):
    return [(r["state"], r["reason"] or "") for r in show(path, "summary")["status"] if r["source"] == "overhead"]


def main():
    if os.geteuid() or not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("skipped: needs root, and a kernel with BTF")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        path, rounds, inodes = record(folder, "0.01")
        said = overhead(path)
        if said and said[0][0] == "off":
            print("skipped: " + said[0][1])
            return 77
        problems, estimated = compare(path, rounds, inodes)
        problems += waits_add_up(path) + wakers(path, inodes, True)
        whole = rounds * 2 * (ASKED + ANSWERED + LARGE + SMALL)
        if not 0 < estimated < whole:
            problems.append(f"{estimated} bytes of {whole} are estimated")
        if not said or said[0][0] != "reduced" or "in turns" not in said[0][1]:
            problems.append(f"not told that calls were watched in turns: {said}")
        print(f"in turns: {rounds} rounds, {estimated * 100 / whole:.1f} % of the bytes estimated; {said}")
        path, rounds, inodes = record(folder, "off")
        more, estimated = compare(path, rounds, inodes)
        problems += ["without a bound: " + text for text in more + wakers(path, inodes, False)]
        if estimated or overhead(path)[0][0] != "off":
            problems.append(f"without a bound: {estimated} bytes estimated, {overhead(path)}")
        print(f"without a bound: {rounds} rounds")
    for text in problems:
        print("error:", text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
