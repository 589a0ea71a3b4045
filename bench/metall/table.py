#!/usr/bin/env python3
"""Runs bench_metall of several managers alternately, and prints one table of them.

    bench/metall/table.py [--peer "NAME=PROGRAM@DIR[,statvfs][,async][,VARIABLE=VALUE]..."]...

A peer is a program that was built from ingest.cpp, its data directory, and variables for its environment.
`statvfs` counts its bytes by the decrease of its file system's free space, for shared or compressed
blocks; nothing else may write there. Otherwise its files' disk blocks count. `async` takes snapshots in
the background; they are durable at the end. Without --peer: the peers that the build has produced, in
--dir.

Each run has an emptied directory and a machine whose file systems were synchronised; the page cache
stays. As shipped: a snapshot is as durable as the peer makes it. Durable: its seconds last until the
file system has it on disk (syncfs). Medians of --rounds; ratios are to the first peer.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from table_lib import kill_group, print_rows, write_json
MODES = {"as shipped": "0", "durable": "1"}
# Sizes for which plain Metall takes some seconds: keys, and for the graph R-MAT's scale.
SIZES = {"vector": 40_000_000, "map": 2_000_000, "unordered_map": 5_000_000, "graph": 20}
DEFAULT_PEERS = (("Vellum", "bench_metall", ()),
                 ("Vellum, snapshot_async()", "bench_metall", ("async",)),
                 ("Vellum, Privateer's door", "bench_metall_privateer", ()),
                 ("plain Metall", "bench_metall_plain", ()),
                 ("LLNL Privateer", "bench_metall_llnl", ()))
SETTINGS = ("statvfs", "async")
SECONDS = ("insert seconds", "snapshot seconds", "seconds")


class Peer:
    def __init__(self, name, program, directory, settings=()):
        self.name, self.program, self.directory = name, os.path.abspath(program), directory
        self.statvfs = "statvfs" in settings
        self.arguments = ["--async", "1"] if "async" in settings else []
        self.environment = dict(s.split("=", 1) for s in settings if s not in SETTINGS)
        if not os.access(self.program, os.X_OK):
            sys.exit(f"table: {name}: no program {program}")

    @staticmethod
    def parse(text):
        first, *settings = text.split(",")
        name, equals, rest = first.partition("=")
        program, at, directory = rest.rpartition("@")
        if not (name and equals and program and at and directory) or any(
                s not in SETTINGS and "=" not in s for s in settings):
            sys.exit(f"table: --peer {text}: not NAME=PROGRAM@DIR[,statvfs][,async]"
                     "[,VARIABLE=VALUE]...")
        return Peer(name, program, directory, settings)

    def bytes_of(self, figures, prefix):
        return figures[f"{prefix}, {'file system' if self.statvfs else 'block'} bytes"]


def run_program(peer, workload, mode, options):
    """Its figures; None when it did not end in time; or the output of a failure."""
    scratch = os.path.join(peer.directory, "metall-table")
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    for _ in range(2):  # deleted blocks may be freed only by the second one
        os.sync()
    with tempfile.NamedTemporaryFile(suffix=".json") as out, tempfile.TemporaryFile("w+") as said:
        size = str(options.size[workload])
        command = [peer.program, "--json", out.name, "--dir", scratch, "--only", workload,
                   "--rmat" if workload == "graph" else "--inserts", size,
                   "--rounds", str(options.snapshots), "--sync", MODES[mode], *peer.arguments,
                   *options.arguments]
        process = subprocess.Popen(command, env={**os.environ, **peer.environment}, stderr=said,
                                   stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(options.timeout)
            if process.returncode == 0:
                return json.load(out)["figures"]
            said.seek(0)
            return (said.read().strip().splitlines() or [f"exit {process.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            return None
        finally:
            kill_group(process)
            shutil.rmtree(scratch, ignore_errors=True)


class Series:
    """The runs of a peer in one workload and mode."""

    def __init__(self, peer, workload):
        self.peer, self.workload, self.runs, self.trouble = peer, workload, [], ""

    def add(self, result, timeout):
        if isinstance(result, dict):
            self.runs.append(result)
        else:
            self.trouble = f"> {timeout:g} s" if result is None else "failed"

    def median(self, what):
        return statistics.median(run[f"{self.workload}, {what}"] for run in self.runs)

    def stored(self):
        return statistics.median(self.peer.bytes_of(run, self.workload) for run in self.runs)

    def curve(self):
        """[(seconds so far, bytes)] after each snapshot, of the median run."""
        total = f"{self.workload}, seconds"
        runs = sorted(self.runs, key=lambda run: run[total])
        run, points, seconds = runs[(len(runs) - 1) // 2], [], 0
        while f"{self.workload}, round {len(points)}, insert seconds" in run:
            name = f"{self.workload}, round {len(points)}"
            seconds += run[f"{name}, insert seconds"] + run[f"{name}, snapshot seconds"]
            points.append((seconds, self.peer.bytes_of(run, name)))
        return points


def measure(peers, options):
    """{(workload, mode, peer's name): Series}; round robin, to expose all to the same disturbances. A
    peer that did not end in time or failed is not run again for that workload."""
    all_series = {}
    for workload in options.workload:
        out = set()
        for turn in range(options.rounds):
            for mode in options.mode:
                for peer in peers:
                    key = (workload, mode, peer.name)
                    series = all_series.setdefault(key, Series(peer, workload))
                    if peer.name in out:
                        if not series.runs:
                            series.trouble = series.trouble or "not run"
                        continue
                    result = run_program(peer, workload, mode, options)
                    series.add(result, options.timeout)
                    if series.trouble:
                        out.add(peer.name)
                    report_progress(key, turn, series, result)
    return all_series


def report_progress(key, turn, series, result):
    said = result if isinstance(result, str) else series.trouble
    if isinstance(result, dict):
        seconds = result[f"{series.workload}, seconds"]
        said = f"{seconds:.2f} s, {series.peer.bytes_of(result, series.workload) / 2**20:.1f} MiB"
    load = os.getloadavg()[0]
    print(f"{', '.join(key)}, round {turn + 1}: {said} (load {load:.1f})", file=sys.stderr, flush=True)


def cells_of(series, base):
    if series.trouble or not series.runs:
        return ["-", "-", series.trouble or "-", "-", "-", "-"]
    seconds = [series.median(what) for what in SECONDS]
    known = base.runs and not base.trouble
    time = f"{seconds[-1] / base.median('seconds'):.2f}" if known else "-"
    room = f"{series.stored() / base.stored():.2f}" if known else "-"
    return [*(f"{s:.2f}" for s in seconds), time, f"{series.stored() / 2**20:.1f}", room]


def print_table(peers, all_series, options):
    heading = ["ingest s", "snapshots s", "total s", "ratio", "MiB", "ratio"]
    rows = [["", "", *(cell for mode in options.mode for cell in (mode, "", "", "", "", ""))],
            ["workload", "peer", *heading * len(options.mode)]]
    for workload in options.workload:
        for peer in peers:
            row = [workload if peer is peers[0] else "", peer.name]
            for mode in options.mode:
                base = all_series[workload, mode, peers[0].name]
                row += cells_of(all_series[workload, mode, peer.name], base)
            rows.append(row)
    print_rows(rows, left_columns=2)


def write_report(file, peers, all_series, options):
    figures, curves = {}, {}
    for (workload, mode, peer), series in all_series.items():
        if series.trouble or not series.runs:
            continue
        for what in SECONDS:
            figures[f"{workload}, {mode}, {peer}, {what}"] = series.median(what)
        figures[f"{workload}, {mode}, {peer}, bytes"] = series.stored()
        curves.setdefault(f"{workload}, {mode}", {})[peer] = series.curve()
    report = {"sizes": {workload: options.size[workload] for workload in options.workload},
              "peers": [peer.name for peer in peers],
              "troubles": {", ".join(key): series.trouble
                           for key, series in all_series.items() if series.trouble},
              "figures": figures, "curves": curves}
    write_json(file, "metall", report)


def parse_sizes(words):
    sizes = dict(SIZES)
    for word in words:
        workload, _, size = word.partition("=")
        if workload not in SIZES or not size.isdigit():
            sys.exit(f"table: --size {word}: not WORKLOAD=NUMBER of {', '.join(SIZES)}")
        sizes[workload] = int(size)
    return sizes


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="append", default=[],
                        metavar="NAME=PROGRAM@DIR[,statvfs][,async][,VARIABLE=VALUE]...")
    parser.add_argument("--programs", default=f"{TOP}/build/release/bench", metavar="DIR",
                        help="where the build has put its own")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="for their data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--snapshots", type=int, default=10, help="in each run")
    parser.add_argument("--workload", action="append", choices=SIZES)
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--size", action="append", default=[], metavar="WORKLOAD=NUMBER",
                        help="keys; for graph the scale of R-MAT")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a run")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", action="append", metavar="FILE",
                        help="bytes stored against seconds (matplotlib)")
    parser.add_argument("arguments", nargs="*", help="after --: for the programs")
    options = parser.parse_args()
    options.size = parse_sizes(options.size)
    options.workload = options.workload or list(SIZES)
    options.mode = options.mode or list(MODES)
    return options


def peers_of(options):
    peers = [Peer.parse(text) for text in options.peer]
    if not peers:
        found = [(name, os.path.join(options.programs, program), settings)
                 for name, program, settings in DEFAULT_PEERS]
        peers = [Peer(name, program, options.dir, settings) for name, program, settings in found
                 if os.path.exists(program)]
    if len({peer.name for peer in peers}) != len(peers):
        sys.exit("table: two peers of one name")
    if not peers:
        sys.exit(f"table: no programs in {options.programs}: make bench NAME=metall builds them")
    return peers


def main():
    options = parse_options()
    peers = peers_of(options)
    all_series = measure(peers, options)
    print_table(peers, all_series, options)
    with tempfile.TemporaryDirectory() as scratch:
        report = options.json or os.path.join(scratch, "metall.json")
        write_report(report, peers, all_series, options)
        if options.plot:
            to = [word for file in options.plot for word in ("--to", file)]
            # Debian's python3 has Debian's matplotlib; another one may lack it.
            python = next(filter(os.path.exists, ("/usr/bin/python3", sys.executable)))
            subprocess.run([python, f"{TOP}/bench/plot.py", report, *to], check=False)
    return 1 if any(series.trouble == "failed" for series in all_series.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
