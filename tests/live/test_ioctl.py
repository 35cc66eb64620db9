#!/usr/bin/env python3
"""test_ioctl.py - calls on a character device in known numbers, and the time blocked in it, against the recording.

WITTY names the program. Needs root and /dev/net/tun, which has its driver in every kernel with networks.
"""
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

from recorder import Recorder, verdict

TUNSETIFF = 0x400454CA
TUNGETFEATURES = 0x800454CF
NO_SUCH_IOCTL = 0x5499
IFF_TUN_NO_PI = 0x1001
GOOD, BAD, BLOCKS = 1234, 77, 5
PAUSE_NS = 50_000_000


def reads_from(pid, fd):
    """Whether it sleeps in read(2) of that descriptor: number of the call, then its arguments."""
    with open(f"/proc/{pid}/syscall") as f:
        words = f.read().split()
    return len(words) > 2 and int(words[1], 16) == fd and words[0] in ("0", "63")


def calls(fd):
    """@return numbers of calls that succeed and that fail"""
    good = bad = 0
    buf = bytearray(4)
    for _ in range(GOOD):
        fcntl.ioctl(fd, TUNGETFEATURES, buf)
        good += 1
    for _ in range(BAD):
        try:
            fcntl.ioctl(fd, NO_SUCH_IOCTL, buf)
        except OSError:
            bad += 1
    # Devices that are not counted: terminals and /dev/null.
    with open("/dev/null", "rb") as null:
        for _ in range(50):
            try:
                fcntl.ioctl(null, NO_SUCH_IOCTL, buf)
            except OSError:
                pass
    return good, bad


def blocks(fd):
    """Read packets that come later. @return the least and the most that this blocks, in ns"""
    told, tell = os.pipe()
    got, take = os.pipe()  # a byte for each packet that was read
    me = os.getpid()
    if os.fork() == 0:
        least = 0
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(BLOCKS):
            while not reads_from(me, fd):
                time.sleep(0.001)
            blocked = time.monotonic_ns()
            time.sleep(PAUSE_NS / 1e9)
            # It is blocked from before that was seen, and nothing wakes it before the packet is sent.
            least += time.monotonic_ns() - blocked
            s.sendto(b"x", ("10.77.0.2", 9))
            os.read(got, 1)
        os.write(tell, str(least).encode())
        os._exit(0)
    most = 0
    for _ in range(BLOCKS):
        before = time.monotonic_ns()
        os.read(fd, 2048)
        most += time.monotonic_ns() - before
        os.write(take, b"x")
    return int(os.read(told, 64)), most


def worker():
    """In a network namespace of its own: waits for a line, then calls."""
    with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as f:
        f.write("1")
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"t0", IFF_TUN_NO_PI))
    subprocess.run(["ip", "addr", "add", "10.77.0.1/24", "dev", "t0"], check=True)
    subprocess.run(["ip", "link", "set", "t0", "up"], check=True)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(calls(fd) + blocks(fd)), flush=True)
    sys.stdin.readline()


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        print("SKIP: needs root and /dev/net/tun")
        return 77
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        w = subprocess.Popen(["unshare", "-n", sys.executable, sys.argv[0], "worker"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        w.stdout.readline()
        recorder = Recorder(os.path.join(folder, "out.wpdb"), "-p", str(w.pid))
        w.stdin.write("\n")
        w.stdin.flush()
        good, failed, least, most = json.loads(w.stdout.readline())
        graph = recorder.stop()
        w.stdin.close()
        w.wait()
    uses = [e for e in graph["edges"] if e["edge_type"] == "AccessEdge" and e["source_node"]["pid"] == w.pid
            and e["target_node"]["entity_type"] == "DeviceEntity"]
    if [e["target_node"]["device_id"] for e in uses] != ["/dev/net/tun"]:
        bad.append(f"devices {[e['target_node'] for e in uses]}")
    else:
        u = uses[0]
        print(f"| {u['ioctls']} ioctl calls, {u['failed_ioctls']} failed; made: {good + failed}, {failed}")
        print(f"| blocked for {u['blocked_ns'] / 1e6:.3f} ms; between {least / 1e6:.3f} and {most / 1e6:.3f} ms")
        if (u["ioctls"], u["failed_ioctls"]) != (good + failed, failed):
            bad.append(f"{u['ioctls']} calls, {u['failed_ioctls']} failed")
        if not least <= u["blocked_ns"] <= most or u["blocked_calls"] < BLOCKS:
            bad.append(f"blocked {u['blocked_calls']} times, {u['blocked_ns']} ns")
    return verdict(bad, "calls and times agree")


if __name__ == "__main__":
    sys.exit(worker() if sys.argv[1:] == ["worker"] else main())
