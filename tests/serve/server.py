"""A server under test, and how it is asked: WITTY names the program."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

WITTY = os.environ["WITTY"]


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
        until = time.monotonic() + 60
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
                self.process.wait(60)
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

    def until(self, holds, what, seconds=60):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}")
            time.sleep(0.05)

    def connection(self, timeout=30):
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

    def raw(self, data, timeout=20):
        """Send bytes as they are; return all that comes until the server closes."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            s.sendall(data)
            got = b""
            try:
                while part := s.recv(65536):
                    got += part
            except (socket.timeout, ConnectionResetError):
                pass
            return got


def basic(token):
    return "Basic " + base64.b64encode(b"user:" + token.encode()).decode()


def run(tests):
    """Run the functions in order; stop at the first that fails."""
    for test in tests:
        began = time.monotonic()
        test()
        print(f"ok {test.__name__} {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(tests)} passed")
