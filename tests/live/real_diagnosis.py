"""Real programs that are held up in a known way: whom does `bottlenecks` blame first?

usage: real_diagnosis.py WITTY [CASE]...

Each case prints a line with the first finding, and whether its root is one of those that are right.
"""
import sys

from real import slow_ddp, slow_servers
from real.blame import BlameBench
from real_programs import run_all

CASES = {"redis": slow_servers.redis, "nginx": slow_servers.nginx, "postgres": slow_servers.postgres,
         "ddp-loader": slow_ddp.loader, "ddp-neighbour": slow_ddp.neighbour, "ddp-nice": slow_ddp.nice,
         "ddp-quota": slow_ddp.quota}


if __name__ == "__main__":
    sys.exit(run_all(BlameBench(sys.argv[1]), CASES, sys.argv[2:]))
