#!/usr/bin/env python3
"""test_topo.py TOPO_DUMP - topologies of other machines, through the same code as this one's.

Own small machines are written to a temporary folder and have to be read exactly. Where hwloc's
saved machines are (WITTY_HWLOC_DATA, or ../shared/data/hwloc beside the repository), all of them
are compared with what their own /sys says. No root is needed.
"""
import glob
import os
import re
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("WITTY_HWLOC_DATA", os.path.join(os.path.dirname(ROOT), "shared/data/hwloc"))
NODE = re.compile(r"^node (\d+): package (\S+), (\S+), cpus (\S+), near (\S+), (\d+) bytes"
                  r"(?:, distances (.*))?$", re.M)
problems = []


def check(good, what):
    if not good:
        problems.append(what)


def ranges(text):
    members = set()
    for part in text.replace("\0", "").strip().split(","):
        if part and part != "-":
            first, _, last = part.partition("-")
            members |= set(range(int(first), int(last or first) + 1))
    return members


def dump(program, option, path):
    done = subprocess.run([program, option, path], text=True, capture_output=True, check=False)
    check(done.returncode == 0, f"{path}: status {done.returncode}: {done.stderr.strip()}")
    check(not done.stderr, f"{path}: says {done.stderr.strip()}")
    return done.stdout


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="ascii") as f:
        f.write(f"{text}\n")


def mask(members):
    return f"{sum(1 << m for m in members):08x}"


def text_of(members):
    return ",".join(str(m) for m in sorted(members))


def make_machine(root, nodes, cpus, offline=(), distances=None):
    """nodes: {id: (cpus, MiB)}; cpus: {id: (package, core)}"""
    online = [c for c in cpus if c not in offline]
    write(root, "proc/cpuinfo", "\n".join(f"processor\t: {c}" for c in online))
    write(root, "proc/mounts", "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0")
    write(root, "proc/meminfo", "MemTotal: 1024 kB")
    top = "sys/devices/system"
    write(root, f"{top}/cpu/online", text_of(online))
    write(root, f"{top}/cpu/possible", text_of(cpus))
    write(root, f"{top}/cpu/present", text_of(cpus))
    for c, (package, core) in cpus.items():
        if c in offline:
            write(root, f"{top}/cpu/cpu{c}/online", "0")
            continue
        at = f"{top}/cpu/cpu{c}/topology"
        siblings = [o for o in online if cpus[o] == (package, core)]
        same = [o for o in online if cpus[o][0] == package]
        write(root, f"{top}/cpu/cpu{c}/online", "1")
        write(root, f"{at}/physical_package_id", package)
        write(root, f"{at}/core_id", core)
        for name, members in (("thread_siblings", siblings), ("core_siblings", same),
                              ("core_cpus", siblings), ("package_cpus", same)):
            write(root, f"{at}/{name}", mask(members))
    write(root, f"{top}/node/online", text_of(nodes))
    write(root, f"{top}/node/possible", text_of(nodes))
    for n, (members, mib) in nodes.items():
        write(root, f"{top}/node/node{n}/cpumap", mask(members))
        write(root, f"{top}/node/node{n}/cpulist", text_of(members))
        write(root, f"{top}/node/node{n}/meminfo", f"Node {n} MemTotal: {mib * 1024} kB")
        if distances:
            write(root, f"{top}/node/node{n}/distance", " ".join(map(str, distances[n])))


def nodes_of(text):
    return {int(m[1]): m for m in NODE.finditer(text)}


def own_machines(program, folder):
    # Sparse numbers, two packages, a node of memory only, one of CPUs only, an offline CPU.
    root = os.path.join(folder, "sparse")
    make_machine(root, {0: ([0, 1, 6], 512), 2: ([2, 3], 256), 5: ([], 1024), 9: ([4, 5], 0)},
                 {0: (0, 0), 1: (0, 0), 2: (0, 1), 3: (0, 1), 4: (1, 0), 5: (1, 1), 6: (0, 2)}, [6],
                 {0: [10, 12, 17, 32], 2: [12, 10, 20, 32], 5: [17, 20, 10, 28], 9: [32, 32, 28, 10]})
    text = dump(program, "-r", root)
    nodes = nodes_of(text)
    check(sorted(nodes) == [0, 2, 5, 9], f"sparse: nodes {sorted(nodes)}")
    for n, cpus, size in ((0, "0-1", 512), (2, "2-3", 256), (5, "-", 1024), (9, "4-5", 0)):
        if n in nodes:
            check(nodes[n][4] == cpus, f"sparse: node {n} has CPUs {nodes[n][4]}, not {cpus}")
            check(int(nodes[n][6]) == size << 20, f"sparse: node {n} has {nodes[n][6]} bytes")
    check(2 in nodes and nodes[2][7] == "12 10 20 32", "sparse: distances of node 2")
    check("cpus: 6 online, 1 offline; 2 packages, 0 dies, 4 cores" in text, "sparse: counts")
    check("cpu 6: offline" in text, "sparse: CPU 6 is offline")
    check("cpu 3: node 2, package 0, die -, core 1," in text, "sparse: CPU 3")
    check("cpu 5: node 9, package 1, die -, core 1," in text, "sparse: CPU 5")
    # One node, and nothing told of nodes.
    root = os.path.join(folder, "plain")
    make_machine(root, {}, {0: (0, 0), 1: (0, 1)})
    nodes = nodes_of(dump(program, "-r", root))
    check(list(nodes) == [0] and nodes[0][4] == "0-1", "plain: one node with both CPUs")
    # What is no machine at all.
    done = subprocess.run([program, "-x", os.path.join(folder, "none.xml")], text=True,
                          capture_output=True, check=False)
    check(done.returncode == 1 and "none.xml" in done.stderr, "a missing file is an error that names it")


def cpus_of_node(root, n):
    """The node's CPUs by its own /sys, or None."""
    at = f"{root}/sys/devices/system/node/node{n}"
    for name, base in (("cpulist", 0), ("cpumap", 16)):
        if not os.path.exists(f"{at}/{name}"):
            continue
        with open(f"{at}/{name}", encoding="ascii") as f:
            text = f.read()
        if not base:
            return ranges(text)
        bits = int(text.replace("\0", "").strip().replace(",", ""), 16)
        return {i for i in range(bits.bit_length()) if bits >> i & 1}
    return None


# hwloc takes a node for broken when all are equally far, and leaves out what is not online.
ODD = {"8em64t-2s2ca2c-buggynuma", "fakeheterocpunuma"}


def saved_machine(root, name, text):
    nodes = nodes_of(text)
    at = f"{root}/sys/devices/system/node"
    told = sorted(int(d[4:]) for d in os.listdir(at) if re.fullmatch(r"node\d+", d)) if os.path.isdir(at) else []
    online = {int(m[1]) for m in re.finditer(r"^cpu (\d+): node", text, re.M)}
    check(nodes, f"{name}: no node")
    if name in ODD or not told:
        return
    check(sorted(nodes) == told, f"{name}: nodes {sorted(nodes)}, not {told}")
    for n in set(told) & set(nodes):
        cpus = cpus_of_node(root, n)
        if cpus is not None:
            check(ranges(nodes[n][4]) == cpus & online, f"{name}: node {n}: CPUs {nodes[n][4]}")
        path = f"{at}/node{n}/distance"
        if os.path.exists(path) and len(told) > 1:
            with open(path, encoding="ascii") as f:
                row = f.read().replace("\0", "").split()
            check((nodes[n][7] or "").split() == row, f"{name}: node {n}: distances {nodes[n][7]}")


def saved_devices(root, name, text):
    """Devices that have a node in /sys are near that node."""
    found = 0
    for path in glob.glob(f"{root}/sys/bus/pci/devices/*/numa_node"):
        address = os.path.basename(os.path.dirname(path))
        with open(path, encoding="ascii") as f:
            node = f.read().replace("\0", "").strip()
        line = re.search(rf"^pci {re.escape(address)}: .* nodes (\S+), cpus", text, re.M)
        if line and node not in ("-1", ""):
            found += 1
            check(int(node) in ranges(line[1]), f"{name}: {address} on node {line[1]}, not {node}")
    return found


def saved_machines(program, folder):
    count = devices = 0
    for path in sorted(glob.glob(os.path.join(DATA, "*.tar.*"))):
        with tarfile.open(path) as tar:
            top = tar.getnames()[0].split("/")[0]
            tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
        root = os.path.join(folder, top)
        text = dump(program, "-r", root)
        saved_machine(root, top, text)
        devices += saved_devices(root, top, text)
        subprocess.run(["rm", "-rf", root], check=True)
        count += 1
    for path in sorted(glob.glob(os.path.join(DATA, "xml", "*.xml"))):
        # hwloc 2 refuses the number of the newer format, whose parts that matter here are the same.
        copy = os.path.join(folder, os.path.basename(path))
        with open(path, encoding="utf-8") as f, open(copy, "w", encoding="utf-8") as out:
            out.write(f.read().replace('<topology version="3.0">', '<topology version="2.0">'))
        text = dump(program, "-x", copy)
        check(nodes_of(text), f"{path}: no node")
        if path.endswith("nvidiaDGX2.xml"):
            check(len(re.findall(r"^pci .*: 3d 10de:", text, re.M)) == 16, "nvidiaDGX2: 16 GPUs")
        count += 1
    return count, devices


def quick_folder():
    """Thousands of small files a machine: in memory, where there is room for the largest of them."""
    try:
        has = os.statvfs("/dev/shm")
    except OSError:
        return None
    room = has.f_bavail * has.f_frsize > 256 << 20 and has.f_favail > 100000
    return "/dev/shm" if room and os.access("/dev/shm", os.W_OK) else None


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        own_machines(program, folder)
        count, devices = saved_machines(program, folder)
    for text in problems:
        print(text)
    print(f"{count} saved machines, {devices} devices with a node, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
