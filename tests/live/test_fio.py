#!/usr/bin/env python3
"""test_fio.py - fio on two files of a disk of our own: its own report against the recording.

WITTY names the program. Needs root, loop devices and fio.

Volumes are compared by process and by file, exactly. Of times fio reports two: its completion latency ("clat") is
that of its system call, with the scheduler in it; and what the kernel counted for the disk ("disk_util"), of the
same requests from where they were made to where their memory was given back. The probe times them to where the disk
completed them, some microseconds earlier. The disk's queue is kept long, so that these are well below 2 %.
Requests per second are compared between two looks of the recorder, with fio's log of each request.
fio and the recorder run with a real-time priority: how busy the host is makes no difference to either.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

WITTY = os.environ["WITTY"]
# Known volumes by process and file. Name of the job: read or write, bytes of a request, bytes in all.
JOBS = {"a": ("randrw", 16 << 10, 6 << 20), "b": ("write", 64 << 10, 16 << 20)}
# Keeps the disk's queue long all the time: each request takes much longer than what is done around it.
DEPTH = 32
QUEUE_JOB = f"""[queue]
filename={{top}}/queue
ioengine=libaio
iodepth={DEPTH}
rw=randrw
bs=128k
size=64m
time_based=1
runtime=2
write_lat_log={{folder}}/queue
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
runtime=3300ms
rate_iops=1
"""


def run(*args, **more):
    return subprocess.run(args, check=True, **more)


class Disk:
    """A file system on a loop device, with a file for each job, in this process's mount namespace."""

    def __init__(self, folder):
        image = os.path.join(folder, "image")
        self.top = os.path.join(folder, "m")
        os.mkdir(self.top)
        with open(image, "wb") as f:
            f.truncate(128 << 20)
        self.device = run("losetup", "-f", "--show", image, capture_output=True, text=True).stdout.strip()
        # Without a journal nobody but fio writes while it runs.
        run("mkfs.ext4", "-q", "-F", "-m0", "-O", "^has_journal", "-E", "lazy_itable_init=0", self.device)
        run("mount", "-o", "noatime", self.device, self.top)
        for name, size in [("rest", 1 << 20), ("queue", 64 << 20)] + [(name, job[2]) for name, job in JOBS.items()]:
            with open(os.path.join(self.top, name), "wb") as f:
                f.write(bytes(size))
                os.fsync(f.fileno())
        os.sync()
        rdev = os.stat(self.device).st_rdev
        self.dev = f"{os.major(rdev)}:{os.minor(rdev)}"

    def inode(self, name):
        return os.stat(os.path.join(self.top, name)).st_ino

    def done(self):
        subprocess.run(["umount", self.top], check=False)
        subprocess.run(["losetup", "-d", self.device], check=False)


def record(disk, folder):
    """@return path of the recording of fio, as a graph, fio's report, and when each request ended"""
    jobs = JOB_FILE
    for name, (rw, bs, size) in JOBS.items():
        jobs += (f"[{name}]\nfilename={disk.top}/{name}\nrw={rw}\nbs={bs}\nsize={size}\n"
                 f"write_lat_log={folder}/{name}\n")
    path = os.path.join(folder, "out.wpdb")
    with open(os.path.join(folder, "jobs"), "w") as f:
        f.write(jobs + (QUEUE_JOB + LAST_JOB).format(top=disk.top, folder=folder))
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
        inode = disk.inode(job["jobname"])
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
        # The kernel does not run the probe at every completion; how many it left out is told as lost.
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
    series = rows(path, "SELECT interval, coalesce(timed_reads, 0), coalesce(timed_writes, 0) FROM series_block_device "
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
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("SKIP: needs root and loop devices")
        return 77
    if not os.environ.get("OWN_MOUNTS"):
        os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], dict(os.environ, OWN_MOUNTS="1"))
    folder = tempfile.mkdtemp()
    disk = None
    bad = []
    try:
        disk = Disk(folder)
        path, graph, report, ends = record(disk, folder)
        check_volumes(disk, graph, report, bad)
        summary = run(WITTY, "show", path, "summary", "--format", "json", capture_output=True, text=True).stdout
        missed = sum(l["count"] for l in json.loads(summary)["lost"]
                      if l["cause"] == "requests_not_timed")
        print(f"| {missed} completions not timed, as it says")
        check_times(disk, graph, report, missed, bad)
        check_rates(disk, path, ends, bad)
    finally:
        if disk:
            disk.done()
        shutil.rmtree(folder, ignore_errors=True)
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print("fio and the recording agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
