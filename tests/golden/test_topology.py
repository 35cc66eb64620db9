#!/usr/bin/env python3
"""test_topology.py - what `topology` says of a graph in openEuler's format. WITTY names the program.

The graph is that of a model served by vLLM on four of eight NPUs, as the older tool would have captured
it: the process chain, devices and NUMA nodes, where workers run and have their memory, and answers
from the server to a client over loopback. Then the same with everything that can be missing.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

WITTY = os.environ["WITTY"]
NODES = {0: 6, 1: 6, 2: 4, 3: 4, 4: 0, 5: 0, 6: 2, 7: 2}
SPAWN = "python3 -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=25) --multiprocessing-fork"
CHAIN = [(600, 1, "dockerd", "/usr/bin/dockerd"), (601, 600, "containerd", "containerd --config c.toml"),
         (700, 601, "containerd-shim", "containerd-shim -namespace moby"), (701, 700, "bash", "bash"),
         (710, 701, "vllm", "/usr/bin/python3 /usr/bin/vllm serve /models/m --tensor-parallel-size 4 --port 8001"),
         (720, 710, "python3", SPAWN), (731, 720, "python3", SPAWN), (732, 720, "python3", SPAWN),
         (733, 720, "python3", SPAWN), (734, 720, "python3", SPAWN), (800, 799, "bash", "bash bench.sh"),
         (810, 800, "vllm", "/usr/bin/python3 /usr/bin/vllm bench serve --port 8001")]
# Worker: share of CPU time by node, written pages by node.
PLACES = {731: ({7: .69, 5: .31}, {6: 384040, 0: 40779, 7: 35195}), 732: ({1: .6, 3: .38, 4: .02}, {0: 370899, 3: 58569}),
          733: ({6: .58, 3: .34, 5: .08}, {6: 464850, 2: 7789}), 734: ({7: .94, 3: .06}, {2: 393560, 5: 31000})}
failures = []


def check(what, good):
    if not good:
        failures.append(what)


def process(p):
    return {"entity_namespace": "local", "entity_type": "ProcessEntity", "details": {}, "pid": p[0], "ppid": p[1],
            "name": p[2], "cmdline": p[3]}


def edge(kind, source, target, **more):
    return {"edge_type": kind, "weight": None, "source_node": source, "target_node": target, **more}


def numa_set(text):
    return {"entity_namespace": "local", "entity_type": "NumaSetEntity", "details": {}, "numa_id_str": text}


def numa_access(p, cpu, pages):
    info = {"cpu_runtime_pct_in_each_numa": [cpu.get(i, 0.0) for i in range(8)],
            "mem_pages_in_each_numa": [pages.get(i, 0) for i in range(8)], "total_dirty_anon_pages": sum(pages.values()),
            "cpu_mem_access_cosine_similarity": 0.0}
    status = {"voluntary_ctxt_switches": 1, "involuntary_ctxt_switches": 1, "cpus_allowed_list": "0-191",
              "cpus_preferred_list": "", "cpus_accessed_list": "", "mems_allowed_list": "0-7",
              "numa_index_to_cpu_runtime": {}}
    return edge("NumaAccessEdge", p, numa_set("0-7"), numa_access_info={
        "proc_status": status, "read_only_pages": {}, "dirty_anon_pages": {str(k): v for k, v in pages.items()},
        "total_pages": {}, "numa_affinity_info": info})


def serving():
    processes = {p[0]: process(p) for p in CHAIN}
    nodes, edges = list(processes.values()), []
    for i in range(8):
        nodes.append({"entity_namespace": "local", "entity_type": "NumaEntity", "details": {}, "numa_id": i,
                      "cpu_set": f"{24 * i}-{24 * i + 23}", "memory_set": "", "numa_stats": {}, "mem_info": {},
                      "distance_to_all_numa": {}})
        npu = {"entity_namespace": "local", "entity_type": "NPUEntity", "details": {}, "device_id": "device-id-unknown",
               "device_type": "npu", "pci_bus_id": f"0000:{i:02X}:00.0", "id": i,
               "cpu_affinity": f"{24 * NODES[i]}-{24 * NODES[i] + 23}"}
        nodes.append(npu)
        edges.append(edge("AffinitativeToNuma", npu, numa_set(str(NODES[i]))))
        if i < 4:
            edges.append(edge("AccessEdge", processes[731 + i], npu))
    for pid, (cpu, pages) in PLACES.items():
        edges.append(numa_access(processes[pid], cpu, pages))
    box = {"entity_namespace": "local", "entity_type": "ContainerEntity", "details": {}, "container_id": "cac9af6a",
           "container_name": "docker-cac9af6aa1ee", "container_type": "docker"}
    for pid in (701, 710, 720, 731, 732, 733, 734):
        edges.append(edge("RunOnEdge", processes[pid], box))
    for i in range(12):
        socket = {"entity_namespace": "local", "entity_type": "SocketEntity", "details": {}, "socket_type": "TCP",
                  "socket_addr": "127.0.0.1", "socket_port": 40000 + i, "socket_thread": None, "socket_process": None}
        threads = [{"entity_namespace": "local", "entity_type": "ThreadEntity", "details": {}, "tid": pid,
                    "process": processes[pid], "name": "vllm"} for pid in (710, 810)]
        edges.append(edge("SendToSocketEdge", threads[0], socket, connection_type="TCP",
                          data_flow={"start_time": 10, "end_time": 20, "data_size": 30006, "packets_cnt": 118}))
        edges.append(edge("BelongEdge", socket, threads[1]))
    return {"nodes": nodes, "edges": edges}


class File:
    """A graph in a file, and what the program says of it."""

    def __init__(self, folder, graph, name="g.json"):
        self.path = os.path.join(folder, name)
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(graph, f)

    def run(self, *args, status=0):
        verb, *rest = args
        done = subprocess.run([WITTY, verb, self.path, *rest], capture_output=True, text=True, check=False)
        check(f"{args}: exit {done.returncode}: {done.stderr}", done.returncode == status)
        return done.stdout

    def json(self, *args):
        return json.loads(self.run(*args, "--format", "json") or "null")


def served_model(folder):
    f = File(folder, serving())
    t = f.json("topology")
    role = {a["id"]: a["role"] for a in t["actors"]}
    check("roles", role["process:710"] == "API server" and role["process:720"] == "engine" and
          role["process:810"] == "client" and role["process:600"] == "container runtime" and
          all(role[f"process:{p}"] == "worker rank" for p in PLACES))
    check("main", t["main"] == "process:710")
    check("devices", [(d["numa_nodes"], d["users"]) for d in t["devices"]] ==
          [(str(NODES[i]), [f"process:{731 + i}"] if i < 4 else []) for i in range(8)])
    check("one group", [g["members"] for g in t["groups"]] == [[f"process:{p}" for p in PLACES]])
    p = t["groups"][0]["patterns"][0]
    check("pattern", (p["pattern"], p["degree"], p["declared"], p["observed"]) == ("tensor parallel", 4, True, True))
    check("what was not seen is said", p["not_seen"] and not p["against"])
    problems = {p["id"]: p for p in t["problems"]}
    check("off node", "none of the 4" in problems["off-device-node"]["text"])
    check("shared node", problems["shared-node"]["actors"] == ["process:731", "process:734"])
    check("apart", "3 of them with CPU and memory on different nodes" in problems["remote-memory"]["text"])
    check("unused", "4 of 8" in problems["unused-device"]["text"])
    check("path", t["paths"][0]["actors"] == ["process:810", "process:710", "process:720", "process:731", "npu:0"])
    check("doubled", any("twice" in u for u in t["not_observed"]))
    place = {p["process"]: p for p in t["placement"]}
    check("cosine", abs(place["process:733"]["cosine"] - .861) < .02 and place["process:731"]["cosine"] < .3)
    for form in ("text", "md", "json"):
        check(f"{form} twice", f.run("topology", "--format", form) == f.run("topology", "--format", form))
    check("report", "tensor parallel 4" in f.run("report") and "topology" in f.json("report"))


def order_of_the_file(folder):
    graph = serving()
    want = File(folder, graph).json("topology")
    for seed in range(5):
        random.Random(seed).shuffle(graph["nodes"])
        random.Random(seed).shuffle(graph["edges"])
        check("another order, another answer", File(folder, graph).json("topology") == want)


def budgets(folder):
    f = File(folder, serving())
    for n in (3000, 1500, 700, 300, 100):
        for form in ("text", "md"):
            text = f.run("topology", "--budget", str(n), "--format", form)
            check(f"{form} within {n} tokens: {len(text.encode())} bytes", len(text.encode()) <= 4 * n)
            check(f"{form} of {n} tokens says what is left out", n > 2500 or "to fit" in text or "cut to fit" in text)
    check("json within 1000 tokens", len(json.dumps(f.json("topology", "--budget", "1000"))) <= 4000)
    check("overview stays", "tensor parallel 4" in f.run("topology", "--budget", "300"))
    got = f.json("show", "entities", "--budget", "400")
    check("processes first", got and all(e["type"] in ("process", "npu", "container") for e in got))


def lists(folder):
    f = File(folder, serving())
    whole, pages = f.json("show", "edges"), []
    for after in range(0, len(whole) + 7, 7):
        pages += f.json("show", "edges", "--limit", "7", "--after", str(after))
    check("pages make the whole", pages == whole)
    check("name", {e["pid"] for e in f.json("show", "entities", "--type", "process", "--name", "vllm")} == {710, 810})
    check("container", {e["pid"] for e in f.json("show", "entities", "--type", "process", "--container", "docker-cac")}
          == {701, 710, 720, 731, 732, 733, 734})
    check("bytes", len(f.json("show", "edges", "--min-bytes", "30006")) == 12 and
          not f.json("show", "edges", "--min-bytes", "30007"))
    ways = f.json("show", "paths", "process:710", "process:810")
    check("way of data", [s["kind"] for s in ways["there"]["steps"]] == ["tcp"] and not ways["back"]["steps"])
    ways = f.json("show", "paths", "process:810", "npu:3")
    check("way of relations", [r["type"] for r in ways["relations"]] == ["flow", "parent_of", "parent_of", "access"])
    f.run("show", "paths", "process:810", "process:1", status=1)
    f.run("show", "paths", "process:810", status=2)
    focus = f.json("topology", "--focus", "process:731")
    check("focus", {"process:731", "process:732", "process:720"} <= {a["id"] for a in focus["actors"]} and
          "process:810" not in {a["id"] for a in focus["actors"]})
    f.run("topology", "--focus", "process:1", status=1)


def incomplete(folder):
    for name, graph in {"empty": {"nodes": [], "edges": []}, "nulls": serving(), "no edges": serving(),
                        "only edges": serving(), "circle": serving(),
                        "strangers": {"nodes": [process((n, 1, "a", "a")) for n in range(5, 15)], "edges": []}}.items():
        if name == "nulls":
            for e in graph["edges"]:
                if "numa_access_info" in e:
                    e["numa_access_info"] = None
            for n in graph["nodes"]:
                for key in ("cmdline", "name", "cpu_affinity", "cpu_set"):
                    if key in n:
                        n[key] = None
        elif name == "no edges":
            graph["edges"] = []
        elif name == "only edges":
            graph["nodes"] = []
        elif name == "circle":
            for n in graph["nodes"]:
                if n["entity_type"] == "ProcessEntity":
                    n["ppid"] = {600: 810, 799: 600}.get(n["pid"], n["ppid"])
        t = File(folder, graph).json("topology")
        check(f"{name}: says what it cannot tell", bool(t["not_observed"]))
        File(folder, graph).run("topology")
    graph = serving()
    graph["nodes"][4]["cmdline"] = graph["nodes"][4]["cmdline"].replace("size 4", "size 8")
    t = File(folder, graph).json("topology")
    check("declared 8, 4 are there", any(p["id"] == "not-as-declared" for p in t["problems"]))


def main():
    with tempfile.TemporaryDirectory(prefix="witty-topology.") as folder:
        for part in (served_model, order_of_the_file, budgets, lists, incomplete):
            part(folder)
    print("\n".join(failures) or "all as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
