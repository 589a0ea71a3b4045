#!/usr/bin/env python3
"""What commands cost in a store with many versions: one run, one table.

    bench/growth/table.py [--versions N]... [--rounds 5] [--row NAME]... [--dir DIR] [--stores DIR]
                           [--json FILE]

Stores of 100, 1,000 and 10,000 snapshots of a region of 1 MiB, of which up to 64 words change before each; --versions
names other numbers, 100000 for example, which takes minutes to make; --stores uses those in DIR/N, and keeps them.
Each command runs in a new process with the store's files in the page cache; the rounds go through all stores before
the next begins. Printed are the median of the seconds from the start of a process to its end (open and commit: of the
call, without the start), that of its processor seconds, and the largest peak of its resident memory; and the ratio of
the seconds to those with the fewest versions. On a busy machine, the processor seconds show more than the others.

Rows about one version (target: at most 1.5 times): open, commit, snapshot, log, show, ago, restore.
Rows about the whole store: stat, verify, gc. `snapshot` adds a version in each round.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from table_lib import print_rows, write_json

ONE_VERSION = ("open", "commit", "snapshot", "log", "show", "ago", "restore")
WHOLE_STORE = ("stat", "verify", "gc")
LIMIT = 1.5


class Place:
    """The programs, and the stores by their number of versions."""

    def __init__(self, options, scratch):
        self.kept = options.stores
        self.vellum, self.program = f"{options.programs}/bin/vellum", f"{options.programs}/bench/bench_growth"
        self.scratch, self.stores = scratch, {}
        self.run, self.made = int(time.time()), 0  # for names that are new in a kept store, too

    def make(self, versions):
        store = self.stores[versions] = f"{self.kept or self.scratch}/{versions}"
        if os.path.exists(store):
            return
        start = time.monotonic()
        finish(subprocess.Popen((self.program, "make", store, str(versions)), stderr=subprocess.PIPE, text=True))
        seconds = time.monotonic() - start
        print(f"{versions:,} versions made in {seconds:.1f} s, {seconds / versions * 1000:.2f} ms each", flush=True)

    def command(self, row, store):
        self.made += 1
        return {
            "open": (self.program, "open", store),
            "commit": (self.program, "commit", store),
            "snapshot": (self.vellum, "snapshot", store, f"kept-{self.run}-{self.made}"),
            "log": (self.vellum, "log", store, "-n", "10"),
            "show": (self.vellum, "show", store, "latest"),
            "ago": (self.vellum, "show", store, "main~3"),
            "restore": (self.vellum, "restore", store, "main", f"{self.scratch}/restored"),
            "stat": (self.vellum, "stat", store),
            "verify": (self.vellum, "verify", store),
            "gc": (self.vellum, "gc", store),
        }[row]

    def measured(self, row, versions):
        """(seconds, processor seconds, peak of resident memory in MiB)"""
        start = time.monotonic()
        process = subprocess.Popen(self.command(row, self.stores[versions]), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        output, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{row}: {errors.strip()}")
        if row in ("open", "commit"):
            seconds = float(dict(line.split() for line in output.splitlines())[row])
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def finish(process):
    errors = process.communicate()[1]
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(process.args[:2])}: {errors.strip()}")


def measure(place, rows, rounds):
    """{row: {versions: (median of seconds, median of processor seconds, peak MiB)}}"""
    report = {}
    for row in rows:
        results = {versions: [] for versions in place.stores}
        for _ in range(rounds):
            for versions, found in results.items():
                found.append(place.measured(row, versions))
        report[row] = {versions: (*map(statistics.median, columns[:2]), max(columns[2]))
                       for versions, columns in ((n, list(zip(*found))) for n, found in results.items())}
    return report


def duration(seconds):
    return f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"


def print_report(report, versions):
    least = min(versions)
    rows = [["", *(f"{n:,}" for n in versions), *(f"ratio {n:,}" for n in versions if n != least), "target", ""]]
    for row, found in report.items():
        ratios = [found[n][0] / found[least][0] for n in versions if n != least]
        wanted = row in ONE_VERSION
        verdict = ("ok" if max(ratios, default=1) <= LIMIT else "missed") if wanted else ""
        rows.append([row, *(f"{duration(found[n][0])}, {duration(found[n][1])}, {found[n][2]:.0f} MiB" for n in versions),
                     *(f"{ratio:.2f}" for ratio in ratios), f"{LIMIT}" if wanted else "", verdict])
    print_rows(rows)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", type=int, action="append", default=[], metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--row", action="append", choices=ONE_VERSION + WHOLE_STORE, default=[], metavar="NAME")
    parser.add_argument("--programs", default=f"{TOP}/build/release", metavar="DIR", help="the build")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="for the stores")
    parser.add_argument("--stores", metavar="DIR", help="of stores that remain")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.versions = sorted(set(options.versions)) or [100, 1000, 10000]
    for program in ("bench/bench_growth", "bin/vellum"):
        if not os.access(f"{options.programs}/{program}", os.X_OK):
            sys.exit(f"table: no program {options.programs}/{program}: make bench NAME=growth builds it")
    return options


def main():
    options = parse_options()
    for directory in filter(None, (options.dir, options.stores)):
        os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growth-table-", dir=options.dir) as scratch:
        place = Place(options, scratch)
        for versions in options.versions:
            place.make(versions)
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        rows = [row for row in ONE_VERSION + WHOLE_STORE if not options.row or row in options.row]
        report = measure(place, rows, options.rounds)
    print_report(report, options.versions)
    if options.json:
        write_json(options.json, "growth", {"rounds": options.rounds, "rows": {
            row: {str(n): dict(zip(("seconds", "processor_seconds", "peak_mib"), values)) for n, values in found.items()}
            for row, found in report.items()}})


if __name__ == "__main__":
    main()
