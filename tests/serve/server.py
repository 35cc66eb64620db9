"""A server under test, and how it is asked: WITTY names the program."""
import base64
import http.client
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

WITTY = os.environ["WITTY"]
# A busy machine, under sanitizers: what is waited for is seconds away on others.
LONG = 180


class Answer:
    """Status, headers and body of one answer."""

    def __init__(self, raw, body):
        self.status = raw.status
        self.headers = {k.lower(): v for k, v in raw.getheaders()}
        self.body = body

    def json(self):
        return json.loads(self.body)

    @property
    def content(self):
        """What stands in the older envelope."""
        return self.json()["content"]


class Server:
    """Runs `witty-profiler serve` on a free port, with a folder of its own, until the block ends."""

    def __init__(self, *options, ebpf=False, interval="300ms", window="3s", wait=True, tls=None, host="127.0.0.1",
                 keep_privileges=True):
        self.dir = tempfile.mkdtemp(prefix="witty-serve-")
        self.options = list(options)
        self.host, self.tls = host, tls
        self.wait = wait
        self.args = [WITTY, "serve", "--listen", f"{host}:0", "--port-file", self.path("addr"),
                     "--lock", self.path("lock"), "-i", interval, "--window", window, "--keep", "60s"]
        if not ebpf:
            self.args.append("--no-ebpf")
        # A sanitizer looks for leaks at the end by means that the server gives up.
        if keep_privileges:
            self.args.append("--keep-privileges")

    def path(self, name):
        return os.path.join(self.dir, name)

    def __enter__(self):
        self.log = open(self.path("log"), "w+")
        self.process = subprocess.Popen(self.args + self.options, stderr=self.log, stdout=self.log)
        until = time.monotonic() + LONG
        while not (os.path.exists(self.path("addr")) and open(self.path("addr")).read().endswith("\n")):
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError(f"does not start: {self.output()}")
            time.sleep(0.02)
        self.port = int(open(self.path("addr")).read().strip().rsplit(":", 1)[1])
        if self.wait:
            self.until(lambda: self.get("/api/v1/summary").status == 200, "the first snapshot")
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(LONG)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("does not end at SIGTERM")
        if what[0] is None:
            assert self.process.returncode == 0, f"status {self.process.returncode}: {self.output()}"
        else:
            print(self.output()[-3000:])
        self.log.close()
        shutil.rmtree(self.dir)

    def output(self):
        self.log.flush()
        with open(self.path("log"), errors="replace") as f:
            return f.read()

    def until(self, holds, what, seconds=LONG):
        """Wait until it holds; who hangs up is asked again. @return what it gave; a server that ends meanwhile is told as such"""
        end = time.monotonic() + seconds
        while True:
            try:
                if got := holds():
                    return got
            except ConnectionError:
                pass
            self.alive(what)
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}")
            time.sleep(0.05)

    def alive(self, what):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with status {self.process.returncode} before: {what}")

    def connection(self, timeout=LONG):
        if self.tls:
            context = ssl.create_default_context(cafile=self.tls)
            return http.client.HTTPSConnection("localhost" if self.host == "127.0.0.1" else self.host, self.port,
                                               timeout=timeout, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        c = self.connection()
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            c.request(method, path, body=body, headers=headers or {})
            raw = c.getresponse()
            return Answer(raw, raw.read())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def raw(self, data, timeout=LONG):
        """Send bytes as they are; return all that comes until the server closes."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            got = b""
            try:
                # A server that has seen enough may close before all is sent.
                s.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            try:
                while part := s.recv(65536):
                    got += part
            except (socket.timeout, ConnectionResetError):
                pass
            return got


def free_port():
    """A port that nobody listens at, below those that the kernel gives to whoever connects or asks for any."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        first = int(f.read().split()[0])
    while True:
        port = random.SystemRandom().randrange(min(10240, first - 1), first) if first > 2048 else 0
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return s.getsockname()[1]


def started(make, ready):
    """A program that listens at a port: another one when somebody else was faster. @param make of a port, a process;
    @param ready of both, whether it answers. @return port and process"""
    for _ in range(5):
        port = free_port()
        p, end = make(port), time.monotonic() + LONG
        while p.poll() is None:
            if ready(port, p):
                return port, p
            assert time.monotonic() < end, "it does not answer"
            time.sleep(0.05)
    raise AssertionError(f"it ended with status {p.returncode}, five times")


def can_connect(port, _=None):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def figure(text, name):
    """Value of a figure without labels, in Prometheus' format; 0 where it is not."""
    line = next((x for x in text.decode().splitlines() if x.startswith(name + " ")), name + " 0")
    return float(line.rsplit(" ", 1)[1])


def basic(token):
    return "Basic " + base64.b64encode(b"user:" + token.encode()).decode()


def run(tests):
    """Run the functions in order; stop at the first that fails."""
    for test in tests:
        began = time.monotonic()
        test()
        print(f"ok {test.__name__} {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(tests)} passed")
