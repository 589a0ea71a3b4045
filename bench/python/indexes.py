#!/usr/bin/env python3
"""A thousand vectors added to an index: durable by Vellum, and by the library's own save, in one run and one table.

    bench/python/indexes.py [--mib 64] [--flat-mib 1024] [--links 16] [--effort 40] [--rounds 5] [--dir DIR]
                            [--json FILE] [--library NAME]...

Vectors of 128 float32: --mib MiB of them, and --flat-mib in faiss's flat index. A graph has --links links for each
vector, found among --effort candidates. "own save" and "own load" are the library's, with fsync. Each round adds
1,000 vectors ("add" is the library's own time) and makes them durable in the region: seconds, bytes of the log and
the commit, and disk blocks a round. At the end `save()` and a commit bring the library's form up to date. "open" is
of the first version, beside the live one. Seconds are the least of the rounds, and the "slowest".
"""

import argparse
import importlib
import os
import shutil
import sys
import tempfile
import time

import numpy as np

import vellum

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from table import print_lines  # noqa: E402
from table_lib import print_rows, write_json  # noqa: E402

DIM = 128
ROW_BYTES = 4 * DIM


class Library:
    """`door` names the module of vellum.integrations."""

    door = ""

    def __init__(self, links, effort):
        self.links, self.effort = links, effort


class FaissLists(Library):
    """faiss's inverted lists."""

    door = "faiss"

    def empty(self):
        import faiss

        return faiss.index_factory(DIM, "IVF256,Flat")

    def new(self, vectors):
        index = self.empty()
        if not index.is_trained:
            index.train(vectors[:20_000])
        index.add(vectors)
        return index

    @staticmethod
    def save(index, file):
        import faiss

        faiss.write_index(index, file)

    @staticmethod
    def load(file):
        import faiss

        return faiss.read_index(file)


class FaissFlat(FaissLists):
    """All vectors, compared one by one."""

    def empty(self):
        import faiss

        return faiss.IndexFlatL2(DIM)


class FaissGraph(FaissLists):
    """faiss's graph."""

    def empty(self):
        import faiss

        index = faiss.IndexHNSWFlat(DIM, self.links)
        index.hnsw.efConstruction = self.effort
        return index


class Hnswlib(Library):
    """hnswlib's graph."""

    door = "hnswlib"

    def new(self, vectors):
        import hnswlib

        index = hnswlib.Index("l2", DIM)
        index.init_index(len(vectors), ef_construction=self.effort, M=self.links)
        index.add_items(vectors)
        return index

    @staticmethod
    def save(index, file):
        index.save_index(file)

    @staticmethod
    def load(file):
        import hnswlib

        index = hnswlib.Index("l2", DIM)
        index.load_index(file)
        return index


class Usearch(Library):
    """USearch's graph."""

    door = "usearch"

    def new(self, vectors):
        from usearch.index import Index

        options = {"connectivity": self.links, "expansion_add": self.effort}
        index = Index(ndim=DIM, metric="l2sq", dtype="f32", **options)
        index.add(np.arange(len(vectors)), vectors)
        return index

    @staticmethod
    def save(index, file):
        index.save(file)

    @staticmethod
    def load(file):
        from usearch.index import Index

        return Index.restore(file)


LIBRARIES = {
    "hnswlib": Hnswlib,
    "usearch": Usearch,
    "faiss HNSW": FaissGraph,
    "faiss flat": FaissFlat,
    "faiss IVF": FaissLists,
}


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def disk_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)


def saved(library, index, file):
    library.save(index, file)
    fd = os.open(file, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def measure(library, folder, mib, rounds):
    rng = np.random.default_rng(1)
    count = (mib << 20) // ROW_BYTES
    new = library.new(rng.standard_normal((count, DIM), dtype="f4"))
    found = {"vectors": count}
    file = f"{folder}/file"
    found["own_save"], _ = timed(lambda: saved(library, new, file))
    found["own_bytes"] = os.path.getsize(file)
    found["own_load"], loaded = timed(lambda: library.load(file))
    del loaded
    os.remove(file)
    region = vellum.open(f"{folder}/store", create=True)
    door = importlib.import_module(f"vellum.integrations.{library.door}")
    found["first"], kept = timed(lambda: door.Index(region, "x", new))
    region.snapshot("first")
    adds, durables, sizes, before = [], [], [], disk_bytes(f"{folder}/store")
    for _ in range(rounds):
        vectors = rng.standard_normal((1000, DIM), dtype="f4")
        start = time.perf_counter()
        added, apart = kept._add, []
        kept._add = lambda *given, added=added, apart=apart: apart.append(timed(lambda: added(*given))) or apart[0][1]
        kept.add(vectors)
        report = region.commit()
        durables.append(time.perf_counter() - start - apart[0][0])
        del kept._add
        adds.append(apart[0][0])
        sizes.append(report.bytes_written)
    found |= {"add": min(adds), "durable": min(durables), "slowest": max(durables), "bytes": max(sizes)}
    found["disk"] = (disk_bytes(f"{folder}/store") - before) / rounds
    before = disk_bytes(f"{folder}/store")
    seconds, _ = timed(kept.save)
    commit, report = timed(region.commit)
    found |= {"save": seconds, "save_commit": commit, "save_bytes": report.bytes_written}
    found["save_disk"] = disk_bytes(f"{folder}/store") - before
    seconds, old = timed(lambda: door.Index(vellum.open(f"{folder}/store", version="first"), "x").index)
    found["open"] = seconds
    del old
    region.close()
    return found


def shown(report):
    columns = "MiB, own save, own load, add, durable, slowest, bytes, disk, save + commit, bytes, open"
    rows = [["", *columns.split(", ")]]
    for name, r in report.items():
        rows.append([
            name, f"{r['own_bytes'] / 2**20:.0f}", f"{r['own_save']:.3f} s",
            f"{r['own_load']:.2f} s", f"{r['add']:.2f} s", f"{r['durable']:.4f} s", f"{r['slowest']:.3f} s",
            f"{r['bytes'] / 1e6:.2f} MB", f"{r['disk'] / 1e6:.2f} MB", f"{r['save']:.2f}+{r['save_commit']:.2f} s",
            f"{r['save_bytes'] / 1e6:.2f} MB", f"{r['open']:.2f} s",
        ])  # fmt: skip
    print_rows(rows)
    for name, r in report.items():
        print_lines([
            (f"{name}: 1,000 vectors durable, slowest, s", r["slowest"], "<=", 0.1),
            (f"{name}: their MB", r["bytes"] / 1e6, "<=", 1),
            (f"{name}: times faster than its own save", r["own_save"] / r["durable"], ">=", 1),
        ])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--flat-mib", type=int, default=1024)
    parser.add_argument("--links", type=int, default=16)
    parser.add_argument("--effort", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir")
    parser.add_argument("--json", default=f"{TOP}/build/bench/python-indexes.json")
    parser.add_argument("--library", action="append", choices=LIBRARIES)
    given = parser.parse_args()
    report = {}
    for name in given.library or LIBRARIES:
        folder = tempfile.mkdtemp(prefix="vellum-indexes-", dir=given.dir)
        try:
            mib = given.flat_mib if name == "faiss flat" else given.mib
            report[name] = measure(LIBRARIES[name](given.links, given.effort), folder, mib, given.rounds)
        finally:
            shutil.rmtree(folder)
        report[name]["load"] = os.getloadavg()[0]
        write_json(given.json, "python-indexes", {"libraries": report})
        print(f"{name}: done, load {report[name]['load']:.1f}", file=sys.stderr)
    shown(report)


if __name__ == "__main__":
    main()
