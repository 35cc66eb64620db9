"""Control groups with limits, as container runtimes make them."""
import os
import time


class Group:
    """A control group as a container runtime makes it, of either version, with limits."""

    def __init__(self, folder, quota=None, read_bps=None, write_bps=None):
        self.made, self.dirs = [], []
        self.id = f"{os.getpid():08x}{time.monotonic_ns() & 0xffffffff:08x}" + "ab" * 24
        v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        tops = [""] if v2 else ["cpu", "cpuacct", "cpu,cpuacct", "blkio", "memory"]
        for top in tops:
            if os.path.exists(f"/sys/fs/cgroup/{top}/cgroup.procs"):
                self.make(f"/sys/fs/cgroup/{top}")
        if quota:
            self.write(("cpu.max", f"{int(quota * 100000)} 100000"), ("cpu.cfs_quota_us", int(quota * 100000)))
        disk = whole_disk(os.stat(folder).st_dev)
        if read_bps:
            self.write(("io.max", f"{disk} rbps={read_bps}"), ("blkio.throttle.read_bps_device", f"{disk} {read_bps}"))
        if write_bps:
            self.write(("io.max", f"{disk} wbps={write_bps}"),
                       ("blkio.throttle.write_bps_device", f"{disk} {write_bps}"))

    def make(self, top):
        for path in (f"{top}/docker", f"{top}/docker/{self.id}"):
            if os.path.isdir(path):
                continue
            # Version 2: a group has the controllers that the one above it hands on.
            put(os.path.dirname(path) + "/cgroup.subtree_control", "+cpu +io")
            os.mkdir(path)
            self.made.append(path)
            # What else runs here is to have little part in it.
            put(path + "/cpu.weight", 10000)
            put(path + "/cpu.shares", 100000)
        self.dirs.append(f"{top}/docker/{self.id}")

    def write(self, *choices):
        for folder in self.dirs:
            for name, text in choices:
                if put(f"{folder}/{name}", text):
                    return
        raise RuntimeError(f"no control group here has {choices[0][0]}")

    def enter(self, pid):
        """Move a process; 0: the one that calls."""
        for folder in self.dirs:
            with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(pid))

    def done(self):
        for path in reversed(self.made):
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.05)


def put(path, text):
    """@return whether there is such a file"""
    if not os.path.exists(path):
        return False
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))
    return True


def whole_disk(dev):
    """MAJOR:MINOR of the disk that a file system's device is on."""
    name = f"{os.major(dev)}:{os.minor(dev)}"
    path = os.path.realpath(f"/sys/dev/block/{name}")
    if os.path.exists(path + "/partition"):
        with open(os.path.dirname(path) + "/dev", encoding="ascii") as f:
            return f.read().strip()
    return name
