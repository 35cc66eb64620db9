#!/usr/bin/env python3
"""Brokers of a fleet: Kafka by librdkafka's own test cluster, and what both backends have in common. WITTY names the program,
KAFKA_MOCK the cluster; empty when the program was built without Kafka."""
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import tempfile
import time

import nats_keys
from server import LONG, Server, WITTY, free_port, run

MOCK = os.environ.get("KAFKA_MOCK", "")


class Fleet:
    """A process of a fleet, on a free port."""

    def __init__(self, folder, address, *options):
        self.args = [WITTY, "fleet", "--from", address, "--store", folder + "/fleet.db", "-l", "127.0.0.1:0", "-i", "300ms",
                     "--port-file", folder + "/addr", "--keep-privileges", *options]
        self.folder = folder

    def __enter__(self):
        if os.path.exists(self.folder + "/addr"):
            os.unlink(self.folder + "/addr")
        self.log = open(self.folder + "/log", "w+")
        self.p = subprocess.Popen(self.args, stdout=self.log, stderr=self.log)
        self.until(lambda: os.path.exists(self.folder + "/addr") and open(self.folder + "/addr").read().endswith("\n"), "it starts")
        self.port = int(open(self.folder + "/addr").read().rsplit(":", 1)[1])
        return self

    def __exit__(self, *what):
        self.p.terminate()
        try:
            status = self.p.wait(LONG)
        except subprocess.TimeoutExpired:
            self.p.kill()
            status = self.p.wait()
        self.log.seek(0)
        if what[0] is None:
            assert status == 0, f"{status}: {self.log.read()}"
        else:
            print(self.log.read()[-3000:])
        self.log.close()

    def until(self, holds, what, seconds=LONG):
        end = time.monotonic() + seconds
        while not (got := self.asked(holds)):
            assert self.p.poll() is None, f"the fleet ended: {open(self.folder + '/log').read()}"
            assert time.monotonic() < end, f"not within {seconds} s: {what}; {self.fleet() if hasattr(self, 'port') else ''}"
            time.sleep(0.05)
        return got

    @staticmethod
    def asked(holds):
        try:
            return holds()
        except ConnectionError:
            return None

    def ask(self, path):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        c.request("GET", path)
        raw = c.getresponse()
        body = raw.read()
        c.close()
        return raw.status, body

    def fleet(self):
        status, body = self.ask("/api/v1/fleet")
        assert status == 200, body
        return json.loads(body)

    def seq(self, host="host-1"):
        return next((h["seq"] for h in self.fleet()["hosts"] if h["host"] == host), 0)


def ranges(folder):
    with sqlite3.connect(folder + "/fleet.db") as db:
        return db.execute("SELECT first, last FROM taken JOIN run ON run.id = taken.run ORDER BY run.id, first").fetchall()


def agent(address):
    return Server("--publish", address, "--publish-interval", "300ms", "--host-id", "host-1")


def kafka():
    """An agent publishes, a fleet fetches; another process of the group goes on where the first one ended."""
    if not MOCK:
        print("SKIP kafka: built without it")
        return
    mock = subprocess.Popen([MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        address = f"kafka://{mock.stdout.readline().strip()}/job"
        with tempfile.TemporaryDirectory() as folder:
            with agent(address) as s:
                # librdkafka's cluster waits for members that have left until their time is up.
                with Fleet(folder, address, "--ack-wait", "6s") as f:
                    f.until(lambda: f.seq() >= 4, "messages come")
                    f.until(lambda: json.loads(f.ask("/api/v1/summary")[1]).get("entities", {}).get("host") == 1, "its graph")
                with Fleet(folder, address) as f:
                    told = s.get("/subscribers").content["subscribers"][-1]
                    assert told["dropped"] == 0 and told["delivered"] >= 4, told
                    f.until(lambda: f.seq() >= told["delivered"] + 2, "the second one goes on")
                    assert f.fleet()["hosts"][0]["missing"] == 0
            got = ranges(folder)
            assert len(got) == 1 and got[0][0] == 1, got
    finally:
        mock.stdin.close()
        mock.wait(LONG)


def nats_away():
    """The broker is away, and so is the fleet: what is spooled meanwhile arrives, in parts where the broker takes no more, each
    message once; wrong passwords are told; what is no message is counted."""
    port = free_port()
    address = f"nats://127.0.0.1:{port}/job"
    with tempfile.TemporaryDirectory() as folder:
        for name, word in (("right", "fleet:right"), ("wrong", "fleet:wrong")):
            with open(f"{folder}/{name}", "w") as f:
                f.write(word + "\n")
        os.mkdir(folder + "/state")
        s = Server("--publish", address, "--publish-interval", "300ms", "--host-id", "host-1", "--broker-user-file", folder + "/right",
                   "--state-dir", folder + "/state")
        with s, Fleet(folder, address, "--broker-user-file", folder + "/wrong") as wrong:
            s.until(lambda: s.get("/subscribers").content["subscribers"][-1]["waiting_bytes"], "it is spooled")
            assert wrong.fleet()["connected"] is False
            with Broker(folder, port, 'jetstream {}\nmax_payload: 8192\nauthorization { user: fleet, password: "right" }\n'):
                wrong.until(lambda: "uthorization" in (wrong.fleet()["failure"] or ""), "the password is wrong")
                os.mkdir(folder + "/2")
                with Fleet(folder + "/2", address, "--broker-user-file", folder + "/right") as f:
                    f.until(lambda: f.seq() >= 6 and not s.get("/subscribers").content["subscribers"][-1]["waiting_bytes"],
                            "what was spooled arrives")
                    told = s.get("/subscribers").content["subscribers"][-1]
                    assert told["dropped"] == 0, told
                    counts = f.fleet()
                    # Each is larger than the broker takes at once.
                    assert counts["fetched"] > counts["hosts"][0]["taken"], counts
                    assert counts["hosts"][0]["missing"] == 0, counts
                    with socket.create_connection(("127.0.0.1", port)) as c:
                        c.sendall(b'CONNECT {"verbose":false,"user":"fleet","pass":"right"}\r\nPUB job.x 5\r\nhello\r\nPING\r\n')
                        c.recv(65536)
                        f.until(lambda: f.fleet()["refused"] == 1, "what is no message is counted")
                    status, body = f.ask("/metrics")
                    assert status == 200 and b"witty_fleet_messages_refused_total 1.0" in body
                    # Of sources so many hosts, whatever their number; of what is there, on which host.
                    f.until(lambda: b'host="host-1"' in f.ask("/metrics")[1], "figures of what the host has")
                    body = f.ask("/metrics")[1]
                    assert b'witty_fleet_source_hosts{source="' in body and b'"host-1: ' not in body, body
                    check = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, check=False)
                    assert check.returncode == 0 and not check.stderr, check
                    assert ranges(folder + "/2")[0][0] == 1, (ranges(folder + "/2"), counts)


def write(path, text, mode=0o600):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


class Broker:
    """A nats-server with JetStream and a configuration of one's own."""

    def __init__(self, folder, port, lines):
        write(folder + "/nats.conf", f'listen: "127.0.0.1:{port}"\n' + lines)
        self.log = open(folder + "/nats.log", "w")
        self.p = subprocess.Popen(["nats-server", "-c", folder + "/nats.conf", "-sd", folder + "/js"], stdout=self.log, stderr=self.log)
        end = time.monotonic() + LONG
        while "Server is ready" not in open(folder + "/nats.log").read():
            assert self.p.poll() is None and time.monotonic() < end, open(folder + "/nats.log").read()
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.p.terminate()
        self.p.wait(LONG)
        self.log.close()


def passes(folder, address, *login, also=()):
    """Agent, fleet and subscriber come through with this login."""
    d = tempfile.mkdtemp(dir=folder)
    with Server("--publish", address, "--publish-interval", "300ms", "--host-id", "host-1", *login, *also) as s, Fleet(d, address, *login) as f:
        f.until(lambda: f.seq() >= 2, f"messages come with {login}")
        if also:
            s.until(lambda: any(x["name"] == "bus" and x["delivered"] for x in s.get("/subscribers").content["subscribers"]), "the subscriber delivers")


def is_refused(folder, address, why, *login):
    with Fleet(tempfile.mkdtemp(dir=folder), address, *login) as f:
        f.until(lambda: f.fleet()["failure"] and why in f.fleet()["failure"], f"{login} is refused: {why}")
        assert f.fleet()["connected"] is False


def nats_tls():
    """TLS on both sides: who shows no certificate, or trusts another authority, does not come in."""
    port = free_port()
    address, bus = f"tls://localhost:{port}/job", f"tls://localhost:{port}"
    subscriber = json.dumps({"subscriber_type": "NatsGraphSubscriber", "name": "bus", "url": bus, "subject": "w", "expected_update_interval": 0.2})
    with tempfile.TemporaryDirectory() as d:
        nats_keys.certificates(d)
        os.mkdir(d + "/other")
        nats_keys.certificates(d + "/other")
        pair = ["--client-cert", d + "/client.pem", "--client-key", d + "/client.key"]
        with Broker(d, port, f'jetstream {{}}\ntls {{ cert_file: "{d}/server.pem", key_file: "{d}/server.key", ca_file: "{d}/ca.pem", verify: true }}\n'):
            passes(d, address, "--ca-file", d + "/ca.pem", *pair, also=("--subscribe", subscriber, "--allow-target", bus))
            is_refused(d, address, "TLS", "--ca-file", d + "/other/ca.pem", *pair)
            # By TLS 1.3 a missing certificate is told when something is read.
            is_refused(d, address, "", "--ca-file", d + "/ca.pem")
            is_refused(d, address, "", "--ca-file", d + "/ca.pem", "--client-cert", d + "/other/client.pem", "--client-key", d + "/other/client.key")


def nats_nkeys():
    """A user is known by its key, or by a JWT of its account; neither seed nor key goes over the line."""
    port = free_port()
    address, bus = f"nats://127.0.0.1:{port}/job", f"nats://127.0.0.1:{port}"
    subscriber = json.dumps({"subscriber_type": "NatsGraphSubscriber", "name": "bus", "url": bus, "subject": "w", "expected_update_interval": 0.2})
    with tempfile.TemporaryDirectory() as d:
        operator, system, account, user, other = (nats_keys.Key(d, kind) for kind in "OAAUU")
        seed, wrong = write(d + "/seed", user.seed + "\n"), write(d + "/wrong", other.seed + "\n")
        with Broker(d, port, f"jetstream {{}}\nauthorization {{ users: [ {{ nkey: {user.name} }} ] }}\n"):
            passes(d, address, "--nats-credentials", seed, also=("--subscribe", subscriber, "--allow-target", bus))
            is_refused(d, address, "uthorization", "--nats-credentials", wrong)
            is_refused(d, address, "uthorization")
        # Operator, account, user, as nsc makes them.
        own = {"limits": {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1, "mem_storage": -1,
                          "disk_storage": -1, "streams": -1, "consumer": -1, "wildcards": True}}
        jwt = nats_keys.token(account, user, "agent", "user", pub={}, sub={}, subs=-1, data=-1, payload=-1)
        creds = write(d + "/agent.creds", nats_keys.credentials(jwt, user.seed))
        stranger = write(d + "/stranger.creds", nats_keys.credentials(jwt, other.seed))
        with Broker(d, port, f"jetstream {{}}\noperator: {nats_keys.token(operator, operator, 'op', 'operator')}\nresolver: MEMORY\n"
                             f"system_account: {system.name}\nresolver_preload: {{ {system.name}: {nats_keys.token(operator, system, 'sys', 'account')}, "
                             f"{account.name}: {nats_keys.token(operator, account, 'acc', 'account', **own)} }}\n"):
            passes(d, address, "--nats-credentials", creds)
            is_refused(d, address, "uthorization", "--nats-credentials", stranger)
        # The last letter holds three bits of the seed; the other two are zero.
        filled = user.seed[:-1] + chr(ord(user.seed[-1]) + 1)
        other_key = user.seed[:20] + ("A" if user.seed[20] != "A" else "B") + user.seed[21:]
        for text, mode, why in ((user.seed, 0o644, "others may read"), ("SUAA", 0o600, "58 letters"), (account.seed, 0o600, "not a user's"),
                                (other_key, 0o600, "checksum"), (filled, 0o600, "58 letters"), ("", 0o600, "58 letters"),
                                (nats_keys.credentials("a b", user.seed), 0o600, "JWT")):
            p = subprocess.run([WITTY, "fleet", "--from", address, "--store", d + "/x.db", "-l", "127.0.0.1:0", "--nats-credentials",
                                write(d + "/bad", text, mode)], capture_output=True, text=True, timeout=LONG, check=False)
            assert p.returncode == 1 and why in p.stderr and (not text or user.seed not in p.stderr), (text, p)


def wrong_words():
    """Wrong command lines and addresses are one clear line each."""
    for words, why in ((["fleet"], "--from"), (["fleet", "--from", "http://a"], "broker"), (["fleet", "--from", "nats://a"], "--store"),
                       (["fleet", "--from", "nats://a", "--store", "/nowhere/x.db"], "store"), (["serve", "--publish", "a"], "broker"),
                       (["fleet", "--from", "nats://a", "--store", "x", "-p", "1"], "-p"),
                       (["serve", "--client-cert", "a"], "belong together"),
                       (["serve", "--client-cert", "/nowhere", "--client-key", "/nowhere", "-l", "127.0.0.1:0", "--no-lock", "--no-ebpf"], "certificate"),
                       (["serve", "--host-id", "a b"], "name of a host")):
        p = subprocess.run([WITTY, *words], capture_output=True, text=True, timeout=LONG, check=False)
        first = p.stderr.splitlines()[0] if p.stderr else ""
        assert p.returncode in (1, 2) and first.startswith("error: ") and why in first, (words, p)
    with Server() as s:
        answer = s.ask("POST", "/subscriber", {"subscriber_type": "FleetPublisher", "url": "nats://127.0.0.1/x"})
        assert answer.status == 403, answer.body
        assert s.get("/api/v1/fleet").status == 404


run([kafka, nats_away, nats_tls, nats_nkeys, wrong_words])
