#!/usr/bin/env python3
"""check_rdma.py GRAPH SUMMARY CLIENT SERVER SENT RECEIVED - what a recording says of soft RoCE."""
import json
import sys


def main():
    with open(sys.argv[1]) as f:
        graph = json.load(f)
    with open(sys.argv[2]) as f:
        status = json.load(f)["status"]
    client, server, sent, received = map(int, sys.argv[3:])
    bad = []

    def nodes(kind):
        return [n for n in graph["nodes"] if n["entity_type"] == kind]

    def edges(kind):
        return [e for e in graph["edges"] if e["edge_type"] == kind]

    def expect(ok, what):
        if not ok:
            bad.append(what)

    devices = [d["dev"] for d in nodes("RdmaDevice")]
    expect(devices == ["rxe0"], f"devices {devices}")
    qps = {n["pid"]: n for n in nodes("RdmaLocalQueuePair") if n.get("pid") in (client, server)}
    expect(set(qps) == {client, server}, f"queue pairs of {sorted(qps)}, wanted {client} and {server}")
    if set(qps) == {client, server}:
        c, s = qps[client], qps[server]
        expect((c["qpn"], c["rqpn"]) == (s["rqpn"], s["qpn"]), f"numbers {c} {s}")
        expect(c["type"] == "RC" and c["dev"] == "rxe0" and c["port"] == 1, f"queue pair {c}")
        joined = {(e["source_node"]["qpn"], e["target_node"]["qpn"]) for e in edges("ConnectToEdge")
                  if e["target_node"]["entity_type"] == "RdmaLocalQueuePair"}
        expect((c["qpn"], s["qpn"]) in joined and (s["qpn"], c["qpn"]) in joined, f"joined {joined}")
    for pid in client, server:
        expect([n for n in nodes("RdmaMemoryRegion") if n.get("pid") == pid and n["mrlen"] > 0],
               f"no memory region of {pid}")
        own = [e for e in edges("OwnEdge") if e["source_node"].get("pid") == pid
               and e["target_node"]["entity_type"] == "RdmaProtectionDomain"]
        expect(own, f"no protection domain of {pid}")
    port = next(iter(nodes("RdmaStatisticPerSecond")), {})
    expect(port.get("tx_packets") == sent, f"packets sent {port.get('tx_packets')}, wanted {sent}")
    expect(port.get("rx_packets") == received, f"packets received {port.get('rx_packets')}, wanted {received}")
    expect(sent > 1000, f"only {sent} packets")
    expect(port.get("state") == "ACTIVE" and port.get("link_layer") == "Ethernet"
           and port.get("netdev") == "d0" and port.get("has_hw_counters") is True, f"port {port}")
    expect([s for s in status if s["source"] == "collector rdma" and s["rung"] == "netlink"], "status")
    for b in bad:
        print("FAILED:", b)
    if not bad:
        print(f"RDMA agrees: {sent} packets sent, {received} received")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
