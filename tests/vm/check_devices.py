#!/usr/bin/env python3
"""check_devices.py GRAPH TOPOLOGY STATUS TRUTH - which process uses which device, and near which node that is.

TRUTH has lines "gpu ADDRESS NODE INDEX", "disk NAME NODE", "nic NAME NODE" and "process PID INDEX ITS_NODE NODE".
"""
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def main():
    graph, topology, summary = (read(p) for p in sys.argv[1:4])
    with open(sys.argv[4], encoding="utf-8") as f:
        truth = [line.split() for line in f]
    bad = []

    def expect(what, got, want):
        if got != want:
            bad.append(f"{what}: {got}, wanted {want}")

    def told(kind, *fields):
        return {tuple(n.get(f) for f in fields) for n in graph["nodes"] if n["entity_type"] == kind}
    gpus = {index: (address, node) for kind, address, node, index in (t for t in truth if t[0] == "gpu")}
    users = {index: int(pid) for _, pid, index, _, _ in (t for t in truth if t[0] == "process")}
    # Process, device, node: from the relations of the graph, and as the analysis of placement tells it.
    uses = {(e["source_node"]["pid"], e["target_node"]["pci_bus_id"]) for e in graph["edges"]
            if e["edge_type"] == "AccessEdge" and e["target_node"]["entity_type"] == "GPUEntity"}
    expect("who uses what", uses, {(users[i], gpus[i][0]) for i in gpus})
    table = {(d["id"].split(":", 1)[1], d["numa_nodes"], tuple(d["users"])) for d in topology["devices"]
             if d["id"].startswith("gpu:")}
    expect("devices, their nodes and users", table,
           {(address, node, (f"process:{users[i]}",)) for i, (address, node) in gpus.items()})
    disks = {t[1]: int(t[2]) for t in truth if t[0] == "disk"}
    expect("nodes of disks", {(n, node) for n, node in told("BlockDeviceEntity", "name", "numa_node") if n in disks},
           set(disks.items()))
    nics = {t[1]: int(t[2]) for t in truth if t[0] == "nic"}
    expect("nodes of network cards", {(n, node) for n, node in told("NicEntity", "name", "numa_node") if n in nics},
           set(nics.items()))
    expect("numbers of devices", (len(gpus), len(disks), len(nics)), (len(gpus),) * 3)
    off = [s for s in summary["status"] if s["source"].startswith("sched.") and s["state"] == "off"]
    expect("probe sched", off, [])
    for index, (address, node) in sorted(gpus.items()):
        print(f"| process {users[index]} -> {address} -> node {node}")
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print(f"{len(gpus)} accelerators, {len(disks)} disks and {len(nics)} network cards are where they are")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
