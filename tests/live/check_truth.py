#!/usr/bin/python3
"""Compare the flows of a recording with the ground truth that the workload wrote down.

usage: check_truth.py TRUTH.json FLOWS.json [--json FILE] [--strict-messages] [--kernel-note FILE]

Exit status 0: every flow found, none too many, every byte count equal. 1: not so. 2: bad input.
"""
import argparse
import json
import sys

KINDS = ("tcp", "udp", "unix")


def load(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError) as e:
        print(f"check_truth: {path}: {e}", file=sys.stderr)
        sys.exit(2)


def pid_of(end):
    """The owner of an end of a flow; None: no owner on this host."""
    return end.get("pid") if isinstance(end, dict) else None


def key_of(flow):
    return (pid_of(flow.get("source")), pid_of(flow.get("target")), flow.get("kind"))


class Case:
    def __init__(self):
        self.expected = self.found = self.extra = 0
        self.byte_error = {"sent": 0, "received": 0}
        self.message_error = {"sent": 0, "received": 0}
        self.blind = 0
        self.problems = []

    def good(self, strict):
        return (self.found == self.expected and not self.extra and not self.problems
                and not (strict and any(self.message_error.values())))


def describe(t):
    target = t["target_name"] or t.get("external", "outside")
    return f"{t['source_name']} -> {target} ({t['kind']})"


def compare_bytes(case, truth, got, way):
    """One direction of one flow: equal, or null where the kernel shows nothing."""
    want, have = truth[f"bytes_{way}"], got.get(f"bytes_{way}")
    blind = way == "received" and "receive" in truth.get("blind", [])
    nobody = way == "received" and truth["target_pid"] is None
    if have is None and (blind or nobody):
        case.blind += 1
        return
    if have == want and not isinstance(have, bool):
        return
    error = abs((have or 0) - want)
    case.byte_error[way] += error
    case.problems.append(f"{describe(truth)}: bytes_{way} {have}, truth {want}")


def compare_messages(case, truth, got, way):
    want, have = truth[f"messages_{way}"], got.get(f"messages_{way}")
    if way in truth.get("loose_messages", []):
        return
    if have is None and way == "received" and (truth.get("blind") or truth["target_pid"] is None):
        return
    case.message_error[way] += abs((have or 0) - want)


def compare_flow(case, truth, rows):
    case.expected += 1
    if not rows:
        case.problems.append(f"{describe(truth)}: missing")
        case.byte_error["sent"] += truth["bytes_sent"]
        case.byte_error["received"] += truth["bytes_received"]
        return
    case.found += 1
    if len(rows) > 1:
        case.extra += len(rows) - 1
        case.problems.append(f"{describe(truth)}: {len(rows)} rows, not one")
    got = rows[0]
    for way in ("sent", "received"):
        compare_bytes(case, truth, got, way)
        compare_messages(case, truth, got, way)
    if got.get("bytes") != got.get("bytes_sent"):
        case.problems.append(f"{describe(truth)}: bytes {got.get('bytes')} is not bytes_sent "
                             f"{got.get('bytes_sent')}")
    for end, name in (("source", truth["source_name"]), ("target", truth["target_name"])):
        have = (got.get(end) or {}).get("name")
        if name is not None and have != name:
            print(f"note: {describe(truth)}: {end} is named {have!r}", file=sys.stderr)


def case_of_pids(truth):
    """pid -> case, from the roles that the workload gave its processes."""
    return {p["pid"]: p["role"].split()[0] for p in truth["processes"]}


def compare(truth, flows):
    cases = {name: Case() for name in truth["cases"]}
    skipped = {s["case"] for s in truth.get("skipped", [])}
    home = case_of_pids(truth)
    rows = {}
    for f in flows:
        if f.get("kind") in KINDS:
            rows.setdefault(key_of(f), []).append(f)
    listed = set()
    for t in truth["flows"]:
        key = (t["source_pid"], t["target_pid"], t["kind"])
        # Several unowned endpoints of one process may be several rows: told apart by address.
        found = rows.get(key, [])
        if t["target_pid"] is None and len(found) > 1:
            found = [f for f in found if t["external"] in json.dumps(f["target"])]
        listed.add(key)
        compare_flow(cases[t["case"]], t, found)
    for key, found in rows.items():
        source, target, kind = key
        owners = [p for p in (source, target) if p is not None]
        if key in listed or not owners or not all(p in home for p in owners):
            continue
        name = home[owners[0]]
        case = cases.setdefault(name, Case())
        case.extra += len(found)
        for f in found:
            ends = [f"{(f[e] or {}).get('name')}[{pid_of(f[e])}]" for e in ("source", "target")]
            case.problems.append(f"extra: {ends[0]} -> {ends[1]} ({kind}) "
                                 f"bytes {f.get('bytes_sent')}/{f.get('bytes_received')}")
    for name in skipped:
        cases.pop(name, None)
    return cases


def totals(cases):
    expected = sum(c.expected for c in cases.values())
    found = sum(c.found for c in cases.values())
    extra = sum(c.extra for c in cases.values())
    return {
        "expected": expected, "found": found, "missing": expected - found, "extra": extra,
        "recall": found / expected if expected else 1.0,
        "precision": found / (found + extra) if found + extra else 1.0,
        "byte_error_sent": sum(c.byte_error["sent"] for c in cases.values()),
        "byte_error_received": sum(c.byte_error["received"] for c in cases.values()),
        "message_error_sent": sum(c.message_error["sent"] for c in cases.values()),
        "message_error_received": sum(c.message_error["received"] for c in cases.values()),
        "blind": sum(c.blind for c in cases.values()),
    }


def print_table(cases, skipped, strict):
    print(f"{'case':<16}{'flows':>6}{'found':>6}{'miss':>6}{'extra':>6}{'byte err s/r':>16}"
          f"{'msg err s/r':>13}{'blind':>6}  verdict")
    for name, c in cases.items():
        print(f"{name:<16}{c.expected:>6}{c.found:>6}{c.expected - c.found:>6}{c.extra:>6}"
              f"{c.byte_error['sent']:>9}/{c.byte_error['received']:<6}"
              f"{c.message_error['sent']:>7}/{c.message_error['received']:<5}{c.blind:>6}  "
              f"{'ok' if c.good(strict) else 'WRONG'}")
        for p in c.problems:
            print(f"    {p}")
    for s in skipped:
        print(f"{s['case']:<16}skipped: {s['reason']}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("truth")
    ap.add_argument("flows")
    ap.add_argument("--json", metavar="FILE", help="write a machine-readable summary")
    ap.add_argument("--strict-messages", action="store_true", help="message counts must be equal")
    ap.add_argument("--kernel-note", metavar="FILE", help="text to print above the table")
    o = ap.parse_args()
    truth, flows = load(o.truth), load(o.flows)
    if not isinstance(flows, list) or not isinstance(truth, dict):
        print("check_truth: the flows must be an array, the truth an object", file=sys.stderr)
        return 2
    if o.kernel_note:
        with open(o.kernel_note, encoding="utf-8") as f:
            print(f.read().rstrip())
    cases = compare(truth, flows)
    print_table(cases, truth.get("skipped", []), o.strict_messages)
    t = totals(cases)
    good = (bool(cases) or bool(truth.get("skipped"))) and \
        all(c.good(o.strict_messages) for c in cases.values())
    print(f"total: recall {t['recall']:.4f}, precision {t['precision']:.4f}, "
          f"byte error sent {t['byte_error_sent']} received {t['byte_error_received']}, "
          f"message error sent {t['message_error_sent']} received {t['message_error_received']}, "
          f"blind directions {t['blind']}: {'ok' if good else 'WRONG'}")
    if o.json:
        t["ok"] = good
        t["cases"] = {n: {"ok": c.good(o.strict_messages), "problems": c.problems}
                      for n, c in cases.items()}
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(t, f, indent=2)
            f.write("\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
