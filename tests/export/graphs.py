"""Graphs to draw: one with names that would break each format, one of two hosts, one that is large."""
import json

# What ends, opens or reorders something in one format or another. Without newlines: those become blanks.
NASTY = [
    "</script><img src=x onerror=alert(1)>", '"];n9 -> n1 [label="', "end", "]]>", "&lt;b&gt;&amp;&#65;&quot;",
    "\\N\\G\\l\\", "%%{init: {\"theme\":\"dark\"}}%%", "`**markdown**`", "#quot;#35;", "ﬂ°lt¶ßb", 'style:x"#9;y',
    "--> |x| {{y}} ([z])", "<?xml version=\"1.0\"?>", "<!-- -- -->", "%name% $$x$$ @{shape: x}", "a;b c;1",
    "мир 世界 😀 e\u0301", "class n0 x", "click n0 call alert()", "\\\"", "'); DROP TABLE entity;--",
    "\u202e\u2066evil\u2069 gpj.exe\u200b", "tab\tand\nnewline\r", "\x01\x1b[31mred\x7f", "\ufffe\uffff\ufeffbom",
    ("\u05d0\u05d1 abc \u0627\u0644 \u202b" * 400)[:2000], "", " ", "x" * 5000, "null", "NaN", "graph",
]


def process(pid, name="p", ns="local", **more):
    return {"entity_namespace": ns, "entity_type": "ProcessEntity", "details": {}, "pid": pid, "start_ns": pid,
            "ppid": 0, "name": name, "cmdline": name + " --x", **more}


def host(name, ns="local"):
    return {"entity_namespace": ns, "entity_type": "HostEntity", "details": {}, "hostname": name}


def container(name, ns="local"):
    return {"entity_namespace": ns, "entity_type": "ContainerEntity", "details": {}, "container_id": "c" + name,
            "container_name": name, "container_type": "docker"}


def edge(edge_type, source, target, **more):
    return {"edge_type": edge_type, "weight": None, "source_node": source, "target_node": target, **more}


def flow(source, target, size, kind="tcp", **more):
    return edge("FlowEdge", source, target, kind=kind, bytes=size, messages=1 + size // 1000, **more)


def runs_in(p, c):
    return edge("RunOnEdge", p, c)


def graph(nodes, edges, window_ns=10 ** 10):
    return json.dumps({"nodes": nodes, "edges": edges,
                       "witty": {"schema_version": 1, "start_ns": 1700000000 * 10 ** 9, "window_ns": window_ns,
                                 "complete": True}})


def nasty():
    """A ring of processes with every such name, in containers with such names, on a host with one."""
    ps = [process(100 + i, name) for i, name in enumerate(NASTY)]
    boxes = [container(name or "?") for name in NASTY[:8]]
    edges = [flow(p, ps[(i + 1) % len(ps)], 1000 * (i + 1), NASTY[i % 7] or "x") for i, p in enumerate(ps)]
    edges += [runs_in(p, boxes[i % 8]) for i, p in enumerate(ps[:24])]
    return graph([host(NASTY[0]), *ps, *boxes], edges)


def two_hosts():
    """Two hosts with containers of one name, processes outside containers, a client and files."""
    nodes, edges = [], []
    outside = {"entity_namespace": "local", "entity_type": "SocketEntity", "details": {}, "socket_type": "TCP",
               "socket_addr": "192.0.2.9", "socket_port": 443, "external": True}
    ends = {}
    for ns in ("local", "10.0.0.2"):
        box = container("web", ns)
        ps = [process(10 + i, f"{'ab'[i % 2]}{i}", ns, cpu_ns=i * 10 ** 9) for i in range(6)]
        file = {"entity_namespace": ns, "entity_type": "FileEntity", "details": {}, "path": "/data", "inode": 1,
                "dev": "8:1", "fs_type": "ext4"}
        nodes += [host("host-" + ns, ns), box, *ps]
        edges += [runs_in(p, box) for p in ps[:3]]
        edges += [flow(ps[0], ps[1], 5000), flow(ps[1], ps[0], 70), flow(ps[0], ps[3], 10 ** 6, "unix"),
                  flow(ps[4], ps[3], 123456, "pipe"), edge("ParentOfEdge", ps[0], ps[1]),
                  edge("WriteToEdge", ps[3], file, bytes=4096, calls=4)]
        ends[ns] = ps
    edges += [flow(ends["local"][0], ends["10.0.0.2"][0], 10 ** 7), flow(outside, ends["local"][0], 300)]
    return graph(nodes, edges)


def large(n=300):
    """More than a picture holds."""
    ps = [process(1000 + i, f"worker{i}", cpu_ns=i) for i in range(n)]
    edges = [flow(p, ps[(i * 7 + 1) % n], 100 + i * i) for i, p in enumerate(ps) if (i * 7 + 1) % n != i]
    edges += [flow(ps[i], ps[(i * 11 + 5) % n], 10 + i, "pipe") for i in range(n) if (i * 11 + 5) % n != i]
    return graph([host("big"), *ps], edges)
