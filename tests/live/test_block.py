#!/usr/bin/env python3
"""test_block.py [fio] - a disk of our own, a known volume of requests, and what the recording says.

WITTY names the program. Needs root and loop devices. With "fio", that program makes the requests, and its
own report of numbers and times is compared too.
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


def fio(device, folder):
    out = os.path.join(folder, "fio.json")
    p = subprocess.Popen(["fio", "--name=j", f"--filename={device}", "--rw=randrw", "--bs=16k", "--direct=1",
                          "--ioengine=libaio", "--iodepth=64", "--io_size=32m", "--size=48m", "--randseed=7", "--norandommap",
                          "--thread", "--output-format=json", f"--output={out}"], stdout=subprocess.DEVNULL)
    p.wait()
    with open(out) as f:
        job = json.load(f)["jobs"][0]
    return p.pid, job


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
    with_fio = sys.argv[1:] == ["fio"]
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control") or (with_fio and not shutil.which("fio")):
        print("SKIP: needs root, loop devices" + (" and fio" if with_fio else ""))
        return 77
    folder = tempfile.mkdtemp()
    device = loop_device(folder)
    bad = []
    try:
        if with_fio:
            graph, (pid, job) = record(folder, lambda: fio(device, folder))
            reads, writes = job["read"]["total_ios"], job["write"]["total_ios"]
            disk = compare(graph, device, pid, reads, writes, 16384, bad)
            for kind, n in ("read", reads), ("write", writes):
                # fio counts its system call too: on a busy machine that is most of it.
                told = job[kind]["clat_ns"]["mean"] / 1000
                ours = disk.get(f"{kind}_latency_ns", 0) / n / 1000
                print(f"{kind}: {n} requests, mean {ours:.1f} us in the block layer, {told:.1f} us by fio")
                if not 0 < ours <= told:
                    bad.append(f"{kind}: mean latency {ours} us, fio says {told} us")
                # The kernel's own sums are of the same time, in steps of a millisecond a look.
                theirs = disk.get(f"{kind}_ns", 0)
                if abs(disk.get(f"{kind}_latency_ns", 0) - theirs) > 0.02 * theirs + 2e6:
                    bad.append(f"{kind}: latencies {disk.get(f'{kind}_latency_ns')} ns, by the kernel {theirs} ns")
        else:
            def work():
                child = requests(device)
                os.waitpid(child, 0)
                return child
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
