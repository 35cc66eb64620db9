#!/usr/bin/python3
"""test_agent.py DIAG - an agent that knows nothing but the answers of `witty-profiler mcp` finds root causes.

WITTY names the program, DIAG that of bench/diagnosis. Programs that are held up in known ways are recorded; then the
root of each has to be named in at most six calls, by one way of working for all. Needs root.
"""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "../../bench/diagnosis")
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../serve"), BENCH]
from mcp_client import Server, WITTY  # noqa: E402
from cases import KINDS  # noqa: E402

CASES = ["compute", "convoy", "lock-asleep", "pipe-full", "rank-slow"]
CALLS_MAX = 6
TRIES = 4  # what else runs on the machine can disturb one


def load_runner():
    loader = importlib.machinery.SourceFileLoader("diagnosis_run", os.path.join(BENCH, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def investigate(server):
    """(rule, id of the root, what it is called): from answers alone."""
    overview = server.data("summary", budget=2000)
    if not overview.get("findings_total"):
        return "none", None, ""
    found = server.data("diagnose", budget=3000)
    first = found["findings"][0]
    proof = server.data("evidence", finding=first["id"])["finding"]
    root = proof.get("root", {}).get("id") or proof["subjects"][0]
    if not proof["values"] or not proof["advice"]:
        return "no evidence", root, ""
    entity = server.data("explain_entity", id=root, budget=1000)["entity"]
    return proof["rule"], root, entity.get("name", "")


def main():
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return 77
    bench, wrong, most = load_runner(), [], 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        args = types.SimpleNamespace(witty=WITTY, diag=os.path.abspath(sys.argv[1]), seconds=2)
        runner = bench.Runner(args, folder)
        for kind in (k for k in KINDS if k.case in CASES):
            for _ in range(TRIES):
                variant = kind.variants[0]
                runner.record(kind, variant, False)
                base = runner.base(kind, variant, False)
                with open(base + ".json", encoding="utf-8") as f:
                    who = bench.json.load(f)
                with Server([base + ".wpdb"]) as server:
                    rule, root, name = investigate(server)
                    calls = server.calls
                good = rule in kind.rules and bench.plain(root) in bench.blamed(kind, who) and calls <= CALLS_MAX
                if good:
                    break
            most = max(most, calls)
            print(f"| {kind.kind} | {rule} | {root} {name} | {calls} calls | {'right' if good else 'WRONG'} |", flush=True)
            if not good:
                wrong.append(kind.case)
    print(f"{len(CASES) - len(wrong)} of {len(CASES)} right, in at most {most} calls")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
