#!/usr/bin/env python3
"""test_merge.py - three hosts, recorded apart, become one graph: WITTY names the program. Needs root.

Network namespaces with links between them stand for hosts. Each runs workers that know what they sent to whom; each is
recorded by itself, without any knowledge of the others. After `merge`, flows between processes are exactly those
that the workers tell of.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

from recorder import PATIENCE_S, WITTY, intervals, until

HOSTS = ["alpha", "beta", "gamma"]
VIRTUAL = "10.88.9.9"  # an address that alpha's kernel rewrites to gamma's
TAG = f"w{os.getpid()}"
failures = []

# One worker. It tells its pid when others may come, then waits for each next line: "go" begins, "end" ends. "done": it sent
# all that it had to, and was answered, or took all that it was to take.
WORKER = r"""
import json, os, socket, sys, threading, time
job = json.loads(sys.argv[1])

def tell(what):
    sys.stdout.write("%s\n" % what); sys.stdout.flush()

def answer(c, factor):
    with c:
        while True:
            d = c.recv(65536)
            if not d:
                return
            c.sendall(b"a" * (len(d) * factor))

def tcp_server(port, factor):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port)); s.listen(16)
    for _ in range(2):
        if os.fork() == 0:
            while True:
                threading.Thread(target=answer, args=(s.accept()[0], factor), daemon=True).start()

def udp_server(s, rounds):
    for _ in range(rounds):
        s.recvfrom(65536)
    tell("done")

if job["kind"] == "tcp_server":
    tcp_server(job["port"], job["factor"])
elif job["kind"] == "udp_server":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", job["port"]))
    threading.Thread(target=udp_server, args=(s, job["rounds"]), daemon=True).start()
tell(os.getpid())
sys.stdin.readline()
if job["kind"] == "tcp_client":
    for _ in range(job["connections"]):
        c = socket.create_connection((job["to"], job["port"])); c.settimeout(120)
        for _ in range(job["rounds"]):
            c.sendall(b"q" * job["bytes"])
            left = job["bytes"] * job["factor"]
            while left:
                left -= len(c.recv(left))
        if job.get("lasting"):
            job.setdefault("open", []).append(c)
        else:
            c.close()
elif job["kind"] == "udp_client":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(job["rounds"]):
        s.sendto(b"d" * job["bytes"], (job["to"], job["port"])); time.sleep(0.002)
tell("done")
sys.stdin.readline()
"""


def check(what, good):
    if not good:
        failures.append(what)
        print("FAILED", what)


def run(*words, **more):
    return subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)


class Net:
    """The hosts, each with a link to each other one; gone at the end."""

    def __enter__(self):
        self.names = {h: f"{TAG}{h}" for h in HOSTS}
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def link(self, i, k):
        for one, other in ((i, k), (k, i)):
            name = self.names[HOSTS[one]]
            run("ip", "-n", name, "addr", "add", f"10.88.0.{one + 1}/32", "dev", f"to{other}")
            run("ip", "-n", name, "link", "set", f"to{other}", "up")
        for one, other in ((i, k), (k, i)):
            run("ip", "-n", self.names[HOSTS[one]], "route", "add", f"10.88.0.{other + 1}/32", "dev", f"to{other}",
                "src", f"10.88.0.{one + 1}")

    def make(self):
        for name in self.names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for i, host in enumerate(HOSTS):
            for k in range(i):
                run("ip", "link", "add", f"to{k}", "netns", self.names[host], "type", "veth", "peer", "name", f"to{i}",
                    "netns", self.names[HOSTS[k]])
                self.link(i, k)
        alpha = self.names["alpha"]
        run("ip", "-n", alpha, "route", "add", VIRTUAL + "/32", "dev", "to2", "src", "10.88.0.1")
        rules = ("table ip n {\n chain out {\n  type nat hook output priority -100;\n"
                 f"  ip daddr {VIRTUAL} tcp dport 80 dnat to 10.88.0.3:7003\n }}\n}}\n")
        subprocess.run(["ip", "netns", "exec", alpha, "nft", "-f", "-"], input=rules, check=True, text=True)

    def __exit__(self, *what):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


class Worker:
    all = []

    def __init__(self, net, host, **job):
        self.host = host
        self.p = subprocess.Popen(["ip", "netns", "exec", net.names[host], sys.executable, "-c", WORKER, json.dumps(job)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        Worker.all.append(self)
        self.pid = int(self.p.stdout.readline())

    def tell(self, word):
        self.p.stdin.write(word + "\n")
        self.p.stdin.flush()

    def wait_done(self):
        said = self.p.stdout.readline()
        assert said == "done\n", f"worker {self.p.args[-1]}: {said}"

    @classmethod
    def end_all(cls):
        for w in cls.all:
            try:
                os.killpg(w.p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            w.p.wait()


def workers(net):
    """Servers, then clients with the expected flows: (from, to or host of a server's child, kind): bytes."""
    servers = [Worker(net, "alpha", kind="tcp_server", port=7001, factor=2),
               Worker(net, "beta", kind="udp_server", port=7002, rounds=50),
               Worker(net, "gamma", kind="tcp_server", port=7003, factor=3)]
    clients = [Worker(net, "beta", kind="tcp_client", to="10.88.0.1", port=7001, factor=2, connections=4, rounds=20,
                      bytes=700, lasting=True),
               Worker(net, "gamma", kind="tcp_client", to="10.88.0.1", port=7001, factor=2, connections=1, rounds=30,
                      bytes=3000, lasting=True),
               Worker(net, "gamma", kind="udp_client", to="10.88.0.2", port=7002, rounds=50, bytes=400),
               Worker(net, "alpha", kind="tcp_client", to=VIRTUAL, port=80, factor=3, connections=3, rounds=10,
                      bytes=500, lasting=True),
               # Twice the same way within the recording, by new connections.
               Worker(net, "alpha", kind="tcp_client", to="10.88.0.3", port=7003, factor=3, connections=2, rounds=7,
                      bytes=110)]
    return servers, clients


def truth(servers, clients):
    """Sums between a client and all processes of a server; which child answers is up to the kernel."""
    alpha, beta, gamma = (s.pid for s in servers)
    b, g, u, v, a = (c.pid for c in clients)
    return {(b, alpha, "tcp"): 4 * 20 * 700, (alpha, b, "tcp"): 4 * 20 * 1400,
            (g, alpha, "tcp"): 30 * 3000, (alpha, g, "tcp"): 30 * 6000, (u, beta, "udp"): 50 * 400,
            (v, gamma, "tcp"): 3 * 10 * 500, (gamma, v, "tcp"): 3 * 10 * 1500,
            (a, gamma, "tcp"): 2 * 7 * 110, (gamma, a, "tcp"): 2 * 7 * 330}


def show(path, what, *more):
    return json.loads(run(WITTY, "show", path, what, "--format", "json", *more).stdout)


def record(net, folder, host, of):
    mine = [w for w in of if w.host == host]
    path = os.path.join(folder, host + ".wpdb")
    words = [WITTY, "record", "-d", "10m", "-i", "500ms", "--netns", str(mine[0].pid), "--host-id", host, "-o", path]
    for w in mine:
        words += ["-p", str(w.pid)]
    return path, subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def observe(net, folder):
    servers, clients = workers(net)
    recorders = [record(net, folder, h, servers + clients) for h in HOSTS]
    try:
        # All are looked at before the first byte, and after the last one.
        for path, p in recorders:
            until(f"{path} begins", lambda path=path: intervals(path) >= 1, p)
        for c in clients:
            c.tell("go")
        for w in [*clients, servers[1]]:
            w.wait_done()
        for path, p in recorders:
            n = intervals(path)
            until(f"{path} goes on", lambda path=path, n=n: intervals(path) >= n + 2, p)
    finally:
        for _, p in recorders:
            if p.poll() is None:
                p.terminate()
        for path, p in recorders:
            said = "" if p.stderr.closed else p.communicate(timeout=PATIENCE_S)[1]
            check(f"{path}: {said}", p.returncode == 0)
    expected = truth(servers, clients)
    return [path for path, _ in recorders], expected


def parents_of(processes):
    return {(e["id"].split("@")[-1], e["pid"]): e["ppid"] for e in processes}


def ends_of(flow, parent, roots):
    """(source, target, kind) of a flow over a network, else None; what a server's child moves is the server's."""
    pair = []
    for end in (flow["source"], flow["target"]):
        pid = end["pid"]
        if pid is not None and pid not in roots:
            pid = parent.get((end["id"].split("@")[-1], pid), pid)
        pair.append(pid if pid is not None else end["id"])
    return (*pair, flow["kind"]) if pair[0] != pair[1] and flow["kind"] in ("tcp", "udp") else None


def compare(path, expected):
    roots = {pid for pair in expected for pid in pair[:2]}
    parent = parents_of(show(path, "entities", "--type", "process"))
    found = {}
    for f in show(path, "flows"):
        key = ends_of(f, parent, roots)
        if key:
            sent, received = f["bytes_sent"], f["bytes_received"]
            check(f"{key}: both ends counted {sent} {received}", sent == received == f["bytes"])
            found[key] = found.get(key, 0) + f["bytes"]
    right = {k for k in found if found[k] == expected.get(k)}
    check(f"flows found {found}\nexpected {expected}", found == expected)
    recall, precision = len(right) / len(expected), len(right) / max(1, len(found))
    print(f"| flows between hosts | {len(expected)} | recall {recall:.2f} | precision {precision:.2f} |")
    check("recall", recall == 1)
    check("precision", precision == 1)


def main():
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return 77
    with tempfile.TemporaryDirectory() as folder, Net() as net:
        try:
            paths, expected = observe(net, folder)
        finally:
            Worker.end_all()
        merged = os.path.join(folder, "all.wpdb")
        done = run(WITTY, "merge", *paths, "-o", merged)
        print(done.stderr.strip())
        check("no end is left over", "0 ends with the other end elsewhere, 0 ambiguous" in done.stderr)
        compare(merged, expected)
        # The order of files, and the format in between, make no difference.
        again, text = os.path.join(folder, "again.json"), os.path.join(folder, "beta.json")
        run(WITTY, "convert", paths[1], text)
        run(WITTY, "merge", paths[2], text, paths[0], "-o", again)
        compare(again, expected)
        # Without gamma its ends stay addresses.
        two = os.path.join(folder, "two.wpdb")
        run(WITTY, "merge", paths[0], paths[1], "-o", two)
        flows = show(two, "flows")
        check("without gamma", any(f["source"]["pid"] is None for f in flows) and any(
            f["source"]["pid"] and f["target"]["pid"] for f in flows))
        for words in ([paths[0], paths[0]], [paths[0], merged], ["a=" + paths[0], "a=" + paths[1]], [paths[0]]):
            bad = subprocess.run([WITTY, "merge", *words, "-o", os.path.join(folder, "x.wpdb")], capture_output=True,
                                 text=True, check=False)
            check(f"{words}: {bad.stderr}", bad.returncode in (1, 2) and bad.stderr.startswith("error: "))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
