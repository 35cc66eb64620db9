"""Record real programs and compare what `topology` draws of them with what people draw who know them.

usage: topologies.py WITTY [others|redis|nginx|gunicorn|postgres|make|mpi|ddp]...

A drawing has a line for each role and program, one for each kind of path between two of them (both
directions together, little chatter left out), and the pattern of each group of ranks. Databases, web
servers and builds have no such group, and nothing may be claimed for them.
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

from real_programs import PATIENCE_S, Bench, Missing, Postgres, free_port, need, run_all, until, wait_port

# Of each try: on a busy host it takes longer until all paths were used.
RECORD_SECONDS = 2, 8, 32
CHATTER_BYTES = 2048
HERE = os.path.dirname(os.path.abspath(__file__))

DRAWINGS = {
    "redis": """
        client redis-benchmark
        database redis-server
        client redis-benchmark -- database redis-server by tcp
    """,
    "nginx": """
        client wrk
        web server nginx
        server python3
        client wrk -- web server nginx by tcp
        server python3 -- web server nginx by unix
    """,
    "gunicorn": """
        client wrk
        web server gunicorn
        client wrk -- web server gunicorn by tcp
    """,
    "postgres": """
        client pgbench
        database postgres
        client pgbench -- database postgres by tcp
    """,
    "make": """
        build tool make
        build tool cc
        build tool cc1
        build tool as
        build tool as -- build tool cc1 by pipe
    """,
    "mpi": """
        launcher mpirun
        worker rank ring
        worker rank ring -- worker rank ring by memory_copy
        pattern ring all-reduce of 4
    """,
    "ddp2": """
        launcher python3
        worker rank python3
        data loader python3
        worker rank python3 -- worker rank python3 by tcp
        data loader python3 -- worker rank python3 by pipe
        data loader python3 -- worker rank python3 by unix
        pattern pair exchange of 2
        pattern data parallel 2
    """,
    "ddp4": """
        launcher python3
        worker rank python3
        data loader python3
        worker rank python3 -- worker rank python3 by tcp
        data loader python3 -- worker rank python3 by pipe
        data loader python3 -- worker rank python3 by unix
        pattern ring all-reduce of 4
        pattern data parallel 4
    """,
}

NGINX_CONF = """
daemon off; worker_processes 2; pid {dir}/nginx.pid; error_log {dir}/nginx.err;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
  uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://unix:{dir}/app.sock; }} }}
}}
"""
APP = """
import http.server, socketserver, sys

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"x" * 20000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

    def address_string(self):
        return "unix"

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

Server(sys.argv[1], Page).serve_forever()
"""
# A model that is served: each worker loads its own, and answers with what it says.
MODEL = """
import torch

torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16))

def app(environ, start_response):
    with torch.no_grad():
        body = repr(net(torch.ones(1, 64)).tolist()).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""
RING = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char *a = calloc(1, 100000), *b = calloc(1, 100000), name[100];
	int me, n, fd = -1;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	snprintf(name, sizeof(name), "%s/rank%d", argv[1], me);
	for (;;) {
		MPI_Sendrecv(a, 100000, MPI_CHAR, (me + 1) % n, 0, b, 100000, MPI_CHAR, (me + n - 1) % n, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (fd < 0)
			fd = open(name, O_CREAT | O_WRONLY, 0600);
		usleep(10000);
	}
}
"""
TRAIN = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
model = DistributedDataParallel(net)
data = TensorDataset(torch.randn(4096, 256), torch.randn(4096, 1))
while True:
    for x, y in DataLoader(data, batch_size=16, num_workers=1):
        ((model(x) - y) ** 2).mean().backward()
        open(f"ready{dist.get_rank()}", "w").close()
"""


def compiler():
    return need("cc")


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def related(actors, roots):
    """Actors that descend from one of the processes in roots."""
    by_id = {a["id"]: a for a in actors}
    kept = {}
    for a in actors:
        at = a
        while at and not any(at["id"].split("#")[0] == f"process:{r}" for r in roots):
            at = by_id.get(at["parent"])
        if at:
            kept[a["id"]] = a
    return kept


def name_of(actor):
    name = re.sub(r"\[\d+\]$", "", actor["label"])
    return f"{actor['role'] or 'process'} {name}"


def draw(topology, roots, leave_out=()):
    actors = related(topology["actors"], roots)
    lines, bytes_of = set(), {}
    for a in actors.values():
        if a["role"] and a["label"].split("[")[0] not in leave_out:
            lines.add(name_of(a))
    for link in topology["links"]:
        if link["source"] in actors and link["target"] in actors and link["kind"] != "storage":
            ends = sorted((name_of(actors[link["source"]]), name_of(actors[link["target"]])))
            key = f"{ends[0]} -- {ends[1]} by {link['kind']}"
            bytes_of[key] = bytes_of.get(key, 0) + (link["bytes"] or 0)
    lines |= {k for k, v in bytes_of.items() if v >= CHATTER_BYTES and not any(k.find(x) >= 0 for x in leave_out)}
    for group in topology["groups"]:
        if any(m in actors for m in group["members"]):
            lines |= {"pattern " + p["text"] for p in group["patterns"] if p["observed"]}
    return lines


def analyse(b, roots, seconds=RECORD_SECONDS[0], then=None):
    """Record what descends from roots, and analyse it. @then: what is to happen once it is observed"""
    b.count += 1
    path = f"{b.dir}/{b.count}.wpdb"
    pids = [x for r in roots for x in ("-p", str(r))]
    with open(f"{path}.log", "w+", encoding="utf-8") as log:
        run = subprocess.Popen([b.witty, "record", "-d", f"{seconds}s", "-o", path, *pids], stdout=log, stderr=log)
        b.servers.append(run)
        until("a recording", lambda: os.path.exists(path) or run.poll() is not None)
        if then:
            then()
        rc = run.wait(PATIENCE_S)
        log.seek(0)
        if rc:
            raise RuntimeError(f"record: exit {rc}: {log.read()}")
    out = subprocess.run([b.witty, "topology", path, "--format", "json"], check=True, capture_output=True,
                         timeout=PATIENCE_S)
    return json.loads(out.stdout)


def compare(b, name, look):
    """@look: draws what a recording of so many seconds shows"""
    wanted = {line.strip() for line in DRAWINGS[name].strip().splitlines()}
    for seconds in RECORD_SECONDS:
        lines = look(seconds)
        missing, more = wanted - lines, lines - wanted
        print(f"{name}: {'as drawn' if not missing and not more else 'OFF'}")
        for line in sorted(missing):
            print(f"  missing in {seconds} s: {line}")
        for line in sorted(more):
            print(f"  too much: {line}")
        # What is there is not gone after a longer look.
        if not missing or more:
            break
    b.bad += bool(missing or more)


def redis(b):
    server, bench = need("redis-server"), need("redis-benchmark")
    port = free_port()
    p = b.start([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", b.dir])
    wait_port(port, p)
    load = b.start([bench, "-p", str(port), "-l", "-c", "8", "-t", "set,get", "-q"])
    compare(b, "redis", lambda s: draw(analyse(b, [p.pid, load.pid], s), [p.pid, load.pid]))
    b.stop(load)
    b.stop(p)


def nginx(b):
    server, wrk = need("nginx"), need("wrk")
    port = free_port()
    write(f"{b.dir}/nginx.conf", NGINX_CONF.format(dir=b.dir, port=port))
    write(f"{b.dir}/app.py", APP)
    os.chmod(b.dir, 0o777)
    app = b.start([sys.executable, f"{b.dir}/app.py", f"{b.dir}/app.sock"])
    until("the application", lambda: os.path.exists(f"{b.dir}/app.sock"), app)
    os.chmod(f"{b.dir}/app.sock", 0o777)
    p = b.start([server, "-p", b.dir, "-c", f"{b.dir}/nginx.conf", "-e", f"{b.dir}/nginx.err"])
    wait_port(port, p)
    load = b.start([wrk, "-t", "1", "-c", "4", "-d", "600s", f"http://127.0.0.1:{port}/"])
    roots = [app.pid, p.pid, load.pid]

    def look(seconds):
        # Who asks is known by who begins: nothing may be under way when the recording does.
        os.kill(load.pid, signal.SIGSTOP)
        time.sleep(0.5)
        return draw(analyse(b, roots, seconds, lambda: os.kill(load.pid, signal.SIGCONT)), roots)
    compare(b, "nginx", look)
    for x in (load, p, app):
        b.stop(x)


def gunicorn(b):
    server, wrk = need("gunicorn"), need("wrk")
    port, folder = free_port(), f"{b.dir}/model"
    os.mkdir(folder)
    write(f"{folder}/model.py", MODEL)
    p = b.start([server, "--workers", "3", "--bind", f"127.0.0.1:{port}", "model:app"], cwd=folder)
    wait_port(port, p)
    # Each worker loads its model first.
    for _ in range(6):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S).read()
    load = b.start([wrk, "-t", "1", "-c", "6", "-d", "600s", f"http://127.0.0.1:{port}/"])
    compare(b, "gunicorn", lambda s: draw(analyse(b, [p.pid, load.pid], s), [p.pid, load.pid]))
    b.stop(load)
    b.stop(p)


def postgres(b):
    pg = Postgres(b)
    load = b.start([pg.pgbench, "-h", "127.0.0.1", "-p", str(pg.port), "-U", "postgres", "-n", "-c", "4", "-T",
                    "600", "-f", f"{pg.dir}/one.sql", "postgres"])
    roots = [pg.server.pid, load.pid]
    compare(b, "postgres", lambda s: draw(analyse(b, roots, s), roots))
    b.stop(load)
    b.stop(pg.server)


def make(b):
    tool, cc = need("make"), compiler()
    folder = f"{b.dir}/src"
    os.mkdir(folder)
    body = "".join(f"int f{i}(int x) {{ return x * {i} + 1; }}\n" for i in range(400))
    for i in range(40):
        write(f"{folder}/a{i}.c", body.replace("int f", f"int a{i}_"))
    write(f"{folder}/Makefile", f"CC = {cc}\nOBJ = $(patsubst %.c,%.o,$(wildcard *.c))\nall: $(OBJ)\n"
                                "%.o: %.c\n\t$(CC) -pipe -O2 -c -o $@ $<\n")
    run = b.start(["sh", "-c", f"while {tool} -s -j2 -C {folder} all; do rm {folder}/*.o; done"])
    # Shells and links of compilers come and go by the version of both.
    compare(b, "make", lambda s: draw(analyse(b, [run.pid], s), [run.pid], leave_out=("sh", "x86_64", "aarch64", "rm", "gcc")))
    b.stop(run)


def mpi(b):
    cc, run = need("mpicc"), need("mpirun")
    write(f"{b.dir}/ring.c", RING)
    subprocess.run([cc, "-o", f"{b.dir}/ring", f"{b.dir}/ring.c"], check=True, capture_output=True)
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    p = b.start([run, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", "4", f"{b.dir}/ring", b.dir],
                env=env)
    until("all ranks", lambda: len(glob.glob(b.dir + "/rank*")) == 4, p)
    compare(b, "mpi", lambda s: draw(analyse(b, [p.pid], s), [p.pid]))
    b.stop(p)


def ddp(b):
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode:
        raise Missing("python3-torch")
    for n in (2, 4):
        folder = f"{b.dir}/ddp{n}"
        os.mkdir(folder)
        write(f"{folder}/train.py", TRAIN)
        env = dict(os.environ, OMP_NUM_THREADS="1")
        # Logs to files: the way around them of this version does not work with Python 3.11.
        p = b.start([python, "-m", "torch.distributed.run", "-r", "1", "-t", "2", "--log_dir", folder,
                     "--nproc_per_node", str(n), "--master_port", str(free_port()), "train.py"], cwd=folder, env=env)
        until("all ranks", lambda f=folder, n=n: len(glob.glob(f + "/ready*")) == n, p)
        compare(b, f"ddp{n}", lambda s, p=p: draw(analyse(b, [p.pid], s), [p.pid]))
        b.stop(p)


# Hosts without any AI job. Each runs until it is stopped; nothing may be claimed of any.
OTHERS = {
    "http server": "{python} -m http.server {port} --bind 127.0.0.1 & sleep 1;"
                   "while curl -s -o /dev/null http://127.0.0.1:{port}/; do :; done",
    "pipeline": "while :; do tar -cf - /usr/share/doc | gzip -1 | wc -c; done",
    "four compressors": "while :; do seq 4 | xargs -P 4 -I @ sh -c 'head -c 30000000 /dev/zero | gzip -9 >/dev/null'; done",
    "sort": "while :; do seq 300000 | sort --parallel=2 -R | sort -n | tail -n 1; done",
    "iperf3": "iperf3 -s -p {port} & sleep 1; iperf3 -c 127.0.0.1 -p {port} -P 4 -t 60 --bidir -b 100M",
    "stress": "exec stress-ng --cpu 2 --pipe 2 --sock 2 --mq 2 --shm 2 --timeout 60",
    "three redis servers": "for p in {port} {port2} {port3}; do redis-server --port $p --bind 127.0.0.1 --save '' "
                           "--cluster-enabled yes --cluster-config-file n$p --cluster-node-timeout 500 & done; sleep 1;"
                           "redis-cli --cluster create 127.0.0.1:{port} 127.0.0.1:{port2} 127.0.0.1:{port3} --cluster-yes;"
                           "sleep 60",
    "redis and a replica": "redis-server --port {port} --save '' & redis-server --port {port2} --save '' --replicaof "
                           "127.0.0.1 {port} & sleep 1; redis-benchmark -p {port} -l -t set -d 1000 -q",
    "pool of processes": "exec {python} -c 'import multiprocessing as m\n"
                         "with m.Pool(4) as p:\n while True: p.map(len, [b\"x\" * 1000] * 1000)'",
    "filters": "while :; do head -c 100000000 /dev/zero | cat | cat | cat | cat | wc -c; done",
    "many shells": "while :; do for i in 1 2 3 4 5; do (echo $i; ls /usr/bin | wc -l) | cat; done; done",
    "git": "git init -q r; cd r; head -c 3000000 /dev/urandom >f; git add f;"
           "git -c user.name=a -c user.email=b commit -qm a; while :; do git clone -q . ../c; rm -rf ../c; done",
    "four writers of a database": "sqlite3 d 'create table t(x)'; seq 4 | xargs -P 4 -I @ sh -c 'while :; do"
                                  " sqlite3 -cmd \".timeout 5000\" d \"insert into t values(@)\"; done'",
    "disk benchmark": "exec fio --name=f --rw=randrw --bs=4k --size=8m --numjobs=4 --time_based --runtime=60",
    "messages": "while :; do hackbench -g 2 -l 2000; done",
    "web application": "printf 'def app(e, s):\n s(\"200 OK\", [])\n return [b\"x\" * 5000]\n' >hello.py;"
                       "gunicorn --workers 4 --bind 127.0.0.1:{port} hello:app & sleep 2;"
                       "wrk -t 1 -c 8 -d 60s http://127.0.0.1:{port}/",
    "ssh-like relay": "mkfifo a b; cat a >b & cat b >a & head -c 1000 /dev/zero >a; sleep 60",
}
# A pool of workers around its master is one: that is what it is.
STARS = ("pool of processes",)


SIDE_BY_SIDE = 7


def claims_of(topology, root):
    """Patterns that are claimed of what descends from one process."""
    actors = related(topology["actors"], [root])
    return [q["text"] for g in topology["groups"] if any(m in actors for m in g["members"])
            for q in g["patterns"] if q["observed"]]


def start_other(b, number, script):
    folder = f"{b.dir}/other{number}"
    os.mkdir(folder)
    script = script.format(python=sys.executable, port=free_port(), port2=free_port(), port3=free_port())
    return b.start(["sh", "-c", script], cwd=folder, start_new_session=True)


def others(b):
    todo = list(OTHERS.items())
    for begin in range(0, len(todo), SIDE_BY_SIDE):
        part = todo[begin:begin + SIDE_BY_SIDE]
        running = [start_other(b, begin + i, script) for i, (_, script) in enumerate(part)]
        time.sleep(3)
        topology = analyse(b, [p.pid for p in running])
        for (name, _), p in zip(part, running):
            claims = claims_of(topology, p.pid)
            good = not claims or (name in STARS and all("star" in c for c in claims))
            print(f"{name}: {'nothing claimed' if not claims else claims}{'' if good else ' OFF'}")
            b.bad += not good
            os.killpg(p.pid, signal.SIGKILL)
            b.stop(p)


PROGRAMS = {"others": others, "redis": redis, "nginx": nginx, "gunicorn": gunicorn, "postgres": postgres, "make": make, "mpi": mpi, "ddp": ddp}


if __name__ == "__main__":
    sys.exit(run_all(Bench(sys.argv[1]), PROGRAMS, sys.argv[2:], title="program: its drawing"))
