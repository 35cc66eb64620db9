"""Compare the recorded paths between the processes of real programs with what is known of them.

usage: real_paths.py WITTY [CASE]...

Each line of the table is one number, or one statement that holds or not. Numbers are what the
programs say of themselves. Who maps which shared memory is compared with /proc/PID/maps, read
meanwhile.
"""
import sys

from real import ddp, mpi, postgres, queues, stress
from real.bench import PathBench
from real_programs import run_all

CASES = {"openmpi-cma": mpi.openmpi_cma, "openmpi-shm": mpi.openmpi_shm,
         "openmpi-tcp": mpi.openmpi_tcp, "mpich": mpi.mpich, "mpich-shm": mpi.mpich_shm,
         "ddp": ddp.ddp, "torchrun": ddp.torchrun, "queues": queues.queues,
         "postgres": postgres.postgres, "stress-ng": stress.stress_ng}


if __name__ == "__main__":
    sys.exit(run_all(PathBench(sys.argv[1]), CASES, sys.argv[2:]))
