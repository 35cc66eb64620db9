"""A recording that goes on while a program runs, and what it says in the end."""
import collections
import json
import os
import re
import subprocess
import time

from real_programs import FORM, Bench, intervals

DEADLINE_S = 180
SHARED_LINE = re.compile(r"^\S+ ...s \S+ (\S+) (\d+)\s+(.*)$")


def children_of(pid):
    """All descendants, by /proc."""
    found, left = [], [pid]
    while left:
        parent = left.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as f:
                    left += [int(c) for c in f.read().split()]
        except OSError:
            pass  # it ended
        found.append(parent)
    return found[1:]


class Shared:
    """An object that processes share, by /proc/PID/maps."""

    def __init__(self, path):
        self.path = path
        self.pids = set()

    def kind(self):
        if self.path.startswith("/SYSV"):
            return "sysv"
        if self.path.startswith("/dev/zero"):
            return "anonymous"
        return "posix" if self.path.startswith("/dev/shm/") else "other"

    def origin(self):
        """What names of this sort begin with: sem, torch, SYSV, …"""
        return re.match(r"[A-Za-z]*", os.path.basename(self.path))[0] or self.kind()


def shared_by(pids):
    """{inode: Shared} of memory that these processes map; files are left out."""
    found = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
                lines = f.read().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended
        for m in filter(None, map(SHARED_LINE.match, lines)):
            one = found.setdefault((m[1], int(m[2])), Shared(m[3]))
            one.pids.add(pid)
    return {inode: s for (_, inode), s in found.items() if s.kind() != "other"}


class Seen:
    """What a recording holds, by pid."""

    def __init__(self, witty, path):
        def show(*what):
            run = subprocess.run([witty, "show", path, *what, "--format", "json"],
                                 capture_output=True, text=True, timeout=DEADLINE_S)
            if run.returncode:
                raise RuntimeError(f"show {what[0]}: exit {run.returncode}: {run.stderr}")
            return json.loads(run.stdout)

        self.flows, self.memory = show("flows"), show("shared-memory")
        self.entities = {e["id"]: e for e in show("entities")}
        self.edges = collections.defaultdict(list)
        for e in show("edges"):
            self.edges[e["type"]].append(e)

    def pid(self, node):
        """Pid of a process or of the process of a thread, else None."""
        e = self.entities[node]
        if e["type"] == "thread":
            e = self.entities[e["process"]]
        return e["pid"] if e["type"] == "process" else None

    def sum(self, kind, source, target, field):
        """Sum over the flows of a kind from one process to another; 0: there is none."""
        return sum(f[field] or 0 for f in self.flows if f["kind"] == kind
                   and f["source"]["pid"] == source and f["target"]["pid"] == target)

    def pairs(self, kind, pids):
        """{(from, to)} of different processes among these that a flow of the kind joins."""
        pairs = {(f["source"]["pid"], f["target"]["pid"]) for f in self.flows if f["kind"] == kind}
        return {(a, b) for a, b in pairs if a != b and a in pids and b in pids}

    def mapped(self, pids):
        """[(object, {pid: mode} of these processes)] of the memory that any of them maps."""
        rows = ((m["object"], {p["process"]["pid"]: p["mode"] for p in m["mappers"]
                               if p["process"]["pid"] in pids}) for m in self.memory)
        return [(o, modes) for o, modes in rows if modes]


class PathBench(Bench):
    """Records with everything that a recording tells, and looks at the processes meanwhile."""

    def held(self):
        """File that what is watched next may wait for: there after what looks found was seen by the recorder, too."""
        return f"{self.dir}/hold{self.count + 1}"

    def await_looks(self, run, path):
        """Until the recorder has looked at all once more."""
        end, before = time.monotonic() + DEADLINE_S, intervals(path)
        while run.poll() is None and intervals(path) < before + 2:
            if time.monotonic() > end:
                raise RuntimeError(f"{path}: no more looks")
            time.sleep(0.1)

    def watch(self, args, reports=0, look=None, env=None, log="both"):
        """
        Record a command and, once it has printed that many lines of JSON, call look(lines).
        log: where these lines are, "both" or "stderr" alone.
        @return (Seen, the lines, what look returned)
        """
        hold = self.held()
        self.count += 1
        base = f"{self.dir}/{self.count}"
        where = {"both": f">{base}.out 2>&1", "stderr": f">/dev/null 2>{base}.out"}[log]
        # With "exit" the shell stays, and the command is a child of it whatever the shell.
        script = f'"$@" {where}; exit $?'
        with open(f"{base}.log", "wb") as errors:
            run = subprocess.Popen([self.witty, "record", "--max-overhead", "off", "-o", f"{base}.wpdb", "--", "sh", "-c",
                                    script, "sh", *args], env={**os.environ, **(env or {})},
                                   stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self.servers.append(run)
        lines = self.await_lines(run, f"{base}.out", reports)
        seen = look(lines) if look else None
        self.await_looks(run, f"{base}.wpdb")
        with open(hold, "wb"):
            pass
        rc = run.wait(DEADLINE_S)
        if rc:
            with open(f"{base}.log", encoding="utf-8") as log_file, \
                    open(f"{base}.out", encoding="utf-8") as out:
                raise RuntimeError(f"record {args[0]}: exit {rc}: {log_file.read()}{out.read()}")
        return Seen(self.witty, f"{base}.wpdb"), self.lines_of(f"{base}.out"), seen

    @staticmethod
    def lines_of(path):
        """Objects that stand on a line of their own, or behind what a launcher puts before it."""
        try:
            with open(path, encoding="utf-8") as f:
                return [json.loads(m) for m in re.findall(r"\{.*\}(?=\n)", f.read())]
        except OSError:
            return []

    def await_lines(self, run, path, reports):
        for _ in range(DEADLINE_S * 20):
            lines = self.lines_of(path)
            if len(lines) >= reports or run.poll() is not None:
                return lines
            time.sleep(0.05)
        raise RuntimeError(f"{path}: {reports} reports do not come")

    def hops(self, name, wanted, got, low=0, high=0):
        """
        Compare numbers by pair of processes: a line for their sum, and a fault for each pair
        that is off by more than low..high.
        """
        off = {pair: got.get(pair, 0) - n for pair, n in wanted.items()
               if not low <= got.get(pair, 0) - n <= high}
        self.line(name, sum(wanted.values()), sum(got.get(p, 0) for p in wanted),
                  low * len(wanted), high * len(wanted))
        if off:
            self.demand(f"{name}, each", False, f"{off}")

    def found(self, what, kind, count):
        """Print how many edges of a kind there are; none is a fault."""
        print(FORM.format(f"{what}: {kind}", "some", count, "", "ok" if count else "OFF: none"))
        self.bad += not count

    def same_memory(self, name, truth, seen, pids):
        """
        Each object that several processes map by /proc/PID/maps is one of the recording's, of the
        same kind and with the same processes; those of a single process only if it was looked at
        in time. A line for those of one origin.
        """
        recorded = {o["inode"]: (o["kind"], set(modes)) for o, modes in seen.mapped(pids)}
        sorts = collections.defaultdict(list)
        for inode, one in truth.items():
            if len(one.pids) > 1 or inode in recorded:
                sorts[one.origin()].append((inode, one))
        for origin, ones in sorted(sorts.items()):
            wrong = [f"{one.path} of {sorted(one.pids)} is {recorded.get(inode)}"
                     for inode, one in ones if recorded.get(inode) != (one.kind(), one.pids)]
            self.line(f"{name}: {origin} mapped", len(ones), len(ones) - len(wrong))
            if wrong:
                self.demand(f"{name}: {origin}, each", False, "; ".join(wrong[:3]))
