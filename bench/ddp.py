#!/usr/bin/python3
"""Train a small model with PyTorch's DistributedDataParallel over gloo, on this host.

    bench/ddp.py [--ranks N] [--steps N] [--loaders N] [--width N] [--hold FILE]
    torchrun --nproc_per_node=N bench/ddp.py [OPTION]...

Each rank prints one line of JSON: who it is (rank, pid, pids of its loaders), what it moves (bytes
of all parameters, batches, bytes of a batch), and the time of each step in seconds. Each rank has
loader processes of its own, which take rows from a tensor in shared memory. Started by torchrun,
the ranks meet where torchrun says; else rank 0 serves the store, at a free port of 127.0.0.1.
The time of a step has the wait for its batch in it, and that for the slowest rank. Compare runs of
the same options only, with --warmup: connections and buckets are made in the first steps.
"""
import argparse
import json
import os
import socket
import sys
import time

# As many threads as ranks would fight over the CPUs otherwise.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

# pylint: disable=wrong-import-position
import torch
import torch.distributed
import torch.multiprocessing
import torch.utils.data

SEED = 7
LAYERS = 3


class Rows(torch.utils.data.Dataset):
    """A table in shared memory: what one row of it is to become is the sum of that row."""

    def __init__(self, rows, width, row_ms=0):
        self.table = torch.randn(rows, width).share_memory_()
        self.row_ms = row_ms

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        end = time.thread_time() + self.row_ms / 1e3
        while self.row_ms and time.thread_time() < end:
            pass
        return self.table[i], self.table[i].sum().reshape(1)


def arguments():
    p = argparse.ArgumentParser(description="Distributed training over gloo, on this host.")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--warmup", type=int, default=0,
                   help="steps before those; they are neither counted nor timed")
    p.add_argument("--loaders", type=int, default=2, help="loaders of each rank, at least 1")
    p.add_argument("--width", type=int, default=256,
                   help="of a layer: parameters grow by its square")
    p.add_argument("--batch", type=int, default=32, help="rows that a rank takes in one step")
    p.add_argument("--slow", metavar="RANK:MS", type=lambda t: tuple(map(float, t.split(":"))),
                   default=(-1, 0), help="the loaders of that rank compute so long for each batch")
    p.add_argument("--rest", type=float, default=0,
                   help="ms of each step in which a rank only waits, as for a device")
    p.add_argument("--hold", metavar="FILE", help="stay, with all that is open, until this file is there")
    return p.parse_args()


def model_of(width):
    torch.manual_seed(SEED)
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))


def train(a, loader, model):
    """([seconds of each step that counts], the batch seen last)"""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    times, last = [], None
    before = time.monotonic()
    for step, last in enumerate(loader):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(last[0]), last[1]).backward()
        optimizer.step()
        if a.rest:
            time.sleep(a.rest / 1e3)
        now = time.monotonic()
        if step >= a.warmup:
            times.append(round(now - before, 6))
        before = now
    return times, last


def run_rank(a, rank):
    """One rank, from start to end. The environment says where and which one, as torchrun's does."""
    torch.manual_seed(SEED + rank)
    torch.distributed.init_process_group("gloo")
    steps = a.warmup + a.steps
    row_ms = a.slow[1] / a.batch if rank == a.slow[0] else 0
    loader = torch.utils.data.DataLoader(Rows(steps * a.batch, a.width, row_ms), a.batch,
                                         num_workers=a.loaders, persistent_workers=True)
    model = torch.nn.parallel.DistributedDataParallel(model_of(a.width))
    times, last = train(a, loader, model)
    line = {"rank": rank, "pid": os.getpid(), "ppid": os.getppid(),
            "loaders": sorted(w.pid for w in torch.multiprocessing.active_children()),
            "port": int(os.environ["MASTER_PORT"]), "ranks": torch.distributed.get_world_size(),
            "steps": a.steps, "warmup": a.warmup, "batches": steps, "tensors": steps * len(last),
            "batch_bytes": sum(t.numel() * t.element_size() for t in last),
            "parameter_bytes": sum(p.numel() * p.element_size() for p in model.parameters()),
            "step_s": times}
    # One call, so that the lines of several ranks do not run into each other.
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    while a.hold and not os.path.exists(a.hold):
        time.sleep(0.05)
    torch.distributed.barrier()


def start_rank(rank, a, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      WORLD_SIZE=str(a.ranks))
    run_rank(a, rank)


def main():
    a = arguments()
    if a.loaders < 1 or a.steps < 1 or a.ranks < 1:
        sys.exit("error: --ranks, --steps and --loaders are at least 1")
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        run_rank(a, int(os.environ["RANK"]))
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    # By fork: importing torch costs seconds of CPU, once is enough.
    torch.multiprocessing.start_processes(start_rank, (a, port), nprocs=a.ranks,
                                          start_method="fork")


if __name__ == "__main__":
    main()
