#!/usr/bin/env python3
"""test_metrics.py - figures: Prometheus' own checker and a real Prometheus, a bound on their number whatever the host
does, OTLP, the dashboard and the alerts; subscribers over HTTP and NATS, with what could not be delivered."""
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from server import LONG, Server, can_connect, run, started

DIST = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "dist")
THREADS = 5000

MANY = """
import threading, sys
stop = threading.Event()
threading.stack_size(65536)
for i in range(int(sys.argv[1])):
    threading.Thread(target=stop.wait, args=(3600,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def samples(text):
    """Lines of figures by family."""
    families = {}
    for line in text.splitlines():
        if line and line[0] != "#":
            families.setdefault(re.match(r"[a-zA-Z_:]+[a-zA-Z0-9_:]*", line)[0], []).append(line)
    return families


def promtool():
    text = S.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    done = subprocess.run(["promtool", "check", "metrics"], input=text.body, capture_output=True)
    assert done.returncode == 0 and not done.stderr and not done.stdout, (done.stdout, done.stderr)
    families = samples(text.body.decode())
    for name in ("witty_build_info", "witty_intervals_total", "witty_host_cpus", "witty_process_cpu_cores", "witty_snapshots_bytes",
                 "witty_observation_cpu_seconds_total", "process_resident_memory_bytes", "witty_http_requests_total", "witty_findings"):
        assert families.get(name), name
    assert len({line.rsplit(" ", 1)[0] for lines in families.values() for line in lines}) == sum(map(len, families.values()))


def bounded():
    """5 000 threads more: not one sample more than the bound allows."""
    with subprocess.Popen([sys.executable, "-c", MANY, str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "ready\n"
        want = f'"pid":{p.pid},'
        S.until(lambda: want in S.get(f"/api/v1/entities/process:{p.pid}").body.decode(), "the process")
        S.until(lambda: S.get("/api/v1/entities?type=thread&limit=1").json()["total"] > THREADS, "its threads")
        families = samples(S.get("/metrics").body.decode())
        worst = max(families, key=lambda f: len(families[f]))
        total = sum(map(len, families.values()))
        print(f"| {total} samples with {S.get('/api/v1/entities?type=thread&limit=1').json()['total']} threads; the largest family "
              f"{worst} has {len(families[worst])}")
        assert len(families["witty_thread_run_ratio"]) <= 21 and total < 1200, (worst, total)
        assert any("other" in line for line in families["witty_thread_run_ratio"])
        p.stdin.close()


def names_with_everything():
    """What a process calls itself is data: quotes, line feeds, bytes that are no UTF-8."""
    name = b'"\\\n}{\xff#\xc3\xa9'[:15]
    code = f"import ctypes;ctypes.CDLL(None).prctl(15,{name!r},0,0,0);print('ready',flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            # By itself: of all there are it may not be one of the largest.
            with Server("-p", str(p.pid)) as s:
                s.until(lambda: f'pid="{p.pid}"' in s.get("/metrics").body.decode(), "the process among the figures")
                text = s.get("/metrics").body
            assert b'process="\\"' in text, text
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
            assert done.returncode == 0 and not done.stderr, done.stderr
        finally:
            p.kill()


def query(port, text):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.request.quote(text)}", timeout=LONG) as f:
        return json.load(f)["data"]["result"]


def scrape():
    """A real Prometheus, with our alert rules, as dist/ has them."""
    with tempfile.TemporaryDirectory() as d:
        with open(DIST + "/prometheus.yml") as f:
            text = f.read()
        assert '"127.0.0.1:18090"' in text
        text = text.replace('"127.0.0.1:18090"', f'"127.0.0.1:{S.port}"').replace("15s", "1s")
        with open(d + "/prometheus.yml", "w") as f:
            f.write(text + f"rule_files: ['{DIST}/alerts.yml']\nglobal: {{evaluation_interval: 1s}}\n")
        for what in (["config", d + "/prometheus.yml"], ["rules", DIST + "/alerts.yml"]):
            done = subprocess.run(["promtool", "check", *what], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        log = open(d + "/log", "w")

        def begin(port):
            return subprocess.Popen(["prometheus", f"--config.file={d}/prometheus.yml", f"--storage.tsdb.path={d}/data",
                                     f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            port, p = started(begin, can_connect)
        except AssertionError as e:
            raise AssertionError(open(d + "/log").read()) from e
        try:
            def asked(text):
                try:
                    return query(port, text)
                except OSError:
                    assert p.poll() is None, open(d + "/log").read()
                    return []
            S.until(lambda: asked('up{job="witty-profiler"} == 1'), "Prometheus has scraped")
            S.until(lambda: len(asked("witty_intervals_total")) == 1, "a figure")
            assert float(query(port, "witty_host_cpus")[0]["value"][1]) == os.sysconf("SC_NPROCESSORS_ONLN")
            # In one question: from one scrape to the next there may be more of them.
            assert float(query(port, "scrape_samples_scraped - scrape_samples_post_metric_relabeling")[0]["value"][1]) == 0
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/rules", timeout=LONG) as f:
                rules = [r for g in json.load(f)["data"]["groups"] for r in g["rules"]]
            assert len(rules) >= 9 and all(not r.get("lastError") for r in rules), rules
        finally:
            p.terminate()
            p.wait(LONG)
            log.close()


def files_name_what_is_there():
    """Dashboard and alerts ask for figures that the program has."""
    source = "".join(open(os.path.join(DIST, "../src/serve", f)).read() for f in ("metrics_graph.c", "metrics_own.c"))
    there = set(re.findall(r'"(witty_\w+|process_\w+)"', source))
    with open(DIST + "/grafana-dashboard.json") as f:
        dashboard = json.load(f)
    asked = " ".join(t["expr"] for p in dashboard["panels"] for t in p["targets"]) + open(DIST + "/alerts.yml").read()
    names = set(re.findall(r"\bwitty_\w+", asked))
    assert names and names <= there, names - there
    assert len({p["id"] for p in dashboard["panels"]}) == len(dashboard["panels"])


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes what is posted; answers with the status that the test wants."""
    got, status = [], 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if Collector.status == 200:
            Collector.got.append((self.path, json.loads(body)))
        self.send_response(Collector.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def otlp_and_spool():
    """OTLP as its protocol wants it; what could not be delivered comes later, in order, even after a restart."""
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{receiver.server_address[1]}"
    post = json.dumps({"subscriber_type": "HttpPostGraphSubscriber", "name": "post", "url": at + "/graphs", "post_attr": {"host": "h"},
                       "expected_update_interval": 0.3})
    with tempfile.TemporaryDirectory() as d:
        options = ["--state-dir", d, "--otlp", at + "/v1/metrics", "--subscribe", post]
        with Server(*options) as s:
            s.until(lambda: {p for p, _ in Collector.got} == {"/v1/metrics", "/graphs"}, "both were posted")
            document = next(b for p, b in Collector.got if p == "/v1/metrics")
            scope = document["resourceMetrics"][0]["scopeMetrics"][0]
            by_name = {m["name"]: m for m in scope["metrics"]}
            total = by_name["witty_intervals_total"]["sum"]
            assert total["isMonotonic"] is True and total["aggregationTemporality"] == 2
            point = total["dataPoints"][0]
            assert int(point["timeUnixNano"]) > int(point["startTimeUnixNano"]) > 10**18 and point["asDouble"] >= 1
            assert by_name["witty_host_cpus"]["gauge"]["dataPoints"][0]["asDouble"] >= 1
            keys = {a["key"] for a in document["resourceMetrics"][0]["resource"]["attributes"]}
            assert {"service.name", "host.name"} <= keys
            Collector.status = 503
            def waiting():
                return {x["name"]: x for x in s.get("/subscribers").content["subscribers"]}["post"]
            s.until(lambda: waiting()["waiting_bytes"] > 0 and waiting()["failed"] > 0, "something is kept")
            assert "503" in waiting()["last_failure"]
            before = s.get("/status").content["intervals"]
            s.until(lambda: s.get("/status").content["intervals"] >= before + 3, "collection goes on")
        assert os.listdir(d + "/spool-post"), "it stays when the server ends"
        Collector.got.clear()
        Collector.status = 200
        with Server(*options) as s:
            s.until(lambda: not os.listdir(d + "/spool-post") and any(p == "/graphs" for p, _ in Collector.got), "it is delivered")
    receiver.shutdown()
    assert all(b["host"] == "h" and b["data"]["nodes"] is not None for p, b in Collector.got if p == "/graphs")


def nats():
    """A real broker: what is published arrives, also when the broker was away for a while."""
    def begin(at):
        return subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(at)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    port, b = started(begin, can_connect)
    def take(count):
        with socket.create_connection(("127.0.0.1", port), timeout=LONG) as c:
            f = c.makefile("rb")
            f.readline()
            c.sendall(b'CONNECT {"verbose":false}\r\nSUB witty.test 1\r\nPING\r\n')
            for _ in range(count):
                while not (line := f.readline()).startswith(b"MSG "):
                    assert line, "the broker hung up"
                body = f.read(int(line.split()[-1]))
                f.read(2)
                yield json.loads(body)
    try:
        sub = json.dumps({"subscriber_type": "NatsGraphSubscriber", "name": "bus", "url": f"nats://127.0.0.1:{port}", "subject": "witty.test",
                          "expected_update_interval": 0.3})
        with Server("--subscribe", sub) as s:
            got = list(take(2))
            assert got[0]["snapshot"] < got[1]["snapshot"] and got[0]["content"]["nodes"] and got[0]["env"]["hostname"]
            b.terminate()
            b.wait(LONG)
            bus = lambda: next(x for x in s.get("/subscribers").content["subscribers"] if x["name"] == "bus")
            s.until(lambda: bus()["last_failure"], "the failure is told")
            b = begin(port)
            s.until(lambda: can_connect(port) or b.poll() is not None, "the broker is back")
            assert next(iter(take(1)))["snapshot"] > got[1]["snapshot"]
    finally:
        b.terminate()
        b.wait(LONG)


with Server(ebpf=True, interval="1s", window="5s") as S:
    run([promtool, files_name_what_is_there, scrape, bounded, names_with_everything])
run([otlp_and_spool, nats])
