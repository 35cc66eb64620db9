"""Servers that are slow for a known reason: a script, an upstream, a lock."""
import os
import subprocess
import sys
import time

from real_programs import Postgres, free_port, need, wait_port

# Some 50 ms in the server, which does nothing else meanwhile.
LUA = "local x = 0; for i = 1, 4000000 do x = x + i % 7 end; return x"


def redis(b):
    """Clients of redis wait for a server that runs a script."""
    port = free_port()
    p = b.start([need("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", b.dir])
    wait_port(port, p)
    load = b.start([need("redis-benchmark"), "-p", str(port), "-n", "100000000", "-c", "8", "-t", "get", "-q"])
    script = b.start([need("redis-cli"), "-p", str(port), "-r", "100000", "EVAL", LUA, "0"])
    time.sleep(0.5)
    b.blames("redis: a slow script", [p.pid, load.pid, script.pid], {p.pid})
    for server in (script, load, p):
        b.stop(server)


UPSTREAM = """
import http.server, sys, time
class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Slow).serve_forever()
"""
CONF = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.err;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
  uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{up}; }} }}
}}
"""


def nginx(b):
    """Clients of nginx wait for the server behind it."""
    port, up = free_port(), free_port()
    with open(f"{b.dir}/slow.conf", "w", encoding="utf-8") as f:
        f.write(CONF.format(dir=b.dir, port=port, up=up))
    os.chmod(b.dir, 0o777)
    upstream = b.start([sys.executable, "-c", UPSTREAM, str(up)])
    wait_port(up, upstream)
    server = b.start([need("nginx"), "-p", b.dir, "-c", f"{b.dir}/slow.conf", "-e", f"{b.dir}/nginx.err"])
    wait_port(port, server)
    load = b.start([need("wrk"), "-t", "1", "-c", "4", "-d", "60s", f"http://127.0.0.1:{port}/"])
    time.sleep(0.5)
    b.blames("nginx: a slow upstream", [upstream.pid, server.pid, load.pid], {upstream.pid})
    for p in (load, server, upstream):
        b.stop(p)


HOLD = "BEGIN; UPDATE held SET n = n + 1; SELECT sum(i % 7) FROM generate_series(1, 1000000) i; COMMIT;\n"


def postgres(b):
    """Sessions wait for a row that one keeps locked while it computes."""
    pg = Postgres(b)
    psql = [need("psql"), "-h", pg.dir, "-p", str(pg.port), "-U", "postgres", "-q", "-A", "-t", "postgres"]
    user = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": "/"}
    subprocess.run([*psql, "-c", "CREATE TABLE held(n bigint); INSERT INTO held VALUES(0);"], check=True, **user)
    with open(f"{pg.dir}/take.sql", "w", encoding="ascii") as f:
        f.write("UPDATE held SET n = n + 1;\n")
    with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **user) as holder:
        holder.stdin.write("SELECT pg_backend_pid();\n")
        holder.stdin.flush()
        backend = int(holder.stdout.readline())
        with open(f"{pg.dir}/hold.sql", "w", encoding="ascii") as f:
            f.write("\\o /dev/null\n" + HOLD * 200)
        holder.stdin.write(f"\\i {pg.dir}/hold.sql\n")
        holder.stdin.flush()
        load = b.start([pg.pgbench, "-h", pg.dir, "-p", str(pg.port), "-U", "postgres", "-n", "-c", "4", "-T", "60",
                        "-f", f"{pg.dir}/take.sql", "postgres"], **user)
        time.sleep(0.5)
        b.blames("postgres: a lock that is held", [pg.server.pid, load.pid, holder.pid], {backend})
        holder.kill()
    for p in (load, pg.server):
        b.stop(p)
