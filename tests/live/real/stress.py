"""One mechanism at a time: which kind of edge each of stress-ng's stressors leaves."""
import collections

from real_programs import need

SECONDS = 2
# In turns, so that a small host has time for each. Those whose memory is looked for are first:
# looks are a second apart only at the start of a recording.
TURNS = 3
SCRIPT = """
each=$1 seconds=$2 ng=$3; shift 3; i=0
for s; do
	(exec sh -c '
		printf "{\\"stressor\\": \\"%s\\", \\"pid\\": %d}\\n" "$3" $$
		"$1" -t "$2" --"$3" 1 --"$3"-ops "$4" >/dev/null 2>&1 ||
			printf "{\\"failed\\": \\"%s\\", \\"status\\": %d}\\n" "$3" $?' sh "$ng" "$seconds" \\
		"${s%=*}" "${s#*=}") &
	i=$((i + 1))
	[ $((i % each)) -ne 0 ] || wait
done
wait
"""
# These would fill the recording with thousands of sockets and processes; others do all they can.
OPERATIONS = {"sockfd": 2000, "sockpair": 5000, "fork": 300, "zombie": 300}
OPERATIONS_MOST = 100000000
MUCH = 65536  # bytes

# Stressor: what must be there between or in its processes. Not that of memfd: what it maps is gone again
# before anybody looks (tests/live/shm.c has memfds that stay).
EXPECTED = {
    "shm-sysv": ["access sysv"],
    "mmap": ["access anonymous"],
    # This one asks for private memory (version 0.15): what remains is that its child tells names.
    "shm": ["flow pipe"],
    "pipe": ["flow pipe"],
    "fifo": ["flow fifo"],
    "tee": ["flow pipe"],
    "splice": ["write_to pipe_inode", "read_from pipe_inode", "flow pipe, itself"],
    "vm-splice": ["write_to pipe_inode", "read_from pipe_inode", "flow pipe, itself"],
    "sendfile": ["read_from much of a file"],
    "io-uring": ["write_to much of a file", "read_from much of a file"],
    "eventfd": ["flow eventfd"],
    "mq": ["flow posix_queue", "waits_for queue"],
    "msg": ["flow sysv_queue", "waits_for queue"],
    "sem-sysv": ["write_to sysv_sem", "read_from sysv_sem", "waits_for semaphore"],
    "sem": ["waits_for futex"],
    "futex": ["waits_for futex", "wakes futex"],
    "vm-rw": ["flow memory_copy"],
    "sock": ["flow tcp"],
    "udp": ["flow udp"],
    "sockpair": ["flow unix"],
    "sockfd": ["fd_passed char_device"],
    "poll": ["waits_for poll"],
    "fork": ["parent_of process"],
    "zombie": ["parent_of process"],
}


def evidence(seen, family):
    """{stressor: {kind of edge: how many}}; family: {pid: stressor}"""
    found = collections.defaultdict(collections.Counter)
    for kind, edges in seen.edges.items():
        for e in edges:
            ends = [seen.pid(e["source"]), seen.pid(e["target"])]
            name = family.get(ends[0]) or family.get(ends[1])
            if name:
                found[name][f"{kind} {detail(seen, kind, e, ends)}"] += 1
    return found


def detail(seen, kind, e, ends):
    if kind in ("flow", "fd_passed"):
        return e["kind"] + (", itself" if ends[0] == ends[1] else "")
    if kind in ("waits_for", "wakes"):
        return e["cause"] + (", itself" if ends[0] == ends[1] else "")
    if kind == "access":
        return str(seen.entities[e["target"]].get("kind"))
    thing = seen.entities[e["source" if kind == "read_from" else "target"]]
    # Not what a program reads when it starts: the beginning of each library.
    much = thing["type"] == "file" and e["bytes"] >= MUCH
    return ("much of a " if much else "") + thing["type"]


def families(seen, roots):
    """{pid: stressor} of all descendants."""
    parents = {e["pid"]: e["ppid"] for e in seen.entities.values() if e["type"] == "process"}
    family = {}
    for pid in parents:
        above = pid
        while above and above not in roots:
            above = parents.get(above)
        if above:
            family[pid] = roots[above]
    return family


def stress_ng(b):
    ng = need("stress-ng")
    seen, lines, _ = b.watch(["/bin/sh", "-c", SCRIPT, "sh", str(-(-len(EXPECTED) // TURNS)),
                              str(SECONDS), ng,
                              *(f"{s}={OPERATIONS.get(s, OPERATIONS_MOST)}" for s in EXPECTED)])
    failed = [r for r in lines if "failed" in r]
    b.demand("stress-ng: all stressors end well", not failed, f"{failed}")
    found = evidence(seen, families(seen, {r["pid"]: r["stressor"] for r in lines if "pid" in r}))
    for name, kinds in EXPECTED.items():
        for kind in kinds:
            b.found(f"stress {name}", kind, found[name][kind])
