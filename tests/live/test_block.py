#!/usr/bin/env python3
"""test_block.py - a disk of our own, a known volume of requests, and what the recording says.

WITTY names the program. Needs root and loop devices.
"""
import mmap
import os
import shutil
import sys
import tempfile

from own_disk import Disk, alone
from recorder import Recorder, verdict

BLOCK = 64 * 1024
WRITES = 100
READS = 70


def requests(device):
    """In a process of its own: direct I/O of known size. @return its pid"""
    pid = os.fork()
    if pid:
        return pid
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    buf = mmap.mmap(-1, BLOCK)
    for i in range(WRITES):
        os.pwrite(fd, buf, i * BLOCK)
    for i in range(READS):
        os.preadv(fd, [buf], i * BLOCK)
    os._exit(0)


def check(bad, what, got, want):
    if got != want:
        bad.append(f"{what}: {got}, wanted {want}")


def compare(graph, dev, pid, reads, writes, bs, missed, bad):
    disk = next((n for n in graph["nodes"] if n["entity_type"] == "BlockDeviceEntity" and n["dev"] == dev), None)
    if not disk:
        bad.append("the disk is not there")
        return
    ios = [e for e in graph["edges"] if e["edge_type"] == "BlockIoEdge" and e["target_node"]["dev"] == dev
           and e["source_node"]["pid"] == pid]
    if len(ios) != 1:
        bad.append(f"{len(ios)} relations of process and disk")
        return
    check(bad, "bytes that the process read", ios[0].get("read_bytes"), reads * bs)
    check(bad, "bytes that the process wrote", ios[0].get("written_bytes"), writes * bs)
    print(f"| {missed} requests not timed, as it says")
    for kind, n in ("read", reads), ("write", writes):
        timed = disk.get(f"timed_{kind}s") or 0
        if not n - missed <= timed <= n:
            bad.append(f"{kind} requests: {timed}, wanted {n} but for {missed} not timed")
        check(bad, f"{kind} bytes", disk.get(f"timed_{kind}_bytes"), timed * bs)
        check(bad, f"{kind} requests in the histogram", sum(c for _, c in disk.get(f"{kind}_histogram") or []), timed)
        check(bad, f"{kind}s by the kernel's counters", disk.get(f"{kind}s"), n)
        if not 0 < disk.get(f"{kind}_device_ns", 0) <= disk.get(f"{kind}_latency_ns", 0):
            bad.append(f"{kind}: times of device and in all: {disk.get(f'{kind}_device_ns')} "
                       f"{disk.get(f'{kind}_latency_ns')}")


def main():
    why = alone()
    if why:
        print("SKIP:", why)
        return 77
    folder = tempfile.mkdtemp()
    disk = None
    bad = []
    try:
        disk = Disk(folder, 64, raw=True)
        recorder = Recorder(os.path.join(folder, "out.wpdb"))
        pid = requests(disk.device)
        os.waitpid(pid, 0)
        graph = recorder.stop()
        compare(graph, disk.dev, pid, READS, WRITES, BLOCK, recorder.lost("requests_not_timed"), bad)
    finally:
        if disk:
            disk.done()
        shutil.rmtree(folder, ignore_errors=True)
    return verdict(bad, "all requests are accounted for")


if __name__ == "__main__":
    sys.exit(main())
