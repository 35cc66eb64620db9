#!/usr/bin/env python3
"""run.py [--quick | --in-turn] - build the project in three ways, run all tests, and count them.

--quick: only what needs no root, by one compiler; --in-turn: one step after the other, to see whether a test fails for what runs beside it.

Two lanes side by side. In the first are tests that record this host: one after another, and most of the time they wait.
In the second, at a lower priority, is what computes: it takes what the first leaves idle. Each step builds first
what its suites need, and no more.

Lines of a test that begin with "| " are results to be seen: they are printed whether or not it passed. At the end there is
a line for each step with its time, for each test that failed (with the end of its output) or was skipped (with its reason:
the last line that it printed); alone on the last line "N passed, N failed, N skipped".

A few that failed are run once more at the end, alone: one that passes then is counted as passed, and told with what it
said the first time (UNSTEADY), as it needs mending; one that fails twice has failed.
Exit status 1 when anything failed, or when nothing was run.
"""
import json
import os
import subprocess
import sys
import threading
import time

TOP = "build-check"
TAIL_LINES = 40
# To optimise more takes twice as long to build, and finds the same. Warnings that need it (format-truncation is guesswork
# without) are those of the release.
SANITIZED = ["-Ddebug=true", "-Doptimization=1", "-Db_sanitize=address,undefined", "-Db_lundef=false",
             "-Dweb=disabled"]
# Of each build: its compiler, and options of meson.
BUILDS = {
    "gcc": ("gcc", [*SANITIZED, "-Dkafka=enabled", "-Dc_args=-Wno-format-truncation"]),
    "clang": ("clang", SANITIZED),
    "release": ("gcc", ["--buildtype=release", "-Dweb=enabled"]),
}
# Of each lane: how much nicer than we it is, and its steps: a build with the suites that are run in it.
QUICK = [(0, [("gcc", "unit,golden")])]
FULL = [
    (0, [("gcc", "live"), ("release", "real")]),
    (10, [("release", "vm,doc,web"), ("gcc", "unit,golden"), ("clang", "unit,fuzz")]),
]
# Of these suites files that come and go are in memory: on a disk they take minutes. Others need to see a disk.
IN_MEMORY, MEMORY = {"unit", "golden"}, "/dev/shm"
# How many tests of the first lane run side by side where they may: more than there are CPUs, as they wait.
SIDE_BY_SIDE = 3
# When more fail than this, it is not for what ran beside them.
FEW = 6
# A test waits for what it needs; its limit only ends what hangs, and other tests take their part of the machine.
TIMES_LIMIT = 3


PASSED = {"OK", "EXPECTEDFAIL"}


class Step:
    """A build and the suites that are run in it. After run(): tests, or what went wrong."""
    lock = threading.Lock()
    builds = {name: threading.Lock() for name in BUILDS}
    configured = set()

    def __init__(self, build, suites, nice):
        self.build, self.suites, self.nice = build, suites.split(","), nice
        self.dir = os.path.join(TOP, build)
        self.name = f"{build} {suites}"
        self.tests, self.problem, self.tail = [], "not run", []
        self.unsteady = []
        self.spent = {}

    def say(self, text):
        with Step.lock:
            print(f"{self.name}: {text}", flush=True)

    def command(self, words, take, **more):
        """Run it, and give each line of its output to take(). @return its exit status"""
        p = subprocess.Popen(["nice", "-n", str(self.nice), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", **more)
        for line in p.stdout:
            take(line.rstrip("\n"))
        p.stdout.close()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s += usage.ru_utime + usage.ru_stime
        return p.returncode

    def timed(self, what, run):
        began, self.cpu_s = time.monotonic(), 0
        try:
            return run()
        finally:
            self.spent[what] = (time.monotonic() - began, self.cpu_s)

    def introspect(self, what):
        lines = []
        if self.command(["meson", "introspect", self.dir, "--" + what], lines.append):
            raise RuntimeError("\n".join(lines))
        return json.loads("\n".join(lines))

    def targets(self):
        """What the suites need, and all of the product."""
        tests = os.path.realpath("tests")
        wanted = {d for t in self.introspect("tests") if {s.split(":")[-1] for s in t["suite"]} & set(self.suites)
                  for d in t["depends"]}
        files = [f for t in self.introspect("targets")
                 if t["id"] in wanted or t["build_by_default"] and not t["defined_in"].startswith(tests + "/")
                 for f in t["filename"]]
        return [os.path.relpath(f, self.dir) for f in files]

    def make(self):
        """@return whether all that is needed was built"""
        compiler, options = BUILDS[self.build]
        lines = []
        env = {**os.environ, "CC": compiler}
        with Step.builds[self.build]:
            os.makedirs(TOP, exist_ok=True)
            old = ["--reconfigure"] if os.path.exists(os.path.join(self.dir, "build.ninja")) else []
            good = self.build in Step.configured or \
                not self.command(["meson", "setup", *old, self.dir, *options], lines.append, env=env)
            if good:
                Step.configured.add(self.build)
            good = good and not self.command(["ninja", "-C", self.dir, *self.targets()], lines.append, env=env)
        with open(f"{self.dir}-{'-'.join(self.suites)}.log", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        self.tail = lines[-TAIL_LINES:]
        return good

    def meson_test(self, base, *names):
        """@return (exit status, what meson says of each test of the suites, or of those with these names)"""
        log = os.path.join(self.dir, "meson-logs", base + ".json")
        if os.path.exists(log):
            os.unlink(log)
        words = ["meson", "test", "-C", self.dir, "--no-rebuild", "--logbase", base, "-t", str(TIMES_LIMIT)]
        if not self.nice and not names:
            words += ["--num-processes", str(max(SIDE_BY_SIDE, os.cpu_count()))]
        env = dict(os.environ)
        if set(self.suites) <= IN_MEMORY and os.access(MEMORY, os.W_OK):
            env["TMPDIR"] = MEMORY
        for suite in self.suites:
            words += ["--suite", suite]
        self.tail = []
        status = self.command([*words, *names], lambda line: " / " in line and self.say(line.strip()) or self.tail.append(line),
                              env=env)
        tests = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                tests = [json.loads(line) for line in f if line.strip()]
        return status, tests

    def test(self):
        """Run the suites. @return whether meson did so; tests are what it says of each"""
        status, self.tests = self.meson_test("-".join(self.suites))
        # Without a test of these suites meson writes no log and succeeds.
        return bool(self.tests) or status == 0

    def failed(self):
        return [t for t in self.tests if t["result"] not in PASSED and t["result"] != "SKIP"]

    def again(self):
        """Once more what failed, now that nothing runs beside it."""
        for first in self.failed():
            short = first["name"].split(" / ")[-1]
            self.say(f"once more, alone: {short}")
            _, second = self.meson_test("again", short)
            if len(second) == 1:
                # What it says when it is alone tells more.
                self.tests[self.tests.index(first)] = second[0]
                if second[0]["result"] in PASSED:
                    self.unsteady.append(first)

    def run(self):
        try:
            self.say("building")
            self.problem = "build"
            if self.timed("build", self.make):
                self.problem = "meson test"
                self.say("testing")
                if self.timed("tests", self.test):
                    self.problem = None
        except (OSError, RuntimeError, ValueError) as e:
            self.tail = str(e).splitlines()[-TAIL_LINES:]
        if self.problem:
            self.say(f"FAILED: {self.problem}")


def output_lines(test):
    text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    return [line for line in text.splitlines() if line.strip()]


def run_lanes(lanes, in_turn):
    """@return all steps, done"""
    todo = [[Step(build, suites, 0 if in_turn else nice) for build, suites in steps] for nice, steps in lanes]
    if in_turn:
        todo = [[s for steps in todo for s in steps]]
    threads = [threading.Thread(target=lambda steps=steps: [s.run() for s in steps]) for steps in todo]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [s for steps in todo for s in steps]


def judge(steps):
    """@return (number that passed, [(what failed, lines)], [(what was skipped, why)]); tables are printed"""
    passed, failed, skipped = 0, [], []
    for step in steps:
        if step.problem:
            failed.append((f"{step.dir}: {step.problem}", step.tail))
        for test in step.tests:
            name = f"{step.dir}: {test['name']}"
            lines = output_lines(test)
            rows = [line for line in lines if line.startswith("| ")]
            if rows:
                print("\n".join(["", name, *rows]))
            if test["result"] in PASSED:
                passed += 1
            elif test["result"] == "SKIP":
                skipped.append((name, lines[-1] if lines else "no reason given"))
            else:
                failed.append((f"{name}: {test['result']}", lines[-TAIL_LINES:]))
    return passed, failed, skipped


def main(args):
    if args not in ([], ["--quick"], ["--in-turn"]):
        print("usage: check [--quick | --in-turn]", file=sys.stderr)
        return 2
    steps = run_lanes(QUICK if args == ["--quick"] else FULL, args == ["--in-turn"])
    if 0 < sum(len(s.failed()) for s in steps) <= FEW:
        for s in [s for s in steps if s.failed()]:
            s.timed("once more", s.again)
    passed, failed, skipped = judge(steps)
    print()
    for step in steps:
        for what, (wall_s, cpu_s) in step.spent.items():
            print(f"TIME    {step.name}: {what}: {wall_s:.0f} s, {cpu_s:.0f} s of CPU")
    unsteady = [(f"{s.dir}: {t['name']}: {t['result']} beside others", output_lines(t)[-TAIL_LINES:]) for s in steps
                for t in s.unsteady]
    for what, tests in (("UNSTEADY", unsteady), ("FAILED ", failed)):
        for name, lines in tests:
            print(f"{what} {name}")
            for line in lines:
                print(f"    {line}")
    for name, reason in skipped:
        print(f"SKIPPED {name}: {reason}")
    if not passed and not failed:
        print("FAILED  no test was run")
        failed.append(("nothing", []))
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
