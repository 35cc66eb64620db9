#!/usr/bin/env python3
"""test_rdma_tool.py - RDMA by the tool of iproute2, where the kernel's netlink family cannot be asked.

WITTY names the program. A `rdma` of our own, first in PATH, writes what iproute2 6.1 wrote of soft RoCE with rping
running; /sys/class/infiniband is a folder of our own. Needs root for that, and a kernel without RDMA of its own.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile

WITTY = os.environ["WITTY"]
NETLINK_RDMA = 20

DEVICES = [{"ifindex": 3, "ifname": "rxe0", "node_type": "ca", "node_guid": "74c9:d4ff:fe02:7a04"}]


def resources(client, server):
    c = {"ifindex": 3, "ifname": "rxe0", "pid": client, "comm": "rping"}
    s = dict(c, pid=server)
    kernel = {"ifindex": 3, "ifname": "rxe0", "comm": "ib_core"}
    return {
        "qp": [dict(c, port=1, lqpn=17, rqpn=18, type="RC", state="RTS", pdn=3, **{"sq-psn": 8666667}),
               dict(s, port=1, lqpn=18, rqpn=17, type="RC", state="RTS", pdn=4, **{"path-mig-state": "MIGRATED"}),
               dict(kernel, port=1, lqpn=1, type="GSI", state="RTS")],
        "mr": [dict(c, mrn=0, rkey="205", lkey="36c", mrlen=16, pdn=3), dict(s, mrn=4, rkey="68e", lkey="68e",
                                                                             mrlen=1 << 33, pdn=4)],
        "pd": [dict(kernel, pdn=0, local_dma_lkey="138", users=1), dict(c, pdn=3, users=5, ctxn=1), dict(s, pdn=4)],
        "cq": [dict(kernel, cqn=0, cqe=1023, **{"adaptive-moderation": False}), dict(c, cqn=1, cqe=63)],
    }


def tool(folder, client, server, script=None):
    """A `rdma` that answers from files, and writes down what it was asked."""
    for kind, rows in {"dev": DEVICES, **resources(client, server)}.items():
        with open(os.path.join(folder, kind), "w") as f:
            json.dump(rows, f)
    path = os.path.join(folder, "rdma")
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + (script or
                f'echo "$*" >>{folder}/asked\nif [ "$2" = dev ]; then cat {folder}/dev; else cat {folder}/"$5"; fi\n'))
    os.chmod(path, 0o755)


def record(folder):
    """A tool that was too slow, which on a busy host any may be, is asked once more. @return graph, status"""
    for _ in range(5):
        graph, status = record_once(folder)
        if "did not end within" not in " ".join(s["reason"] or "" for s in status):
            break
    return graph, status


def record_once(folder):
    """With a /sys/class that has an RDMA device, which lacks the folders of counters. @return graph, status"""
    out = os.path.join(folder, "out.wpdb")
    port = "/sys/class/infiniband/rxe0/ports/1"
    setup = (f"mount -t tmpfs none /sys/class && mkdir -p {port} && echo '4: ACTIVE' >{port}/state && "
             f"echo Ethernet >{port}/link_layer && exec {WITTY} record -d 1s --interval 200ms --force -o {out}")
    subprocess.run(["unshare", "-m", "sh", "-c", setup], check=True,
                   env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]))
    graph = json.loads(subprocess.run([WITTY, "convert", out, "-"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    summary = json.loads(subprocess.run([WITTY, "show", out, "summary", "--format", "json"], check=True,
                                        stdout=subprocess.PIPE, text=True).stdout)
    return graph, [s for s in summary["status"] if s["source"] == "collector rdma"]


def compare(graph, status, client, server, bad):
    def nodes(kind):
        return [n for n in graph["nodes"] if n["entity_type"] == kind]

    def expect(got, want, what):
        if got != want:
            bad.append(f"{what}: {got}, wanted {want}")
    device = next(iter(nodes("RdmaDevice")), {})
    expect([device.get(k) for k in ("dev", "queue_pairs", "memory_regions", "registered_bytes", "completion_queues")],
           ["rxe0", 3, 2, (1 << 33) + 16, 2], "device")
    qps = {n["qpn"]: n for n in nodes("RdmaLocalQueuePair")}
    expect({q: (n.get("pid"), n.get("type"), n.get("state"), n.get("owner")) for q, n in qps.items()},
           {17: (client, "RC", "RTS", None), 18: (server, "RC", "RTS", None), 1: (-1, "GSI", "RTS", "ib_core")},
           "queue pairs")
    joined = {(e["source_node"]["qpn"], e["target_node"]["qpn"]) for e in graph["edges"]
              if e["edge_type"] == "ConnectToEdge"}
    expect(joined, {(17, 18), (18, 17)}, "joined")
    expect({(n["lkey"], n["rkey"], n["mrlen"], n["pid"]) for n in nodes("RdmaMemoryRegion")},
           {(0x36c, 0x205, 16, client), (0x68e, 0x68e, 1 << 33, server)}, "memory regions")
    own = {(e["source_node"]["pid"], e["target_node"]["pdn"]) for e in graph["edges"] if e["edge_type"] == "OwnEdge"
           and e["target_node"]["entity_type"] == "RdmaProtectionDomain"}
    expect(own, {(client, 3), (server, 4)}, "protection domains")
    how = [s for s in status if s["rung"] == "rdma -j"]
    if len(how) != 1 or how[0]["state"] != "reduced" or not how[0]["reason"]:
        bad.append(f"status {status}")
    blind = " ".join(s["reason"] for s in status if s["state"] == "blind")
    for what in "no hw_counters", "no counters of bytes", "queue pairs have no counters":
        if what not in blind:
            bad.append(f"not told: {what}: {blind}")
    port = next(iter(nodes("RdmaStatisticPerSecond")), {})
    expect([port.get(k) for k in ("state", "has_hw_counters", "tx_bytes", "retransmits")],
           ["ACTIVE", False, None, None], "port")


def main():
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return 77
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA).close()
        print("SKIP: this kernel has RDMA: netlink is asked, as the tests in guests do")
        return 77
    except OSError:
        pass
    bad = []
    sleepers = [subprocess.Popen(["sleep", "3000"]) for _ in range(2)]
    client, server = (p.pid for p in sleepers)
    try:
        with tempfile.TemporaryDirectory() as folder:
            tool(folder, client, server)
            compare(*record(folder), client, server, bad)
            with open(os.path.join(folder, "asked")) as f:
                if "-j -d resource show qp" not in f.read().splitlines():
                    bad.append("the tool was not asked for queue pairs")
            # One that fails, or writes something else: said so, and the rest of the recording is there.
            for script, reason in ("echo '{\"no\": 1}'\n", "a list is expected"), ("exit 3\n", "ended with status 3"):
                tool(folder, client, server, script)
                graph, status = record(folder)
                if reason not in " ".join(s["reason"] or "" for s in status if s["state"] == "reduced"):
                    bad.append(f"status of a tool that fails: {status}")
                if not [n for n in graph["nodes"] if n["entity_type"] == "RdmaStatisticPerSecond"]:
                    bad.append("no port when the tool fails")
    finally:
        for p in sleepers:
            p.kill()
            p.wait()
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print("the tool's answers are in the recording")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
