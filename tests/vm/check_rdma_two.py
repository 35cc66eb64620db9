#!/usr/bin/env python3
"""check_rdma_two.py MERGED.json DIR - what two recordings, merged, say of soft RoCE between two guests.

DIR has what the guests wrote: SIDE.STEP.counters (packets sent and received, sends and receives completed, by
hw_counters) and SIDE.pids (rping, ib_send_bw) of those that ran when the recordings ended. a has the clients."""
import json
import os
import sys

RPINGS, SENDS, SIZE, MTU = 100, 300, 4096, 1024
COUNTERS = "sent_pkts", "rcvd_pkts", "rdma_sends", "rdma_recvs", "completer_retry_err"


def main():
    with open(sys.argv[1]) as f:
        graph = json.load(f)

    def read(name):
        with open(os.path.join(sys.argv[2], name)) as f:
            return [int(x) for x in f.read().split()]

    def counters(side, step):
        return dict(zip(COUNTERS, read(f"{side}.{step}.counters")))

    def of(kind, side):
        return [n for n in graph["nodes"] if n["entity_type"] == kind and n["entity_namespace"] == side]

    rows = []

    def equal(what, is_, wanted):
        rows.append((what, is_, wanted, is_ == wanted))

    # The truth first: what the programs were told to send is what the driver counted.
    for side, sends in ("a", SENDS), ("b", 0):
        was, now = counters(side, "rping"), counters(side, "bw")
        equal(f"{side}: ib_send_bw, messages sent, by the driver", now["rdma_sends"] - was["rdma_sends"], sends)
        equal(f"{side}: ib_send_bw, messages received, by the driver", now["rdma_recvs"] - was["rdma_recvs"],
              SENDS - sends)
    was, now = counters("a", "rping"), counters("a", "bw")
    # A host too busy to answer in time makes the driver send again.
    sent, least = now["sent_pkts"] - was["sent_pkts"], SENDS * SIZE // MTU
    again = now["completer_retry_err"] - was["completer_retry_err"]
    rows.append(("a: ib_send_bw, packets sent, by the driver", sent, f"{least}, {again} retries",
                 sent > least if again else sent == least))
    # rping sends twice in each turn and direction; the connection takes REQ, RTU, DREQ one way, REP, DREP the other,
    # of which a slow host may need some more.
    for side, other, manage in ("a", "b", 3), ("b", "a", 2):
        messages, least = counters(side, "rping")["rdma_sends"], 2 * RPINGS + manage
        rows.append((f"{side}: rping, messages sent, by the driver", messages, least, least <= messages <= least + 8))
        equal(f"{other}: rping, messages received, by the driver", counters(other, "rping")["rdma_recvs"], messages)

    # What was recorded is what the driver counted, all of it.
    for side in "ab":
        start, end = counters(side, "start"), counters(side, "end")
        equal(f"{side}: counters after the recording", counters(side, "after"), end)
        equal(f"{side}: devices", [n["dev"] for n in of("RdmaDevice", side)], ["rxe0"])
        ports = of("RdmaStatisticPerSecond", side)
        equal(f"{side}: ports", len(ports), 1)
        port = ports[0] if ports else {"counters": {}}
        equal(f"{side}: packets sent", port.get("tx_packets"), end["sent_pkts"] - start["sent_pkts"])
        equal(f"{side}: packets received", port.get("rx_packets"), end["rcvd_pkts"] - start["rcvd_pkts"])
        for name in COUNTERS:
            equal(f"{side}: {name}", port["counters"].get(name, 0), end[name] - start[name])
    a, b = counters("a", "end"), counters("b", "end")
    equal("sent by a, received by b", a["sent_pkts"], b["rcvd_pkts"])
    equal("sent by b, received by a", b["sent_pkts"], a["rcvd_pkts"])

    # Both programs have a queue pair at each side, joined with that of the same program.
    links = {tuple((n["entity_namespace"], n["qpn"]) for n in (e["source_node"], e["target_node"]))
             for e in graph["edges"] if e["edge_type"] == "ConnectToEdge"
             and e["source_node"]["entity_type"] == e["target_node"]["entity_type"] == "RdmaLocalQueuePair"}
    wanted, held, numbers = set(), set(), []
    for program, pids in zip(("rping", "ib_send_bw"), zip(read("a.pids"), read("b.pids"))):
        ends = []
        for side, pid in zip("ab", pids):
            names = [n["name"] for n in of("ProcessEntity", side) if n["pid"] == pid]
            equal(f"{side}: process {pid}", names, [program])
            qps = [n for n in of("RdmaLocalQueuePair", side) if n["pid"] == pid]
            equal(f"{side}: queue pairs of {program}", [(n["type"], n["dev"], n["port"]) for n in qps],
                  [("RC", "rxe0", 1)])
            ends += [(side, n["qpn"], n["rqpn"]) for n in qps]
            held |= {(side, n["qpn"]) for n in qps}
            regions = [n for n in of("RdmaMemoryRegion", side) if n["pid"] == pid and n["mrlen"] > 0]
            equal(f"{side}: {program} has memory regions", bool(regions), True)
            domains = {n["pdn"] for n in qps + regions}
            own = {e["target_node"]["pdn"] for e in graph["edges"] if e["edge_type"] == "OwnEdge"
                   and (e["source_node"]["entity_namespace"], e["source_node"].get("pid")) == (side, pid)
                   and e["source_node"]["entity_type"] == "ProcessEntity"
                   and e["target_node"]["entity_type"] == "RdmaProtectionDomain"}
            equal(f"{side}: {program} owns their domains", domains <= own and len(domains) > 0, True)
        equal(f"{program}: each end has the other's number", [e[1] for e in ends], [e[2] for e in reversed(ends)])
        numbers.append([e[1] for e in ends])
        if len(ends) == 2:
            wanted |= {(ends[0][:2], ends[1][:2]), (ends[1][:2], ends[0][:2])}
    equal("at each host the numbers name each other", numbers[0], numbers[1][::-1])
    # Of the runs before, a look may have found one end or both.
    equal("joined queue pairs", sorted(p for p in links if held & set(p)), sorted(wanted))
    equal("none with itself, or with its own host", [p for p in links if p[0][0] == p[1][0]], [])

    for what, is_, expected, ok in rows:
        print(f"{'ok' if ok else 'FAILED':6} {what:52} {is_}" + ("" if ok else f", wanted {expected}"))
    bad = sum(not r[-1] for r in rows)
    print(f"{len(rows) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
