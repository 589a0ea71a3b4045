#!/usr/bin/env python3
"""Runs bench_lmdb with a snapshot after each month, by different means, and prints one table of them.

    bench/lmdb/table.py --kv FILE[.zst] [--mode default|writemap|nosync] [--batch ROWS] [--rounds 3]
                        [--peer NAME]... [--lmdb1 DIR] [--dir DIR] [--json FILE]

Each peer has an LMDB environment and takes a snapshot when a month is complete, by an external command
while the writing program waits, as a user of an unmodified program would: mdb_copy and mdb_copy -c (full
copies), borg and restic (deduplicated archives of the file), `vellum backup`, and `vellum snapshot` with
the program under `vellum run`. With LMDB 1.0 (a build with LMDB1_ROOT, whose tools are in --lmdb1), also
its incremental dumps. Inserts per second are over all: rows by the seconds of inserting and of the
snapshots together. Versions' bytes are disk blocks of the copies, the repository or the store; the
environment itself, which every peer has as well, is counted separately.

Each run has an emptied directory and a machine whose file systems were synchronised. --sync 1: after
each snapshot its directory is flushed (syncfs), which mdb_copy leaves to the kernel. Reads are of the
live environment, open for writing, when everything is inserted. Afterwards the snapshots of the first,
middle and last month are restored, and each row of them is compared; `restore s` is of the last one, as
it is the longest way for dumps. Medians of --rounds; ratios are to the first peer. Missing peers are
omitted.
"""

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
sys.path.insert(0, f"{TOP}/bench/lmdb")
from peers import peers_of, run_quietly
from table_lib import path_with_peers, print_rows, write_json
LIBC = ctypes.CDLL(None, use_errno=True)
SECRET = {"BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
          "RESTIC_PASSWORD": "bench"}


def block_bytes(directory):
    total = 0
    for where, _, names in os.walk(directory):
        for name in names:
            total += os.lstat(os.path.join(where, name)).st_blocks * 512
    return total


def flush(directory):
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    LIBC.syncfs(fd)
    os.close(fd)


def take_snapshot(peer, places, environment, options):
    start = time.monotonic()
    peer.take(places, environment)
    if options.sync:
        flush(places["keep"])
    return time.monotonic() - start


def restore_seconds(peer, places, environment, options):
    """Restores the snapshot into an empty directory, and compares its rows. Only the former is timed."""
    shutil.rmtree(places["out"], ignore_errors=True)
    os.mkdir(places["out"])
    start = time.monotonic()
    peer.restore(places, environment)
    seconds = time.monotonic() - start
    run_quietly((f"{options.built}/{peer.program}", options.plain_kv, places["out"], "compare", places["name"]),
                environment)
    return seconds


def run_peer(peer, options):
    """Its figures."""
    scratch = tempfile.mkdtemp(prefix="lmdb-table-", dir=options.dir)
    places = {"db": f"{scratch}/db", "keep": f"{scratch}/keep", "out": f"{scratch}/out", "name": ""}
    # Separate caches, to be independent of earlier runs.
    environment = {**os.environ, **SECRET, "BORG_BASE_DIR": f"{scratch}/cache",
                   "XDG_CACHE_HOME": f"{scratch}/cache"}
    for directory in (places["db"], places["keep"]):
        os.mkdir(directory)
    try:
        if peer.start:
            run_quietly(peer.words(peer.start, places), environment)
        os.sync()
        return ingest(peer, places, environment, options)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def ingest(peer, places, environment, options):
    command = [*peer.words(peer.wrap, places), f"{options.built}/{peer.program}", options.plain_kv, places["db"],
               options.mode, str(options.batch), str(options.reads)]
    figures = {"rows": 0, "insert seconds": 0.0, "snapshot seconds": 0.0, "snapshots": 0}
    months = []
    with subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            what, name, *rest = line.split()
            if what == "month":
                figures["rows"] += int(rest[0])
                figures["insert seconds"] += float(rest[1])
                places["name"] = name
                figures["snapshot seconds"] += take_snapshot(peer, places, environment, options)
                figures["snapshots"] += 1
                months.append(name)
                process.stdin.write("\n")
                process.stdin.flush()
            elif what == "reads":
                figures["reads per second"] = float(name) / float(rest[0])
            elif what == "scan":
                figures["scan seconds"] = float(rest[0])
    if process.returncode != 0:
        raise RuntimeError(f"{peer.name}: the program ended with {process.returncode}")
    figures["versions' bytes"] = block_bytes(places["keep"])
    figures["live bytes"] = block_bytes(places["db"])
    figures["inserts per second"] = figures["rows"] / (
        figures["insert seconds"] + figures["snapshot seconds"])
    for month in dict.fromkeys((months[0], months[len(months) // 2], months[-1])):
        figures["restore seconds"] = restore_seconds(peer, {**places, "name": month}, environment, options)
    return figures


def measure(peers, options):
    """{name: [figures]}, round robin, to expose all to the same disturbances."""
    runs = {peer.name: [] for peer in peers}
    for turn in range(options.rounds):
        for peer in peers:
            result = run_peer(peer, options)
            runs[peer.name].append(result)
            print(f"{peer.name}, round {turn + 1}: inserts {result['insert seconds']:.2f} s, snapshots "
                  f"{result['snapshot seconds']:.2f} s, {result[KEPT] / 2**20:.1f} MiB "
                  f"(load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)
    return runs


KEPT = "versions' bytes"
COLUMNS = (("insert seconds", "inserts s", 1, 2), ("snapshot seconds", "snapshots s", 1, 2),
           ("inserts per second", "inserts/s", 1, 0), (KEPT, "versions MiB", 2**-20, 1),
           ("live bytes", "live MiB", 2**-20, 1), ("reads per second", "reads/s", 1, 0),
           ("scan seconds", "scan s", 1, 3), ("restore seconds", "restore s", 1, 2))
RATIOS = {"inserts per second": 1, KEPT: -1, "reads per second": 1}


def medians_of(runs):
    return {name: {what: statistics.median(run[what] for run in of) for what in of[0]}
            for name, of in runs.items()}


def ratio(medians, base, what, power):
    return (medians[what] / base[what]) ** power


def print_table(medians):
    rows = [["", *(cell for what, title, _, _ in COLUMNS
                   for cell in ((title, "times") if what in RATIOS else (title,)))]]
    base = next(iter(medians.values()))
    for name, figures in medians.items():
        row = [name]
        for what, _, unit, digits in COLUMNS:
            row.append(f"{figures[what] * unit:,.{digits}f}")
            if what in RATIOS:
                row.append(f"{ratio(figures, base, what, RATIOS[what]):.2f}")
        rows.append(row)
    print_rows(rows)


def target(name, value, bound, at_most):
    return {"name": name, "value": value, "bound": bound, "at most": at_most,
            "holds": value <= bound if at_most else value >= bound}


def targets_of(medians):
    """Of `vellum run` against mdb_copy."""
    if "vellum run" not in medians or "mdb_copy" not in medians:
        return []
    base, ours = medians["mdb_copy"], medians["vellum run"]
    return [target("inserts per second, times mdb_copy's", ratio(ours, base, "inserts per second", 1), 1.5, False),
            target("versions' bytes, mdb_copy's by ours", ratio(ours, base, KEPT, -1), 20, False),
            target("a read's time, times plain LMDB's", ratio(ours, base, "reads per second", -1), 1.05, True)]


def write_report(file, medians, targets, options):
    figures = {f"{name}, {what}": value for name, of in medians.items() for what, value in of.items()}
    write_json(file, "lmdb", {"kv": os.path.basename(options.kv), "mode": options.mode,
                              "batch": options.batch, "figures": figures, "targets": targets})


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kv", required=True, metavar="FILE", help="month TAB key TAB value; .zst as well")
    parser.add_argument("--mode", choices=("default", "writemap", "nosync"), default="default")
    parser.add_argument("--batch", type=int, default=1000, help="rows a transaction; 0: a month")
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sync", type=int, choices=(0, 1), default=0)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME")
    parser.add_argument("--lmdb1", default=os.environ.get("LMDB1_ROOT"), metavar="DIR", help="LMDB 1.0's tools")
    parser.add_argument("--programs", default=f"{TOP}/build/release", metavar="DIR", help="the build")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="for the data")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.built = f"{options.programs}/bench"
    if not os.access(f"{options.built}/bench_lmdb", os.X_OK):
        sys.exit(f"table: no program {options.built}/bench_lmdb: make bench NAME=lmdb builds it (liblmdb-dev)")
    return options


def chosen_peers(options):
    if options.lmdb1 and not os.access(f"{options.built}/bench_lmdb1", os.X_OK):
        sys.exit(f"table: no program {options.built}/bench_lmdb1: configure with -DLMDB1_ROOT={options.lmdb1}")
    peers = peers_of(f"{options.programs}/bin/vellum", options.lmdb1)
    unknown = set(options.peer) - {peer.name for peer in peers}
    if unknown:
        sys.exit(f"table: --peer {unknown.pop()}: there are {', '.join(peer.name for peer in peers)}")
    chosen = [peer for peer in peers if not options.peer or peer.name in options.peer]
    for peer in chosen:
        if not peer.installed():
            print(f"without {peer.name}: not installed", file=sys.stderr)
    return [peer for peer in chosen if peer.installed()]


def main():
    os.environ["PATH"] = path_with_peers()
    options = parse_options()
    peers = chosen_peers(options)
    os.makedirs(options.dir, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=options.dir, suffix=".kv") as plain:
        options.plain_kv = options.kv
        if options.kv.endswith(".zst"):
            subprocess.run(("zstd", "-dcq", options.kv), stdout=plain, check=True)
            options.plain_kv = plain.name
        medians = medians_of(measure(peers, options))
    print_table(medians)
    targets = targets_of(medians)
    for t in targets:
        print(f"{t['name']}: {t['value']:.2f}, target at {'most' if t['at most'] else 'least'} {t['bound']:g}: "
              f"{'holds' if t['holds'] else 'MISSED'}")
    if options.json:
        write_report(options.json, medians, targets, options)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"table: {error}")
