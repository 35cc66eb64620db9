"""Shared memory of PostgreSQL: the segment of its key, the buffers, the memory of its workers."""
import signal
import time

from real.bench import DEADLINE_S, children_of, shared_by
from real_programs import Postgres

# Until the file is there.
LOAD = """
hold=$1
shift
"$@" &
while [ ! -e "$hold" ] && kill -0 $!; do sleep 0.05; done
kill $!
wait $!
exit 0
"""


def postgres(b):
    pg = Postgres(b)
    server = pg.server.pid

    def look(_lines):
        end = time.monotonic() + DEADLINE_S
        backends = []
        while len(backends) < pg.CLIENTS and time.monotonic() < end:
            time.sleep(0.05)
            backends = [p for p in children_of(server) if is_backend(p)]
        return shared_by([server, *children_of(server)]), set(backends)

    args = pg.args("127.0.0.1", 1)
    args[args.index("-t"):args.index("-t") + 2] = ["-T", str(10 * DEADLINE_S)]
    seen, _, (truth, backends) = b.watch(["sh", "-c", LOAD, "sh", b.held(), *args], look=look)
    everyone = {p for one in truth.values() for p in one.pids}
    b.line("postgres: backends", pg.CLIENTS, len(backends))
    b.same_memory("postgres", truth, seen, everyone)
    for kind in ("sysv", "anonymous", "posix"):
        found = [o for o, modes in seen.mapped(everyone) if o["kind"] == kind
                 and set(modes) >= {server, *backends}]
        b.demand(f"postgres: {kind} of server and backends", found, "none")
        if kind == "sysv":
            b.demand("postgres: its key is known", found and found[0]["ipc_key"], "no key")
    b.stop(pg.server, signal.SIGINT)


def is_backend(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            return " 127.0.0.1(" in f.read()
    except OSError:
        return False
