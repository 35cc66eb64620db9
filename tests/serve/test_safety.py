#!/usr/bin/env python3
"""test_safety.py - whom the server lets in, what it refuses, and what it never touches (OLD_SYSTEM.md D40-D49)."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from server import LONG, WITTY, Server, basic, figure, run

READ, CONTROL = "read-token-0123456789", "control-token-0123456789"


def fails(*args, status, text):
    done = subprocess.run([WITTY, "serve", "--no-lock", "--no-ebpf", "--keep-privileges", *args], capture_output=True, text=True, timeout=LONG)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    assert re.search(text, done.stderr), (args, done.stderr)
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") <= 2, done.stderr


def write(path, text, mode=0o600):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def exposure():
    """Other addresses than loopback need a token and TLS, or an explicit word."""
    with tempfile.TemporaryDirectory() as d:
        tokens = write(d + "/t", f"read {READ}\n")
        for at in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
            fails("--listen", at, status=2, text="--token-file is needed")
            fails("--listen", at, "--token-file", tokens, status=2, text="--cert and --key are needed")
        fails("--listen", "example.org:0", status=2, text="no address")
        fails("--listen", "127.0.0.1:99999", status=2, text="no port")
        fails("--token-file", write(d + "/open", f"read {READ}\n", 0o644), status=1, text="others may read")
        fails("--token-file", write(d + "/short", "read abc\n"), status=1, text="line 1 holds no token")
        fails("--token-file", write(d + "/empty", "# none\n"), status=1, text="there is none")
        fails("--token-file", d + "/nothing", status=1, text="No such file")
        os.mkdir(d + "/folder")
        os.chmod(d + "/folder", 0o777)
        fails("--state-dir", d + "/folder", status=1, text="others own it or may write")


def tokens():
    with tempfile.TemporaryDirectory() as d:
        path = write(d + "/t", f"# two\nread {READ}\ncontrol {CONTROL}\n")
        with Server("--token-file", path, wait=False) as s:
            bearer = lambda t: {"Authorization": "Bearer " + t}
            for headers in ({}, bearer(""), bearer("x" * 21), bearer(READ[:-1]), bearer(READ + "x"),
                            bearer("x" * 5000), {"Authorization": READ}, {"Authorization": "Basic !!!"},
                            {"Authorization": basic("wrong-token-0123456789")}):
                answer = s.ask("GET", "/status", headers=headers)
                while answer.status == 429:
                    time.sleep(0.1)
                    answer = s.ask("GET", "/status", headers=headers)
                assert answer.status == 401, (headers, answer.status)
            # After a while the next one is told how it is done.
            s.until(lambda: "www-authenticate" in s.ask("GET", "/status").headers, "401")
            s.until(lambda: s.ask("GET", "/status", headers=bearer(READ)).status == 200, "a guess may be made again")
            for token in (READ, CONTROL):
                assert s.ask("GET", "/status", headers=bearer(token)).status == 200
                assert s.ask("GET", "/status", headers={"Authorization": basic(token)}).status == 200
            assert s.ask("POST", "/control/stop", headers=bearer(READ)).status == 403
            assert s.ask("POST", "/subscriber", {}, headers=bearer(READ)).status == 403
            assert s.ask("DELETE", "/subscriber/x", headers=bearer(READ)).status == 403
            assert s.ask("POST", "/control/stop", headers=bearer(CONTROL)).status == 200
            # Ten at once and five a second, however long the requests take.
            began = time.monotonic()
            guesses = [s.ask("GET", "/status", headers=bearer("guess-" + str(i).zfill(20))).status for i in range(40)]
            allowed = 10 + 5 * (time.monotonic() - began)
            assert guesses.count(401) <= allowed + 1 and guesses.count(401) + guesses.count(429) == 40, (guesses, allowed)
            # At once: there is an end to it on a machine that is not so slow that five a second are all it does.
            assert allowed > 39 or 429 in guesses, (guesses, allowed)
            assert READ not in s.output() and CONTROL not in s.output()


def host_and_origin():
    """A page of somebody else, under a name that leads here, is told by that name."""
    with Server() as s:
        for host in ("evil.example", "evil.example:80", "192.0.2.7", "127.0.0.1.evil.example", "[2001:db8::1]:1", "",
                     "localhost.evil.example", "a" * 300):
            assert s.ask("GET", "/graph", headers={"Host": host}).status == 403, host
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:5", "[::1]:80", f"localhost:{s.port}"):
            assert s.ask("GET", "/graph", headers={"Host": host}).status == 200, host
        own = f"127.0.0.1:{s.port}"
        for origin in ("http://evil.example", "null", f"https://{own}", f"http://127.0.0.1:{s.port + 1}", "http://localhost"):
            assert s.ask("POST", "/control/stop", headers={"Origin": origin}).status == 403, origin
            assert s.ask("GET", "/graph", headers={"Origin": origin}).status == 403, origin
        assert s.ask("POST", "/control/start", headers={"Origin": f"http://{own}"}).status == 200
        answer = s.get("/graph")
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
    with Server("--allow-host", "profiler.example") as s:
        assert s.ask("GET", "/status", headers={"Host": "profiler.example"}).status == 200
        assert s.ask("GET", "/status", headers={"Host": "other.example"}).status == 403


def status_of(raw):
    match = re.match(rb"HTTP/1\.[01] (\d{3})", raw)
    return int(match[1]) if match else 0


def malformed():
    with Server() as s:
        head = f"Host: 127.0.0.1:{s.port}\r\n".encode()
        for data, wanted in (
                (b"GET /status HTTP/1.1\r\n\r\n", {400}),
                (b"NONSENSE\r\n\r\n", {0, 400}),
                (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100) + b"\r\n\r\n", {0, 400}),
                (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n" + head + b"\r\n", {0, 400, 413, 414, 431}),
                (b"GET /status HTTP/1.1\r\n" + head + b"X: " + b"a" * 100000 + b"\r\n\r\n", {0, 400, 413, 431}),
                (b"GET /status HTTP/1.1\r\n" + head + b"X: y\r\n" * 20000 + b"\r\n", {0, 400, 413, 431}),
                (b"POST /subscriber HTTP/1.1\r\n" + head + b"Content-Length: 99999999999\r\n\r\n", {413}),
                (b"POST /subscriber HTTP/1.1\r\n" + head + b"Content-Length: -1\r\n\r\n", {0, 400}),
                (b"POST /subscriber HTTP/1.1\r\n" + head + b"Content-Length: x\r\n\r\n", {0, 400}),
                (b"POST /subscriber HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", {0, 400, 413}),
                (b"GET /api/v1/entities?limit=%00 HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n", {200, 400}),
                (b"GET /%zz HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n", {400, 404}),
                (b"DELETE /subscriber/%00 HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n", {400, 404})):
            got = status_of(s.raw(data))
            assert got in wanted, (data[:60], got)
        # More than a body may have, with a length and in chunks.
        assert s.ask("POST", "/subscriber", "x" * 70000).status == 413
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        got = s.raw(b"POST /subscriber HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunk * 3 + b"0\r\n\r\n")
        assert status_of(got) == 413, got[:100]
        deep = '{"subscriber_type":"HttpPostGraphSubscriber","post_attr":' + '{"a":' * 5000 + "1" + "}" * 5001
        assert s.ask("POST", "/subscriber", deep).status == 400
        assert s.get("/status").status == 200


def traversal():
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + "/state", 0o700)
        write(d + "/secret.wpdb", "secret")
        os.symlink(d + "/secret.wpdb", d + "/state/flight-link.wpdb")
        os.mkfifo(d + "/state/flight-fifo.wpdb")
        write(d + "/state/other.wpdb", "not ours")
        with Server("--state-dir", d + "/state") as s:
            # On a busy machine a finding may have had one written.
            assert all(r["name"].startswith("flight-2") for r in s.get("/api/v1/recordings").json())
            for name in ("../secret.wpdb", "..%2fsecret.wpdb", "%2e%2e/secret.wpdb", "flight-link.wpdb", "flight-fifo.wpdb",
                         "other.wpdb", "flight-..%2f..%2fsecret.wpdb", "/etc/passwd", ".", "flight-x%00.wpdb"):
                answer = s.get("/api/v1/recordings/" + name)
                assert answer.status == 404 and b"secret" not in answer.body, (name, answer.status)
            for path in ("/../../etc/passwd", "/graph/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/etc/passwd"):
                assert s.get(path).status == 404, path
            # A recording that is ours can be had, whole.
            name = s.until(lambda: s.ask("POST", "/api/v1/recordings").json().get("name"), "one can be asked for")
            s.until(lambda: any(r["name"] == name for r in s.get("/api/v1/recordings").json()) and
                    figure(s.get("/metrics").body, "witty_recordings_written_total") >= 1, "the recording")
            answer = s.get("/api/v1/recordings/" + name)
            assert answer.status == 200 and answer.body.startswith(b"SQLite format 3\0")
            assert name in answer.headers["content-disposition"]
            with open(d + "/copy.wpdb", "wb") as f:
                f.write(answer.body)
            shown = subprocess.run([WITTY, "show", d + "/copy.wpdb", "--format", "json"], capture_output=True, check=True)
            assert json.loads(shown.stdout)["intervals"] >= 1
        # Nothing was deleted but what the server itself made and replaced.
        assert sorted(os.listdir(d)) == ["copy.wpdb", "secret.wpdb", "state"]
        assert {"other.wpdb", "flight-link.wpdb", "flight-fifo.wpdb", name} <= set(os.listdir(d + "/state"))


def output_files():
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + "/out")
        os.mkdir(d + "/out/sub")
        write(d + "/victim", "untouched")
        os.symlink(d + "/victim", d + "/out/link")
        os.symlink(d, d + "/out/up")
        os.symlink("sub", d + "/out/within")
        os.link(d + "/victim", d + "/out/hard")
        os.mkfifo(d + "/out/fifo")
        ask = lambda s, path: s.ask("POST", "/subscriber", {"subscriber_type": "FileGraphDescSubscriber", "dump_path": path,
                                                            "mode": "w", "expected_update_interval": 0.1}).status
        with Server("--output-dir", d + "/out") as s:
            for path in (d + "/outside", "../victim", "sub/../../victim", "link", "up/victim", "within/a.txt", "hard", "fifo", d + "/victim", "sub",
                         "/proc/self/environ", "", "up/../victim"):
                assert ask(s, path) in (400, 403), path
            assert ask(s, "good.txt") == 200 and ask(s, "sub/good.txt") == 200 and ask(s, d + "/out/whole.txt") == 200
            s.until(lambda: os.path.getsize(d + "/out/good.txt") > 0 and os.path.getsize(d + "/out/sub/good.txt") > 0, "files")
            # A link that is put there later is not followed either.
            os.unlink(d + "/out/good.txt")
            os.symlink(d + "/victim", d + "/out/good.txt")
            s.until(lambda: any(x.get("failed") for x in s.get("/subscribers").content["subscribers"]), "it cannot be written")
        assert open(d + "/victim").read() == "untouched"
        with Server() as s:
            assert ask(s, "good.txt") == 403


def targets():
    """Subscribers send only where the operator says; redirects lead nowhere."""
    with socket.create_server(("127.0.0.1", 0)) as trap, Server("--allow-target", f"http://127.0.0.1:{trap.getsockname()[1]}/hook") as s:
        port = trap.getsockname()[1]
        ask = lambda url, kind="HttpPostGraphSubscriber": s.ask("POST", "/subscriber", {
            "subscriber_type": kind, "name": "t", "url": url, "expected_update_interval": 0.2, "post_attr": {"a": [1, "x"]}
            if kind.startswith("Http") else {}}).status
        for url in ("http://169.254.169.254/latest/meta-data", "http://127.0.0.1:22/", "http://localhost:%d/hook" % port,
                    "http://[::1]:%d/hook" % port, "http://0177.0.0.1:%d/hook" % port, "http://2130706433:%d/hook" % port,
                    "https://127.0.0.1:%d/hook" % port, "http://127.0.0.1:%d/" % port, "http://127.0.0.1:%d/hook/../x" % port,
                    "http://127.0.0.1:%d/hookx" % port, "http://user@127.0.0.1:%d/hook" % port, "file:///etc/passwd",
                    "gopher://127.0.0.1:%d/hook" % port, "http://127.0.0.1:%d/hook\r\nX: y" % port, "", "http://", "http://a b/",
                    "http://127.0.0.1:%d@evil.example/hook" % port, "http://evil.example#@127.0.0.1:%d/hook" % port):
            assert ask(url) in (400, 403), url
        assert s.ask("POST", "/subscriber", {"subscriber_type": "NatsGraphSubscriber", "url": "nats://127.0.0.1:4222"}).status == 403
        assert ask("http://127.0.0.1:%d/hook/a?b=c" % port) == 200
        trap.settimeout(LONG)
        with trap.accept()[0] as c:
            c.settimeout(LONG)
            data = b""
            while not (b"\r\n\r\n" in data and len(data.split(b"\r\n\r\n", 1)[1]) >= int(re.search(rb"Content-Length: (\d+)", data)[1])):
                part = c.recv(65536)
                assert part, data
                data += part
            c.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:22/\r\nContent-Length: 0\r\n\r\n")
        head, body = data.split(b"\r\n\r\n", 1)
        assert head.startswith(b"POST /hook/a?b=c HTTP/1."), head
        document = json.loads(body)
        assert set(document) == {"data", "a"} and document["a"] == [1, "x"] and "nodes" in document["data"]
        s.until(lambda: any("302" in (x.get("last_failure") or "") for x in s.get("/subscribers").content["subscribers"]),
                "the redirect is told as a failure")


def slow_clients():
    """Who sends a request byte by byte, or none at all, is cut off in time; others are answered meanwhile."""
    with Server("--timeout", "2", "--clients", "40") as s:
        idle = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(20)]
        drip = socket.create_connection(("127.0.0.1", s.port))
        drip.settimeout(0.2)
        request, began, closed = b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 4000, time.monotonic(), None
        for byte in request:
            try:
                drip.send(bytes([byte]))
                if drip.recv(100) == b"":
                    closed = time.monotonic() - began
            except socket.timeout:
                pass
            except OSError:
                closed = time.monotonic() - began
            if closed is not None or time.monotonic() > began + LONG:
                break
            s.until(lambda: s.get("/status").status == 200, "others are answered")
        # Byte by byte all of it would take a quarter of an hour.
        assert closed is not None
        for c in idle:
            c.settimeout(LONG)
            assert c.recv(100) == b"", "an idle connection is closed"
            c.close()
        drip.close()
        # As many as may be: the next one gets no answer, and when they are gone everybody does again.
        many = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(60)]
        for c in many:
            c.close()
        s.until(lambda: s.get("/status").status == 200, "answers again")


def rate():
    with Server("--rate", "5", wait=False) as s:
        began = time.monotonic()
        answers = [s.get("/status") for _ in range(40)]
        allowed = 10 + 5 * (time.monotonic() - began)
        got = [a.status for a in answers]
        assert 5 <= got.count(200) <= allowed + 1 and got.count(200) + got.count(429) == 40, (got, allowed)
        assert allowed > 39 or 429 in got, (got, allowed)
        assert all(a.headers["retry-after"] == "1" for a in answers if a.status == 429)


def tls():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", d + "/key",
                        "-out", d + "/cert"], check=True, capture_output=True)
        os.chmod(d + "/key", 0o600)
        tokens = write(d + "/t", f"read {READ}\n")
        with Server("--cert", d + "/cert", "--key", d + "/key", "--token-file", tokens, tls=d + "/cert", wait=False) as s:
            assert s.ask("GET", "/status", headers={"Authorization": "Bearer " + READ}).status == 200
            assert s.ask("GET", "/status").status == 401
            assert b"200 OK" not in s.raw(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        os.chmod(d + "/key", 0o644)
        fails("--listen", "127.0.0.1:0", "--cert", d + "/cert", "--key", d + "/key", status=1, text="others may read")
        os.chmod(d + "/key", 0o600)
        fails("--listen", "127.0.0.1:0", "--cert", d + "/t", "--key", d + "/key", status=1, text="PEM")


def one_instance():
    with Server() as s:
        done = subprocess.run([WITTY, "serve", "--no-ebpf", "--listen", "127.0.0.1:0", "--lock", s.path("lock")],
                              capture_output=True, text=True, timeout=LONG)
        assert done.returncode == 1 and f'"pid":{s.process.pid}' in done.stderr, done.stderr
        assert "another server runs" in done.stderr and "--lock" in done.stderr
        assert s.get("/status").status == 200
        fails("--listen", f"127.0.0.1:{s.port}", status=1, text="Address already in use")


def ends_in_order():
    """SIGTERM while requests and streams are under way: all end, and the program with status 0."""
    with Server() as s:
        stream = socket.create_connection(("127.0.0.1", s.port), timeout=LONG)
        stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in stream.recv(4096)
        half = socket.create_connection(("127.0.0.1", s.port))
        half.sendall(b"GET /graph HTT")
        s.process.send_signal(signal.SIGTERM)
        while stream.recv(4096):
            pass
        assert s.process.wait(LONG) == 0
        assert os.path.exists(s.path("lock")), "the lock's file stays: nothing is deleted"
        half.close()
        stream.close()


run([exposure, tokens, host_and_origin, malformed, traversal, output_files, targets, slow_clients, rate, tls, one_instance,
     ends_in_order])
