#!/usr/bin/python3
"""Is held up in a way that only Python has, and says by whom: diag.py gil|omp-import [--healthy] [OPTION]...

The options are those of the program diag.
"""
import argparse
import ctypes
import json
import os
import sys
import threading
import time


def say_who(case, roles):
    print(json.dumps({"case": case, "pid": os.getpid(),
                      "roles": [{"role": r, "pid": os.getpid(), "tid": t} for r, t in roles]}), flush=True)


def count(us):
    """Pure Python, which holds the lock of the interpreter."""
    end = time.thread_time() + us / 1e6
    n = 0
    while time.thread_time() < end:
        n += sum(range(100))
    return n


def start(n, role, work):
    """n threads that do work(); returns their roles."""
    threads = [threading.Thread(target=work, daemon=True) for _ in range(n)]
    for t in threads:
        t.start()
    return [(role, t.native_id) for t in threads]


def gil(a):
    def work():
        while True:
            count(a.size)
            if a.healthy:
                time.sleep(a.size * a.threads / 200e3)

    if a.healthy:
        a.size = a.size // 20
    return start(a.threads, "counter", work)


def omp_import(a):
    """A library that binds the thread that loads it: all threads started later inherit that."""
    if not a.healthy:
        os.environ["OMP_PROC_BIND"] = "true"
        os.environ["OMP_PLACES"] = f"{{{a.seed % os.cpu_count()}}}"
    ctypes.CDLL("libgomp.so.1")
    libc = ctypes.CDLL(None)
    block = bytes(1 << 20)

    def work():
        # Calls through ctypes do not hold the lock of the interpreter.
        while True:
            end = time.thread_time() + a.size / 1e6
            while time.thread_time() < end:
                libc.memchr(block, 1, len(block))
            if a.healthy:
                time.sleep(a.size * 5 / 1e6)

    return start(a.threads, "worker", work)


CASES = {"gil": gil, "omp-import": omp_import}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("case", choices=CASES)
    p.add_argument("--healthy", action="store_true")
    p.add_argument("--threads", type=int, default=4)
    p.add_argument("--size", type=int, default=10000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--after", type=float, default=0)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--dir", default="/var/tmp")
    a = p.parse_args()
    say_who(a.case, CASES[a.case](a))
    time.sleep(a.seconds)
    # Threads that compute do not let the interpreter end.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
