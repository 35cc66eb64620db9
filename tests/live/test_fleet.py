#!/usr/bin/env python3
"""test_fleet.py - three hosts, three brokers, two processes of a fleet, and what is killed: WITTY names the program. Needs root.

Network namespaces stand for hosts, as in test_merge.py. Each has traffic with the others that is known to the byte, a rank of
a job, an agent, and a node of a NATS cluster. The fleet's graph has to be exactly what the workers tell of. Then the leader
of the stream, a process of the fleet and an agent are killed, and what the brokers hold, as told by a client that shares
no code with the program, has to be what the fleet stored: each message once.
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile

import test_merge
from nats_cluster import Client, Cluster, until
from test_merge import HOSTS, WITTY, Net, Worker, check, ends_of, failures, parents_of, run, truth, workers

ADDRESS = {h: f"10.88.0.{i + 1}" for i, h in enumerate(HOSTS)}
STREAM = "job"
API = 18091

# A rank: it computes, tells the next one, and waits for the one before. The slow one computes four times as long.
RANK = r"""
import os, socket, sys, time
rank, hosts, ms = int(os.environ["RANK"]), sys.argv[1].split(","), float(sys.argv[2])
print(os.getpid(), flush=True)
l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(("0.0.0.0", 29500)); l.listen(4)
sys.stdin.readline()
while True:
    try:
        right = socket.create_connection((hosts[(rank + 1) % len(hosts)], 29500)); break
    except OSError:
        time.sleep(0.05)
left = l.accept()[0]
def turn():
    right.sendall(b"g" * 4096)
    n = 4096
    while n:
        d = left.recv(n)
        if not d: sys.exit()
        n -= len(d)
while True:
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass
    for _ in hosts:
        turn()
"""


class Rank(Worker):
    """A rank of a job over all hosts."""

    def __init__(self, net, host, number, ms):
        self.host = host
        env = dict(os.environ, RANK=str(number), WORLD_SIZE=str(len(HOSTS)), MASTER_ADDR=ADDRESS["alpha"], MASTER_PORT="29400")
        self.p = subprocess.Popen(["ip", "netns", "exec", net.names[host], sys.executable, "-c", RANK,
                                   ",".join(ADDRESS.values()), str(ms)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, start_new_session=True, env=env)
        Worker.all.append(self)
        self.pid = int(self.p.stdout.readline())


class Daemon:
    """An agent or a process of the fleet, in the namespace of its host."""
    all = []

    def __init__(self, net, folder, host, port, name, *words):
        self.host, self.port, self.netns, self.words = host, port, net.names[host], words
        self.log = os.path.join(folder, name + ".log")
        self.start()
        Daemon.all.append(self)

    def start(self):
        with open(self.log, "a") as log:
            # Unlike `ip netns exec`, this leaves /sys as it is, where the probe of UDP finds the control groups.
            self.p = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.netns}", WITTY, *self.words, "--listen", f"127.0.0.1:{self.port}",
                                       "--keep-privileges"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def get(self, path):
        """@return the JSON, or None while it does not answer"""
        got = subprocess.run(["ip", "netns", "exec", self.netns, "curl", "-s", "-f", "-m", "30",
                              f"http://127.0.0.1:{self.port}{path}"], capture_output=True, text=True, check=False)
        assert self.p.poll() is None, f"ended by itself: {open(self.log).read()[-2000:]}"
        return json.loads(got.stdout) if got.returncode == 0 else None

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()

    def end(self):
        self.p.terminate()
        check(f"{self.words[0]} ends in order: {open(self.log).read()[-2000:]}", self.p.wait(120) == 0)

    @classmethod
    def end_all(cls):
        for d in cls.all:
            if d.p.poll() is None:
                d.kill()


def agents(net, folder, broker, of):
    ret = {}
    for i, host in enumerate(HOSTS):
        mine = [w for w in of if w.host == host]
        words = ["serve", "--no-lock", "-i", "1s", "--window", "10m", "--keep", "10m", "--host-id", host, "--netns", str(mine[0].pid),
                 "--publish", broker, "--publish-interval", "1s", "--state-dir", os.path.join(folder, "state-" + host)]
        for w in mine:
            words += ["-p", str(w.pid)]
        ret[host] = Daemon(net, folder, host, 18095 + i, "agent-" + host, *words)
    return ret


def fleets(net, folder, broker):
    words = ["fleet", "--from", broker, "--store", os.path.join(folder, "fleet.db"), "-i", "1s", "--replicas", "3", "--ack-wait", "2s",
             "--stale", "10m"]
    return [Daemon(net, folder, h, API, "fleet-" + h, *words) for h in ("alpha", "gamma")]


def pages(fleet, path):
    """All items of a list, page after page. @return None until there is a graph"""
    items, at = [], path + "limit=1000"
    while at:
        page = fleet.get(at)
        if page is None:
            return None
        items += page["items"]
        at = page.get("next") and f"{path}limit=1000&cursor={page['next']}"
    return items


def flows_of(fleet, roots):
    processes, flows = pages(fleet, "/api/v1/entities?type=process&"), pages(fleet, "/api/v1/flows?")
    found = {}
    if processes is None or flows is None:
        return found
    parent = parents_of(processes)
    # The ranks go on all the time: of them only that they are joined is known.
    for f in flows:
        key = ends_of(f, parent, roots)
        if key:
            found[key] = found.get(key, 0) + f["bytes"]
    return found


def compare(fleet, expected, ranks):
    ring = {(ranks[i].pid, ranks[(i + 1) % len(ranks)].pid, "tcp") for i in range(len(ranks))}
    last = {}
    roots = {pid for pair in [*expected, *ring] for pid in pair[:2]}

    def settled():
        last["found"] = flows_of(fleet, roots)
        rest = {k: v for k, v in last["found"].items() if k not in ring}
        return rest == expected and ring <= set(last["found"])
    try:
        until(settled, "flows as the workers tell", 180)
    except AssertionError:
        pass
    found = last["found"]
    right = {k for k in found if found[k] == expected.get(k)} | (ring & set(found))
    wanted = set(expected) | ring
    recall, precision = len(right) / len(wanted), len(right) / max(1, len(found))
    print(f"| flows between hosts | {len(wanted)} | recall {recall:.2f} | precision {precision:.2f} |")
    check(f"recall; found {found}\nexpected {expected}, {ring}", recall == 1)
    check("precision", precision == 1)


def hosts(fleet):
    got = fleet.get("/api/v1/fleet")
    return {h["host"]: h for h in got["hosts"]} if got else {}


def go_on(fleet, names, more=3):
    """Each of the hosts is heard of further."""
    before = {n: hosts(fleet)[n] for n in names}

    def on(now, then):
        return now["run"] != then["run"] or now["seq"] >= then["seq"] + more
    until(lambda: (lambda now: all(n in now and on(now[n], before[n]) for n in names))(hosts(fleet)), f"news of {names}", 180)


def asked(net, host, code):
    """Run by a Python on that host."""
    return subprocess.run(["ip", "netns", "exec", net.names[host], sys.executable, "-c", code], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, check=False)


def published(net, cluster):
    """What the brokers hold: {(host, run): {numbers}}; and how many messages that is."""
    host = next(iter(cluster.nodes))
    code = ("import sys, json; sys.path.insert(0, %r)\n"
            "from nats_cluster import Client\nc = Client(%r)\ns = c.stream(%r)['state']\n"
            "print(json.dumps([c.message(%r, n)['message']['hdrs'] for n in range(s['first_seq'], s['last_seq'] + 1)]))"
            % (os.path.dirname(os.path.abspath(__file__)), "127.0.0.1", STREAM, STREAM))
    # Brokers that just elect a leader have no answer.
    done = until(lambda: (lambda d: d if d.returncode == 0 else None)(asked(net, host, code)), "what the brokers hold", 120)
    headers = json.loads(done.stdout)
    ret = {}
    for h in headers:
        # Base64 of "NATS/1.0\r\nNats-Msg-Id: HOST/RUN/SEQ\r\n\r\n".
        name, number, seq = re.search(r"Nats-Msg-Id: ([^/]*)/([^/]*)/(\d+)", __import__("base64").b64decode(h).decode()).groups()
        ret.setdefault((name, number), []).append(int(seq))
    return ret


def stored(folder):
    with sqlite3.connect(os.path.join(folder, "fleet.db"), timeout=90) as db:
        rows = db.execute("SELECT host.name, run.run, first, last FROM taken JOIN run ON taken.run = run.id"
                          " JOIN host ON run.host = host.id ORDER BY 1, 2, 3").fetchall()
        counted = db.execute("SELECT sum(messages) FROM minute").fetchone()[0]
    ret = {}
    for name, number, first, last in rows:
        ret.setdefault((name, number), []).extend(range(first, last + 1))
    return ret, counted


def leader(net, host):
    code = ("import sys; sys.path.insert(0, %r)\nfrom nats_cluster import Client\n"
            "print(Client('127.0.0.1').stream(%r).get('cluster', {}).get('leader', ''))"
            % (os.path.dirname(os.path.abspath(__file__)), STREAM))
    return asked(net, host, code).stdout.strip()


def kill_them(net, cluster, agent, fleet):
    first = until(lambda: leader(net, "alpha"), "a leader of the stream")
    print(f"leader of the stream: {first}, killed")
    cluster.kill(first)
    go_on(fleet[0], HOSTS)
    fleet[1].kill()
    go_on(fleet[0], HOSTS)
    agent["beta"].kill()
    agent["beta"].start()
    go_on(fleet[0], HOSTS, 2)
    # The one that is left goes, and the other comes back, to what the first one stored.
    fleet[0].kill()
    fleet[1].start()
    until(lambda: hosts(fleet[1]), "the fleet's second process, again")
    go_on(fleet[1], HOSTS, 2)


def slow_rank(fleet, ranks):
    """The findings name the slow rank, and it is on host 2."""
    wanted = f"process:{ranks[1].pid}@beta"

    def named():
        got = fleet.get("/api/v1/findings")
        return [f for f in (got or {}).get("analysis", []) if f["rule"] in ("uneven-work", "straggler") and
                f["root"] and (f["root"] == wanted or f["root"].endswith("@beta") and str(ranks[1].pid) in f["title"])]
    try:
        finding = until(named, f"a finding that names {wanted}", 180)[0]
        print(f"slow rank: {finding['rule']}: {finding['title']}")
    except AssertionError as e:
        check(f"{e}: {json.dumps(fleet.get('/api/v1/findings'))[:3000]}", False)


def main():
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return 77
    with tempfile.TemporaryDirectory() as folder, Net() as net:
        servers, clients = workers(net)
        ranks = [Rank(net, h, i, 80 if h == "beta" else 20) for i, h in enumerate(HOSTS)]
        try:
            with Cluster(folder, ADDRESS, net.names) as cluster:
                broker = cluster.urls(STREAM)
                fleet = fleets(net, folder, broker)
                agent = agents(net, folder, broker, servers + clients + ranks)
                until(lambda: set(hosts(fleet[0])) == set(HOSTS), "all hosts", 180)
                for c in clients + ranks:
                    c.tell("go")
                for c in clients:
                    c.wait_done()
                compare(fleet[0], truth(servers, clients), ranks)
                slow_rank(fleet[0], ranks)
                kill_them(net, cluster, agent, fleet)
                # All is told, all is fetched; then nothing is published any more.
                until(lambda: all((a.get("/subscribers") or {"content": {"subscribers": [{"waiting_bytes": 1}]}})["content"]["subscribers"][-1]
                                  .get("waiting_bytes") == 0 for a in agent.values()), "spools are empty")
                for a in agent.values():
                    a.end()
                until(lambda: (fleet[1].get("/api/v1/fleet") or {}).get("pending") == 0, "nothing pending")
                there = published(net, cluster)

                def same():
                    have, counted = stored(folder)
                    return {k: sorted(v) for k, v in have.items()} == {k: sorted(v) for k, v in there.items()}, have, counted
                try:
                    until(lambda: same()[0], "the store has what the brokers have", 120)
                except AssertionError:
                    pass
                good, have, counted = same()
                total = sum(len(v) for v in there.values())
                print(f"| messages | {total} published in {len(there)} runs | {sum(len(v) for v in have.values())} stored | "
                      f"{counted} counted | {fleet[1].get('/api/v1/fleet')['duplicates']} known already |")
                check(f"stored {have}\npublished {there}", good)
                check("none is counted twice", counted == total)
                for k, v in there.items():
                    check(f"{k} has gaps: {sorted(v)}", sorted(v) == list(range(1, len(v) + 1)))
                check("runs", {h for h, _ in there} == set(HOSTS) and len(there) == 4)
                fleet[1].end()
        finally:
            Worker.end_all()
            Daemon.end_all()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
