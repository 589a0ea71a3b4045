#!/usr/bin/env python3
"""The README's figures beside their peers, each pair from one run: a Markdown table to paste.

    bench/figures.py [--small] [--programs build/release/bench] [--dir DIR] [--json FILE]

The numpy row needs `make python ARGS=--optional`, the row of `std::sort` root; a row that cannot run is left out, with
the reason, and the exit status is 1. The rows of LMDB and Metall need data and sources: make bench NAME=lmdb KV=FILE,
make bench NAME=metall. --small runs the same in small sizes, to check this program: its figures mean nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f"{TOP}/bench")
from table_lib import write_json  # noqa: E402


def milliseconds(microseconds):
    return f"{microseconds / 1000:.2f} ms"


def seconds(value):
    return f"{value:.3g} s"


def thousands(rate):
    return f"{rate / 1000:,.0f} k/s"


class Row:
    """A task, the command that measures it, where its JSON has the figures, and their form."""

    def __init__(self, task, command, small, ours, peers, form, higher_is_better=False):
        self.task, self.command, self.small, self.ours, self.peers = task, command, small, ours, peers
        self.form, self.higher_is_better = form, higher_is_better

    def cells(self, figures):
        """The row, with each peer's ratio to Vellum: above 1 Vellum is better."""
        own = figures[self.ours]
        found = []
        for peer, key in self.peers.items():
            if key in figures:
                ratio = own / figures[key] if self.higher_is_better else figures[key] / own
                found.append(f"{peer} {self.form(figures[key])} ({ratio:.3g} times)")
        return self.task, self.form(own), "; ".join(found)


NUMPY = "rows, {}, commit s"
ROWS = [
    Row("commit of 64 writes in 1 GiB", ["bench_commit", "--commits", "100"], ["--mib", "16", "--rounds", "4"],
        "commit_64_p50", {"`msync(MS_SYNC)`": "msync_64_p50"}, milliseconds),
    Row("b-tree inserts, a commit every 100",
        [f"{TOP}/bench/fams/table.py", "--medium", "disk", "--structure", "btree", "--workload", "insert",
         "--every", "100", "--store", "vellum-cards", "--store", "bdb", "--store", "msync"],
        ["--keys", "1000", "--rounds", "1"],
        "disk, btree, insert, every 100, vellum-cards, operations per second",
        {"BerkeleyDB": "disk, btree, insert, every 100, bdb, operations per second",
         "`msync`": "disk, btree, insert, every 100, msync, operations per second"}, thousands, True),
    Row("numpy: 1 % of the rows of 1 GiB",
        [f"{TOP}/bench/python/table.py", "--pattern", "rows", "--versions", "4", "--peer", "vellum", "--peer", "zarr",
         "--peer", "np.save"], ["--mib", "16"],
        NUMPY.format("vellum"), {"zarr": NUMPY.format("zarr"), "`np.save`": NUMPY.format("np.save")}, seconds),
    Row("pause of a snapshot of 4 GiB", ["bench_pause", "--rounds", "5"], ["--mib", "64"],
        "pages, 0.1 %, pause", {"`fork()`": "pages, 0.1 %, fork"}, lambda ms: f"{ms:.2g} ms"),
    Row("`std::sort`, 4 times the memory limit", ["bench_paging", "--only", "sort"],
        ["--mib", "192"],
        "sort, vellum, seconds", {"`MAP_SHARED`": "sort, plain, seconds"}, seconds),
]


def flat(report):
    """The figures by name. Names of the pause have the number of pages, which depends on the size."""
    figures = dict(report.get("figures", {}))
    fewest = min((int(name.split(", ")[1]) for name in figures if name.startswith("pages, ")), default=0)
    for what in ("pause", "fork"):
        if f"pages, {fewest}, {what}_p50" in figures:
            figures[f"pages, 0.1 %, {what}"] = figures[f"pages, {fewest}, {what}_p50"]
    for peer, values in report.get("rows", {}).items() if isinstance(report.get("rows"), dict) else ():
        figures.update({f"rows, {peer}, {name}": value for name, value in values.items()})
    return figures


def measured(row, options, directory):
    """The cells of a row, or None after a line with the reason."""
    program, *arguments = row.command
    out = f"{directory}/row.json"
    where = ["--dir", directory]
    if program.endswith("fams/table.py"):
        where += ["--program", f"{options.programs}/bench_fams"]
    command = [program if "/" in program else f"{options.programs}/{program}", *arguments,
               *(row.small if options.small else []), *where, "--json", out]
    print(f"figures: {' '.join(command)}", file=sys.stderr, flush=True)
    try:
        run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if run.returncode == 0:
            with open(out, encoding="utf-8") as file:
                return row.cells(flat(json.load(file)))
        reason = (run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1]
    except (OSError, KeyError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    print(f"figures: left out: {row.task}: {reason}", file=sys.stderr)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--programs", default=f"{TOP}/build/release/bench")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="on a disk")
    parser.add_argument("--json")
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    rows = []
    for row in ROWS:
        with tempfile.TemporaryDirectory(dir=options.dir) as directory:
            cells = measured(row, options, directory)
        rows += [cells] if cells else []
    print("| Task | Vellum | Peers |\n| --- | --- | --- |")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")
    if options.json:
        write_json(options.json, "figures", {"rows": rows})
    sys.exit(0 if len(rows) == len(ROWS) else 1)


if __name__ == "__main__":
    main()
