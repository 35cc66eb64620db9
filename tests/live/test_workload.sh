#!/bin/bash
# The ground-truth workload agrees with itself, and its checker accepts the truth and refuses
# anything else. Needs no profiler. usage: test_workload.sh TRUTH_PROGRAM
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$1" --out "$tmp/t.json"
/usr/bin/python3 - "$tmp" "$here/check_truth.py" <<'PY'
import copy
import json
import subprocess
import sys

tmp, checker = sys.argv[1:3]
truth = json.load(open(f"{tmp}/t.json"))
lossy = {"tcp4rst", "unixrst", "tcp4fin", "udp4trunc", "unixtrunc", "udpnobody"}
for f in truth["flows"]:
    whole = f["bytes_sent"] == f["bytes_received"]
    assert whole or f["case"] in lossy, f"sent and received differ: {f}"
    assert f["bytes_sent"] >= f["bytes_received"] and f["messages_sent"] > 0, f
short = [f for f in truth["flows"] if f["case"] == "udp4trunc"]
assert short and short[0]["bytes_received"] < short[0]["bytes_sent"], short


def end(pid, name):
    ident = f"process:{pid}" if pid else "socket:127.9.9.9:9"
    return {"id": ident, "pid": pid, "name": name}


numbers = [f"{u}_{d}" for u in ("bytes", "messages") for d in ("sent", "received")]
right = []
for f in truth["flows"]:
    row = {"source": end(f["source_pid"], f["source_name"]), "kind": f["kind"],
           "target": end(f["target_pid"], f["target_name"]), "bytes": f["bytes_sent"]}
    row.update({n: f[n] for n in numbers})
    right.append(row)


def verdict(name, change, want):
    rows = copy.deepcopy(right)
    change(rows)
    json.dump(rows, open(f"{tmp}/f.json", "w"))
    run = subprocess.run([sys.executable, checker, f"{tmp}/t.json", f"{tmp}/f.json"],
                         capture_output=True, text=True)
    assert run.returncode == want, f"{name}: exit {run.returncode}\n{run.stdout}{run.stderr}"


def blind_value(value):
    def change(rows):
        for f, row in zip(truth["flows"], rows):
            if f.get("blind"):
                row["bytes_received"] = value
    return change


def off(name, value):
    def change(rows):
        rows[0][name] += value
    return change


verdict("the truth", lambda r: None, 0)
verdict("a missing flow", lambda r: r.pop(3), 1)
verdict("no flows", lambda r: r.clear(), 1)
verdict("a flow twice", lambda r: r.append(copy.deepcopy(r[2])), 1)
verdict("a peer that is wrong", lambda r: r[5]["target"].update(pid=r[20]["target"]["pid"]), 1)
verdict("an unknown peer", lambda r: r[5]["target"].update(pid=None, id="socket:1.2.3.4:5"), 1)
verdict("a byte too many", off("bytes_received", 1), 1)
verdict("a byte too few", off("bytes_sent", -1), 1)
verdict("bytes is not bytes_sent", off("bytes", 7), 1)
verdict("not measured", lambda r: r[0].update(bytes_received=None), 1)
verdict("blind: null", blind_value(None), 0)
verdict("blind: shown as zero", blind_value(0), 1)
verdict("another program's flow", lambda r: r.append(
    {**r[0], "source": end(1, "init"), "target": end(2, "kthreadd")}), 0)
cases = len(truth["cases"])
print(f"{cases} cases, {len(truth['flows'])} flows, {len(truth['skipped'])} skipped")
PY
