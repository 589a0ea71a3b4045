#!/usr/bin/env python3
"""Versions of a float32 array by Vellum and by what people do instead, in one run and one table.

    bench/python/table.py [--mib 1024] [--versions 20] [--rounds 1] [--dir DIR] [--json FILE] [--peer NAME]...

An array of --mib MiB, rows of 1 KiB of values that compress by little. Each version changes 1 % of the rows
at random, and in a second pass one column of all rows. Every peer makes its version durable (fsync). Bytes
are disk blocks of all versions. Reads are of the version in the middle: 5 % of the rows at random, then all.
Workers are 8 processes, each of which opens the version from a pickle, or a path, and sums an eighth.
Peers that are not installed are left out: zarr, h5py. Ratios are to the best of the others.

Another Python than one that has the package hands over to build/python/*/venv/bin/python, which `make python`
makes; with ARGS=--optional it has the peers, too.
"""

import argparse
import concurrent.futures
import glob
import mmap
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import numpy as np

    import vellum
except ImportError:
    pythons = glob.glob(f"{TOP}/build/python/*/venv/bin/python")
    if not pythons or os.environ.get("VELLUM_BENCH_PYTHON"):
        sys.exit("bench/python/table.py: there is no Python with the package: make python")
    os.execve(pythons[-1], [pythons[-1], *sys.argv], {**os.environ, "VELLUM_BENCH_PYTHON": "1"})
sys.path.insert(0, f"{TOP}/bench")
from table_lib import print_rows, write_json  # noqa: E402

COLUMNS = 256


def sync_file(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def disk_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)


def forget_pages(folder):
    """Takes a peer's files out of the page cache, as far as they are clean."""
    for at, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(at, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


class Vellum:
    """One region; a snapshot is a version."""

    name = "vellum"

    def __init__(self, folder, values):
        self.path = f"{folder}/store"
        self.region = vellum.open(self.path, create=True)
        self.live = self.region.create_array("x", data=values)

    def keep(self, version):
        self.region.snapshot(f"v{version}")

    def open(self, version):
        return vellum.open(self.path, version=f"v{version}")["x"]

    def reference(self, version):
        return self.open(version)


class Memmap:
    """A mapped file; a copy of it is a version."""

    name = "np.memmap + copy"

    def __init__(self, folder, values):
        self.folder = folder
        self.shape = values.shape
        self.live = np.memmap(f"{folder}/live", "f4", "w+", shape=values.shape)
        self.live[:] = values

    def file(self, version):
        return f"{self.folder}/v{version}"

    def keep(self, version):
        self.live.flush()
        shutil.copyfile(f"{self.folder}/live", self.file(version))
        sync_file(self.file(version))

    def open(self, version):
        return np.memmap(self.file(version), "f4", "r", shape=self.shape)

    def reference(self, version):
        return self.open(version)


class Save:
    """Plain memory; np.save is a version."""

    name = "np.save"

    def __init__(self, folder, values):
        self.folder, self.live = folder, values.copy()

    def keep(self, version):
        path = f"{self.folder}/v{version}.npy"
        np.save(path, self.live)
        sync_file(path)

    def open(self, version):
        return np.load(f"{self.folder}/v{version}.npy", mmap_mode="r")

    def reference(self, version):
        return self.open(version)


class Zarr:
    """Plain memory; a zarr group of chunks of 1 MiB is a version. Its default codec compresses."""

    name = "zarr"

    def __init__(self, folder, values):
        self.folder, self.live = folder, values.copy()

    def keep(self, version):
        path = f"{self.folder}/v{version}"
        import zarr

        made = zarr.open_array(path, mode="w", shape=self.live.shape, dtype="f4", chunks=(1024, COLUMNS))
        made[:] = self.live
        subprocess.run(["sync", "-f", path], check=True)

    def open(self, version):
        import zarr

        return zarr.open_array(f"{self.folder}/v{version}", mode="r")

    reference = open


class H5py:
    """Plain memory; a data set of chunks of 1 MiB, compressed by lzf, is a version."""

    name = "h5py"

    def __init__(self, folder, values):
        self.folder, self.live = folder, values.copy()

    def keep(self, version):
        import h5py

        path = f"{self.folder}/v{version}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=self.live, chunks=(1024, COLUMNS), compression="lzf")
        sync_file(path)

    def open(self, version):
        import h5py

        return h5py.File(f"{self.folder}/v{version}.h5", "r")["x"]

    def reference(self, version):
        return None  # data sets do not pickle


def installed(peer):
    modules = {"zarr": "zarr", "h5py": "h5py"}
    try:
        __import__(modules.get(peer.name, "numpy"))
    except ImportError:
        return False
    return True


PEERS = [Vellum, Memmap, Save, Zarr, H5py]


def sum_of_part(peer_type, folder, shape, pickled, version, part):
    if pickled is None:
        peer = peer_type.__new__(peer_type)
        peer.folder, peer.path, peer.shape = folder, f"{folder}/store", shape
        array = peer.open(version)
    else:
        array = pickle.loads(pickled)
    rows = shape[0] // 8
    return float(np.asarray(array[part * rows : (part + 1) * rows]).sum(dtype="f8"))


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure(peer_type, folder, values, versions, column):
    """Seconds and bytes of one peer. Each version is checked at the end by a sum of some rows."""
    rng = np.random.default_rng(2)
    rows = len(values)
    peer = peer_type(folder, values)
    peer.keep("first")
    subprocess.run(["sync", "-f", folder], check=True)
    before, commits, middle = disk_bytes(folder), [], None
    for version in range(versions):
        if column:
            peer.live[:, version % COLUMNS] += 1
        else:
            picked = rng.choice(rows, rows // 100, replace=False)
            peer.live[picked] += 1
        commits.append(timed(lambda v=version: peer.keep(v))[0])
        if version == versions // 2:
            middle = np.array(peer.live[::97])
    subprocess.run(["sync", "-f", folder], check=True)
    out = {"commit s": sum(commits) / versions, "MiB a version": (disk_bytes(folder) - before) / versions / 2**20}
    at = versions // 2
    forget_pages(folder)
    out["open ms"], old = timed(lambda: peer.open(at))
    out["open ms"] *= 1000
    picked = np.sort(rng.choice(rows, rows // 20, replace=False))
    out["random 5 % s"] = timed(lambda: old[picked] if peer_type is not Zarr else old.oindex[picked])[0]
    del old
    forget_pages(folder)
    old = peer.open(at)
    out["all s"], total = timed(lambda: np.asarray(old[:]).sum(dtype="f8"))
    assert np.array_equal(np.asarray(old[:])[::97], middle), f"{peer.name}: another content"
    # A reference, unless it would be the data: then the path goes to the workers.
    pickled = None
    if peer_type in (Vellum, Zarr):
        pickled = pickle.dumps(peer.reference(at))
        out["pickle B"] = len(pickled)
    elif peer_type in (Memmap, Save):
        out["pickle B"] = old.nbytes + 200  # np.memmap pickles as its values
    forget_pages(folder)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(8, context) as pool:
        list(pool.map(abs, range(64)))  # the workers are there
        jobs = [(peer_type, folder, values.shape, pickled, at, part) for part in range(8)]
        seconds, sums = timed(lambda: list(pool.map(sum_of_part, *zip(*jobs, strict=True))))
    out["8 workers s"] = seconds
    assert abs(sum(sums) - total) <= abs(total) * 1e-6, f"{peer.name}: workers found another content"
    return out


def resident_ratio(folder):
    """Indexing and arithmetic on memory that is there: Vellum's seconds by plain numpy's, the least of 9."""
    region = vellum.open(f"{folder}/resident", create=True)
    x = region.create_array("x", 16 << 20, "f4")
    x[:] = np.arange(16 << 20)
    region.commit()
    mapped = np.memmap(f"{folder}/mapped", "f4", "w+", shape=x.shape)
    mapped[:] = x
    plain = np.array(x)
    # numpy asks for huge pages, which a region cannot have: its pages are written one by one.
    memory = mmap.mmap(-1, x.nbytes)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    small = np.frombuffer(memory, "f4")
    small[:] = x
    index = np.random.default_rng(3).integers(0, len(plain), 1 << 20)
    uses = {"x += 1": lambda a: a.__iadd__(1), "x.sum()": lambda a: a.sum(), "x[index]": lambda a: a[index]}
    out = {}
    for title, use in uses.items():
        least = {}
        for _ in range(9):
            for name, array in (("vellum", x), ("plain", plain), ("small", small), ("memmap", mapped)):
                least[name] = min(least.get(name, 1e9), timed(lambda a=array, u=use: u(a))[0])
        out[title] = {name: least["vellum"] / least[name] for name in ("plain", "small", "memmap")}
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
    ours, others = results["vellum"], [r for name, r in results.items() if name != "vellum"]
    if not others:
        return
    print_lines(
        [
            ("commit, times faster than each", min(o["commit s"] for o in others) / ours["commit s"], ">=", 10),
            (
                "bytes of a version, of each",
                ours["MiB a version"] / min(o["MiB a version"] for o in others),
                "<=",
                0.1,
            ),
            ("pickle, bytes", ours["pickle B"], "<=", 1024),
        ]
    )


def print_resident_targets(resident):
    """An array that is in memory, beside others of the same content."""
    titles = {"plain": "plain numpy", "small": "plain numpy on pages of 4 KiB", "memmap": "np.memmap"}
    print("\nresident arrays, seconds by those of another, and the import")
    print_lines(
        [(f"{use}, of {titles[peer]}", ratio[peer], "<=", 1.02) for peer in titles for use, ratio in resident.items()]
    )
    print_lines([("import beside numpy, ms", import_ms(), "<=", 60)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--versions", type=int, default=20)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--dir")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = (arguments.mib << 20) // (COLUMNS * 4)
    values = np.random.default_rng(1).normal(size=(rows, COLUMNS)).astype("f4")
    peers = [p for p in PEERS if installed(p) and (not arguments.peer or p.name in ("vellum", *arguments.peer))]
    report = {"mib": arguments.mib, "versions": arguments.versions}
    with tempfile.TemporaryDirectory(prefix="bench-python-", dir=arguments.dir) as top:
        resident = resident_ratio(top)
        print_resident_targets(resident)
        for what in ("rows", "column"):
            results = {}
            for peer in peers:
                folder = f"{top}/{what}-{peers.index(peer)}"
                os.mkdir(folder)
                results[peer.name] = measure(peer, folder, values, arguments.versions, what == "column")
                shutil.rmtree(folder)
            title = "1 % of the rows at random" if what == "rows" else "one column of all rows"
            print(f"\n{arguments.mib} MiB of float32, {arguments.versions} versions, {title}", flush=True)
            columns = list(results["vellum"])
            print_rows(
                [["", *columns]]
                + [
                    [name, *(f"{found[c]:.3g}" if c in found else "-" for c in columns)]
                    for name, found in results.items()
                ]
            )
            if what == "rows":
                print_commit_targets(results)
            report[what] = results
    report["resident"] = resident
    if arguments.json:
        write_json(arguments.json, "python", report)


if __name__ == "__main__":
    main()
