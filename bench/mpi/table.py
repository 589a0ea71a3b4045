#!/usr/bin/env python3
"""Runs bench_mpi on four ranks, or --ranks N, under the launcher of its build's MPI; all other
arguments are passed to it."""
import os
import shutil
import subprocess
import sys

PROGRAM = os.path.join(os.path.dirname(__file__), "../../build/release/bench/bench_mpi")


def launcher(ranks):
    libraries = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    if "libmpich" in libraries:
        return [shutil.which("mpirun.mpich") or "mpiexec", "-n", ranks]
    # Waiting ranks leave the processors to working ones.
    return [shutil.which("mpirun.openmpi") or "mpirun", "--oversubscribe", "--allow-run-as-root",
            "--mca", "mpi_yield_when_idle", "1", "-n", ranks]


def main():
    arguments = sys.argv[1:]
    ranks = "4"
    if "--ranks" in arguments:
        at = arguments.index("--ranks")
        ranks = arguments[at + 1]
        del arguments[at:at + 2]
    return subprocess.run(launcher(ranks) + [PROGRAM] + arguments, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
