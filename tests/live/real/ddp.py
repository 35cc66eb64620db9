"""PyTorch's distributed training over gloo: store, mesh, loaders."""
import collections
import importlib.util
import os

from real.bench import shared_by
from real_programs import Missing, free_port, need

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.normpath(f"{HERE}/../../../bench/ddp.py")
STEPS, WIDTH = 20, 256
# Gloo puts a header of some 50 bytes before each piece that it sends, and reduces in few pieces a
# step. Before the first step rank 0 sends its parameters to the others once, and all of them
# compare shapes.
HEADERS_PER_STEP, ONCE = 4096, 65536


def need_torch():
    if not importlib.util.find_spec("torch"):
        raise Missing("torch")


class Training:
    """One run: ranks in order, and what is recorded of them."""

    def __init__(self, b, name, args, n):
        self.b, self.name = b, name
        self.seen, lines, self.truth = b.watch(
            [*args, "--steps", str(STEPS), "--width", str(WIDTH), "--hold", b.held()], n,
            lambda reports: shared_by([p for r in reports for p in (r["pid"], *r["loaders"])]),
            {"OMP_NUM_THREADS": "1"})
        self.reports = sorted(lines, key=lambda r: r["rank"])
        self.ranks = [r["pid"] for r in self.reports]
        if len(self.ranks) != n:
            raise RuntimeError(f"{name}: {len(self.ranks)} ranks report, not {n}")

    def owners(self):
        """{socket: pids that receive on it}: a port may have been another process's before."""
        found = collections.defaultdict(set)
        for e in self.seen.edges["receive_from_socket"]:
            found[e["source"]].add(self.seen.pid(e["target"]))
        return found

    def store_edges(self):
        """(what is sent to the port of the store, what the threads that receive there send)"""
        port = {i for i, e in self.seen.entities.items() if e["type"] == "socket"
                and e["socket_port"] == self.reports[0]["port"]}
        threads = {e["target"] for e in self.seen.edges["receive_from_socket"]
                   if e["source"] in port}
        sent = self.seen.edges["send_to_socket"]
        return ([e for e in sent if e["target"] in port],
                [e for e in sent if e["source"] in threads and e["target"] not in port])

    def check_store(self, server):
        """All ranks talk to one process at the store's port, and it answers each of them."""
        asks, answers = self.store_edges()
        owner = self.owners()
        serving = set().union(*(owner[e["target"]] for e in asks))
        serving |= {self.seen.pid(e["source"]) for e in answers}
        self.b.demand(f"{self.name}: store served by pid {server}", serving == {server},
                      f"{serving}")
        told = set().union(*(owner[e["target"]] for e in answers))
        for what, pids in (("ask it", {self.seen.pid(e["source"]) for e in asks}),
                           ("get its answers", told)):
            self.b.line(f"{self.name}: ranks that {what}", len(self.ranks),
                        len(pids & set(self.ranks)))

    def mesh(self):
        """{(from, to): bytes} of ranks, by sockets that are not the store's."""
        asks, answers = self.store_edges()
        store, owner, found = {id(e) for e in asks + answers}, self.owners(), {}
        for e in self.seen.edges["send_to_socket"]:
            sender, to = self.seen.pid(e["source"]), owner[e["target"]] & set(self.ranks)
            if sender not in self.ranks or id(e) in store or e["connection_type"] != "TCP":
                continue
            for receiver in to - {sender}:
                found[sender, receiver] = found.get((sender, receiver), 0) + e["data_size"]
        return found

    def check_mesh(self):
        """Each pair of ranks is joined; what is reduced goes around the ring, to one neighbour."""
        n, r = len(self.ranks), self.reports[0]
        moved = self.mesh()
        joined = {frozenset(p) for p in moved}
        self.b.line(f"{self.name}: pairs of ranks", n * (n - 1) // 2, len(joined))
        # Reducing in a ring: each rank sends 2 (n - 1) of n parts of the gradients in a step.
        each = 2 * (n - 1) * r["parameter_bytes"] * STEPS // n
        whole = sum(moved.values())
        once = (n - 1) * r["parameter_bytes"]
        self.b.line(f"{self.name}: gradients and parameters", each * n + once, whole, 0,
                    n * (HEADERS_PER_STEP * STEPS + ONCE))
        most = {a: max((v, to) for (x, to), v in moved.items() if x == a) for a in self.ranks}
        self.b.line(f"{self.name}: ranks that send on", n,
                    sum(v >= each for v, _ in most.values()))
        self.b.demand(f"{self.name}: it is a ring",
                      {to for _, to in most.values()} == set(self.ranks), f"{most}")

    def check_loaders(self):
        """Each loader talks to its own rank only, and hands it two open files a batch."""
        own = {(r["pid"], w) for r in self.reports for w in r["loaders"]}
        both = own | {(w, p) for p, w in own}
        everyone = set(self.ranks) | {w for _, w in own}
        for kind, what in (("pipe", "queues"), ("unix", "talk of files")):
            found = self.seen.pairs(kind, everyone)
            self.b.demand(f"{self.name}: {what}, each loader", found == both,
                          f"missing {both - found}, extra {found - both}")
        passed = {}
        for e in self.seen.edges["fd_passed"]:
            pair = (self.seen.pid(e["source"]), self.seen.pid(e["target"]), e["kind"])
            passed[pair] = passed.get(pair, 0) + e["descriptors"]
        for r in self.reports:
            got = sum(passed.pop((w, r["pid"], "file"), 0) for w in r["loaders"])
            self.b.line(f"{self.name}: files passed to rank {r['rank']}", r["tensors"], got)
        extra = {p for p in passed if {p[0], p[1]} & everyone}
        self.b.demand(f"{self.name}: no other file passed", not extra, f"{extra}")

    def check_memory(self):
        everyone = {p for r in self.reports for p in (r["pid"], *r["loaders"])}
        self.b.same_memory(self.name, self.truth, self.seen, everyone)
        for r in self.reports:
            rows = len([o for o, modes in self.seen.mapped(everyone)
                        if o["shm_name"].startswith(f"torch_{r['pid']}_")
                        and o["shm_size"] >= WIDTH * 4 * r["batches"]
                        and set(modes) == {r["pid"], *r["loaders"]}])
            self.b.line(f"{self.name}: table of rank {r['rank']} and loaders", 1, rows)

    def check(self, server):
        self.check_store(server)
        self.check_mesh()
        self.check_loaders()
        self.check_memory()


def ddp(b):
    need_torch()
    t = Training(b, "ddp 4", ["/usr/bin/python3", PROGRAM, "--ranks", "4"], 4)
    t.check(t.ranks[0])


def torchrun(b):
    need_torch()
    run = need("torchrun")
    # Values for --redirects and --tee that are no default: those fail with Python 3.11.
    args = [run, "--redirects", "2", "--tee", "1", "--log_dir", f"{b.dir}/torchrun",
            "--nproc_per_node", "2", "--master_addr", "127.0.0.1",
            "--master_port", str(free_port()), PROGRAM]
    t = Training(b, "torchrun 2", args, 2)
    t.check(t.reports[0]["ppid"])
