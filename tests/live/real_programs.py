"""Compare recorded flows of real servers with what these report of themselves.

usage: real_programs.py WITTY [redis|nginx|iperf3|postgres]...

Each line of the table is one number: what the program says, what was recorded, and by how much the
second is off. Most of them must agree to the byte. Where a program's report leaves something open
(iperf3's control connection), the line says how much may lie between.
"""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 180  # ends what hangs
FORM = "{:<38}{:>14}{:>14}{:>9}  {}"


class Missing(Exception):
    """A program that is not installed."""


def need(name, folders=()):
    folders = list(folders) + ["/usr/sbin"]
    path = shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))
    if not path:
        raise Missing(name)
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, holds, *servers):
    """Until it holds, as long as these servers run."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        for server in servers:
            if server.poll() is not None:
                raise RuntimeError(f"{what}: {server.args[0]} ended with status {server.returncode}")
        if time.monotonic() > end:
            raise RuntimeError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.05)


def intervals(path, witty=os.environ.get("WITTY", "witty-profiler")):
    """How many intervals of a recording can be read by now, while it is made."""
    show = subprocess.run([witty, "show", path, "summary", "--format", "json"], capture_output=True, text=True, check=False)
    return 0 if show.returncode else json.loads(show.stdout)["intervals"]


def sockets_of(pid):
    """How many sockets a process and its descendants have open."""
    n, left = 0, [pid]
    while left:
        at = left.pop()
        try:
            for fd in os.listdir(f"/proc/{at}/fd"):
                n += os.readlink(f"/proc/{at}/fd/{fd}").startswith("socket:")
            for task in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{task}/children", encoding="ascii") as f:
                    left += [int(c) for c in f.read().split()]
        except OSError:
            pass  # it ended, or closed it
    return n


def wait_port(port, server):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError(f"{server.args[0]} ended with status {server.returncode}")
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{server.args[0]} does not listen at port {port}")


class Bench:
    """One run: the program under test, a folder for files, the servers to stop, the verdict."""

    def __init__(self, witty):
        self.witty = os.path.abspath(witty)
        self.dir = tempfile.mkdtemp(prefix="witty-real.")
        os.chmod(self.dir, 0o755)
        self.servers = []
        self.bad = 0
        self.count = 0

    def start(self, args, **kw):
        log = open(f"{self.dir}/{os.path.basename(args[0])}.log", "ab")
        server = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kw)
        log.close()
        self.servers.append(server)
        return server

    def stop(self, server, sig=signal.SIGTERM):
        if server.poll() is None:
            server.send_signal(sig)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def done(self):
        for server in self.servers:
            self.stop(server)
        shutil.rmtree(self.dir, ignore_errors=True)

    def record(self, args, server):
        """(flows, output of the command). The server gets time to read the last bytes: until it has closed what came."""
        self.count += 1
        base = f"{self.dir}/{self.count}"
        before = sockets_of(server.pid)
        script = f"{shlex.join(args)} >{base}.out 2>&1 </dev/null; s=$?; : >{base}.over; read -r _; exit $s"
        with open(f"{base}.log", "w+", encoding="utf-8") as log:
            run = subprocess.Popen([self.witty, "record", "-o", f"{base}.wpdb", "--", "sh", "-c", script],
                                   stdin=subprocess.PIPE, stdout=log, stderr=log)
            self.servers.append(run)
            until(f"{args[0]} ends", lambda: os.path.exists(f"{base}.over") or run.poll() is not None)
            until(f"{args[0]} is served", lambda: sockets_of(server.pid) <= before or run.poll() is not None)
            run.communicate(timeout=PATIENCE_S)
            log.seek(0)
            said = log.read()
        with open(f"{base}.out", encoding="utf-8") as f:
            output = f.read()
        if run.returncode:
            raise RuntimeError(f"record {args[0]}: exit {run.returncode}: {said}{output}")
        show = subprocess.run([self.witty, "show", f"{base}.wpdb", "flows", "--format", "json"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        if show.returncode:
            raise RuntimeError(f"show flows: exit {show.returncode}: {show.stderr}")
        return json.loads(show.stdout), output

    def line(self, what, reported, recorded, low=0, high=0):
        """Print one comparison: recorded - reported must be within low..high."""
        off = (recorded or 0) - reported
        good = recorded is not None and low <= off <= high
        room = f" (may be {low}..{high} more)" if (low, high) != (0, 0) else ""
        shown = "null" if recorded is None else recorded
        print(FORM.format(what, reported, shown, off, ("ok" if good else "OFF") + room))
        self.bad += not good

    def demand(self, what, good, why):
        print(FORM.format(what, "", "", "", "ok" if good else f"OFF: {why}"))
        self.bad += not good


def pick(flows, kind, source=None, target=None):
    """Flows of a kind; source and target are sets of pids, or None for any."""
    return [f for f in flows if f["kind"] == kind
            and (source is None or f["source"]["pid"] in source)
            and (target is None or f["target"]["pid"] in target)]


def total(rows, field):
    values = [r[field] for r in rows]
    return None if None in values or not values else sum(values)


def check_peers(b, what, rows, end, name):
    """The other ends are processes called name, all of them one and the same process."""
    pids = {r[end]["pid"] for r in rows}
    names = {r[end]["name"] for r in rows}
    b.demand(f"{what}: peer is {name}", len(pids) == 1 and None not in pids and names == {name},
             f"pids {pids}, names {names}")


def redis_info(conn):
    """(counters, length of the request, length of the reply)"""
    request = b"*2\r\n$4\r\nINFO\r\n$5\r\nstats\r\n"
    conn.sendall(request)
    reply = b""
    while not (m := re.match(rb"\$(\d+)\r\n", reply)) or len(reply) < m.end() + int(m[1]) + 2:
        reply += conn.recv(65536)
    counters = dict(re.findall(r"(total_net_\w+):(\d+)", reply.decode()))
    return {k: int(v) for k, v in counters.items()}, len(request), len(reply)


def redis_load(b, server, bench, port, kind, where):
    conn = socket.create_connection(("127.0.0.1", port))
    before, _, reply = redis_info(conn)
    flows, _ = b.record([bench, *where, "-n", "20000", "-c", "20", "-t", "set,get,lrange_100",
                         "-d", "200", "-q"], server)
    after, request, _ = redis_info(conn)
    conn.close()
    # A counter shows the request of the INFO that asks for it, not yet its reply.
    got = after["total_net_input_bytes"] - before["total_net_input_bytes"] - request
    gave = after["total_net_output_bytes"] - before["total_net_output_bytes"] - reply
    up, down = pick(flows, kind, target={server.pid}), pick(flows, kind, source={server.pid})
    name = f"redis {kind}"
    check_peers(b, name, up, "source", "redis-benchmark")
    check_peers(b, name, down, "target", "redis-benchmark")
    b.line(f"{name}: input, received", got, total(up, "bytes_received"))
    b.line(f"{name}: input, sent", got, total(up, "bytes_sent"))
    b.line(f"{name}: output, sent", gave, total(down, "bytes_sent"))
    b.line(f"{name}: output, received", gave, total(down, "bytes_received"))


def redis(b):
    server, bench = need("redis-server"), need("redis-benchmark")
    port, path = free_port(), f"{b.dir}/redis.sock"
    p = b.start([server, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", path,
                 "--save", "", "--appendonly", "no", "--dir", b.dir])
    wait_port(port, p)
    redis_load(b, p, bench, port, "tcp", ["-h", "127.0.0.1", "-p", str(port)])
    redis_load(b, p, bench, port, "unix", ["-s", path])
    b.stop(p)


NGINX_CONF = """
daemon off; worker_processes 2; pid {dir}/nginx.pid; error_log {dir}/nginx.err;
events {{ worker_connections 256; }}
http {{
  log_format sums '$bytes_sent $request_length';
  access_log {dir}/access.log sums;
  client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
  uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
  sendfile on; keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{port}; root {dir}/www; }}
}}
"""
WRK_SCRIPT = "done = function(s, l, r) io.write('bytes=' .. string.format('%.0f', s.bytes)) end\n"


def nginx(b):
    server, wrk = need("nginx"), need("wrk")
    port = free_port()
    os.mkdir(f"{b.dir}/www")
    with open(f"{b.dir}/www/page", "wb") as f:
        f.write(b"0123456789abcdef" * 2500)
    with open(f"{b.dir}/nginx.conf", "w", encoding="utf-8") as f:
        f.write(NGINX_CONF.format(dir=b.dir, port=port))
    with open(f"{b.dir}/sum.lua", "w", encoding="utf-8") as f:
        f.write(WRK_SCRIPT)
    os.chmod(b.dir, 0o777)
    p = b.start([server, "-p", b.dir, "-c", f"{b.dir}/nginx.conf", "-e", f"{b.dir}/nginx.err"])
    wait_port(port, p)
    children = f"/proc/{p.pid}/task/{p.pid}/children"
    with open(children, encoding="ascii") as f:
        workers = {int(w) for w in f.read().split()}
    os.truncate(f"{b.dir}/access.log", 0)
    flows, output = b.record([wrk, "-t", "1", "-c", "8", "-d", "1s", "-s", f"{b.dir}/sum.lua",
                              f"http://127.0.0.1:{port}/page"], p)
    with open(f"{b.dir}/access.log", encoding="ascii") as f:
        log = [tuple(map(int, row.split())) for row in f]
    up, down = pick(flows, "tcp", target=workers), pick(flows, "tcp", source=workers)
    check_peers(b, "nginx", up, "source", "wrk")
    check_peers(b, "nginx", down, "target", "wrk")
    b.line(f"nginx: $bytes_sent of {len(log)} requests", sum(r[0] for r in log),
           total(down, "bytes_sent"))
    b.line("nginx: $request_length", sum(r[1] for r in log), total(up, "bytes_received"))
    b.line("wrk: bytes read", int(re.search(r"bytes=(\d+)", output)[1]),
           total(down, "bytes_received"))
    b.stop(p)


# iperf3 does not report its control connection, which joins the same two processes: a cookie of 37
# bytes on each connection, one byte for each change of state, and JSON texts with a length of 4
# bytes (parameters one way, results both ways; results hold about 350 bytes for a stream).
IPERF_COOKIE = 37
IPERF_JSON_MOST = 4096


def iperf3(b):
    iperf = need("iperf3")
    for streams in (1, 3):
        port = free_port()
        p = b.start([iperf, "-s", "-1", "-p", str(port), "-J", "--logfile",
                     f"{b.dir}/iperf{streams}.json"])
        # A connection made only to see whether it listens would be the one test that -1 allows.
        def listens(port=port):
            with open("/proc/net/tcp6", encoding="ascii") as six, \
                    open("/proc/net/tcp", encoding="ascii") as four:
                return f":{port:04X} " in six.read() + four.read()
        until("iperf3 listens", listens, p)
        flows, output = b.record([iperf, "-c", "127.0.0.1", "-p", str(port), "-J", "-n", "60M",
                                  "-P", str(streams)], p)
        p.wait(PATIENCE_S)
        end = json.loads(output)["end"]
        up, down = pick(flows, "tcp", target={p.pid}), pick(flows, "tcp", source={p.pid})
        name = f"iperf3 -P {streams}"
        check_peers(b, name, up, "source", "iperf3")
        check_peers(b, name, down, "target", "iperf3")
        low = IPERF_COOKIE * (streams + 1)
        b.line(f"{name}: sent", end["sum_sent"]["bytes"], total(up, "bytes_sent"), low,
               low + IPERF_JSON_MOST)
        b.line(f"{name}: received", end["sum_received"]["bytes"], total(up, "bytes_received"), low,
               low + IPERF_JSON_MOST)
        b.line(f"{name}: back, control only", 0, total(down, "bytes_sent"), 8, IPERF_JSON_MOST)


class Postgres:
    """A private cluster that logs which backend serves whom."""

    # A simple query "SELECT 1;": type, length, text and its end. Its answer: row description (34
    # bytes), one row of one digit (12), "SELECT 1" (14), ready (6). PostgreSQL protocol 3.0.
    QUERY = "SELECT 1;"
    ASKED = 1 + 4 + len(QUERY) + 1
    ANSWERED = 34 + 12 + 14 + 6
    CLIENTS = 4
    STARTUP_MOST = 4096  # start-up packet, parameters and farewell, for each connection

    def __init__(self, b):
        self.b = b
        folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        initdb, self.pgbench = need("initdb", folders), need("pgbench", folders)
        self.port, self.dir = free_port(), f"{b.dir}/pg"
        os.mkdir(self.dir, 0o700)
        shutil.chown(self.dir, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": "/"}
        subprocess.run([initdb, "-D", self.dir + "/data", "-A", "trust", "-N"], check=True,
                       stdout=subprocess.DEVNULL, **user)
        os.chmod(self.dir, 0o755)
        self.server = b.start(
            [need("postgres", folders), "-D", self.dir + "/data", "-p", str(self.port), "-k",
             self.dir, "-c", "listen_addresses=127.0.0.1", "-c", "log_connections=on", "-c",
             "log_line_prefix=pid=%p ", "-c", "fsync=off", "-c", "autovacuum=off"], **user)
        wait_port(self.port, self.server)
        with open(f"{self.dir}/one.sql", "w", encoding="ascii") as f:
            f.write(self.QUERY + "\n")
        # The socket is in its place, yet the server may still say that it starts up.
        until("postgres answers", lambda: not self.load_plain(), self.server)

    def args(self, host, each):
        return [self.pgbench, "-h", host, "-p", str(self.port), "-U", "postgres", "-n", "-c",
                str(self.CLIENTS), "-j", "2", "-t", str(each), "-f", f"{self.dir}/one.sql",
                "postgres"]

    def load_plain(self):
        return subprocess.run(self.args("127.0.0.1", 1), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode

    def backends(self, since):
        with open(f"{self.b.dir}/postgres.log", encoding="utf-8") as f:
            text = f.read()[since:]
        return {int(p) for p in re.findall(r"pid=(\d+) .*connection authorized", text)}

    def load(self, kind, host, each):
        """Bytes asked and answered, sent and received, in one recorded run."""
        b, name = self.b, f"postgres {kind}"
        since = os.path.getsize(f"{b.dir}/postgres.log")
        flows, output = b.record(self.args(host, each), self.server)
        done = int(re.search(r"actually processed: (\d+)", output)[1])
        backends = self.backends(since)
        up, down = pick(flows, kind, target=backends), pick(flows, kind, source=backends)
        check_peers(b, name, up, "source", "pgbench")
        check_peers(b, name, down, "target", "pgbench")
        seen = {r["target"]["pid"] for r in up} & {r["source"]["pid"] for r in down}
        b.demand(f"{name}: backends", seen == backends and len(backends) >= self.CLIENTS,
                 f"{sorted(seen)} of {sorted(backends)}")
        room = self.STARTUP_MOST * len(backends)
        sums = [total(r, f) for r in (up, down) for f in ("bytes_sent", "bytes_received")]
        for text, per, got in (("queries sent", self.ASKED, sums[0]),
                               ("queries received", self.ASKED, sums[1]),
                               ("answers sent", self.ANSWERED, sums[2]),
                               ("answers received", self.ANSWERED, sums[3])):
            b.line(f"{name}: {done} {text}", done * per, got, 1, room)
        return done, sums

    def compare(self, kind, host):
        """Two runs that differ only in their length: what starts and ends them cancels out."""
        few, little = self.load(kind, host, 200)
        many, much = self.load(kind, host, 1700)
        if None in little + much:
            return
        name = f"postgres {kind}: {many - few} more"
        for text, per, i in (("queries, sent", self.ASKED, 0), ("queries, recv", self.ASKED, 1),
                             ("answers, sent", self.ANSWERED, 2),
                             ("answers, recv", self.ANSWERED, 3)):
            self.b.line(f"{name} {text}", (many - few) * per, much[i] - little[i])


def postgres(b):
    pg = Postgres(b)
    pg.compare("tcp", "127.0.0.1")
    pg.compare("unix", pg.dir)
    b.stop(pg.server, signal.SIGINT)


PROGRAMS = {"redis": redis, "nginx": nginx, "iperf3": iperf3, "postgres": postgres}

TITLE = FORM.format("program: number", "reported", "recorded", "error", "")


def run_all(bench, cases, wanted, title=TITLE):
    """Run those of the cases that are wanted. @return the exit status: a program that is not there is a failure"""
    print(title)
    try:
        for name in wanted or list(cases):
            try:
                cases[name](bench)
            except Missing as e:
                print(f"OFF: {name}: '{e}' is not installed: tools/packages.sh test")
                bench.bad += 1
            except (RuntimeError, subprocess.SubprocessError, OSError) as e:
                print(f"OFF: {name}: {e}")
                bench.bad += 1
    finally:
        bench.done()
    if bench.bad:
        print(f"FAILED: {bench.bad} lines are off")
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(run_all(Bench(sys.argv[1]), PROGRAMS, sys.argv[2:]))
