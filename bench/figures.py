#!/usr/bin/env python3
"""README's figures in one run: each task by Vellum and by its peers, as a table in Markdown.

    bench/figures.py [--rounds 3] [--only TEXT]... [--dir DIR] [--json FILE]     (make figures)

Every round runs each benchmark once, with Vellum and its peers in turn. A row shows the medians of the rounds and the
ratio of the peer to Vellum, from the least to the most of any round: 2.0 means that Vellum takes half. The sizes are
small, so that three rounds take about ten minutes on two processors; docs/measurements.md has the larger ones. The
machine should do nothing else. Peers that are missing are fetched (fetch_peers.py), or omitted with a line that says
why; the exit status is 1 if a row has no figure of Vellum. --only selects the rows that contain TEXT.

The months of the LMDB row are made of this project's own text: the lines of its documents and sources, in the order
of a fixed shuffle, each month a part of them.
"""

import argparse
import glob
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f"{TOP}/bench")
import fetch_peers  # noqa: E402
from table_lib import path_with_peers, write_json  # noqa: E402

BUILT = f"{TOP}/build/release/bench"
FETCHED = ("numpy", "zarr", "icechunk", "h5py", "borg", "restic")
BTREE = ("--structure", "btree", "--workload", "insert", "--every", "100", "--seconds", "1")
MONTHS = 24


class Row:
    """`ours` and the values of `peers`: a run, and the name of its figure. `more`: a larger figure is better."""

    def __init__(self, task, unit, ours, peers, more=False):
        self.task, self.unit, self.ours, self.peers, self.more = task, unit, ours, peers, more


# The commands of a round; `{kv}` is the months of LMDB.
RUNS = {
    "commit": (f"{BUILT}/bench_commit", "--mib", "1024", "--rounds", "60", "--commits", "0"),
    "snapshot": (f"{BUILT}/bench_snapshot", "--mib", "512", "--rounds", "10"),
    "pause": (f"{BUILT}/bench_pause", "--mib", "1024", "--rounds", "10", "--per-mille", "10"),
    "map": (f"{BUILT}/bench_stl", "--inserts", "300000", "--only", "map", "--keys", "sequential",
            "--blocks", "64,2048"),
    "sort": (f"{BUILT}/bench_paging", "--mib", "512", "--limit-mib", "128", "--only", "sort"),
    "lmdb": (f"{TOP}/bench/lmdb/table.py", "--kv", "{kv}", "--rounds", "1", "--reads", "100000"),
    "numpy": (f"{fetch_peers.VENV}/bin/python", f"{TOP}/bench/python/table.py", "--mib", "128", "--versions", "5",
              "--pattern", "rows"),
    **{f"btree {store}": (f"{BUILT}/bench_fams", "--store", store, *BTREE)
       for store in ("vellum-cards", "bdb", "lmdb", "sqlite", "msync")},
}
SPEED = "operations per second"
ARRAYS = {"zarr": "zarr", "Icechunk": "icechunk", "h5py": "h5py", "np.save": "np.save"}
ROWS = [
    Row("commit of 64 writes in 1 GiB", "ms", ("commit", "both_64_p50", 1e-3),
        {"msync(MS_SYNC)": ("commit", "msync_64_p50", 1e-3)}),
    Row("snapshot of 1 % of 512 MiB", "ms", ("snapshot", "percent_seconds_p50", 1e3),
        {"copy of the file": ("snapshot", "copy_seconds_p50", 1e3)}),
    Row("the same, bytes", "MiB", ("snapshot", "percent_bytes_mean", 2**-20),
        {"copy of the file": ("snapshot", "copy_bytes", 2**-20)}),
    Row("first scan of an old version of 512 MiB", "s", ("snapshot", "warm_first_scan_s", 1),
        {"mapped copy": ("snapshot", "copy_warm_scan_s", 1)}),
    Row("pause of a snapshot, 1 GiB resident, 0.1 % written", "ms", ("pause", "pages, 262, pause_p50", 1),
        {"fork()": ("pause", "pages, 262, fork_p50", 1)}),
    Row("20 versions of a map, 300,000 sequential keys", "KiB", ("map", "map, sequential, default, bytes", 2**-10),
        {"full copies": ("map", "map, sequential, full copies, bytes", 2**-10),
         "zstd --patch-from": ("map", "map, sequential, patch-from, bytes", 2**-10)}),
    Row("b-tree inserts, a commit every 100", "k/s", ("btree vellum-cards", SPEED, 1e-3),
        {name: (f"btree {store}", SPEED, 1e-3)
         for name, store in (("BerkeleyDB", "bdb"), ("LMDB", "lmdb"), ("SQLite", "sqlite"), ("msync", "msync"))},
        more=True),
    Row(f"LMDB, {MONTHS} versions, bytes", "MiB", ("lmdb", "vellum run, versions' bytes", 2**-20),
        {name: ("lmdb", f"{name}, versions' bytes", 2**-20) for name in ("mdb_copy", "restic", "borg")}),
    Row(f"LMDB, inserts and {MONTHS} versions", "k/s", ("lmdb", "vellum run, inserts per second", 1e-3),
        {name: ("lmdb", f"{name}, inserts per second", 1e-3) for name in ("mdb_copy", "restic", "borg")}, more=True),
    Row("numpy, 128 MiB, a version of 1 % of the rows", "ms", ("numpy", "vellum, commit s", 1e3),
        {title: ("numpy", f"{name}, commit s", 1e3) for title, name in ARRAYS.items()}),
    Row("the same, bytes", "MiB", ("numpy", "vellum, MiB a version", 1),
        {title: ("numpy", f"{name}, MiB a version", 1) for title, name in ARRAYS.items()}),
    Row("the same, reading 5 % of an old version, cold", "ms", ("numpy", "vellum, random 5 % s", 1e3),
        {title: ("numpy", f"{name}, random 5 % s", 1e3) for title, name in ARRAYS.items()}),
    Row("the same, reading all of it, cold", "ms", ("numpy", "vellum, all s", 1e3),
        {title: ("numpy", f"{name}, all s", 1e3) for title, name in ARRAYS.items()}),
    Row("std::sort of 4 times the memory limit", "s", ("sort", "sort, vellum, seconds", 1),
        {"MAP_SHARED": ("sort", "sort, plain, seconds", 1)}),
]


def figures_of(report):
    """Flat: the figures of a C++ benchmark or of bench/lmdb, or the rows of bench/python."""
    if "figures" in report:
        return report["figures"]
    return {f"{peer}, {what}": value for peer, found in report["rows"].items() for what, value in found.items()}


def run_once(command, places):
    """Its figures, or the last line of what it said."""
    with tempfile.TemporaryDirectory(prefix="figures-", dir=places["top"]) as scratch:
        out = f"{scratch}/figures.json"
        words = [word.format(kv=places["kv"]) for word in command]
        if not os.access(words[0], os.X_OK):
            return f"{os.path.relpath(words[0], TOP)} is missing"
        done = subprocess.run([*words, "--dir", scratch, "--json", out], capture_output=True, text=True, check=False,
                              env={**os.environ, "VELLUM_BENCH_PYTHON": "1", "PATH": places["path"]})
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        with open(out, encoding="utf-8") as file:
            return figures_of(json.load(file))


def write_months(file):
    """month TAB key TAB value, as bench/lmdb reads it."""
    lines = []
    for pattern in ("docs/**/*.md", "src/**/*.?pp", "tests/**/*.?pp"):
        for path in sorted(glob.glob(f"{TOP}/{pattern}", recursive=True)):
            with open(path, encoding="utf-8", errors="replace") as text:
                name = os.path.relpath(path, TOP)
                lines += [(f"{name}:{n}", line.strip()) for n, line in enumerate(text, 1) if line.strip()]
    random.Random(1).shuffle(lines)
    part = len(lines) // MONTHS
    with open(file, "w", encoding="utf-8") as out:
        for at, (key, value) in enumerate(lines[:part * MONTHS]):
            month = at // part
            out.write(f"{2000 + month // 12}-{month % 12 + 1:02}\t{key[-200:]}\t{value[:400].replace(chr(9), ' ')}\n")


def version_of(*command):
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    found = re.search(r"\d+\.\d+(\.\d+)*", said.stdout + said.stderr)
    return found.group(0) if found else None


def versions():
    """The peers' versions, by name, with their dates; those that are not installed are left out."""
    found = {"Linux": platform.release(), "restic": version_of("restic", "version"),
             "borg": version_of("borg", "--version"), "LMDB": version_of("mdb_copy", "-V"),
             "SQLite": version_of("pkg-config", "--modversion", "sqlite3"),
             "zstd": version_of("zstd", "--version")}
    for name, number in fetch_peers.found(FETCHED).items():
        date = fetch_peers.date_of(name, number)
        found[name] = f"{number} ({date})" if date else number
    return {name: version for name, version in found.items() if version}


def value_of(figures, where):
    run, key, factor = where
    found = figures.get(run, {})
    return found[key] * factor if isinstance(found, dict) and key in found else None


def ratios_of(row, rounds, peer):
    """In each round, how much more the peer takes (or how much less it does)."""
    out = []
    for figures in rounds:
        ours, theirs = value_of(figures, row.ours), value_of(figures, row.peers[peer])
        if ours and theirs:
            out.append(ours / theirs if row.more else theirs / ours)
    return out


def short(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def cells_of(row, rounds):
    """The columns of a row, or None if Vellum has no figure."""
    ours = [v for v in (value_of(figures, row.ours) for figures in rounds) if v is not None]
    if not ours:
        return None
    peers, ratios = [], []
    for peer in row.peers:
        found = ratios_of(row, rounds, peer)
        if not found:
            continue
        theirs = statistics.median(value_of(f, row.peers[peer]) for f in rounds if value_of(f, row.peers[peer]))
        least, most = short(min(found)), short(max(found))
        peers.append(f"{peer} {short(theirs)}")
        ratios.append(least if least == most else f"{least} to {most}")
    return [f"{row.task}, {row.unit}", short(statistics.median(ours)), "; ".join(peers), "; ".join(ratios)]


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="for the data, on a disk")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def measure(rows, rounds, places):
    names = [name for name in RUNS
             if any(name == where[0] for row in rows for where in (row.ours, *row.peers.values()))]
    out = []
    for turn in range(rounds):
        out.append({})
        for name in names:
            result = run_once(RUNS[name], places)
            out[-1][name] = result
            if isinstance(result, str):
                print(f"figures: {name}: {result}", file=sys.stderr, flush=True)
            else:
                print(f"figures: round {turn + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
    return out


def main():
    options = parsed_arguments()
    rows = [row for row in ROWS if not options.only or any(text in row.task for text in options.only)]
    if not rows:
        sys.exit(f"figures: no row contains {options.only[0]!r}")
    os.makedirs(options.dir, exist_ok=True)
    for name, reason in fetch_peers.ensure(FETCHED).items():
        print(f"figures: without {name}: {reason}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="figures-", dir=options.dir) as top:
        places = {"top": top, "kv": f"{top}/months.kv", "path": path_with_peers()}
        write_months(places["kv"])
        rounds = measure(rows, options.rounds, places)
    table = [cells for cells in (cells_of(row, rounds) for row in rows) if cells]
    print("| Task | Vellum | Peers | Their ratio to Vellum |\n| --- | --- | --- | --- |")
    for cells in table:
        print(f"| {' | '.join(cells)} |")
    found = versions()
    print("\n" + ", ".join(f"{name} {version}" for name, version in found.items()))
    if options.json:
        write_json(options.json, "figures", {"versions": found, "rounds": rounds, "table": table})
    return 0 if len(table) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
