#!/usr/bin/env python3
"""Reading a version of a float32 array by Vellum and by the usual other ways: each way of reading, in one run.

    bench/python/reading.py [--mib 256]... [--versions 6] [--content normal|counts]... [--rounds 3] [--peer NAME]...
                            [--dir DIR] [--json FILE]

Each peer keeps versions of an array of --mib MiB, rows of 1 KiB, of which 1 % change at random between versions.
`normal` values hardly compress, as weights and measurements do; `counts` are whole numbers below 100, which do.
Each read is of a new process, which opens the version and reads 5 % of the rows in one piece, 5 % scattered, or
all, of the newest version; `first` is all of the oldest one. `cold`: the page cache has none of the peer's files;
`warm`: another process has just read the same. `again` is a second opening and reading in the same process, `2
threads` are all rows by two threads, which share the opened version. Milliseconds with opening, medians of
--rounds; processor seconds and peak memory are of `all, warm`. Values are compared by their sums. Peers whose
versions are whole files have the oldest and the newest one here. Missing peers are omitted.

--mib and --content may be given several times: one table each. The process needs the package: see table.py.
"""

import argparse
import concurrent.futures
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
sys.path.insert(0, f"{TOP}/bench/python")
from table_lib import print_rows, write_json  # noqa: E402

FIRST, NEWEST = "first", "newest"
USES = ("piece", "scattered", "all")
# Column: version, use, cold, threads.
READS = {
    **{f"{use} {state}": (NEWEST, use, state == "cold", 1) for use in USES for state in ("cold", "warm")},
    "first cold": (FIRST, "all", True, 1),
    "2 threads warm": (NEWEST, "all", False, 2),
}


def contents(name, rows, columns):
    import numpy as np

    rng = np.random.default_rng(1)
    if name == "normal":
        return rng.normal(size=(rows, columns)).astype("f4")
    return rng.integers(0, 100, size=(rows, columns)).astype("f4")


def picked_rows(rows, use):
    import numpy as np

    if use == "piece":
        return slice(rows // 3, rows // 3 + rows // 20)
    if use == "scattered":
        return np.sort(np.random.default_rng(5).choice(rows, rows // 20, replace=False))
    return slice(0, rows)


def values_of(peer_type, opened, picked, threads):
    """Their sum. Threads read a part each."""
    import numpy as np

    def part(where):
        got = peer_type.rows(opened, where) if not isinstance(where, slice) else opened[where]
        return float(np.asarray(got).sum(dtype="f8"))

    if threads == 1:
        return part(picked)
    step = -(-(picked.stop - picked.start) // threads)
    parts = [slice(at, min(at + step, picked.stop)) for at in range(picked.start, picked.stop, step)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(part, parts))


def memory_kib(field):
    """Of /proc/self/status. The peak in resource.getrusage() may be that of the parent before the exec."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def read_in_this_process(job):
    """The child's part: {seconds, again, cpu, peak, sum} as JSON."""
    from peers import PEERS, installed

    peer_type = next(peer for peer in PEERS if peer.name == job["peer"])
    installed(peer_type)
    shape = tuple(job["shape"])
    picked = picked_rows(shape[0], job["use"])
    forget_peak()
    before, memory_before, out = resource.getrusage(resource.RUSAGE_SELF), memory_kib("VmRSS"), {}
    for what in ("seconds", "again"):
        start = time.perf_counter()
        opened = peer_type.of(job["folder"], shape).open(job["version"])
        out["sum"] = values_of(peer_type, opened, picked, job["threads"])
        out[what] = time.perf_counter() - start
        if what == "seconds":
            used = resource.getrusage(resource.RUSAGE_SELF)
            out["cpu"] = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
            out["peak"] = memory_kib("VmHWM") - memory_before
        del opened
    print(json.dumps(out))


def read_once(job):
    done = subprocess.run(
        [sys.executable, __file__, "--read", json.dumps(job)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{job['peer']}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return json.loads(done.stdout)


def keep_versions(peer_type, folder, values, versions):
    """The sums of the first and the newest version, and the rows that `uses` reads of them."""
    import numpy as np

    rng = np.random.default_rng(2)
    peer = peer_type(folder, values)
    peer.keep(FIRST)
    expected = {(FIRST, use): values[picked_rows(len(values), use)].sum(dtype="f8") for use in USES}
    for version in range(1, versions):
        peer.live[rng.choice(len(values), len(values) // 100, replace=False)] += 1
        if version == versions - 1:
            peer.keep(NEWEST)
        elif not peer.is_whole:
            peer.keep(f"between{version}")
    live = np.asarray(peer.live)
    expected |= {(NEWEST, use): live[picked_rows(len(live), use)].sum(dtype="f8") for use in USES}
    subprocess.run(["sync", "-f", folder], check=True)
    return expected


def measure_reads(peer_type, folder, shape, expected, mib):
    from table import make_cold

    out = {}
    for column, (version, use, cold, threads) in READS.items():
        job = {
            "peer": peer_type.name,
            "folder": folder,
            "shape": shape,
            "version": version,
            "use": use,
            "threads": threads,
        }
        if cold:
            make_cold(folder, mib)
        else:
            read_once(job)
        got = read_once(job)
        if abs(got["sum"] - expected[version, use]) > abs(expected[version, use]) * 1e-6 + 1e-3:
            raise RuntimeError(f"{peer_type.name}: another content in {column}")
        out[column] = got["seconds"] * 1e3
        if column == "all warm":
            out |= {"again": got["again"] * 1e3, "cpu s": got["cpu"], "peak MiB": got["peak"] / 1024}
    return out


def measure(peer_types, content, options, mib):
    """{peer: {column: median}}, a round of all peers after the other."""
    from peers import COLUMNS

    values = contents(content, (mib << 20) // (COLUMNS * 4), COLUMNS)
    runs = {peer.name: [] for peer in peer_types}
    with tempfile.TemporaryDirectory(prefix="bench-reading-", dir=options.dir) as top:
        kept = {}
        for peer in peer_types:
            folder = f"{top}/{peer_types.index(peer)}"
            os.mkdir(folder)
            kept[peer] = folder, keep_versions(peer, folder, values, options.versions)
        for turn in range(options.rounds):
            for peer, (folder, expected) in kept.items():
                runs[peer.name].append(measure_reads(peer, folder, values.shape, expected, mib))
                print(f"reading: {content}, {mib} MiB, round {turn + 1}: {peer.name}", file=sys.stderr, flush=True)
        for folder, _ in kept.values():
            shutil.rmtree(folder)
    return {name: {c: statistics.median(run[c] for run in of) for c in of[0]} for name, of in runs.items()}


# Content, what is compared, the peer, the least part, and its name.
TARGETS = [
    ("normal", f"{use} {state}", "np.save", bound)
    for use in ("piece", "all")
    for state, bound in (("cold", 1.2), ("warm", 2))
]
TARGETS += [("counts", f"{use} {state}", "h5py", 1) for use in USES for state in ("cold", "warm")]


def print_targets(content, found):
    for of, column, peer, bound in TARGETS:
        if of == content and peer in found and "vellum" in found:
            ratio = found["vellum"][column] / found[peer][column]
            print(f"  {column}, of {peer}'s: {ratio:.2f} (target <= {bound}{'' if ratio <= bound else ', MISSED'})")


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, action="append")
    parser.add_argument("--versions", type=int, default=6)
    parser.add_argument("--content", action="append", choices=("normal", "counts"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", metavar="NAME")
    parser.add_argument("--dir")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--read", help=argparse.SUPPRESS)  # in the child
    return parser.parse_args()


def main():
    options = parsed_arguments()
    if options.read:
        return read_in_this_process(json.loads(options.read))
    import table  # noqa: F401  # it runs this in an interpreter with the package, if this one has none
    from peers import PEERS, installed

    chosen = [p for p in PEERS if installed(p) and p.name in (options.peer or [p.name])]
    report = []
    for mib in options.mib or [256]:
        for content in options.content or ["normal", "counts"]:
            found = measure(chosen, content, options, mib)
            print(f"\n{mib} MiB of float32, {content}, {options.versions} versions; ms", flush=True)
            columns = list(next(iter(found.values())))
            print_rows([["", *columns]] + [[name, *(f"{of[c]:.3g}" for c in columns)] for name, of in found.items()])
            print_targets(content, found)
            report.append({"mib": mib, "content": content, "rows": found})
    if options.json:
        write_json(options.json, "reading", {"versions": options.versions, "tables": report})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"reading: {error}")
