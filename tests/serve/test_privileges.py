#!/usr/bin/env python3
"""test_privileges.py - what the server may still do once it runs, and that this is enough; the unit of systemd; files and
words of the older program; recordings of the flight recorder. Needs root and BPF."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

# A sanitizer looks for leaks by means that this server gives up.
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"

from server import LONG, WITTY, Server, figure, run

DIST = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "dist")
# CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE
OBSERVE = 1 << 39 | 1 << 38 | 1 << 19 | 1 << 2 | 1 << 40
SCORE_MAX = 4.0


def status(path):
    with open(path) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def threads_of(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            s = status(f"/proc/{pid}/task/{tid}/status")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        yield {k: int(s[k], 16) for k in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")}, s["Seccomp"].strip(), s["NoNewPrivs"].strip()


def given_up():
    own = int(status("/proc/self/status")["CapPrm"], 16)
    with Server(ebpf=True, keep_privileges=False) as s:
        threads = list(threads_of(s.process.pid))
        kept = [caps for caps, _, _ in threads if caps["CapPrm"]]
        assert len(threads) >= 6 and len(kept) == 1, "one thread observes, all others have nothing"
        assert kept[0]["CapPrm"] == kept[0]["CapEff"] == OBSERVE & own, hex(kept[0]["CapPrm"])
        for caps, seccomp, no_new in threads:
            assert caps["CapInh"] == caps["CapAmb"] == 0 and caps["CapBnd"] & ~OBSERVE == 0 and seccomp == "2" and no_new == "1"


def enough():
    """With that it sees what it saw with everything: flows to the byte, command lines, files, waits, memory of others."""
    with Server(ebpf=True, keep_privileges=False) as s, socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer = server.accept()[0]
        code = "import socket,sys,time\ns=socket.socket(fileno=int(sys.argv[1]))\nwhile s.recv(65536): pass"
        with subprocess.Popen([sys.executable, "-c", code, str(peer.fileno())], pass_fds=[peer.fileno()]) as p:
            peer.close()
            def flow():
                client.sendall(b"x" * 10000)
                flows = s.get("/api/v1/flows?limit=1000").json()["items"]
                return [f for f in flows if f["source"]["pid"] == os.getpid() and f["target"]["pid"] == p.pid and f["bytes"] and f["bytes"] % 10000 == 0]
            s.until(flow, "the flow from this process to its child")
            entity = s.get(f"/api/v1/entities/process:{p.pid}").json()["entity"]
            assert "socket" in entity["cmdline"] and entity["exe"], entity
            s.until(lambda: s.get("/api/v1/waits?limit=1000").json()["items"], "waits")
            states = {x["source"]: x["state"] for x in s.get("/api/v1/summary").json()["status"]}
            assert states.get("sched.switch") == "ok" and "off" not in (states.get("sock.send"), states.get("ipc.exit")), states
            client.close()


def unit():
    path = DIST + "/witty-profiler.service"
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", path], capture_output=True, text=True)
    score = float(re.search(r"Overall exposure level for witty-profiler.service: ([0-9.]+)", done.stdout)[1])
    print(f"| systemd-analyze security: {score} (0 is best, 10 worst)")
    assert score <= SCORE_MAX
    with open(path) as f:
        text = f.read()
    call = re.search(r"^ExecStart=\S+/witty-profiler (.*)$", text, re.M)[1].split()
    helped = subprocess.run([WITTY, "serve", "--help"], capture_output=True, text=True).stdout
    assert call[0] == "serve" and all(o in helped for o in call if o.startswith("--"))
    names = {n for line in re.findall(r"^CapabilityBoundingSet=(.*)$", text, re.M) for n in line.split()}
    assert {"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE"} <= names


def recorded_at_a_finding():
    """What a finding sets off: a recording of the minutes before, with its intervals, that other commands read."""
    with tempfile.TemporaryDirectory() as d, Server("--state-dir", d, ebpf=True, interval="500ms", window="3s", keep_privileges=False) as s:
        burn = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * os.sysconf("SC_NPROCESSORS_ONLN"))]
        try:
            s.until(lambda: any(r["name"].endswith(".wpdb") for r in s.get("/api/v1/recordings").json()), "a recording")
            findings = s.get("/api/v1/findings").json()["analysis"]
            s.until(lambda: figure(s.get("/metrics").body, "witty_recordings_written_total") >= 1, "it is whole")
            # The first one: of one host there may be another by now.
            name = s.get("/api/v1/recordings").json()[-1]["name"]
            shown = subprocess.run([WITTY, "show", os.path.join(d, name), "--format", "json"], capture_output=True, check=True)
            summary = json.loads(shown.stdout)
            # How many of the processes got a CPU by then is up to the machine.
            assert summary["intervals"] >= 1 and summary["entities"]["process"] >= 1, (name, summary)
            assert not name.endswith("-asked.wpdb") and findings is not None, name
        finally:
            for p in burn:
                p.kill()
                p.wait()


def older_words():
    for flag, text in (("--offline", "record"), ("--verify", "doctor"), ("--view-graph", "topology"), ("--dump-config", "--help"),
                       ("--log-level=INFO", "WITTY_DEBUG")):
        done = subprocess.run([WITTY, "serve", flag], capture_output=True, text=True)
        assert done.returncode == 2 and text in done.stderr, (flag, done.stderr)
    with tempfile.TemporaryDirectory() as d:
        victim = os.path.join(d, "victim")
        os.mkdir(victim)
        open(victim + "/file", "w").close()
        def config(document):
            with open(d + "/c.json", "w") as f:
                f.write(document if isinstance(document, str) else json.dumps(document))
            return d + "/c.json"
        old = {"tmp_dir": victim, "server_config": {"server_addr": {"host": "127.0.0.1", "port": 0}, "preferred_backend": None},
               "sniffer_config": {"socket_sniffer": {"msg_style": "csv"}},
               "collector_config": {"remote_slaves": [{"slave_addr": {"host": "127.0.0.1", "port": -1}}], "disabled_collectors": []}}
        with Server("--config", config(old)) as s:
            notes = s.output()
            assert "'tmp_dir' has no effect" in notes and "'collector_config.remote_slaves' has no effect" in notes
        assert os.listdir(victim) == ["file"], "nothing is deleted"
        with Server("--config", config({"rate": 7, "allow-host": ["a.example", "b.example"], "no-ebpf": True})) as s:
            assert s.ask("GET", "/status", headers={"Host": "b.example"}).status == 200
        for wrong, text in (({"nonsense": 1}, "no key 'nonsense'"), ({"rate": "x"}, "key 'rate'"), ("[]", "no object"), ("{", "c.json"),
                            ({"server_config": {"x": 1}}, "server_config.x")):
            done = subprocess.run([WITTY, "serve", "--config", config(wrong)], capture_output=True, text=True, timeout=LONG)
            assert done.returncode in (1, 2) and text in done.stderr, (wrong, done.stderr)


if os.geteuid():
    print("SKIP: needs root")
    sys.exit(77)
run([unit, older_words, given_up, enough, recorded_at_a_finding])
