#!/usr/bin/env python3
"""test_watch.py - a recording says for how long calls were not watched, and how late again.

WITTY: the product. Needs root.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

WITTY = os.environ["WITTY"]
MARK = 1000

# Without anything open that calls are watched for; then with a pipe, until it is ended.
IDLE = """
import os, sys, time
for fd in range(3, 64):
    try:
        os.close(fd)
    except OSError:
        pass
time.sleep(float(sys.argv[1]))
r, w = os.pipe()
while True:
    os.write(w, bytes(%d))
    os.read(r, %d)
    time.sleep(0.05)
""" % (MARK, MARK)


def record(folder, name, idle):
    """(status row of the collector, bytes read from pipes) of a process that is idle at first."""
    path = os.path.join(folder, name)
    null = subprocess.DEVNULL
    with subprocess.Popen([sys.executable, "-c", IDLE, str(idle)], stdin=null, stdout=null,
                          stderr=null) as process:
        time.sleep(0.5)
        # A namespace of its own: the queues and semaphores of others would keep the watch going.
        subprocess.run(["unshare", "--ipc", WITTY, "record", "-i", "200ms", "-d", f"{idle + 3}s",
                        "-o", path, "-p", str(process.pid)], check=True, stdout=null)
        process.kill()
    rows = show(path, "summary")["status"]
    moved = sum(e.get("bytes") or 0 for e in show(path, "edges") if e["type"] == "read_from")
    return [r for r in rows if r["source"] == "collector ipc"], moved


def show(path, part):
    done = subprocess.run([WITTY, "show", path, part, "--format", "json"], check=True,
                          capture_output=True)
    return json.loads(done.stdout)


def main():
    if os.geteuid() or not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("SKIP: needs root and BTF")
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        rows, moved = record(folder, "late.wpdb", 6)
        print("idle first:", moved, "bytes;", rows)
        said = [r["reason"] for r in rows if r["state"] == "reduced"]
        if len(said) != 1 or "watched again 1 times" not in said[0]:
            faults.append("what was late is not told")
        if not moved or moved % MARK:
            faults.append("a pipe is not seen that is used long enough")
        rows, moved = record(folder, "always.wpdb", 0)
        print("at once:", moved, "bytes;", rows)
        if len(rows) != 1 or rows[0]["state"] != "ok":
            faults.append("what was watched all the time is told otherwise")
    for f in faults:
        print("FAILED:", f)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
