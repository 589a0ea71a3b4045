"""Shared by the benchmarks' table.py: runs with a time limit, the PATH, aligned columns, and the JSON."""

import json
import os
import platform
import signal

PEERS = f"{os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}/build/bench"  # what fetch_peers.py has fetched


def path_with_peers():
    """The PATH with the fetched peers before those of the system."""
    return f"{PEERS}/bin{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def print_rows(rows, left_columns=1):
    """Columns from the left are aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) if i < left_columns else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip(), flush=True)


def write_json(file, name, report):
    system = os.uname()
    machine = {"system": f"{system.sysname} {system.release} {system.machine}",
               "processors": os.cpu_count(), "python": platform.python_version()}
    if os.path.dirname(file):
        os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"name": name, "machine": machine, **report}, out, indent=2)
        out.write("\n")
