#!/usr/bin/env python3
"""test_block.py - a disk of our own, a known volume of requests, and what the recording says.

WITTY names the program. Needs root and loop devices.
"""
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time

WITTY = os.environ["WITTY"]
BLOCK = 64 * 1024
WRITES = 100
READS = 70


def loop_device(folder):
    image = os.path.join(folder, "image")
    with open(image, "wb") as f:
        f.truncate(64 << 20)
    return subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True,
                          text=True).stdout.strip()


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
    time.sleep(0.5)
    os._exit(0)


def record(folder, work):
    path = os.path.join(folder, "out.wpdb")
    p = subprocess.Popen([WITTY, "record", "-d", "2m", "-o", path, "--interval", "500ms"], stderr=subprocess.DEVNULL)
    for _ in range(200):
        if os.path.exists(path):
            break
        time.sleep(0.05)
    time.sleep(1)
    result = work()
    time.sleep(1)
    p.terminate()
    if p.wait() != 0:
        sys.exit("FAILED: record")
    subprocess.run([WITTY, "convert", path, path + ".json"], check=True, stderr=subprocess.DEVNULL)
    with open(path + ".json") as f:
        return json.load(f), result


def check(bad, what, got, want, within=0.0):
    if got is None or abs(got - want) > within * want:
        bad.append(f"{what}: {got}, wanted {want}")


def compare(graph, device, pid, reads, writes, bs, bad):
    """@return the disk's node"""
    st = os.stat(device)
    dev = f"{os.major(st.st_rdev)}:{os.minor(st.st_rdev)}"
    disk = next((n for n in graph["nodes"] if n["entity_type"] == "BlockDeviceEntity" and n["dev"] == dev), None)
    if not disk:
        bad.append("the disk is not there")
        return {}
    ios = [e for e in graph["edges"] if e["edge_type"] == "BlockIoEdge" and e["target_node"]["dev"] == dev
           and e["source_node"]["pid"] == pid]
    if len(ios) != 1:
        bad.append(f"{len(ios)} relations of process and disk")
        return disk
    check(bad, "bytes that the process read", ios[0].get("read_bytes"), reads * bs)
    check(bad, "bytes that the process wrote", ios[0].get("written_bytes"), writes * bs)
    for kind, n in ("read", reads), ("write", writes):
        check(bad, f"{kind} requests", disk.get(f"timed_{kind}s"), n)
        check(bad, f"{kind} bytes", disk.get(f"timed_{kind}_bytes"), n * bs)
        check(bad, f"{kind} requests in the histogram",
              sum(c for _, c in json.loads(json.dumps(disk.get(f"{kind}_histogram") or []))), n)
        check(bad, f"{kind}s by the kernel's counters", disk.get(f"{kind}s"), n)
        if not 0 < disk.get(f"{kind}_device_ns", 0) <= disk.get(f"{kind}_latency_ns", 0):
            bad.append(f"{kind}: times of device and in all: {disk.get(f'{kind}_device_ns')} "
                       f"{disk.get(f'{kind}_latency_ns')}")
    return disk


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("SKIP: needs root and loop devices")
        return 77
    folder = tempfile.mkdtemp()
    device = loop_device(folder)
    bad = []

    def work():
        child = requests(device)
        os.waitpid(child, 0)
        return child
    try:
        graph, pid = record(folder, work)
        compare(graph, device, pid, READS, WRITES, BLOCK, bad)
    finally:
        subprocess.run(["losetup", "-d", device], check=False)
        shutil.rmtree(folder)
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print("all requests are accounted for")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
