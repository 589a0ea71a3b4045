#!/usr/bin/env python3
"""Versions of a float32 array by Vellum and by the usual other ways, in one run and one table.

    bench/python/table.py [--mib 1024]... [--versions 20]... [--dir DIR] [--json FILE] [--peer NAME]...
                          [--pattern NAME] [--more FILE]

An array of --mib MiB, rows of 1 KiB of values that hardly compress. Each version changes 1 % of the rows at random,
and in a second pass one column of all rows. Every peer makes its version durable (fsync). Bytes are disk blocks of
all versions. Reads are of the middle version: 5 % of the rows at random, then all. Workers are 8 processes, each of
which opens the version from a pickle, or a path, and sums an eighth. Missing peers are omitted: zarr, icechunk,
h5py, parquet, duckdb. Ratios are to the best of the others. With several --mib or --versions there is a table for
each size, so that a bend in a curve is seen; `last s` is the median commit of the last tenth of the versions. Peers
whose versions would not fit on the disk are omitted there, by their bytes of the first version. --peer selects some
of them, --pattern rows, column or resident (arrays that are already in memory). With --more, results are added to
those in a file of the same size, and the table shows all of them: for runs in parts.

A Python that lacks the package re-executes this with that of bench/fetch_peers.py, which has the newest peers, or
else with build/python/*/venv/bin/python, which `make python` creates; with ARGS=--optional it has the peers, too.
"""

import argparse
import concurrent.futures
import glob
import json
import mmap
import multiprocessing
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import numpy as np

    import vellum
except ImportError:
    pythons = [each for part in ("python/*", "bench") for each in glob.glob(f"{TOP}/build/{part}/venv/bin/python")]
    if not pythons or os.environ.get("VELLUM_BENCH_PYTHON"):
        sys.exit("bench/python/table.py: no Python with the package was found: make python")
    os.execve(pythons[-1], [pythons[-1], *sys.argv], {**os.environ, "VELLUM_BENCH_PYTHON": "1"})
sys.path.insert(0, f"{TOP}/bench")
import free_memory  # noqa: E402
from peers import COLUMNS, PEERS, Vellum, installed  # noqa: E402
from table_lib import print_rows, write_json  # noqa: E402

PATTERNS = {"rows": "1 % of the rows at random", "column": "one column of all rows"}


def disk_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)


def forget_pages(folder):
    """Drops a peer's clean files from the page cache."""
    for at, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(at, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def make_cold(folder, mib):
    """Makes the next read load from the disk, into memory that is ready: the page cache's and the reader's own."""
    forget_pages(folder)
    free_memory.touch(3 * mib)


def sum_of_part(peer_type, folder, shape, pickled, version, part):
    array = peer_type.of(folder, shape).open(version) if pickled is None else pickle.loads(pickled)
    rows = shape[0] // 8
    return float(np.asarray(array[part * rows : (part + 1) * rows]).sum(dtype="f8"))


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure(peer_type, folder, values, versions, column):
    """Seconds and bytes of one peer; None: its versions would not fit. The middle version is compared at the end."""
    rng = np.random.default_rng(2)
    rows = len(values)
    mib = values.nbytes >> 20
    peer = peer_type(folder, values)
    peer.keep("first")
    subprocess.run(["sync", "-f", folder], check=True)
    before, commits, middle = disk_bytes(folder), [], None
    if peer_type is not Vellum and before * versions > shutil.disk_usage(folder).free // 2:
        return None
    for version in range(versions):
        if column:
            peer.live[:, version % COLUMNS] += 1
        else:
            picked = rng.choice(rows, rows // 100, replace=False)
            peer.live[picked] += 1
        free_memory.touch(mib)
        commits.append(timed(lambda v=version: peer.keep(v))[0])
        if version == versions // 2:
            middle = np.array(peer.live[::97])
    subprocess.run(["sync", "-f", folder], check=True)
    out = {
        "commit s": sum(commits) / versions,
        "last s": statistics.median(commits[-max(1, versions // 10) :]),
        "MiB a version": (disk_bytes(folder) - before) / versions / 2**20,
    }
    at = versions // 2
    make_cold(folder, mib)
    out["open ms"], old = timed(lambda: peer.open(at))
    out["open ms"] *= 1000
    picked = np.sort(rng.choice(rows, rows // 20, replace=False))
    out["random 5 % s"] = timed(lambda: peer.rows(old, picked))[0]
    del old
    make_cold(folder, mib)
    old = peer.open(at)
    out["all s"], total = timed(lambda: np.asarray(old[:]).sum(dtype="f8"))
    assert np.array_equal(np.asarray(old[:])[::97], middle), f"{peer.name}: another content"
    # A reference, unless it would be the data: then the workers get the path.
    reference, pickled = peer.reference(at), None
    if reference is not None:
        pickled = pickle.dumps(reference)
        out["pickle B"] = len(pickled)
    elif isinstance(old, np.memmap):
        out["pickle B"] = old.nbytes + 200  # it pickles as its values
    del reference
    make_cold(folder, mib)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(8, context, installed, (peer_type,)) as pool:
        list(pool.map(abs, range(64)))  # waits for the workers
        jobs = [(peer_type, folder, values.shape, pickled, at, part) for part in range(8)]
        seconds, sums = timed(lambda: list(pool.map(sum_of_part, *zip(*jobs, strict=True))))
    out["8 workers s"] = seconds
    assert abs(sum(sums) - total) <= abs(total) * 1e-6, f"{peer.name}: workers found another content"
    return out


def least_seconds(uses, arrays):
    """By use, then by array: the minimum of 15, alternating."""
    least = {use: dict.fromkeys(arrays, 1e9) for use in uses}
    for use, call in uses.items():
        for _ in range(15):
            for name, array in arrays.items():
                least[use][name] = min(least[use][name], timed(lambda a=array, c=call: c(a))[0])
    return least


def numpy_arrays(folder, values):
    """The same content in memory of others, by name."""
    mapped = np.memmap(f"{folder}/mapped", "f4", "w+", shape=values.shape)
    mapped[:] = values
    # numpy requests huge pages, which a branch cannot have: its pages are written one by one.
    memory = mmap.mmap(-1, values.nbytes)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    small = np.frombuffer(memory, "f4")
    small[:] = values
    return {"plain numpy": np.array(values), "plain numpy on pages of 4 KiB": small, "np.memmap": mapped}


def resident_ratios(folder):
    """Indexing and arithmetic on resident memory: Vellum's seconds by those of others."""
    path = f"{folder}/resident"
    region = vellum.open(path, create=True)
    x = region.create_array("x", 16 << 20, "f4")
    x[:] = np.arange(16 << 20)
    region.snapshot("resident")
    index = np.random.default_rng(3).integers(0, len(x), 1 << 20)
    room = np.empty(x.shape, "f4")
    reads = {
        "x + 1": lambda a: np.add(a, 1, out=room),
        "x.sum()": lambda a: a.sum(),
        "x[index]": lambda a: a[index],
    }
    others = numpy_arrays(folder, x)
    out = {}
    for title, huge_pages in (("a version", False), ("a version in huge pages", True)):
        old = vellum.open(path, version="resident", huge_pages=huge_pages)["x"]
        old.prefetch()
        found = least_seconds(reads, {"vellum": old, "plain numpy": others["plain numpy"]})
        out[title] = {use: {"plain numpy": s["vellum"] / s["plain numpy"]} for use, s in found.items()}
        del old
    # The same memory without the subclass: the pages cause the rest of a ratio.
    arrays = {"vellum": x, "np.asarray over the same memory": np.asarray(x), **others}
    found = least_seconds({"x += 1": lambda a: a.__iadd__(1), **reads}, arrays)
    out["a branch"] = {
        use: {name: s["vellum"] / s[name] for name in arrays if name != "vellum"} for use, s in found.items()
    }
    return out


def import_ms():
    program = "import time, numpy; t = time.perf_counter(); import vellum; print((time.perf_counter() - t) * 1e3)"
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))


def print_lines(lines):
    for text, value, relation, target in lines:
        met = value >= target if relation == ">=" else value <= target
        print(f"  {text}: {value:.3g} (target {relation} {target}{'' if met else ', MISSED'})", flush=True)


def print_commit_targets(results):
    """Those of random rows."""
    ours, others = results.get("vellum"), [r for name, r in results.items() if name != "vellum"]
    if ours is None or not others:
        return
    faster = min(o["commit s"] for o in others) / ours["commit s"]
    smaller = ours["MiB a version"] / min(o["MiB a version"] for o in others)
    print_lines(
        [
            ("commit, times faster than each", faster, ">=", 10),
            ("bytes of a version, of each", smaller, "<=", 0.1),
            ("pickle, bytes", ours["pickle B"], "<=", 1024),
        ]
    )


def print_resident_targets(resident):
    """An array in memory, compared with others of the same content."""
    print("\nresident arrays, seconds by those of another, and the import")
    for title, uses in resident.items():
        print_lines(
            [
                (f"{title}: {use}, of {other}", ratio, "<=", 1.02)
                for use, ratios in uses.items()
                for other, ratio in ratios.items()
            ]
        )
    print_lines([("import in addition to numpy, ms", import_ms(), "<=", 60)])


def print_table(size, pattern, results):
    mib, versions = size
    print(f"\n{mib} MiB of float32, {versions} versions, {PATTERNS[pattern]}", flush=True)
    columns = list(dict.fromkeys(column for found in results.values() for column in found))
    print_rows(
        [["", *columns]]
        + [[name, *(f"{found[c]:.3g}" if c in found else "-" for c in columns)] for name, found in results.items()]
    )
    if pattern == "rows":
        print_commit_targets(results)


def earlier_results(file, size):
    """The results of --more, by pattern."""
    if file is None or not os.path.exists(file):
        return {}
    with open(file, encoding="utf-8") as opened:
        report = json.load(opened)
    if (report["mib"], report["versions"]) != size:
        sys.exit(f"bench/python/table.py: {file} has results of another size")
    return {pattern: report[pattern] for pattern in PATTERNS if pattern in report}


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, action="append")
    parser.add_argument("--versions", type=int, action="append")
    parser.add_argument("--peer", action="append", choices=[peer.name for peer in PEERS])
    parser.add_argument("--pattern", choices=[*PATTERNS, "resident"])
    parser.add_argument("--more")
    parser.add_argument("--dir")
    parser.add_argument("--json")
    return parser.parse_args()


def measure_size(arguments, size, peers, top):
    """{pattern: {peer: figures}}, printed as tables."""
    rows = (size[0] << 20) // (COLUMNS * 4)
    values = np.random.default_rng(1).normal(size=(rows, COLUMNS)).astype("f4")
    report = earlier_results(arguments.more, size)
    for pattern in [arguments.pattern] if arguments.pattern else PATTERNS:
        results = report.setdefault(pattern, {})
        for peer in peers:
            folder = f"{top}/{pattern}-{peers.index(peer)}"
            os.mkdir(folder)
            found = measure(peer, folder, values, size[1], pattern == "column")
            shutil.rmtree(folder)
            if found is None:
                print(f"without {peer.name}: {size[1]} versions would not fit on the disk", file=sys.stderr)
                continue
            results[peer.name] = found
            if arguments.more:
                write_json(arguments.more, "python", {"mib": size[0], "versions": size[1], **report})
        print_table(size, pattern, results)
    return report


def main():
    arguments = parsed_arguments()
    sizes = [(mib, versions) for mib in arguments.mib or [1024] for versions in arguments.versions or [20]]
    if arguments.more and len(sizes) > 1:
        sys.exit("bench/python/table.py: --more is for one size")
    peers = [p for p in PEERS if installed(p) and p.name in (arguments.peer or [p.name])]
    report = {}
    with tempfile.TemporaryDirectory(prefix="bench-python-", dir=arguments.dir) as top:
        if arguments.pattern in (None, "resident") and Vellum in peers:
            report["resident"] = resident_ratios(top)
            print_resident_targets(report["resident"])
        tables = []
        if arguments.pattern != "resident":
            tables = [
                {"mib": size[0], "versions": size[1], **measure_size(arguments, size, peers, top)} for size in sizes
            ]
    if arguments.json:
        # The first size at the top; with several, all of them in a list as well.
        more = {"sizes": tables} if len(tables) > 1 else {}
        write_json(arguments.json, "python", {**report, **(tables[0] if tables else {}), **more})


if __name__ == "__main__":
    main()
