#!/usr/bin/env python3
"""test_runc.py - real containers by runc, and control groups of no runtime that limit something.

WITTY names the program. Needs root, control groups, runc and a static busybox. No daemon is used.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from test_containers import Groups, hierarchies

WITTY = os.environ["WITTY"]
ME = os.getpid()
POD, POD2 = (f"{ME:08x}-{n}-2222-3333-444455556666" for n in ("1111", "9999"))
ID, ID2, ID3 = (f"{ME:08x}{n:02x}" + "cd" * 27 for n in (1, 2, 3))
QUOTA_US, PERIOD_US, MEMORY = 50000, 100000, 1 << 28
# Of what is held back: the least that there is, so that it reaches its limit on any busy host.
LITTLE_US = 1000


class Container:
    """One container: its bundle, and the control group that it asks for."""

    def __init__(self, folder, name, group, nested=False, pidns=None):
        self.name, self.group = name, group
        self.bundle = os.path.join(folder, name)
        os.makedirs(os.path.join(self.bundle, "rootfs/bin"))
        shutil.copy(shutil.which("busybox"), os.path.join(self.bundle, "rootfs/bin/sleep"))
        subprocess.run(["runc", "spec"], cwd=self.bundle, check=True)
        path = os.path.join(self.bundle, "config.json")
        with open(path) as f:
            spec = json.load(f)
        spec["process"].update(terminal=False, args=["/bin/sleep", "3000"])
        spec["linux"]["cgroupsPath"] = group
        spec["linux"].setdefault("resources", {}).update(
            cpu={"quota": QUOTA_US, "period": PERIOD_US}, memory={"limit": MEMORY})
        for ns in spec["linux"]["namespaces"]:
            if ns["type"] == "pid" and pidns:
                ns["path"] = pidns
        with open(path, "w") as f:
            json.dump(spec, f)
        # Nested: the container's pid namespace is in one of ours.
        argv = ["unshare", "-pf", "--kill-child", "--mount-proc"] if nested else []
        with open(os.path.join(self.bundle, "log"), "w") as log:
            self.p = subprocess.Popen(argv + ["runc", "run", "-b", self.bundle, name], stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log)
        self.pid = self.wait()

    def wait(self):
        """The pid of its process as seen from here, once that runs what the container is for."""
        procs = hierarchies()[0] + self.group + "/cgroup.procs"
        while self.p.poll() is None:
            try:
                with open(procs) as f:
                    pids = f.read().split()
                for pid in pids:
                    with open(f"/proc/{pid}/comm") as f:
                        if f.read() == "sleep\n":
                            return int(pid)
            except OSError:
                pass
            time.sleep(0.01)
        with open(os.path.join(self.bundle, "log")) as f:
            sys.exit(f"FAILED: runc does not start: {f.read()}")

    def done(self):
        subprocess.run(["runc", "delete", "-f", self.name], check=False, stderr=subprocess.DEVNULL)
        self.p.kill()
        self.p.wait()


def quota(group, us):
    for top in hierarchies():
        if os.path.exists(top + group + "/cpu.max"):
            with open(top + group + "/cpu.max", "w") as f:
                f.write(f"{us} {PERIOD_US}")
        elif os.path.exists(top + group + "/cpu.cfs_quota_us"):
            with open(top + group + "/cpu.cfs_quota_us", "w") as f:
                f.write(str(us))


def throttled(group):
    """Periods and nanoseconds, as the kernel tells them."""
    for top in hierarchies():
        try:
            with open(top + group + "/cpu.stat") as f:
                stat = dict(line.split() for line in f)
        except OSError:
            continue
        if "nr_throttled" in stat:
            ns = int(stat["throttled_usec"]) * 1000 if "throttled_usec" in stat else int(stat["throttled_time"])
            return int(stat["nr_throttled"]), ns
    return None


def enable_cpu():
    path = "/sys/fs/cgroup/cgroup.subtree_control"
    if os.path.exists(path):
        with open(path, "w") as f:
            f.write("+cpu")


def record(folder, groups, spinners):
    """While the spinners want more CPU time than their groups may have. @return graph, throttled before and after"""
    before = {g: throttled(g) for g in groups}
    out = os.path.join(folder, "out.wpdb")
    # It ends when the kernel has held every one of them back some times since the recorder was ready.
    script = "now() { sed -n 's/^nr_throttled //p' $1/cpu.stat; }; "
    stats = [top + g for g in groups for top in hierarchies() if os.path.exists(f"{top}{g}/cpu.max")
             or os.path.exists(f"{top}{g}/cpu.cfs_quota_us")]
    script += "".join(f"n{i}=$(($(now {s}) + 10)); " for i, s in enumerate(stats))
    script += "".join(f"while [ $(now {s}) -lt $n{i} ]; do sleep 0.1; done; " for i, s in enumerate(stats))
    for p in spinners:
        p.stdin.write(b"\n")
        p.stdin.flush()
    subprocess.run([WITTY, "record", "-o", out, "--interval", "200ms", "--", "sh", "-c", script], check=True)
    after = {g: throttled(g) for g in groups}
    text = subprocess.run([WITTY, "convert", out, "-"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(text), before, after


def compare(graph, containers, plain, before, after):
    bad = []
    runs, processes = {}, {}
    for e in graph["edges"]:
        if e["edge_type"] == "RunOnEdge":
            runs[e["source_node"]["pid"]] = e["target_node"]
    for n in graph["nodes"]:
        if n["entity_type"] == "ProcessEntity":
            processes[n["pid"]] = n
    for c, (runtime, ident, pod) in containers:
        got = runs.get(c.pid, {})
        seen = (got.get("container_type"), got.get("container_id"), (got.get("pod") or {}).get("pod_id"))
        if seen != (runtime, ident, pod):
            bad.append(f"{c.name}: {seen}, wanted {(runtime, ident, pod)}")
        if runtime == "runc" and got.get("container_name") != c.name:
            bad.append(f"{c.name}: is called {got.get('container_name')}")
        limits = got.get("cpu_limit_cores"), got.get("memory_limit_bytes")
        if limits != (QUOTA_US / PERIOD_US, MEMORY):
            bad.append(f"{c.name}: limits {limits}")
        print(f"| {c.name}: {seen[0]} {seen[1][:12] if seen[1] else None}, pod {seen[2]}, {limits[0]} CPUs")
    by_name = {c.name: processes.get(c.pid, {}) for c, _ in containers}
    one, two = (by_name[f"{ME}-pod{i}"] for i in (1, 2))
    if not one.get("pidns") or one["pidns"] != two["pidns"]:
        bad.append(f"the pods do not share a pid namespace: {one.get('pidns')} {two.get('pidns')}")
    nested = by_name[f"{ME}-nested"]
    if nested.get("nspid") != 1 or nested.get("pidns") in (one.get("pidns"), processes[ME].get("pidns")):
        bad.append(f"nested: pid {nested.get('nspid')} of namespace {nested.get('pidns')}")
    for pid, group, runtime, name, cores in plain:
        got = runs.get(pid, {})
        seen = got.get("container_type"), got.get("container_id"), got.get("container_name"), got.get("cpu_limit_cores")
        if seen != (runtime, group[1:], name, cores):
            bad.append(f"{group}: {seen}")
        low, most = got.get("throttled_periods"), after[group][0] - before[group][0]
        ns, most_ns = got.get("throttled_ns"), after[group][1] - before[group][1]
        print(f"| {group}: {seen[3]} CPUs, held back {low} times for {(ns or 0) / 1e6:.1f} ms; by the kernel {most} times "
              f"for {most_ns / 1e6:.1f} ms")
        if not (low and ns and 3 <= low <= most and ns <= most_ns):
            bad.append(f"{group}: held back {low} times for {ns} ns, by the kernel {most} times for {most_ns} ns")
    return bad


def main():
    if os.geteuid() != 0 or not hierarchies():
        print("SKIP: needs root and control groups")
        return 77
    groups, containers, spinners = Groups(), [], []
    folder = tempfile.mkdtemp()

    def container(name, group, wanted, **more):
        containers.append((Container(folder, f"{ME}-{name}", group, **more), wanted))
        return containers[-1][0]
    try:
        enable_cpu()
        container("plain", f"/witty{ME}/one", ("runc", f"{ME}-plain", None))
        container("docker", f"/docker/{ID3}", ("docker", ID3, None))
        first = container("pod1", f"/kubepods/burstable/pod{POD}/crio-{ID}", ("crio", ID, POD))
        container("pod2", f"/kubepods/burstable/pod{POD2}/crio-{ID2}", ("crio", ID2, POD2),
                  pidns=f"/proc/{first.pid}/ns/pid")
        container("nested", f"/witty{ME}/nested", ("runc", f"{ME}-nested", None), nested=True)
        # A slice whose quota holds for the service in it, and a group made by hand.
        slice_, hand = f"/witty{ME}.slice", f"/hand{ME}"
        plain = []
        for group, inside, runtime, name in ((slice_, slice_ + "/a.service", "systemd", slice_[1:]),
                                             (hand, hand, "cgroup", hand[1:])):
            groups.make(inside)
            quota(group, LITTLE_US)
            p = subprocess.Popen(["sh", "-c", "read -r go; while :; do :; done"], stdin=subprocess.PIPE)
            spinners.append(p)
            groups.enter(inside, p.pid)
            plain.append((p.pid, group, runtime, name, LITTLE_US / PERIOD_US))
        graph, before, after = record(folder, [slice_, hand], spinners)
        bad = compare(graph, containers, plain, before, after)
    finally:
        for p in spinners:
            p.kill()
            p.wait()
        for c, _ in reversed(containers):
            c.done()
        groups.done()
        for top in hierarchies():
            for path in f"/witty{ME}", f"/kubepods/burstable/pod{POD}", f"/kubepods/burstable/pod{POD2}", \
                    "/kubepods/burstable", "/kubepods", "/docker":
                try:
                    os.rmdir(top + path)
                except OSError:
                    pass
        shutil.rmtree(folder, ignore_errors=True)
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print(f"all {len(containers)} containers and {len(plain)} other groups are as they were made")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
