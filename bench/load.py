#!/usr/bin/env python3
"""Makes a host with many sleeping threads: PROCESSES processes of THREADS threads each.

    load.py PROCESSES THREADS SECONDS [WAKE_EVERY]

Every WAKE_EVERY-th process (default 50th, 0: none) has one thread that wakes ten times a second;
the others sleep. Prints "ready" when all threads are there. Ends by itself after SECONDS, when its
parent ends, when its standard input closes, or on SIGTERM, and takes along what it started."""
import ctypes
import os
import select
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
MAX_PROCESSES = 2000
MAX_THREADS = 64
MAX_SECONDS = 600


def die_with_parent(parent):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def child(parent, report, threads, wakes, seconds):
    die_with_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.stack_size(64 * 1024)
    for _ in range(threads - 1):
        threading.Thread(target=time.sleep, args=(seconds,), daemon=True).start()
    os.write(report, b".")
    os.close(report)
    end = time.monotonic() + seconds
    while wakes and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(seconds)


def main():
    processes, threads, seconds = (int(a) for a in sys.argv[1:4])
    every = int(sys.argv[4]) if len(sys.argv) > 4 else 50
    if not (0 < processes <= MAX_PROCESSES and 0 < threads <= MAX_THREADS and 0 < seconds <= MAX_SECONDS):
        sys.exit(f"error: at most {MAX_PROCESSES} processes, {MAX_THREADS} threads, {MAX_SECONDS} s")
    parent = os.getpid()
    down, up = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    pids = []
    try:
        for i in range(processes):
            pid = os.fork()
            if not pid:
                try:
                    os.close(down)
                    child(parent, up, threads, every and i % every == 0, seconds)
                finally:
                    os._exit(0)
            pids.append(pid)
        os.close(up)
        ready = 0
        while ready < processes:
            got = os.read(down, 4096)
            if not got:
                sys.exit("error: a process of the load did not start")
            ready += len(got)
        print("ready", flush=True)
        select.select([0], [], [], seconds)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


main()
