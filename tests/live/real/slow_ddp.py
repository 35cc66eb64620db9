"""PyTorch's distributed training with one rank that is held up."""
import os
import signal
import sys
import time

from real.bench import children_of
from real.ddp import PROGRAM, need_torch
from real_programs import free_port

sys.path.insert(0, os.path.dirname(PROGRAM) + "/diagnosis")
# pylint: disable=wrong-import-position
from groups import Group

RANKS, SLOW = 3, 1
HOG = "while True: pass"


class Job:
    """Ranks started one by one, as launchers do, so that each is known by its number."""

    def __init__(self, b, *options):
        need_torch()
        self.b = b
        env = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(free_port())}
        self.ranks = [b.start([sys.executable, PROGRAM, "--steps", "100000", "--loaders", "1", "--batch", "16",
                               "--rest", "10", *options], env={**env, "RANK": str(i), "LOCAL_RANK": str(i)}) for i in range(RANKS)]
        self.pids = [r.pid for r in self.ranks]
        self.await_steps()

    def await_steps(self):
        """Until each rank has a loader, and for a moment more."""
        for _ in range(600):
            if any(r.poll() is not None for r in self.ranks):
                raise RuntimeError("a rank has ended")
            if all(children_of(p) for p in self.pids):
                break
            time.sleep(0.1)
        time.sleep(1)

    def done(self):
        # Loaders notice only after some seconds that their rank has gone.
        children = [c for p in self.pids for c in children_of(p)]
        for r in self.ranks:
            r.kill()
            r.wait()
        for c in children:
            try:
                os.kill(c, signal.SIGKILL)
            except ProcessLookupError:
                pass


def loader(b):
    """The loader of one rank computes long for each batch: its rank is late, and so are all."""
    job = Job(b, "--slow", f"{SLOW}:40")
    b.blames("ddp: a slow loader", job.pids, set(children_of(job.pids[SLOW])))
    job.done()


def beside(b, job):
    """Put one rank on a CPU with a program that computes, and all others on the rest."""
    cpu = os.cpu_count() - 1
    hog = b.start(["taskset", "-c", str(cpu), sys.executable, "-c", HOG])
    for rank, pid in enumerate(job.pids):
        for tid in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(tid), {cpu} if rank == SLOW else set(range(cpu)))
    return hog


def judge_beside(b, what, job, hog):
    time.sleep(0.3)
    b.blames(what, [*job.pids, hog.pid], {job.pids[SLOW], hog.pid})
    b.stop(hog)
    job.done()


def neighbour(b):
    """One rank shares its only CPU with a program of more weight that computes."""
    job = Job(b)
    hog = beside(b, job)
    os.setpriority(os.PRIO_PROCESS, hog.pid, -10)
    judge_beside(b, "ddp: a busy neighbour", job, hog)


def nice(b):
    """One rank has little weight beside a program that computes."""
    job = Job(b)
    hog = beside(b, job)
    for tid in os.listdir(f"/proc/{job.pids[SLOW]}/task"):
        os.setpriority(os.PRIO_PROCESS, int(tid), 10)
    judge_beside(b, "ddp: a rank of little weight", job, hog)


def quota(b):
    """One rank may use a twentieth of a CPU, far less than it needs."""
    job = Job(b)
    group = Group(b.dir, quota=0.05)
    try:
        group.enter(job.pids[SLOW])
        for p in children_of(job.pids[SLOW]):
            group.enter(p)
        time.sleep(0.3)
        b.blames("ddp: a rank with a quota", job.pids, {job.pids[SLOW], f"container:{group.id}"})
        job.done()
    finally:
        group.done()
