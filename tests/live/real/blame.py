"""A recording of programs that run already, and whom the first finding blames."""
import json
import os
import subprocess

from real_programs import PATIENCE_S, Bench

# Of each try: what else runs on the machine can disturb one.
SECONDS = 3, 6, 12


class BlameBench(Bench):
    """Records for some seconds, and looks at the first finding."""

    def findings(self, what, pids, seconds):
        """Of these processes, their descendants, and the other ends of their flows."""
        name = what.replace(" ", "-").replace(":", "")
        path = f"{os.environ.get('KEEP', self.dir)}/{name}.wpdb"
        chosen = [x for p in pids for x in ("-p", str(p))]
        self.call("record", "-d", f"{seconds}s", "-o", path, "--force", *chosen)
        return json.loads(self.call("bottlenecks", path, "--format", "json"))["findings"]

    def call(self, *args):
        run = subprocess.run([self.witty, *args], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if run.returncode:
            raise RuntimeError(f"{args[0]}: exit {run.returncode}: {run.stderr}")
        return run.stdout

    def blames(self, what, pids, right):
        """The root of the first finding is one of the processes `right`, or a thread of one, or a container of it."""
        for seconds in SECONDS:
            findings = self.findings(what, pids, seconds)
            first = findings[0] if findings else None
            if not first:
                print(f"{what}: nothing is found in {seconds} s")
                good = False
                continue
            root = (first["root"] or {}).get("id", "nobody")
            good = root.split("#")[0] in ids_of(right)
            print(f"{what}: {first['severity']}, {first['rule']} of {root}: {first['title']}")
            if good:
                break
        self.demand(what, good, f"not of {right}")

    def quiet(self, what, pids):
        """No finding above Notice."""
        loud = [f for f in self.findings(what, pids, SECONDS[0]) if f["severity"] not in ("info", "notice")]
        self.demand(what, not loud, "; ".join(f"{f['severity']} {f['rule']}: {f['title']}" for f in loud))


def ids_of(processes):
    """Printed ids of these processes, if not only a container's id was given, and of all their threads."""
    ids = set()
    for p in processes:
        if isinstance(p, str):
            ids.add(p)
            continue
        ids.add(f"process:{p}")
        ids |= {f"thread:{t}" for t in os.listdir(f"/proc/{p}/task")}
    return ids
