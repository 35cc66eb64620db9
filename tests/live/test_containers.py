#!/usr/bin/env python3
"""test_containers.py - control groups made by hand as the runtimes make them, recorded and compared.

WITTY names the program. Needs root. No runtime is needed.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

WITTY = os.environ["WITTY"]
UID = f"{os.getpid():08x}-1111-2222-3333-444455556666"
UID2 = f"{os.getpid():08x}-9999-2222-3333-444455556666"


def container_id(n):
    return f"{os.getpid():08x}{n:02x}" + "ab" * 27


def underscores(uid):
    return uid.replace("-", "_")


# Name of the case: (path of the group, runtime, id, pod, program in it)
CASES = {
    "docker": (f"/docker/{container_id(1)}", "docker", container_id(1), None),
    "docker, systemd": (f"/system.slice/docker-{container_id(2)}.scope", "docker", container_id(2), None),
    "containerd": (f"/kubepods.slice/kubepods-pod{underscores(UID)}.slice/cri-containerd-{container_id(3)}.scope",
                   "containerd", container_id(3), UID),
    "crio, other pod": (f"/kubepods/burstable/pod{UID2}/crio-{container_id(4)}", "crio", container_id(4), UID2),
    "podman": (f"/machine.slice/libpod-{container_id(5)}.scope/container", "podman", container_id(5), None),
    "isulad": (f"/isulad/{container_id(6)}", "isulad", container_id(6), None),
    "lxc": (f"/lxc.payload.box{os.getpid()}", "lxc", f"box{os.getpid()}", None),
    "none": (f"/system.slice/witty{os.getpid()}.service", None, None, None),
}
# Groups beside the first: of a process with a control group namespace of its own, and of the recorder with one.
PRIVATE, OWN = f"/docker/{container_id(7)}", f"/docker/{container_id(8)}"


def hierarchies():
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return ["/sys/fs/cgroup"]
    return [h for h in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct",
                        "/sys/fs/cgroup/memory") if os.path.exists(h + "/cgroup.procs")]


class Groups:
    """Folders of control groups, those that were not there before."""

    def __init__(self):
        self.made = []

    def make(self, path):
        for top in hierarchies():
            at = top
            for part in path.strip("/").split("/"):
                if os.path.exists(at + "/cgroup.subtree_control"):
                    # Refused where a process is in it, which is the case of no group that needs it.
                    try:
                        with open(at + "/cgroup.subtree_control", "w") as f:
                            f.write("+cpu")
                    except OSError:
                        pass
                at += "/" + part
                if not os.path.isdir(at):
                    os.mkdir(at)
                    self.made.append(at)

    def enter(self, path, pid):
        for top in hierarchies():
            with open(top + path + "/cgroup.procs", "w") as f:
                f.write(str(pid))

    def done(self):
        for at in reversed(self.made):
            for _ in range(50):
                try:
                    os.rmdir(at)
                    break
                except OSError:
                    time.sleep(0.05)


def run(groups, folder, children):
    # One pid namespace for all: pods are told apart by their groups.
    shell = subprocess.Popen(["unshare", "-pf", "--kill-child", "--mount-proc", "bash", "-c",
                              "for i in $(seq %d); do sleep 3000 & done; echo ready; read -r line" % len(CASES)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    children.append(shell)
    shell.stdout.readline()
    with open(f"/proc/{shell.pid}/task/{shell.pid}/children") as f:
        bash = f.read().split()[0]
    with open(f"/proc/{bash}/task/{bash}/children") as f:
        pids = [int(p) for p in f.read().split()]
    where = {}
    for (name, (path, *_)), pid in zip(CASES.items(), pids):
        groups.make(path)
        groups.enter(path, pid)
        where[name] = pid
    for top in hierarchies():
        if os.path.exists(top + CASES["docker"][0] + "/cpu.max"):
            with open(top + CASES["docker"][0] + "/cpu.max", "w") as f:
                f.write("150000 100000")
        elif os.path.exists(top + CASES["docker"][0] + "/cpu.cfs_quota_us"):
            with open(top + CASES["docker"][0] + "/cpu.cfs_quota_us", "w") as f:
                f.write("150000")
    # One whose control group namespace is its own.
    groups.make(PRIVATE)
    private = subprocess.Popen(["sh", "-c", into(PRIVATE) + "exec unshare -C sleep 3000"])
    children.append(private)
    while os.readlink(f"/proc/{private.pid}/ns/cgroup") == os.readlink("/proc/self/ns/cgroup"):
        time.sleep(0.01)
    where["private"] = private.pid
    # The recorder in a container of docker, with such a namespace, sees the others beside or above itself.
    groups.make(OWN)
    return (record(os.path.join(folder, "out.wpdb"), ""),
            record(os.path.join(folder, "inside.wpdb"), into(OWN) + "exec unshare -C "), where)


def into(path):
    """Shell commands that put the shell into a group."""
    return "".join(f"echo $$ >{top}{path}/cgroup.procs; " for top in hierarchies())


def record(out, before):
    logs = f"/var/log/pods/prod_web-1_{UID}"
    subprocess.run(["unshare", "-m", "sh", "-e", "-c", f"mount -t tmpfs none /var/log; mkdir -p {logs}; {before or 'exec '}"
                    f"{WITTY} record --no-ebpf -d 1s --interval 500ms -o {out}"], check=True)
    return json.loads(subprocess.run([WITTY, "convert", out, "-"], check=True, stdout=subprocess.PIPE, text=True).stdout)


def containers(graph):
    """@return the container of each process, and that which holds it"""
    runs = {}
    hosts = {}
    for e in graph["edges"]:
        if e["edge_type"] == "RunOnEdge":
            runs[e["source_node"]["pid"]] = e["target_node"]
        if e["edge_type"] == "HostEdge":
            hosts[e["target_node"]["pid"]] = e["source_node"]
    return runs, hosts


def compare(graph, inside, where):
    bad = []
    runs, hosts = containers(graph)
    for name, (path, runtime, ident, pod) in CASES.items():
        c = runs.get(where[name])
        if runtime is None:
            if c:
                bad.append(f"{name}: in container {c['container_id']}")
            continue
        if not c:
            bad.append(f"{name}: in no container")
            continue
        got = (c["container_id"], c["container_type"], (c.get("pod") or {}).get("pod_id"))
        if got != (ident, runtime, pod):
            bad.append(f"{name}: {got}")
        if hosts.get(where[name], {}).get("container_id") != ident:
            bad.append(f"{name}: the container does not hold it")
    pod = runs.get(where["containerd"], {}).get("pod") or {}
    if (pod.get("name"), pod.get("pod_namespace")) != ("web-1", "prod"):
        bad.append(f"name of the pod: {pod}")
    other = runs.get(where["crio, other pod"], {}).get("pod") or {}
    if other.get("qos") != "burstable" or other.get("name"):
        bad.append(f"the other pod: {other}")
    docker = runs.get(where["docker"], {})
    if docker.get("cpu_limit_cores") != 1.5:
        bad.append(f"quota: {docker.get('cpu_limit_cores')}")
    if runs.get(where["private"], {}).get("container_id") != container_id(7):
        bad.append(f"own namespace: {runs.get(where['private'])}")
    # From inside: what stands in the part of the path that can be seen.
    runs, _ = containers(inside)
    for name, (_, runtime, ident, pod) in list(CASES.items()) + [("private", (None, "unknown", container_id(7), None))]:
        c = runs.get(where[name]) or {}
        got = c.get("container_id"), c.get("container_type"), (c.get("pod") or {}).get("pod_id")
        if got != (ident, "unknown" if name == "docker" else runtime, pod):
            bad.append(f"{name}, from inside: {got}")
    return bad


def main():
    if os.geteuid() != 0 or not hierarchies():
        print("SKIP: needs root and control groups")
        return 77
    groups = Groups()
    children = []
    folder = tempfile.mkdtemp()
    try:
        bad = compare(*run(groups, folder, children))
    finally:
        for c in children:
            c.kill()
            c.wait()
        groups.done()
        shutil.rmtree(folder)
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print(f"all {len(CASES)} processes are where they belong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
