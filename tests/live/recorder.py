"""recorder.py - a recording that begins and ends when a test says so, and what a test says in the end."""
import json
import os
import subprocess
import sys
import time

WITTY = os.environ["WITTY"]
PATIENCE_S = 120  # ends what hangs: a busy machine takes its time
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

    def until(self, what, good):
        """Until good() holds, while it records."""
        until(what, good, self.p)

    def intervals(self):
        """How many another process can read by now."""
        return intervals(self.path)

    def end(self):
        """End the recording, and leave it as a file."""
        try:
            said = self.p.communicate("\n", timeout=PATIENCE_S)[1]
        except subprocess.TimeoutExpired:
            self.p.kill()
            sys.exit("FAILED: record does not end")
        if self.p.returncode != 0:
            sys.exit(f"FAILED: record: {said}")

    def stop(self):
        """@return the recording as a graph"""
        self.end()
        return json.loads(subprocess.run([WITTY, "convert", self.path, "-"], check=True, stdout=subprocess.PIPE,
                                         text=True).stdout)

    def lost(self, cause):
        return lost(self.path, cause)


def until(what, good, *processes):
    """Until good() holds, as long as these processes run. @return what it returned"""
    end = time.monotonic() + PATIENCE_S
    while True:
        got = good()
        if got:
            return got
        for p in processes:
            if p.poll() is not None:
                said = p.communicate()[1] if p.stderr else ""
                sys.exit(f"FAILED: {what}: {p.args[0]} ended with {p.returncode}: {said}")
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what}: not within {PATIENCE_S} s")
        time.sleep(0.05)


def intervals(path):
    """How many intervals of a recording can be read by now, while it is made."""
    done = subprocess.run([WITTY, "show", path, "summary", "--format", "json"], capture_output=True, text=True, check=False)
    return 0 if done.returncode else json.loads(done.stdout)["intervals"]


def lost(path, cause):
    """How much a recording says it lost for that cause."""
    text = subprocess.run([WITTY, "show", path, "summary", "--format", "json"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    return sum(row["count"] for row in json.loads(text)["lost"] if row["cause"] == cause)


def verdict(bad, fine):
    """@return the test's exit status"""
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print(fine)
    return 1 if bad else 0
