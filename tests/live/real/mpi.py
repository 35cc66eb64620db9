"""Rings of ranks over the transports of Open MPI and MPICH."""
import json
import os
import subprocess

from real.bench import shared_by
from real_programs import need

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES, STEPS = 1 << 20, 40
# What Open MPI's TCP transport adds to a message of 1 MiB: a header of 56 to 96 bytes for each
# fragment, of which there are at most four, and as much the other way for the answers. Then what
# connects, and what the ranks tell each other at the end.
TCP_PER_STEP, TCP_ONCE = 512, 4096
SHARED = ["--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism"]


class Ring:
    """One run: ranks in order, their launcher, and what is recorded of them."""

    def __init__(self, b, name, compiler, args, n, env=None):
        self.b, self.name = b, f"{name} {n}"
        program = f"{b.dir}/ring-{os.path.basename(compiler)}"
        if not os.path.exists(program):
            subprocess.run([compiler, "-O2", "-o", program, f"{HERE}/ring.c"], check=True)
        # The reports come by stderr, which launchers take from a pipe.
        self.seen, lines, self.truth = b.watch(
            [*args, "-np", str(n), program, str(BYTES), str(STEPS), b.held()], n,
            lambda reports: shared_by([r["pid"] for r in reports]), env, "stderr")
        self.reports = sorted(lines, key=lambda r: r["rank"])
        self.ranks = [r["pid"] for r in self.reports]
        if len(self.ranks) != n:
            raise RuntimeError(f"{self.name}: {len(self.ranks)} ranks report, not {n}")
        self.volume = {(r["pid"], self.ranks[r["next"]]): r["bytes"] for r in self.reports}

    def bytes_by_pair(self, kind, field):
        return {(a, b): self.seen.sum(kind, a, b, field)
                for a, b in self.seen.pairs(kind, set(self.ranks))}

    def for_all(self):
        """Memory that every rank maps: [(object, {pid: mode})]"""
        return [(o, m) for o, m in self.seen.mapped(set(self.ranks)) if len(m) == len(self.ranks)]

    def transport(self):
        """How the volume went, from the recording alone."""
        whole = sum(self.volume.values())
        for kind, name in (("memory_copy", "cma"), ("tcp", "tcp")):
            if sum(self.bytes_by_pair(kind, "bytes").values()) >= whole:
                return name
        written = [o for o, modes in self.for_all() if set(modes.values()) == {"rw"}
                   and o["kind"] in ("posix", "sysv") and o["shm_size"] >= 4096]
        return "shm" if written else "unknown"

    def check_transport(self, wanted):
        found = self.transport()
        self.b.demand(f"{self.name}: transport is {wanted}", found == wanted, f"{found}")
        self.b.demand(f"{self.name}: no other pairs",
                      self.seen.pairs("memory_copy", set(self.ranks)) ==
                      (set(self.volume) if wanted == "cma" else set()),
                      f"copies {self.seen.pairs('memory_copy', set(self.ranks))}")
        if wanted != "tcp":
            self.b.line(f"{self.name}: TCP between ranks", 0,
                        sum(self.bytes_by_pair("tcp", "bytes").values()))

    def check_copies(self):
        for field in ("bytes_sent", "bytes_received"):
            self.b.hops(f"{self.name}: copied, {field}", self.volume,
                        self.bytes_by_pair("memory_copy", field))

    def check_tcp(self):
        high = TCP_PER_STEP * STEPS + TCP_ONCE
        for field in ("bytes_sent", "bytes_received"):
            self.b.hops(f"{self.name}: TCP, {field}", self.volume, self.bytes_by_pair("tcp", field),
                        0, high)

    def check_segments(self, name, count):
        """That many objects of this name are mapped by every rank, to read and to write."""
        found = [o["shm_name"] for o, modes in self.for_all()
                 if o["shm_name"].startswith(name) and set(modes.values()) == {"rw"}]
        self.b.line(f"{self.name}: {name}* of all", count, len(found))

    def check_no_wakes(self, name):
        """Ranks that look again and again do not sleep: nothing proves who writes to whom."""
        proven = [m["object"]["id"] for m in self.seen.memory
                  if m["object"]["shm_name"].startswith(name) and set(self.ranks) &
                  {p["process"]["pid"] for p in m["mappers"]}
                  and m["direction"] != "mapped, direction unknown"]
        self.b.demand(f"{self.name}: no direction by wake-ups", not proven, f"{proven}")

    def check_memory(self):
        self.b.same_memory(self.name, self.truth, self.seen, set(self.ranks))

    def check_output(self, launcher):
        """Standard error of each rank: one line by a pipe to the one that started it."""
        got = {}
        for f in self.seen.flows:
            a, b = f["source"], f["target"]
            if f["kind"] == "pipe" and a["pid"] in self.ranks and b["name"].startswith(launcher):
                got[(a["pid"], b["name"])] = f["bytes_received"]
        # ring.c prints as Python does, and ends the line.
        wanted = sum(len(json.dumps(r)) + 1 for r in self.reports)
        self.b.line(f"{self.name}: lines to {launcher}", wanted, sum(got.values()))

    def check_control(self, kind, launcher):
        """Both ways between each rank and the process that started it."""
        boss = {f[end]["pid"] for f in self.seen.flows for end in ("source", "target")
                if (f[end]["name"] or "").startswith(launcher)}
        pairs = self.seen.pairs(kind, set(self.ranks) | boss)
        missing = [r for r in self.ranks
                   if not any((r, x) in pairs and (x, r) in pairs for x in boss)]
        self.b.demand(f"{self.name}: {kind} with {launcher}", boss and not missing,
                      f"none of {missing}")


def openmpi(b, transport, options):
    compiler, run = need("mpicc.openmpi"), need("mpirun.openmpi")
    for n in (2, 4):
        args = [run, "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
                "--mca", "plm_rsh_agent", "false", *options]
        r = Ring(b, f"openmpi {transport}", compiler, args, n, {"TMPDIR": b.dir})
        r.check_transport(transport)
        r.check_output("mpirun")
        r.check_control("tcp", "mpirun")
        r.check_memory()
        if transport == "cma":
            r.check_copies()
        if transport == "tcp":
            r.check_tcp()
        r.check_segments("vader_segment.", 0 if transport == "tcp" else n)
        r.check_no_wakes("vader_segment.")


def openmpi_cma(b):
    openmpi(b, "cma", [*SHARED, "cma"])


def openmpi_shm(b):
    openmpi(b, "shm", [*SHARED, "none"])


def openmpi_tcp(b):
    openmpi(b, "tcp", ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"])


def check_mpich(r, transport):
    r.check_transport(transport)
    r.check_output("hydra_pmi_proxy")
    r.check_control("unix", "hydra_pmi_proxy")
    r.check_memory()
    r.check_segments("mpich_shar_tmp", 1)


def mpich(b):
    compiler, run = need("mpicc.mpich"), need("mpiexec.mpich")
    for n in (2, 4):
        r = Ring(b, "mpich", compiler, [run], n)
        check_mpich(r, "cma")
        r.check_copies()


def mpich_shm(b):
    r = Ring(b, "mpich shm", need("mpicc.mpich"), [need("mpiexec.mpich")], 4,
             {"UCX_TLS": "posix,self"})
    check_mpich(r, "shm")
    r.check_segments("ucx_shm_posix_", 4)
