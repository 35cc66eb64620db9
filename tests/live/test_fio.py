#!/usr/bin/env python3
"""test_fio.py [DEPTH]... - fio on files of a disk of our own: its own report against the recording.

WITTY names the program. Needs root, loop devices and fio.

Volumes are compared by process and by file, exactly. Of times fio reports two: its completion latency ("clat") is
that of its system call, with the scheduler in it; and what the kernel counted for the disk ("disk_util"), of the
same requests from where they were made to where their memory was given back. The probe times them to where the disk
completed them, some microseconds earlier. The disk's queue is kept long (DEPTH requests), so that these are well
below 2 %. Requests per second are what the kernel counted between two looks of the recorder; they are compared with
fio's log of each request. The probe is not run at each completion: some kernels do not run programs while a task that
they guard is interrupted, and then a whole batch of completions is left out, whose number is told as lost.
fio and the recorder run with a real-time priority: how busy the host is makes no difference to either.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from own_disk import Disk, alone
from recorder import WITTY, lost, verdict

# Known volumes by process and file. Name of the job: read or write, bytes of a request, bytes in all.
JOBS = {"a": ("randrw", 16 << 10, 6 << 20), "b": ("write", 64 << 10, 16 << 20)}
# Keeps the disk's queue long all the time: each request takes much longer than what is done around it.
QUEUE_JOB = """[queue]
filename={top}/queue
ioengine=libaio
iodepth={depth}
rw=randrw
bs=128k
size=64m
time_based=1
runtime=7
write_lat_log={folder}/queue
"""
WITHIN = 0.02

JOB_FILE = """[global]
ioengine=psync
direct=1
randseed=7
norandommap=1
log_unix_epoch=1
"""
# fio looks at the kernel's counters four times a second, and only while a job uses the disk: one has to outlive
# the others' requests.
LAST_JOB = """[rest]
filename={top}/rest
rw=read
bs=4k
size=1m
time_based=1
runtime={ms}ms
rate_iops=1
"""
# Of each try: where the disk is slow, the others take longer than the time that they are given.
REST_MS = 8300, 20000, 60000
LOOK_MS = 300


def run(*args, **more):
    return subprocess.run(args, check=True, **more)


def make_disk(folder):
    """With a file for each job. Without a journal nobody but fio writes while it runs."""
    disk = Disk(folder, 128, "-m0", "-O", "^has_journal", "-E", "lazy_itable_init=0")
    for name, size in [("rest", 1 << 20), ("queue", 64 << 20)] + [(name, job[2]) for name, job in JOBS.items()]:
        with open(os.path.join(disk.top, name), "wb") as f:
            f.write(bytes(size))
            os.fsync(f.fileno())
    os.sync()
    return disk


def record(disk, folder, depth, rest_ms):
    """@return path of the recording of fio, as a graph, fio's report, and when each request ended"""
    jobs = JOB_FILE
    for name, (rw, bs, size) in JOBS.items():
        jobs += (f"[{name}]\nfilename={disk.top}/{name}\nrw={rw}\nbs={bs}\nsize={size}\n"
                 f"write_lat_log={folder}/{name}\n")
    path = os.path.join(folder, "out.wpdb")
    with open(os.path.join(folder, "jobs"), "w") as f:
        f.write(jobs + (QUEUE_JOB + LAST_JOB).format(top=disk.top, folder=folder, depth=depth, ms=rest_ms))
    run("chrt", "-r", "20", WITTY, "record", "-o", path, "--interval", "250ms", "--", "fio", "--output-format=json",
        f"--output={folder}/report", f"{folder}/jobs", cwd=folder, stdout=subprocess.DEVNULL)
    run(WITTY, "convert", path, path + ".json", stderr=subprocess.DEVNULL)
    with open(path + ".json") as f:
        graph = json.load(f)
    with open(os.path.join(folder, "report")) as f:
        report = json.load(f)
    ends = []  # [milliseconds since 1970, bytes, is a write] of each request
    for i, name in enumerate([*JOBS, "queue"]):
        with open(os.path.join(folder, f"{name}_clat.{i + 1}.log")) as f:
            for line in f:
                ms, _, write, size = line.split(",")[:4]
                ends.append((int(ms), int(size), int(write) == 1))
    return path, graph, report, sorted(ends)


def outlived(report):
    """Whether the last job used the disk until after fio's last look at it while the others did."""
    took = {j["jobname"]: j["job_runtime"] for j in report["jobs"]}
    return max(ms for name, ms in took.items() if name != "rest") + LOOK_MS < took["rest"]


def rows(path, query, *args):
    db = sqlite3.connect(path)
    found = db.execute(query, args).fetchall()
    db.close()
    return found


def check_volumes(disk, graph, report, bad):
    """Bytes and requests of each job: its process, its file, its process's requests of the disk."""
    for job in report["jobs"]:
        if job["jobname"] not in JOBS:
            continue
        inode = os.stat(os.path.join(disk.top, job["jobname"])).st_ino
        moved = {"read": {}, "write": {}}
        for e in graph["edges"]:
            kind = {"ReadFromEdge": "read", "WriteToEdge": "write"}.get(e["edge_type"])
            file, thread = (e["source_node"], e["target_node"]) if kind == "read" else (e["target_node"], e["source_node"])
            if kind and file.get("inode") == inode and file.get("dev") == disk.dev and e["bytes"]:
                pid = thread["process"]["pid"] if isinstance(thread.get("process"), dict) else thread["pid"]
                moved[kind][pid] = moved[kind].get(pid, 0) + e["bytes"]
        pids = set(moved["read"]) | set(moved["write"])
        if len(pids) != 1:
            bad.append(f"job {job['jobname']}: its file is used by {pids}")
            continue
        pid = pids.pop()
        io = [e for e in graph["edges"] if e["edge_type"] == "BlockIoEdge" and e["source_node"]["pid"] == pid
              and e["target_node"]["dev"] == disk.dev]
        for kind, to_disk in ("read", "read_bytes"), ("write", "written_bytes"):
            want = job[kind]["io_bytes"]
            got = moved[kind].get(pid, 0), sum(e.get(to_disk) or 0 for e in io)
            number = sum(e.get(kind + "s") or 0 for e in io)
            if got != (want, want) or number != job[kind]["total_ios"]:
                bad.append(f"job {job['jobname']}: {kind} {got[0]} bytes of the file, {got[1]} of the disk in {number} "
                           f"requests; fio: {want} in {job[kind]['total_ios']}")
            print(f"| job {job['jobname']} {kind}: {got[1]} bytes in {number} requests, fio {want} in "
                  f"{job[kind]['total_ios']}")


def check_times(disk, graph, report, missed, bad):
    node = next(n for n in graph["nodes"] if n["entity_type"] == "BlockDeviceEntity" and n["dev"] == disk.dev)
    theirs = next(d for d in report["disk_util"] if d["name"] == os.path.basename(disk.device))
    for kind in "read", "write":
        number, ms = theirs[f"{kind}_ios"], theirs[f"{kind}_ticks"]
        ours = node[f"timed_{kind}s"], node[f"{kind}_latency_ns"]
        if not number - missed <= ours[0] <= number:
            bad.append(f"{kind}: {ours[0]} requests of the disk and {missed} not seen, fio says {number}")
        if abs(ours[1] / 1e6 / ours[0] - ms / number) > WITHIN * ms / number:
            bad.append(f"{kind}: {ours[1]} ns of {ours[0]} in the block layer, fio says {ms} ms of {number}")
        jobs = [j[kind] for j in report["jobs"] if j[kind]["total_ios"]]
        clat = sum(j["clat_ns"]["mean"] * j["total_ios"] for j in jobs) / sum(j["total_ios"] for j in jobs)
        mean = ours[1] / ours[0]
        print(f"| {kind}: mean latency {mean / 1000:.1f} us in the block layer, {ms * 1000 / number:.1f} us as fio "
              f"reports of the disk; {clat / 1000:.1f} us of its system call")
        if not 0 < mean <= clat:
            bad.append(f"{kind}: mean {mean} ns, fio waited {clat} ns")


def check_rates(disk, path, ends, bad):
    """Requests per second between two looks in the midst of it."""
    looks = {n: end / 1e6 for n, _, end in rows(path, "SELECT n, start_ns, end_ns FROM interval")}
    series = rows(path, "SELECT interval, coalesce(reads, 0), coalesce(writes, 0) FROM series_block_device "
                        "WHERE num = (SELECT num FROM block_device WHERE dev = ?) ORDER BY interval", disk.dev)
    inside = sorted(n for n, ms in looks.items() if ends[0][0] < ms < ends[-1][0])
    if len(inside) < 3:
        bad.append(f"fio ran for {len(inside)} intervals only")
        return
    first, last = inside[0], inside[-1]
    seconds = (looks[last] - looks[first]) / 1000
    for kind, column, is_write in ("read", 1, False), ("write", 2, True):
        ours = sum(s[column] for s in series if first < s[0] <= last)
        theirs = sum(looks[first] < ms + 0.5 < looks[last] for ms, _, write in ends if write == is_write)
        print(f"| {kind}: {ours / seconds:.1f} requests/s in {seconds:.2f} s, fio {theirs / seconds:.1f}")
        if abs(ours - theirs) > WITHIN * theirs:
            bad.append(f"{kind}: {ours} requests in {seconds} s, fio {theirs}")


def main():
    why = alone()
    if why:
        print("SKIP:", why)
        return 77
    bad = []
    for depth in map(int, sys.argv[1:] or ["32"]):
        folder = tempfile.mkdtemp()
        disk = None
        try:
            for rest_ms in REST_MS:
                disk = make_disk(folder)
                path, graph, report, ends = record(disk, folder, depth, rest_ms)
                if outlived(report):
                    break
                print(f"| jobs took longer than the {rest_ms} ms that fio looked: once more")
                disk = disk.done()
                shutil.rmtree(folder)
                os.mkdir(folder)
            else:
                bad.append("fio's jobs do not come to an end")
                continue
            missed = lost(path, "requests_not_timed")
            print(f"| {depth} requests in the queue; {missed} completions not timed, as it says")
            check_volumes(disk, graph, report, bad)
            check_times(disk, graph, report, missed, bad)
            check_rates(disk, path, ends, bad)
        finally:
            if disk:
                disk.done()
            shutil.rmtree(folder, ignore_errors=True)
    return verdict(bad, "fio and the recording agree")


if __name__ == "__main__":
    sys.exit(main())
