#!/usr/bin/env python3
"""test_device_files.py - calls on the files of accelerators, and who has them open, belong to the accelerator.

WITTY and FAKES name the program and the folder with the fake libraries. Needs root and /dev/net/tun. The files have
the names that drivers give theirs and are devices that this kernel has: calls, times and descriptors are real.
"""
import fcntl
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "../live"))
from recorder import Recorder  # noqa: E402
from test_devices import MIB, Case, Failed, check, equal, nvidia, rows_of  # noqa: E402
from test_ioctl import BLOCKS, IFF_TUN_NO_PI, NO_SUCH_IOCTL, TUNSETIFF, blocks  # noqa: E402

# Any device will do that opens without doing anything; each of them refuses a call that it does not know.
ORDINARY = ["loop-control", "fuse", "vga_arbiter", "autofs", "userfaultfd", "vsock", "hw_random", "btrfs-control",
            "vhost-net", "uinput"]
# Name, and whether the kernel tells it: NVIDIA's driver registers no names.
BLOCKED = "nvidia3"
FILES = {"davinci2": True, "dri/renderD128": True, "dri/card1": True, "accel/accel0": True, "nvidiactl": False}
CALLS = dict(zip(FILES, (11, 13, 17, 19, 23)))
DRM, ACCEL = "0000:c3:00.0", "0000:c4:00.0"


def ordinary():
    """Numbers of devices to be had, as many as files are needed."""
    with open("/proc/misc") as f:
        minors = {name: int(minor) for minor, name in map(str.split, f)}
    return [minors[name] for name in ORDINARY if name in minors][:len(FILES)]


def node(name, minor):
    path = "/dev/" + name
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.mknod(path, 0o600 | 0o020000, os.makedev(10, minor))
    return os.open(path, os.O_RDWR if name == BLOCKED else os.O_RDONLY)


def worker():
    """In namespaces of its own: opens the files, waits for a line, then calls."""
    with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as f:
        f.write("1")
    subprocess.run(["mount", "-t", "tmpfs", "none", "/dev"], check=True)
    fd = node(BLOCKED, 200)
    opened = {name: node(name, minor) for name, minor in zip(FILES, ordinary())}
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"t0", IFF_TUN_NO_PI))
    subprocess.run(["ip", "addr", "add", "10.77.0.1/24", "dev", "t0"], check=True)
    subprocess.run(["ip", "link", "set", "t0", "up"], check=True)
    print("ready", flush=True)
    sys.stdin.readline()
    for name, number in CALLS.items():
        for _ in range(number):
            try:
                fcntl.ioctl(opened[name], NO_SUCH_IOCTL, bytearray(4))
            except OSError:
                pass
    print(json.dumps(blocks(fd)), flush=True)
    sys.stdin.readline()


def sysfs():
    """Commands that put what the drivers tell of their devices over /sys, for a mount namespace."""
    text = "mount -t tmpfs none /sys/dev/char; "
    for (name, told), minor in zip(FILES.items(), ordinary()):
        if told:
            text += f"mkdir /sys/dev/char/10:{minor}; echo DEVNAME={name} >/sys/dev/char/10:{minor}/uevent; "
    text += "t=$(mktemp -d); cp -a /sys/class/. $t 2>/dev/null || :; mount --bind $t /sys/class; cd /sys/class; "
    for pci, links in (DRM, ("drm/renderD128", "drm/card1")), (ACCEL, ("accel/accel0",)):
        text += f"mkdir -p drm accel {pci}; echo 0x1002 >{pci}/vendor; echo 0x74a1 >{pci}/device; "
        for link in links:
            text += f"mkdir -p {link} {pci}/{link}; ln -s ../../{pci} {link}/device; "
    return text


def told(path):
    """Whether the drivers' first answers are there."""
    return all(len(rows_of(path, f"SELECT num FROM {kind}")) >= n for kind, n in (("gpu", 8 + 2), ("npu", 4)))


def record(case, w):
    """@return the recording as a graph, and the least and the most that the worker was blocked, in ns"""
    path = os.path.join(case.dir, "out.wpdb")
    recorder = Recorder(path, "-p", str(w.pid), env=case.env,
                        before=["unshare", "-m", "sh", "-e", "-c", sysfs() + 'cd /; exec "$@"', "sh"])
    recorder.until("the drivers answer", lambda: told(path))
    w.stdin.write("\n")
    w.stdin.flush()
    least, most = json.loads(w.stdout.readline())
    return recorder.stop(), least, most


def compare(graph, pid, least, most):
    uses = {}
    for e in graph["edges"]:
        if (e["edge_type"] == "AccessEdge" and e["source_node"]["pid"] == pid
                and e["target_node"]["entity_type"] != "SharedMemoryEntity"):
            uses[e["target_node"].get("pci_bus_id") or e["target_node"]["device_id"]] = e

    def use(of, *fields):
        return [uses[of].get(f) for f in fields]
    # The fakes' third devices: number 3 of NVIDIA's, and card 2 of Ascend's.
    gpu, npu = "0000:13:00.0", "0000:82:00.0"
    equal(sorted(uses), sorted([gpu, npu, DRM, ACCEL, "/dev/nvidiactl"]), "devices")
    print(f"| {BLOCKED}: blocked for {uses[gpu]['blocked_ns'] / 1e6:.3f} ms; between {least / 1e6:.3f} and "
          f"{most / 1e6:.3f} ms")
    check(least <= uses[gpu]["blocked_ns"] <= most, "time blocked", uses[gpu]["blocked_ns"])
    check(uses[gpu]["blocked_calls"] >= BLOCKS, "times blocked", uses[gpu]["blocked_calls"])
    equal(use(gpu, "ioctls", "open_files", "memory_bytes", "confidence"), [None, 1, 100 * MIB, 1], BLOCKED)
    equal(use(npu, "ioctls", "failed_ioctls", "open_files"), [CALLS["davinci2"]] * 2 + [1], "davinci2")
    both = CALLS["dri/renderD128"] + CALLS["dri/card1"]
    equal(use(DRM, "ioctls", "failed_ioctls", "open_files"), [both, both, 2], "both files of one device")
    equal(use(ACCEL, "ioctls", "failed_ioctls", "open_files"), [CALLS["accel/accel0"]] * 2 + [1], "accel0")
    equal(use("/dev/nvidiactl", "ioctls", "failed_ioctls"), [CALLS["nvidiactl"]] * 2, "a file of no device alone")
    for of, e in sorted(uses.items()):
        print(f"| {of}: {e.get('ioctls')} ioctl calls, {e.get('open_files')} open files")


def main():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun") or len(ordinary()) < len(FILES):
        print(f"SKIP: needs root, /dev/net/tun and {len(FILES)} of {', '.join(ORDINARY)} in /proc/misc")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        case = Case(folder)
        w = subprocess.Popen(["unshare", "-mn", sys.executable, sys.argv[0], "worker"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        case.children.append(w)
        try:
            equal(w.stdout.readline(), "ready\n", "the worker")
            nvidia(case, f"devices 8\nprocess 3 {w.pid} 100\n")
            case.library("libdcmi.so")
            case.scenario("FAKE_DCMI", "cards 4\nchips 1\n")
            graph, least, most = record(case, w)
            compare(graph, w.pid, least, most)
        except (Failed, KeyError) as e:
            print(f"FAILED: {type(e).__name__}: {e}")
            return 1
        finally:
            case.done()
    print("calls, times and open files are those of the accelerators")
    return 0


if __name__ == "__main__":
    sys.exit(worker() if sys.argv[1:] == ["worker"] else main())
