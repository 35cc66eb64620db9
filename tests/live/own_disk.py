"""own_disk.py - a disk of a test's own: a loop device, with a file system where one is wanted."""
import os
import subprocess
import sys


def alone():
    """Go on in a mount namespace of our own. @return why the test cannot run here; None: it can"""
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        return "needs root and loop devices"
    if not os.environ.get("OWN_MOUNTS"):
        os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], dict(os.environ, OWN_MOUNTS="1"))
    return None


class Disk:
    """A loop device on a file of that size below @folder, mounted at self.top unless it is to be raw."""

    def __init__(self, folder, mib, *mkfs_options, raw=False):
        image = os.path.join(folder, "image")
        with open(image, "wb") as f:
            f.truncate(mib << 20)
        self.top = None
        self.device = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True,
                                     text=True).stdout.strip()
        rdev = os.stat(self.device).st_rdev
        self.dev = f"{os.major(rdev)}:{os.minor(rdev)}"
        if raw:
            return
        try:
            subprocess.run(["mkfs.ext4", "-q", "-F", *mkfs_options, self.device], check=True)
            top = os.path.join(folder, "m")
            os.mkdir(top)
            subprocess.run(["mount", "-o", "noatime", self.device, top], check=True)
            self.top = top
        except (OSError, subprocess.SubprocessError):
            self.done()
            raise

    def done(self):
        if self.top:
            subprocess.run(["umount", self.top], check=False)
        subprocess.run(["losetup", "-d", self.device], check=False)
