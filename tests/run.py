#!/usr/bin/env python3
"""run.py [--failed=WHAT]... [BUILDDIR=SUITE,...]... - run meson tests and count them.

Output lines that begin with "| " are results to be seen: they are printed whether or not the test
passed. Then a line for each test that failed (with the end of its output) or was skipped (with its reason:
the last line that it printed); alone on the last line "N passed, N failed, N skipped".
Exit status 1 when anything failed, or when nothing was run.
"""
import json
import os
import subprocess
import sys

TAIL_LINES = 30


def output_lines(test):
    text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
    return [line for line in text.splitlines() if line.strip()]


def run_suites(build, suites):
    """Run the suites of one build folder; return what meson says of each test."""
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    command = ["meson", "test", "-C", build, "--no-rebuild"]
    for suite in suites.split(","):
        command += ["--suite", suite]
    sys.stdout.flush()
    done = subprocess.run(command, stdin=subprocess.DEVNULL)
    if not os.path.exists(log):
        # Without a test of these suites meson writes no log and succeeds.
        return [] if done.returncode == 0 else None
    with open(log, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def print_tables(tables):
    for name, rows in tables:
        print(f"\n{name}")
        for row in rows:
            print(row)


def main(args):
    passed, failed, skipped, tables = 0, [], [], []
    for arg in args:
        if arg.startswith("--failed="):
            failed.append((arg[len("--failed="):], []))
            continue
        build, _, suites = arg.partition("=")
        tests = run_suites(build, suites)
        if tests is None:
            failed.append((f"{build}: meson test", []))
            continue
        for test in tests:
            name = f"{build}: {test['name']}"
            lines = output_lines(test)
            rows = [line for line in lines if line.startswith("| ")]
            if rows:
                tables.append((name, rows))
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                passed += 1
            elif test["result"] == "SKIP":
                skipped.append((name, lines[-1] if lines else "no reason given"))
            else:
                failed.append((f"{name}: {test['result']}", lines[-TAIL_LINES:]))
    print_tables(tables)
    print()
    for name, lines in failed:
        print(f"FAILED  {name}")
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
