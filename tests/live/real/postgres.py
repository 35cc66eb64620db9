"""Shared memory of PostgreSQL: the segment of its key, the buffers, the memory of its workers."""
import signal
import time

from real.bench import children_of, shared_by
from real_programs import Postgres

LOAD_S = 3


def postgres(b):
    pg = Postgres(b)
    server = pg.server.pid

    def look(_lines):
        for _ in range(100):
            backends = [p for p in children_of(server) if is_backend(p)]
            if len(backends) >= pg.CLIENTS:
                break
            time.sleep(0.05)
        return shared_by([server, *children_of(server)]), set(backends)

    args = pg.args("127.0.0.1", 1)
    args[args.index("-t"):args.index("-t") + 2] = ["-T", str(LOAD_S)]
    seen, _, (truth, backends) = b.watch(args, look=look)
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
