"""A cluster of real NATS servers, and a client of a few lines that tells what a stream holds: a witness that shares no code
with the program."""
import json
import os
import signal
import socket
import subprocess
import time

CLIENT, ROUTE, MONITOR = 4222, 6222, 8222


class Client:
    """Asks a server, in the network namespace @netns of a process that enters it."""

    def __init__(self, address, port=CLIENT, timeout=60):
        self.s = socket.create_connection((address, port), timeout=timeout)
        self.f = self.s.makefile("rb")
        assert self.f.readline().startswith(b"INFO ")
        self.s.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB _INBOX.w 1\r\n')

    def request(self, subject, body=b""):
        self.s.sendall(b"PUB %s _INBOX.w %d\r\n%s\r\n" % (subject.encode(), len(body), body))
        while True:
            line = self.f.readline()
            assert line, "the server hung up"
            if line.startswith(b"PING"):
                self.s.sendall(b"PONG\r\n")
            elif line.startswith(b"MSG "):
                return json.loads(self.f.read(int(line.split()[-1]) + 2))
            elif line.startswith(b"HMSG "):
                return {"error": {"headers": self.f.read(int(line.split()[-1]) + 2).decode()}}
            else:
                assert not line.startswith(b"-ERR"), line

    def stream(self, name):
        return self.request("$JS.API.STREAM.INFO." + name)

    def message(self, name, seq):
        return self.request("$JS.API.STREAM.MSG.GET." + name, json.dumps({"seq": seq}).encode())


class Cluster:
    """Nodes of JetStream, each in the network namespace of a host: {host: address}."""

    def __init__(self, folder, addresses, netns):
        self.folder, self.addresses, self.netns = folder, addresses, netns
        self.nodes = {}

    def start(self, host):
        routes = ",".join(f"nats://{a}:{ROUTE}" for h, a in self.addresses.items() if h != host)
        words = ["ip", "netns", "exec", self.netns[host]] if self.netns else []
        words += ["nats-server", "-js", "-n", host, "-sd", os.path.join(self.folder, "js-" + host), "-a", "0.0.0.0",
                  "-p", str(CLIENT), "--cluster_name", "fleet", "--cluster", f"nats://0.0.0.0:{ROUTE}", "--routes", routes]
        log = open(os.path.join(self.folder, f"nats-{host}.log"), "a")
        # `ip netns exec` becomes the program, so that this is its process.
        self.nodes[host] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def __enter__(self):
        for host in self.addresses:
            self.start(host)
        return self

    def kill(self, host):
        node = self.nodes.pop(host)
        node.send_signal(signal.SIGKILL)
        node.wait()

    def __exit__(self, *what):
        for host in list(self.nodes):
            self.kill(host)

    def urls(self, stream):
        return "nats://" + ",".join(f"{a}:{CLIENT}" for a in self.addresses.values()) + "/" + stream


def until(holds, what, seconds=120):
    """Wait for an event. @return what @holds returned"""
    end = time.monotonic() + seconds
    while True:
        got = holds()
        if got:
            return got
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)
