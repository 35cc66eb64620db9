#!/usr/bin/env python3
"""test_watch.py - a recording says for how long calls were not watched, and how late again.

WITTY: the product. Needs root.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

from recorder import PATIENCE_S, WITTY, intervals, until

MARK = 1000
ROUNDS = 20

# Without anything open that calls are watched for, until it is told to; then with a pipe. Its name says when it is ready.
PROGRAM = """
import os, signal, sys, time
def is_ready():
    with open("/proc/self/comm", "w") as f:
        f.write("ready")
os.closerange(3, 64)
if sys.argv[1] == "idle":
    is_ready()
    signal.sigwait({signal.SIGUSR1})
r, w = os.pipe()
is_ready()
while True:
    os.write(w, bytes(%d))
    os.read(r, %d)
    time.sleep(0.05)
""" % (MARK, MARK)


def family(pid):
    """A process and its helpers: whoever has the file of a hook open keeps it attached."""
    found = [pid]
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                number, rest = f.read().split(" (", 1)
        except OSError:
            continue
        if int(rest.rsplit(") ", 1)[1].split()[1]) == pid:
            found.append(int(number))
    return found


def hooks(pid):
    """How many programs of a process run at each return of a system call."""
    n = 0
    for path in [p for member in family(pid) for p in glob.glob(f"/proc/{member}/fdinfo/*")]:
        try:
            with open(path, encoding="ascii") as f:
                n += "tp_name:\tsys_exit\n" in f.read()
        except OSError:
            pass
    return n


def record(folder, mode):
    """(status rows of the collector, bytes read from pipes) of one process."""
    path = os.path.join(folder, mode)
    # A namespace of its own: the queues and semaphores of others would keep the watch going.
    command = ["unshare", "--ipc", WITTY, "record", "-d", "10m", "-i", "200ms", "-o", path, "-p"]
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, mode], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, preexec_fn=block)
    recorder = None
    try:
        until("the program", lambda: text(process.pid, "comm") == "ready\n", process)
        recorder = subprocess.Popen(command + [str(process.pid)], stderr=subprocess.PIPE, text=True)
        until("a recording", lambda: os.path.exists(path) and hooks(recorder.pid), recorder, process)
        first = hooks(recorder.pid)
        if mode == "idle":
            until("no watch", lambda: hooks(recorder.pid) < first, recorder, process)
            process.send_signal(signal.SIGUSR1)
            until("a watch", lambda: hooks(recorder.pid) == first, recorder, process)
        # Used some times while it is watched.
        used = reads(process.pid) + ROUNDS
        until("its use", lambda: reads(process.pid) >= used, recorder, process)
        seen = intervals(path)
        until("looks", lambda: intervals(path) > seen + 2, recorder, process)
        recorder.send_signal(signal.SIGINT)
        said = recorder.communicate(timeout=PATIENCE_S)[1]
        if recorder.returncode:
            sys.exit(f"FAILED: record: {said}")
    finally:
        for p in filter(None, (recorder, process)):
            p.kill()
            p.wait()
    rows = show(path, "summary")["status"]
    moved = sum(e.get("bytes") or 0 for e in show(path, "edges") if e["type"] == "read_from")
    return [r for r in rows if r["source"] == "collector ipc"], moved


def text(pid, name):
    with open(f"/proc/{pid}/{name}", encoding="ascii") as f:
        return f.read()


def reads(pid):
    """Its read calls so far."""
    return int(text(pid, "io").split("syscr: ")[1].split()[0])


def block():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def show(path, part):
    done = subprocess.run([WITTY, "show", path, part, "--format", "json"], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main():
    if os.geteuid() or not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("SKIP: needs root and BTF")
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        rows, moved = record(folder, "idle")
        print("idle first:", moved, "bytes;", rows)
        said = [r["reason"] for r in rows if r["state"] == "reduced"]
        if len(said) != 1 or "watched again 1 times" not in said[0]:
            faults.append("what was late is not told")
        if not moved or moved % MARK:
            faults.append("a pipe is not seen that is used long enough")
        rows, moved = record(folder, "busy")
        print("at once:", moved, "bytes;", rows)
        if len(rows) != 1 or rows[0]["state"] != "ok":
            faults.append("what was watched all the time is told otherwise")
    for f in faults:
        print("FAILED:", f)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
