#!/usr/bin/env python3
"""test_page_cache.py - what a process reads from storage, makes dirty and drops again, against its own /proc/PID/io.

WITTY names the program. Needs root and loop devices: the file is on a disk of our own.
"""
import ctypes
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile

from own_disk import Disk, alone
from recorder import Recorder, verdict

MIB = 1 << 20
COLD, WARM, DIRTY, DROPPED = 6 * MIB, 3 * MIB, 4 * MIB, 2 * MIB


def io():
    with open("/proc/self/io") as f:
        text = f.read()
    return {k: int(v) for k, v in (line.split(": ") for line in text.splitlines())}, len(text)


MCL_CURRENT = 1
libc = ctypes.CDLL(None, use_errno=True)


def must(rc, what):
    if rc:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


def cached(path):
    """Bytes of a file that are in the page cache."""
    with open(path, "r+b") as f:
        m = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED)
    at = (ctypes.c_char * len(m)).from_buffer(m)
    pages = (ctypes.c_ubyte * (len(m) // mmap.PAGESIZE))()
    must(libc.mincore(ctypes.byref(at), ctypes.c_size_t(len(m)), pages), "mincore")
    del at
    m.close()
    return sum(p & 1 for p in pages) * mmap.PAGESIZE


def drop(path):
    """Until none of it is cached: pages that are just looked at stay."""
    while True:
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if not cached(path):
            break


def write_and_drop(path):
    """Until what was written is gone before the kernel wrote it out, which it may do at any time."""
    while True:
        before = io()[0]["cancelled_write_bytes"]
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.write(fd, bytes(DROPPED))
        os.close(fd)
        os.unlink(path)
        if io()[0]["cancelled_write_bytes"] - before >= DROPPED:
            break


def worker(folder):
    """Reads, writes and removes between two lines from its standard input."""
    for name, size in ("cold", COLD), ("warm", WARM):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(os.urandom(size))
            os.fsync(f.fileno())
        drop(os.path.join(folder, name))
    # What is short of memory takes neither these pages nor those of this program.
    with open(os.path.join(folder, "warm"), "r+b") as f:
        warm = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
    must(libc.mlockall(MCL_CURRENT), "mlockall")
    before, read_itself = io()
    print("ready", flush=True)
    sys.stdin.readline()
    for name in "cold", "warm", "warm":
        with open(os.path.join(folder, name), "rb") as f:
            while f.read(MIB):
                pass
    fd = os.open(os.path.join(folder, "dirty"), os.O_CREAT | os.O_WRONLY)
    os.write(fd, bytes(DIRTY))
    os.close(fd)
    write_and_drop(os.path.join(folder, "dropped"))
    fd = os.open(os.path.join(folder, "cold"), os.O_RDWR | os.O_DIRECT)
    os.pwrite(fd, mmap.mmap(-1, MIB), 0)
    os.close(fd)
    after, _ = io()
    gained = {k: after[k] - before[k] for k in after}
    gained["rchar"] -= read_itself
    gained["inodes"] = [os.stat(os.path.join(folder, name)).st_ino for name in ("cold", "warm")]
    dev = os.stat(folder).st_dev
    gained["dev"] = f"{os.major(dev)}:{os.minor(dev)}"
    print(json.dumps(gained), flush=True)
    sys.stdin.readline()
    warm.close()


def check(graph, pid, told, bad):
    p = next(n for n in graph["nodes"] if n["entity_type"] == "ProcessEntity" and n["pid"] == pid)
    for field, name in (("storage_read_bytes", "read_bytes"), ("storage_written_bytes", "write_bytes"),
                        ("cancelled_write_bytes", "cancelled_write_bytes")):
        print(f"| {field}: {p.get(field)}, the kernel says {told[name]}")
        if p.get(field) != told[name]:
            bad.append(f"{field}: {p.get(field)}, wanted {told[name]}")
    # What it does after its last look at /proc/self/io is some lines.
    for field, name in ("called_read_bytes", "rchar"), ("called_written_bytes", "wchar"):
        print(f"| {field}: {p.get(field)}, the kernel says {told[name]}")
        if not told[name] <= (p.get(field) or 0) <= told[name] + 4096:
            bad.append(f"{field}: {p.get(field)}, wanted {told[name]}")
    if not (COLD <= told["read_bytes"] < COLD + MIB and told["cancelled_write_bytes"] >= DROPPED and
            told["write_bytes"] >= DIRTY + DROPPED + MIB):
        bad.append(f"the kernel's own account: {told}")
    # Of the files, what did not come from storage was in the page cache.
    files = sum(e["bytes"] for e in graph["edges"] if e["edge_type"] == "ReadFromEdge"
                and e["source_node"].get("inode") in told["inodes"] and e["source_node"].get("dev") == told["dev"])
    cached = files - p["storage_read_bytes"]
    print(f"| {files} bytes of files read, {cached} of them from the page cache")
    if files != COLD + 2 * WARM or not 2 * WARM - MIB < cached <= 2 * WARM:
        bad.append(f"{files} bytes of files, {cached} from the page cache")
    host = next(n for n in graph["nodes"] if n["entity_type"] == "HostEntity")
    if not host.get("page_cache_bytes") or host.get("dirty_bytes") is None or host.get("writeback_bytes") is None:
        bad.append(f"page cache of the host: {host}")


def main():
    why = alone()
    if why:
        print("SKIP:", why)
        return 77
    folder = tempfile.mkdtemp()
    disk = None
    bad = []
    try:
        disk = Disk(folder, 64)
        w = subprocess.Popen([sys.executable, sys.argv[0], "worker", disk.top], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        w.stdout.readline()
        recorder = Recorder(os.path.join(folder, "out.wpdb"), "-p", str(w.pid))
        w.stdin.write("\n")
        w.stdin.flush()
        told = json.loads(w.stdout.readline())
        graph = recorder.stop()
        w.stdin.close()
        w.wait()
        check(graph, w.pid, told, bad)
    finally:
        if disk:
            disk.done()
        shutil.rmtree(folder, ignore_errors=True)
    return verdict(bad, "the kernel's account and the recording agree")


if __name__ == "__main__":
    sys.exit(worker(sys.argv[2]) if sys.argv[1:2] == ["worker"] else main())
