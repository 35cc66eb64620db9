#!/usr/bin/env python3
"""test_old_routes.py - the routes of openEuler's interface by a client that knows nothing but its description:
shapes, names, status codes, and that misses are misses."""
import json
import re
import tempfile

from server import Server, run

TYPES = {"ProcessEntity": {"pid", "ppid", "name", "cmdline"},
         "ThreadEntity": {"tid", "process", "name"},
         "SocketEntity": {"socket_type", "socket_addr", "socket_port", "socket_thread", "socket_process"},
         "NumaEntity": {"numa_id", "cpu_set", "memory_set", "numa_stats", "mem_info", "distance_to_all_numa"},
         "NumaSetEntity": {"numa_id_str"},
         "ContainerEntity": {"container_id", "container_name", "container_type"}}
EDGES = {"OwnEdge": set(), "BelongEdge": set(), "RunOnEdge": set(), "HostEdge": set(), "AccessEdge": set(),
         "NumaSetContainEdge": set(), "AffinitativeToNuma": set(),
         "SendToSocketEdge": {"connection_type", "data_flow"},
         "NumaAccessEdge": {"numa_access_info"}, "AccessWithProcStatusEdge": {"proc_status"}}
OLD_TYPES = {"ConsoleGraphSubscriber", "NaiveMemoryStorageGraphSubscriber", "FileGraphDescSubscriber",
             "FileJsonGraphSubscriber", "HttpPostGraphSubscriber"}


def text_of(path):
    """What is in it so far."""
    try:
        with open(path) as f:
            return f.read()
    except FileNotFoundError:
        return ""


def envelope(answer):
    assert answer.status == 200, (answer.status, answer.body[:300])
    assert answer.headers["content-type"].startswith("application/json")
    document = answer.json()
    assert set(document) == {"env", "content"}, document.keys()
    assert set(document["env"]) == {"local_ip", "hostname", "machine_id"}
    assert all(isinstance(v, str) and v for v in document["env"].values())
    return document["content"]


def root():
    content = envelope(S.get("/"))
    assert content["service"] == "Witty Profiler Topology API" and isinstance(content["version"], str)
    for route in ("GET /help", "GET /graph", "GET /compressed_graph", "GET /status", "POST /control/start",
                  "POST /control/stop", "POST /control/trigger", "POST /control/clear", "POST /subscriber",
                  "DELETE /subscriber/{name}", "GET /subscribers"):
        assert isinstance(content["endpoints"][route], str), route


def help_text():
    answer = S.get("/help")
    lines = answer.body.decode().splitlines()
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    assert "Usage:" in lines
    usage = lines[lines.index("Usage:") + 1:]
    assert all(re.fullmatch(r"(GET|POST|DELETE) /\S* - .+", line) for line in usage), usage
    assert any(line.startswith("GET /graph - ") for line in usage)


def check_node(node):
    assert list(node)[:3] == ["entity_namespace", "entity_type", "details"] and node["details"] == {}
    assert TYPES.get(node["entity_type"], set()) <= set(node), node


def graph():
    S.until(lambda: len(S.get("/graph").content["nodes"]) > 20, "some nodes")
    content = envelope(S.get("/graph"))
    assert list(content) == ["nodes", "edges"]
    for node in content["nodes"]:
        check_node(node)
    for edge in content["edges"]:
        assert list(edge)[:4] == ["edge_type", "weight", "source_node", "target_node"]
        check_node(edge["source_node"])
        check_node(edge["target_node"])
        assert EDGES.get(edge["edge_type"], set()) <= set(edge), edge
    kinds = {n["entity_type"] for n in content["nodes"]}
    assert {"ProcessEntity", "ThreadEntity", "NumaEntity"} <= kinds, kinds
    own = [e for e in content["edges"] if e["edge_type"] == "OwnEdge"]
    assert own and all(e["source_node"]["entity_type"] in ("ProcessEntity", "ThreadEntity") for e in own)
    threads = [n for n in content["nodes"] if n["entity_type"] == "ThreadEntity"]
    assert all(t["process"]["entity_type"] == "ProcessEntity" for t in threads)


def compressed():
    answer = S.get("/compressed_graph")
    lines = answer.body.decode().split("\n")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    counts = re.fullmatch(r"Graph with (\d+) nodes and (\d+) edges", lines[0])
    assert counts and lines[1] == "Nodes:"
    edges = lines.index("Edges:")
    assert edges - 2 == int(counts[1]) and len(lines) - edges - 1 <= int(counts[2])
    assert all(line.startswith("  - ") for line in lines[2:edges])
    assert all(line.startswith("  - relation: ") for line in lines[edges + 1:])
    assert any(re.fullmatch(r"  - Thread\(pid=\d+,tid=\d+,name=.*\)", line) for line in lines)
    assert any(re.fullmatch(r"  - ProcessEntity\(pid=\d+,ppid=-?\d+,name=.*,cmdline=.*\)", line) for line in lines)
    assert any(re.fullmatch(r"  - \[Numa 0\]\(cpus=.*,mems=.*,distance_to_all_numa=\{'0': 10.*\}\)", line) for line in lines)
    assert any(re.fullmatch(r"  - relation: Process\(pid=\d+,ppid=-?\d+\) Own Thread\(tid=\d+\)", line) for line in lines)


def status():
    content = envelope(S.get("/status"))
    assert content["running"] is True
    assert content["graph"]["node_count"] > 0 and content["graph"]["edge_count"] > 0
    assert content["collectors"]["count"] == len(content["collectors"]["types"]) > 0
    assert content["subscribers"]["count"] == len(content["subscribers"]["names"]) >= 1


def control(what, message):
    content = envelope(S.ask("POST", "/control/" + what))
    assert content["status"] == "success" and content["message"] == message, content
    return content


def controls():
    """Not counted as the older tool does: two starts and a stop are a stop."""
    control("start", "Collection started")
    control("start", "Collection started")
    control("stop", "Collection stopped")
    assert S.get("/status").content["running"] is False
    control("start", "Collection started")
    assert S.get("/status").content["running"] is True
    control("clear", "Collected data cleared")


def trigger():
    before = S.get("/status").content["intervals"]
    content = control("trigger", "Collection triggered")
    assert content["graph_summary"].startswith("Graph with "), content
    assert S.get("/status").content["intervals"] > before


def paused():
    """While it is paused a trigger still collects, and nothing else does."""
    control("stop", "Collection stopped")
    first = S.get("/status").content["intervals"]
    control("trigger", "Collection triggered")
    assert first < S.get("/status").content["intervals"] <= first + 2
    control("start", "Collection started")


def subscribers():
    content = envelope(S.get("/subscribers"))
    assert content["count"] == len(content["subscribers"])
    assert OLD_TYPES <= set(content["available_types"])
    assert all({"name", "type", "expected_update_interval"} <= set(s) for s in content["subscribers"])
    added = envelope(S.ask("POST", "/subscriber", {"subscriber_type": "FileJsonGraphSubscriber", "name": "one",
                                                   "dump_path": "out.json", "mode": "a", "async_notify": True,
                                                   "expected_update_interval": 0.2}))
    assert added["status"] == "success" and added["subscriber_name"] == "one" and added["message"]
    path = OUT + "/out.json"
    S.until(lambda: text_of(path).count("\n") >= 2, "two lines of graphs")
    with open(path) as f:
        document = json.loads(f.readline())
    assert list(document) == ["nodes", "edges"] and document["nodes"]
    again = S.ask("POST", "/subscriber", {"subscriber_type": "FileGraphDescSubscriber", "name": "one",
                                          "dump_path": "out.txt", "mode": "w"})
    assert again.status == 200
    S.until(lambda: text_of(OUT + "/out.txt").startswith("Graph with "), "the text")
    named = [s for s in S.get("/subscribers").content["subscribers"] if s["name"] == "one"]
    assert [s["type"] for s in named] == ["FileGraphDescSubscriber"]
    own = envelope(S.ask("POST", "/subscriber", {"subscriber_type": "NaiveMemoryStorageGraphSubscriber"}))
    assert re.fullmatch(r"NaiveMemoryStorageGraphSubscriber_[0-9a-f]{8}", own["subscriber_name"])
    assert envelope(S.ask("DELETE", "/subscriber/one"))["status"] == "success"
    assert S.ask("DELETE", "/subscriber/" + own["subscriber_name"]).status == 200
    assert S.ask("DELETE", "/subscriber/one").status == 404


def wrong_subscribers():
    for body in ("", "{", "[]", "{}", '{"subscriber_type":"Nobody"}', '{"subscriber_type":"MongoDBGraphSubscriber"}',
                 '{"subscriber_type":"ConsoleGraphSubscriber","nonsense":1}',
                 '{"subscriber_type":"ConsoleGraphSubscriber","expected_update_interval":"x"}',
                 '{"subscriber_type":"ConsoleGraphSubscriber","name":"../x"}',
                 '{"subscriber_type":"ConsoleGraphSubscriber"} x'):
        answer = S.ask("POST", "/subscriber", body)
        assert answer.status == 400 and isinstance(answer.json()["detail"], str), (body, answer.status)


def misses():
    for path in ("/nothing", "/graph/", "/control", "/subscriber/", "/GRAPH", "//graph"):
        answer = S.get(path)
        assert answer.status == 404 and answer.json() == {"detail": "Not Found"}, (path, answer.status)
    answer = S.ask("POST", "/graph")
    assert answer.status == 405 and answer.json() == {"detail": "Method Not Allowed"}
    assert answer.headers["allow"] == "GET"


with tempfile.TemporaryDirectory() as OUT, Server("--output-dir", OUT) as S:
    run([root, help_text, graph, compressed, status, controls, trigger, paused, subscribers, wrong_subscribers,
         misses])
