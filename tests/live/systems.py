"""Parallel jobs of known pattern, recorded and compared with what `topology` says of them.

usage: systems.py WITTY SYSTEMS [BATCH]

SYSTEMS is the program that runs one job. Each batch runs many jobs side by side, so that each is
also an unrelated job for all others, and records them at once. A case is right when its processes
form one group, with the pattern, the members and their order that the job printed. "Unknown" is
allowed for few, a wrong pattern for none of those that were not right.
"""
import json
import os
import subprocess
import sys
import tempfile

# Second: of those that were unknown after the first; on a busy host jobs get less far.
RECORD_SECONDS = 4, 16
RIGHT_SHARE = 0.95
LIFE_S = 600
# Job, ranks, transports; each is run with another seed, which gives sizes, order and variant.
CASES = [
    ("ring", (2, 4, 8), ("tcp", "unix", "pipe", "shm", "mixed")),
    ("all-to-all", (2, 4, 8), ("tcp", "unix", "pipe")),
    ("tree", (2, 4, 8), ("tcp", "unix", "pipe")),
    ("tree", (8,), ("mixed",)),
    ("hierarchy", (8,), ("tcp", "unix", "pipe", "mixed", "shm", "mixed")),
    ("chain", (2, 4, 8), ("tcp", "unix", "pipe", "mixed")),
    ("servers1", (2, 4, 8), ("tcp", "unix", "mixed")),
    ("servers3", (2, 4, 8), ("tcp", "unix")),
    ("servers3", (8,), ("pipe",)),
    ("star", (2, 4, 8), ("tcp", "pipe", "mixed")),
    ("replicas", (2, 4, 8), ("tcp",)),
    ("grid", (4, 8), ("tcp", "unix", "pipe", "mixed")),
]
PATTERN = {
    "ring": "ring all-reduce", "all-to-all": "all-to-all", "tree": "tree all-reduce",
    "hierarchy": "hierarchical all-reduce", "chain": "pipeline parallel",
    "servers1": "parameter server", "servers3": "parameter server", "star": "master/worker star",
    "replicas": "independent replicas", "grid": "tensor x data parallel grid",
}
BATCH_PROCESSES = 110


def all_cases():
    seed = 1
    for pattern, ranks, transports in CASES:
        for n in ranks:
            for transport in transports:
                yield pattern, n, transport, seed
                seed += 1


def batches(cases):
    batch, processes = [], 0
    for case in cases:
        more = case[1] + 4
        if batch and processes + more > BATCH_PROCESSES:
            yield batch
            batch, processes = [], 0
        batch.append(case)
        processes += more
    yield batch


def record(witty, jobs, path, seconds):
    pids = []
    for job in jobs:
        pids += ["-p", str(job["launcher"])]
    # Every byte counts here, whatever else the host does.
    subprocess.run([witty, "record", "-d", f"{seconds}s", "-o", path, "--max-overhead", "off", *pids], check=True,
                   stdout=subprocess.DEVNULL)
    out = subprocess.run([witty, "topology", path, "--format", "json"], check=True, capture_output=True)
    again = subprocess.run([witty, "topology", path, "--format", "json"], check=True, capture_output=True)
    if out.stdout != again.stdout:
        sys.exit("two analyses of one recording differ")
    return json.loads(out.stdout)


def pid_of(actor):
    return int(actor.split(":", 1)[1].split("#")[0].split("@")[0])


def rotations(members):
    for i in range(len(members)):
        yield members[i:] + members[:i]


def order_is_right(case, truth, group, both_ways):
    """Whether the members stand where they stand in the job."""
    pattern, members = truth["pattern"], truth["members"]
    found = [pid_of(m) for m in group["members"]]
    hubs = group["shape"]["hubs"]
    if len(members) == 2 or pattern in ("replicas", "all-to-all"):
        return True
    if pattern == "ring":
        return found in rotations(members) or (both_ways and found[::-1] in rotations(members))
    if pattern == "chain":
        return found == members
    if pattern == "tree":
        # Of equal traffic in both directions the root is not always certain.
        return found[0] == members[0] or group["shape"]["looks_the_same"] is not None
    if pattern in ("servers1", "servers3", "star", "hierarchy"):
        return ((hubs == truth["hubs"] and set(found[:hubs]) == set(members[:hubs])) or
                (pattern == "servers3" and "which side serves" in (group["shape"]["looks_the_same"] or "")))
    rows = {frozenset(members[i:i + truth["inner"]]) for i in range(0, len(members), truth["inner"])}
    inner = group["shape"]["inner"]
    return inner == truth["inner"] and {frozenset(found[i:i + inner]) for i in range(0, len(found), inner)} == rows


def judge(case, truth, topology):
    """(verdict, text): "right", "unknown" or "wrong"."""
    members = set(truth["members"])
    groups = [g for g in topology["groups"] if members & {pid_of(m) for m in g["members"]}]
    if not groups:
        return "unknown", "no group"
    if len(groups) > 1:
        return "wrong", f"{len(groups)} groups"
    group = groups[0]
    observed = [p for p in group["patterns"] if p["observed"] and not p["text"].startswith("one of")]
    if not observed:
        return "unknown", group["patterns"][0]["text"] if group["patterns"] else "no pattern"
    name = observed[0]["pattern"]
    if {pid_of(m) for m in group["members"]} != members:
        return "wrong", f"{name}, but other members"
    wanted = PATTERN[truth["pattern"]]
    # Two ranks that exchange data both ways look the same whatever they do.
    if name != wanted and not (len(members) == 2 and name == "pair exchange"):
        return "wrong", name
    if not order_is_right(case, truth, group, group["shape"]["both_ways"]):
        return "wrong", f"{name}, but another order"
    return "right", name


def run_batch(witty, systems, batch, keep, seconds):
    # Of two processes traffic alone says little: there a launcher's variable has to say that they are a job.
    running = [subprocess.Popen([systems, p, str(n), t, str(seed), str(LIFE_S)], stdout=subprocess.PIPE, text=True,
                                env=dict(os.environ, MASTER_ADDR="127.0.0.1") if n == 2 else None)
               for p, n, t, seed in batch]
    try:
        jobs = [json.loads(r.stdout.readline()) for r in running]
        with tempfile.TemporaryDirectory(prefix="witty-systems.") as folder:
            topology = record(witty, jobs, os.path.join(keep or folder, f"batch{batch[0][3]}-{seconds}.wpdb"), seconds)
    finally:
        for r in running:
            r.kill()
            r.wait()
            r.stdout.close()
    return [(case, *judge(case, job, topology)) for case, job in zip(batch, jobs)]


def main():
    witty, systems = sys.argv[1:3]
    keep = os.environ.get("KEEP")
    verdicts = []
    for batch in batches(all_cases()):
        if len(sys.argv) > 3 and str(batch[0][3]) != sys.argv[3]:
            continue
        found = run_batch(witty, systems, batch, keep, RECORD_SECONDS[0])
        again = [case for case, verdict, _ in found if verdict == "unknown"]
        verdicts += [v for v in found if v[1] != "unknown"]
        if again:
            verdicts += run_batch(witty, systems, again, keep, RECORD_SECONDS[1])
    counts = {k: sum(v[1] == k for v in verdicts) for k in ("right", "unknown", "wrong")}
    for (pattern, n, transport, seed), verdict, text in verdicts:
        if verdict != "right":
            print(f"{verdict}: {pattern} of {n} over {transport}, seed {seed}: {text}")
    print(f"| {len(verdicts)} systems: {counts['right']} right, {counts['unknown']} unknown, {counts['wrong']} wrong")
    bad = counts["right"] < RIGHT_SHARE * len(verdicts) or counts["wrong"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
