#!/usr/bin/python3
"""Compare recorded flows with the ground truth that tests/live/workload wrote down.

usage: check_truth.py TRUTH.json FLOWS.json [--kernel-note FILE] [--json] [--strict-messages]

FLOWS.json is what `witty-profiler show FILE flows --format json` printed. The exit status is 0 only
when no flow is missing, none is extra, and no byte is wrong in either direction. A direction that
no hook of the kernel sees (truth: "blind") may be null or right, but not 0 or anything else.
FILE names further blind directions of one kernel: {"note": TEXT, "blind": {CASE: ["receive"]}}.
"""
import argparse
import json
import sys

KINDS = ("tcp", "udp", "unix")


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def flow_key(row):
    """(source pid, target pid, kind); a pid is None for an endpoint that no process owns."""
    return row["source"].get("pid"), row["target"].get("pid"), row["kind"]


def relevant(rows, pids):
    """The rows that the truth must explain: between its processes, or of one of them."""
    kept = []
    for row in rows:
        source, target, kind = flow_key(row)
        ends = [p for p in (source, target) if p is not None]
        if kind in KINDS and ends and all(p in pids for p in ends):
            kept.append(row)
    return kept


def strangers(rows, pids):
    """Flows between a process of the truth and one that it does not know."""
    found = []
    for row in rows:
        source, target, kind = flow_key(row)
        if kind in KINDS and None not in (source, target) and (source in pids) != (target in pids):
            found.append(row)
    return found


def take(rows, want):
    """Remove and return the row that is meant by one flow of the truth, or None."""
    fits = [r for r in rows
            if flow_key(r) == (want["source_pid"], want["target_pid"], want["kind"])]
    if want.get("external"):
        named = [r for r in fits if want["external"] in json.dumps(r["target"])]
        fits = named or fits
        fits = [r for r in fits if str(r["target"].get("id", "")).startswith("socket:")]
    if not fits:
        return None
    rows.remove(fits[0])
    return fits[0]


def direction_errors(row, want, direction, blind, unit):
    """Text about one number of a row, or None when it is right."""
    name = f"{unit}_{direction}"
    got, true = row.get(name), want[name]
    if got == true:
        return None
    short = "receive" if direction == "received" else "send"
    if short in blind and got is None:
        return None
    # Nothing was received: where splice(2) cannot be seen, "not measured" is the honest answer.
    if direction == "received" and true == 0 and got is None:
        return None
    if want["target_pid"] is None and direction == "received" and got is None:
        return None
    return f"{name} {'null' if got is None else got}, should be {true}"


def byte_error(row, want, direction):
    got = row.get(f"bytes_{direction}")
    return abs((got or 0) - want[f"bytes_{direction}"])


def compare(row, want, note):
    """(byte errors, message errors) as lists of text."""
    blind = set(want.get("blind", ())) | set(note.get("blind", {}).get(want["case"], ()))
    byte_texts, message_texts = [], []
    for direction in ("sent", "received"):
        text = direction_errors(row, want, direction, blind, "bytes")
        if text:
            byte_texts.append(text)
        text = direction_errors(row, want, direction, blind, "messages")
        if text:
            message_texts.append(text)
    if row.get("bytes") != want["bytes_sent"]:
        byte_texts.append(f"bytes {row.get('bytes')}, should be {want['bytes_sent']} (bytes_sent)")
    return byte_texts, message_texts


class Tally:
    """What was found of one case."""

    def __init__(self, case):
        self.case = case
        self.expected = self.found = self.extra = 0
        self.sent_error = self.received_error = 0
        self.byte_faults = self.message_faults = self.name_faults = 0
        self.lines = []

    def missing(self):
        return self.expected - self.found

    def good(self, strict):
        return not (self.missing() or self.extra or self.byte_faults or
                    (strict and self.message_faults))


def describe(row):
    ends = [f"{row[e].get('name')}[{row[e].get('pid')}, {row[e].get('id')}]"
            for e in ("source", "target")]
    return f"{ends[0]} -> {ends[1]} {row['kind']} bytes={row.get('bytes')}" \
           f" sent={row.get('bytes_sent')} received={row.get('bytes_received')}"


def judge(truth, flows, note):
    names = {p["pid"]: p["name"] for p in truth["processes"] if p["pid"]}
    case_of = {p["pid"]: p["name"].split(".")[0] for p in truth["processes"]}
    tallies = {c: Tally(c) for c in truth.get("cases", [])}
    rest = relevant(flows, set(names))
    for want in truth["flows"]:
        tally = tallies.setdefault(want["case"], Tally(want["case"]))
        tally.expected += 1
        label = f"{want['source_name']} -> {want['target_name'] or want['external']} {want['kind']}"
        row = take(rest, want)
        if row is None:
            tally.lines.append(f"missing: {label}, {want['bytes_sent']} bytes sent")
            tally.sent_error += want["bytes_sent"]
            tally.received_error += want["bytes_received"]
            continue
        tally.found += 1
        byte_texts, message_texts = compare(row, want, note)
        tally.byte_faults += len(byte_texts)
        tally.message_faults += len(message_texts)
        if any("bytes_sent" in t for t in byte_texts):
            tally.sent_error += byte_error(row, want, "sent")
        if any(t.startswith("bytes_received") for t in byte_texts):
            tally.received_error += byte_error(row, want, "received")
        for end in ("source", "target"):
            pid = want[f"{end}_pid"]
            tally.name_faults += pid is not None and row[end].get("name") != names[pid]
        tally.lines += [f"wrong: {label}: {t}" for t in byte_texts]
        tally.lines += [f"messages: {label}: {t}" for t in message_texts]
    for row in rest + strangers(flows, set(names)):
        source, target, _ = flow_key(row)
        case = case_of.get(source) or case_of.get(target)
        tally = tallies.setdefault(case, Tally(case))
        tally.extra += 1
        tally.lines.append(f"extra: {describe(row)}")
    return list(tallies.values())


def totals(tallies, truth, note, strict):
    expected = sum(t.expected for t in tallies)
    found = sum(t.found for t in tallies)
    extra = sum(t.extra for t in tallies)
    return {
        "cases": len(tallies),
        "failed_cases": [t.case for t in tallies if not t.good(strict)],
        "skipped": truth.get("skipped", []),
        "expected": expected,
        "found": found,
        "missing": expected - found,
        "extra": extra,
        "recall": found / expected if expected else 1.0,
        "precision": found / (found + extra) if found + extra else 1.0,
        "bytes_sent_error": sum(t.sent_error for t in tallies),
        "bytes_received_error": sum(t.received_error for t in tallies),
        "byte_faults": sum(t.byte_faults for t in tallies),
        "message_faults": sum(t.message_faults for t in tallies),
        "name_faults": sum(t.name_faults for t in tallies),
        "note": note.get("note"),
        "ok": all(t.good(strict) for t in tallies),
    }


def print_table(tallies, total, strict):
    head = ("case", "expected", "found", "missing", "extra", "sent err", "recv err", "msg", "")
    form = "{:<12}{:>9}{:>7}{:>9}{:>7}{:>10}{:>10}{:>5}  {}"
    print(form.format(*head))
    for t in tallies:
        print(form.format(str(t.case), t.expected, t.found, t.missing(), t.extra, t.sent_error,
                          t.received_error, t.message_faults, "ok" if t.good(strict) else "FAILED"))
        for line in t.lines[:12]:
            print("    " + line)
        if len(t.lines) > 12:
            print(f"    and {len(t.lines) - 12} more")
    for s in total["skipped"]:
        print(f"skipped: {s['case']}: {s['reason']}")
    if total["note"]:
        print(f"note: {total['note']}")
    print("{cases} cases, {expected} flows: recall {recall:.4f}, precision {precision:.4f}, "
          "byte error sent {bytes_sent_error} received {bytes_received_error}, "
          "{message_faults} message counts off, {name_faults} names off".format(**total))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("truth")
    p.add_argument("flows")
    p.add_argument("--kernel-note", metavar="FILE")
    p.add_argument("--json", action="store_true", help="print the totals as JSON only")
    p.add_argument("--strict-messages", action="store_true", help="wrong message counts fail too")
    a = p.parse_args()
    truth, flows = load(a.truth), load(a.flows)
    note = load(a.kernel_note) if a.kernel_note else {}
    if not truth["flows"]:
        quiet = {"refused", "nodata"}
        if not set(truth.get("cases", [])) <= quiet and not truth.get("skipped"):
            sys.exit(f"error: '{a.truth}' has no flows")
    tallies = judge(truth, flows, note)
    total = totals(tallies, truth, note, a.strict_messages)
    if a.json:
        total["per_case"] = [{**vars(t), "ok": t.good(a.strict_messages)} for t in tallies]
        print(json.dumps(total, indent=2))
    else:
        print_table(tallies, total, a.strict_messages)
    return 0 if total["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
