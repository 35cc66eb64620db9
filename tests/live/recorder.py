"""recorder.py - a recording that begins and ends when a test says so, and what a test says in the end."""
import json
import os
import subprocess
import sys

WITTY = os.environ["WITTY"]
# The recorder runs it once its probes are there, and ends with it.
TRIGGER = [sys.executable, "-c", "import sys; sys.stderr.write('go\\n'); sys.stdin.readline()"]


class Recorder:
    """Records until it is told to stop. @before: what to run it by; @more: further options of record"""

    def __init__(self, path, *more, before=(), interval="200ms", **popen):
        self.path = path
        self.p = subprocess.Popen([*before, WITTY, "record", "-o", path, "--interval", interval, *more, "--", *TRIGGER],
                                  stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)
        said = ""
        while not said.endswith("go\n"):
            line = self.p.stderr.readline()
            if not line:
                sys.exit(f"FAILED: record does not start: {said}")
            said += line

    def stop(self):
        """@return the recording as a graph"""
        said = self.p.communicate("\n")[1]
        if self.p.returncode != 0:
            sys.exit(f"FAILED: record: {said}")
        return json.loads(subprocess.run([WITTY, "convert", self.path, "-"], check=True, capture_output=True,
                                         text=True).stdout)

    def lost(self, cause):
        return lost(self.path, cause)


def lost(path, cause):
    """How much a recording says it lost for that cause."""
    text = subprocess.run([WITTY, "show", path, "summary", "--format", "json"], check=True, capture_output=True,
                          text=True).stdout
    return sum(row["count"] for row in json.loads(text)["lost"] if row["cause"] == cause)


def verdict(bad, fine):
    """@return the test's exit status"""
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print(fine)
    return 1 if bad else 0
