"""Control groups with limits, as container runtimes make them."""
import os
import time


class Group:
    """A control group as a container runtime makes it, of either version, with limits."""

    def __init__(self, folder, quota, read_bps):
        self.made, self.files, self.dirs = [], [], []
        self.id = f"{os.getpid():08x}{time.monotonic_ns() & 0xffffffff:08x}" + "ab" * 24
        v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        tops = [""] if v2 else ["cpu", "cpuacct", "cpu,cpuacct", "blkio", "memory"]
        for top in tops:
            if os.path.exists(f"/sys/fs/cgroup/{top}/cgroup.procs"):
                self.make(f"/sys/fs/cgroup/{top}")
        if quota:
            self.write(("cpu.max", f"{int(quota * 100000)} 100000"), ("cpu.cfs_quota_us", int(quota * 100000)))
        if read_bps:
            disk = whole_disk(os.stat(folder).st_dev)
            self.write(("io.max", f"{disk} rbps={read_bps}"), ("blkio.throttle.read_bps_device", f"{disk} {read_bps}"))

    def make(self, top):
        for path in (f"{top}/docker", f"{top}/docker/{self.id}"):
            if not os.path.isdir(path):
                os.mkdir(path)
                self.made.append(path)
        self.dirs.append(f"{top}/docker/{self.id}")

    def write(self, *choices):
        for folder in self.dirs:
            for name, text in choices:
                if os.path.exists(f"{folder}/{name}"):
                    with open(f"{folder}/{name}", "w", encoding="ascii") as f:
                        f.write(str(text))
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


def whole_disk(dev):
    """MAJOR:MINOR of the disk that a file system's device is on."""
    name = f"{os.major(dev)}:{os.minor(dev)}"
    path = os.path.realpath(f"/sys/dev/block/{name}")
    if os.path.exists(path + "/partition"):
        with open(os.path.dirname(path) + "/dev", encoding="ascii") as f:
            return f.read().strip()
    return name
