"""Compare the recorded paths between the processes of real programs with what is known of them.

usage: real_paths.py WITTY [CASE]...

Each line of the table is one number, or one statement that holds or not. Numbers are what the
programs say of themselves. Who maps which shared memory is compared with /proc/PID/maps, read
meanwhile.
"""
import subprocess
import sys

from real import ddp, mpi, postgres, queues, stress
from real.bench import PathBench
from real_programs import FORM, Missing

CASES = {"openmpi-cma": mpi.openmpi_cma, "openmpi-shm": mpi.openmpi_shm,
         "openmpi-tcp": mpi.openmpi_tcp, "mpich": mpi.mpich, "mpich-shm": mpi.mpich_shm,
         "ddp": ddp.ddp, "torchrun": ddp.torchrun, "queues": queues.queues,
         "postgres": postgres.postgres, "stress-ng": stress.stress_ng}


def main():
    wanted = sys.argv[2:] or list(CASES)
    b = PathBench(sys.argv[1])
    ran = 0
    print(FORM.format("program: number", "reported", "recorded", "error", ""))
    try:
        for name in wanted:
            try:
                CASES[name](b)
                ran += 1
            except Missing as e:
                print(f"SKIP: {name}: '{e}' is not installed")
            except (RuntimeError, subprocess.SubprocessError, OSError) as e:
                print(f"OFF: {name}: {e}")
                b.bad += 1
    finally:
        b.done()
    if b.bad:
        print(f"FAILED: {b.bad} numbers are off")
        return 1
    return 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
