#!/usr/bin/python3
"""Build the tree in every way that matters, run the tests of each build, and count.

Usage: run.py [--quick] [--only BUILD]
A failed build counts as one failed test. The last line is "N passed, N failed, N skipped".
"""
import argparse
import json
import os
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD_ROOT = os.path.join(TOP, "build-check")
SANITIZE = ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined",
            "-Dc_args=-fno-sanitize-recover=all"]
# Name, compiler, options of meson, suites that run in it.
BUILDS = [
    ("gcc-sanitized", "gcc", SANITIZE, ["unit", "golden", "fuzz", "live"]),
    ("clang-sanitized", "clang", SANITIZE, ["unit", "golden", "fuzz"]),
    ("release", "gcc", ["-Dbuildtype=release"], ["doc", "live", "vm"]),
]
# Tests of these suites watch the whole host or fill it: one at a time.
ALONE = {"live", "vm"}
SHOWN_LINES = 40
STATES = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def sanitizer_env():
    env = dict(os.environ)
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    return env


def tail(text):
    return "\n".join(text.rstrip().splitlines()[-SHOWN_LINES:])


def build(folder, compiler, options):
    """Configure and compile; None, or what went wrong."""
    # What is there may have been configured by an older tree: the options are set again.
    command = ["meson", "setup", folder, TOP] + options
    if os.path.exists(os.path.join(folder, "build.ninja")):
        command.append("--reconfigure")
    for step in (command, ["ninja", "-C", folder]):
        done = subprocess.run(step, env=dict(os.environ, CC=compiler), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            return f"{' '.join(step)}\n{tail(done.stdout)}"
    return None


def suites_of(folder):
    """The suites that have a test in this build; meson writes them PROJECT:SUITE."""
    out = subprocess.run(["meson", "introspect", "--tests", folder], check=True,
                         capture_output=True, text=True).stdout
    return {s.split(":")[-1] for test in json.loads(out) for s in test["suite"]}


def reason_of(record):
    """Why a test was skipped: the last thing that it said."""
    said = (record.get("stderr") or "") + "\n" + (record.get("stdout") or "")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    marked = [line for line in lines if "skip" in line.lower()]
    return (marked or lines or ["no reason given"])[-1]


def run_suite(folder, suite):
    """Run one suite; the records that meson wrote, or None when it wrote none."""
    log = os.path.join(folder, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    command = ["meson", "test", "-C", folder, "--no-rebuild", "--suite", suite]
    if suite in ALONE:
        command += ["--num-processes", "1"]
    subprocess.run(command, env=sanitizer_env(), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not os.path.exists(log):
        return None
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Tally:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def add(self, state, build_name, test, seconds, detail=""):
        self.counts[state] += 1
        mark = {"passed": "ok", "failed": "FAIL", "skipped": "skip"}[state]
        line = f"{mark:4} {build_name:16} {test} ({seconds:.1f} s)"
        if state == "skipped":
            line += f": {detail}"
        print(line, flush=True)
        if state == "failed" and detail:
            print("     | " + detail.replace("\n", "\n     | "), flush=True)

    def add_record(self, build_name, record):
        state = STATES.get(record["result"], "failed")
        detail = ""
        if state == "skipped":
            detail = reason_of(record)
        elif state == "failed":
            said = (record.get("stdout") or "") + (record.get("stderr") or "")
            detail = f"{record['result']}, status {record.get('returncode')}\n{tail(said)}"
        name = record["name"].split(" / ")[-1]
        self.add(state, build_name, name, record.get("duration", 0.0), detail)

    def last_line(self):
        return ", ".join(f"{n} {state}" for state, n in self.counts.items())


def run_build(tally, name, compiler, options, suites):
    folder = os.path.join(BUILD_ROOT, name)
    start = time.monotonic()
    wrong = build(folder, compiler, options)
    if wrong:
        tally.add("failed", name, "build", time.monotonic() - start, wrong)
        return
    print(f"     {name:16} built in {time.monotonic() - start:.1f} s", flush=True)
    there = suites_of(folder)
    for suite in suites:
        if suite not in there:
            continue
        records = run_suite(folder, suite)
        if not records:
            tally.add("failed", name, f"suite {suite}", 0.0, "meson test wrote no results")
            continue
        for record in records:
            tally.add_record(name, record)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="unit and golden tests, one build")
    parser.add_argument("--only", choices=[b[0] for b in BUILDS], help="one build only")
    args = parser.parse_args()
    tally = Tally()
    start = time.monotonic()
    for name, compiler, options, suites in BUILDS:
        if args.only and name != args.only:
            continue
        if args.quick and name != (args.only or BUILDS[0][0]):
            continue
        if args.quick:
            suites = [s for s in suites if s in ("unit", "golden")]
        run_build(tally, name, compiler, options, suites)
    print(f"     in {time.monotonic() - start:.0f} s")
    print(tally.last_line())
    none_ran = tally.counts["passed"] == 0
    sys.exit(1 if tally.counts["failed"] or none_ran else 0)


if __name__ == "__main__":
    main()
