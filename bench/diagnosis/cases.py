"""What is run, and what has to be found: which rules name the cause, and whom they blame."""
import collections

# kind     printed name
# case     of diag (or diag.py)
# roots    roles to blame; any of these is right. "@group": the container that it runs in.
# rules    ids of findings that name the cause
# variants (threads, size, seed); the healthy twin of each is run with the same
# quota    CPUs that its group gets
# read_bps, write_bps: bytes a second that it may read from, or write to, a disk; the twin has no limit
# healthy  False: there is nothing to find, and no twin is needed
# unseen   rules that have to say that they could not be evaluated, where the machine has no counters
Kind = collections.namedtuple("Kind", "kind case program roots rules variants quota read_bps write_bps faulty unseen")

MANY = [(2, 8000, 1), (4, 12000, 2), (7, 20000, 3)]


def kind(name, case, roots, rules, variants=None, program="diag", quota=None, read_bps=None, write_bps=None, faulty=True,
         unseen=()):
    return Kind(name, case, program, set(roots), set(rules), variants or MANY, quota, read_bps, write_bps, faulty,
                set(unseen))


# What threads hand each other in memory has no direction that could be seen: for queues of that kind the names of
# these three mean the same, and only whom they blame can be right or wrong.
SERIAL = ["serial-thread", "slow-producer"]
LOCK = ["lock-convoy"]
PRODUCER = ["slow-producer"]
PRESSURE = ["back-pressure"]
RANK = ["straggler"]
HANG = ["hang"]

KINDS = [
    kind("compute-bound thread", "compute", ["solver"], SERIAL),
    kind("lock convoy", "convoy", ["holder"], LOCK),
    kind("lock convoy, owner in the word", "convoy-pi", ["holder"], LOCK),
    kind("lock held in sleep", "lock-asleep", ["holder"], LOCK),
    kind("priority inversion", "inversion", ["holder"], LOCK, [(1, 10000, 1), (1, 15000, 2), (2, 20000, 3)]),
    kind("thundering herd", "herd", ["giver"], ["thundering-herd"], [(16, 1000, 1), (24, 2000, 2), (32, 1500, 3)]),
    kind("barrier, one slow thread", "barrier", ["slow"], RANK, [(3, 8000, 1), (4, 12000, 2), (7, 20000, 3)]),
    kind("barrier, rotating", "barrier-rotating", ["rank"], RANK, [(3, 8000, 1), (4, 12000, 2), (6, 16000, 3)]),
    kind("slow producer", "slow-producer", ["producer"], PRODUCER),
    kind("slow consumer", "slow-consumer", ["consumer"], PRESSURE + SERIAL),
    kind("pipe is full", "pipe-full", ["receiver"], PRESSURE),
    kind("socket is full", "socket-full", ["receiver"], PRESSURE),
    kind("message queue is full", "mqueue-full", ["receiver"], PRESSURE),
    kind("loader that computes", "pipe-empty", ["loader"], PRODUCER),
    kind("loader with tiny messages", "tiny", ["loader"], ["tiny-messages"]),
    kind("slow upstream", "upstream", ["back"], SERIAL),
    kind("quota", "spinners", ["spinner", "@group"], ["cpu-quota"], [(2, 8000, 1), (4, 12000, 2), (8, 20000, 3)],
         quota=0.5),
    kind("more threads than CPUs", "oversubscribed", ["cruncher"], ["cpu-oversubscribed", "too-many-threads"]),
    kind("two jobs on one CPU", "same-cpu", ["job"], ["overlapping-pins"]),
    kind("many threads on one CPU", "narrow", ["worker"], ["affinity-narrow"]),
    kind("mask narrowed at import", "omp-import", ["worker"], ["affinity-changed", "affinity-narrow"],
         program="diag.py"),
    kind("interpreter lock", "gil", ["counter"], ["gil"], [(3, 8000, 1), (4, 12000, 2), (7, 20000, 3)],
         program="diag.py"),
    kind("page-fault storm", "faults", ["allocator"], ["page-faults"], [(1, 10000, 1), (2, 15000, 2), (2, 20000, 3)]),
    kind("file that is not in memory", "file-faults", ["loader"], ["page-faults", "disk-wait"],
         [(1, 8000, 1), (1, 12000, 2), (1, 20000, 3)]),
    kind("checkpoint", "checkpoint", ["trainer"], ["checkpoint"], [(1, 8000, 1), (2, 12000, 2), (4, 20000, 3)],
         write_bps=16 << 20),
    kind("slow disk", "slow-read", ["loader"], ["disk-wait"],
         [(1, 8000, 1), (1, 12000, 2), (1, 20000, 3)], read_bps=4 << 20),
    kind("rank that computes longer", "rank-slow", ["slow"], RANK),
    kind("ranks by turns", "rank-rotating", ["rank"], RANK, [(3, 8000, 1), (4, 12000, 2), (6, 16000, 3)]),
    kind("rank without CPU", "rank-niced", ["slow"], RANK, [(3, 10000, 1), (4, 15000, 2), (4, 20000, 3)]),
    kind("rank that writes", "rank-writes", ["slow"], RANK, [(3, 10000, 1), (4, 15000, 2), (5, 20000, 3)],
         write_bps=32 << 20),
    kind("rank that is stopped", "rank-stopped", ["slow"], HANG, [(3, 10000, 1), (4, 15000, 2), (5, 20000, 3)]),
    kind("lost wake-up", "lost-wakeup", ["culprit", "victim"], HANG),
    kind("deadlock", "deadlock", ["taker"], HANG),
    kind("memory-bound", "memory-stream", [], [], [(1, 10000, 1), (1, 15000, 2), (2, 20000, 3)], faulty=False,
         unseen=["memory-bandwidth"]),
    kind("poller", "poller", [], [], [(1, 10000, 1), (1, 10000, 2), (1, 10000, 3)], faulty=False),
    kind("idle server", "idle-server", [], [], faulty=False),
    kind("a person at a terminal", "terminal", [], [], [(1, 8000, 1), (1, 20000, 2), (1, 40000, 3)], faulty=False),
    kind("sides that keep a pace", "paced", [], [], [(1, 500, 1), (1, 2000, 2), (1, 8000, 3)], faulty=False),
    kind("sleepers", "sleepers", [], [], faulty=False),
]
