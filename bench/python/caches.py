#!/usr/bin/env python3
"""Results in a cache, by the doors of vellum.integrations and by joblib's and diskcache's own files, in one run.

    bench/python/caches.py [--count 20] [--mib 8] [--small 200] [--rounds 3] [--dir DIR] [--json FILE]

--count arrays of --mib MiB of float64 that hardly compress: "near" ones differ in a value each, "far" ones in all.
"small" are --small arrays of 4 KiB. A put is a call whose result is kept (joblib) or an assignment (diskcache); with
Vellum it is durable then. Files of the others are synced at the end, which is part of the time. A get is a call
again. Seconds are those of all entries, the least of the rounds, which alternate. Bytes are disk blocks.
"""

import argparse
import os
import sys
import tempfile
import time

import numpy as np
from peers import sync_all
from table import TOP, disk_bytes, print_lines

import vellum

sys.path.insert(0, f"{TOP}/bench")
from table_lib import print_rows, write_json


def result(kind, number, length):
    """What a call returns; the call itself costs little beside keeping it."""
    if kind == "near":
        array = BASE[:length].copy()
        array[number * 31 % length] = number
        return array
    return np.random.default_rng(number).standard_normal(length)


BASE = np.empty(0)


class Joblib:
    """joblib.Memory with its own files."""

    name = "joblib"

    def __init__(self, folder, **options):
        import joblib

        self.memory = joblib.Memory(f"{folder}/cache", verbose=0, **options)
        self.kept = self.memory.cache(result)

    def put(self, *call):
        return self.kept(*call)

    get = put

    def end(self):
        pass


class VellumJoblib(Joblib):
    """joblib.Memory, backend="vellum"."""

    name = "vellum, joblib"

    def __init__(self, folder):
        from vellum.integrations.joblib import register

        register()
        super().__init__(folder, backend="vellum")


class Diskcache:
    """diskcache with its own files."""

    name = "diskcache"

    def __init__(self, folder, **options):
        import diskcache

        self.cache = diskcache.Cache(f"{folder}/cache", size_limit=1 << 40, **options)

    def put(self, *call):
        self.cache[call] = result(*call)

    def get(self, *call):
        return self.cache[call]

    def end(self):
        self.cache.close()


class VellumDiskcache(Diskcache):
    """diskcache with VellumDisk."""

    name = "vellum, diskcache"

    def __init__(self, folder):
        from vellum.integrations.diskcache import VellumDisk

        super().__init__(folder, disk=VellumDisk)


PEERS = [Joblib, VellumJoblib, Diskcache, VellumDiskcache]


def measure(peer_type, kind, count, length, folder):
    peer, calls = peer_type(folder), [(kind, number, length) for number in range(count)]
    begin = time.perf_counter()
    for call in calls:
        peer.put(*call)
    sync_all(folder)
    middle = time.perf_counter()
    for call in calls:
        peer.get(*call)
    found = {"put s": middle - begin, "get s": time.perf_counter() - middle}
    assert np.array_equal(result(*calls[-1]), peer.get(*calls[-1]))
    peer.end()
    del peer
    vellum.close_all()
    found["MiB"] = disk_bytes(folder) / 2**20
    return found


def print_targets(kind, results):
    for ours, theirs in ((VellumJoblib, Joblib), (VellumDiskcache, Diskcache)):
        for column, target in (("MiB", 0.2 if kind == "near" else 1), ("put s", 1), ("get s", 1)):
            ratio = results[ours.name][column] / results[theirs.name][column]
            print_lines([(f"{ours.name}: {column}, of {theirs.name}'s own", ratio, "<=", target)])


def main():
    global BASE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("count", 20), ("mib", 8), ("small", 200), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dir")
    parser.add_argument("--json")
    given = parser.parse_args()
    length, report = given.mib << 17, {"count": given.count, "mib": given.mib}
    BASE = np.random.default_rng(1).standard_normal(length)
    kinds = {"near": (given.count, length), "far": (given.count, length), "small": (given.small, 512)}
    for kind, (count, each) in kinds.items():
        results = report.setdefault(kind, {peer.name: {} for peer in PEERS})
        for _ in range(given.rounds):
            for peer in PEERS:
                with tempfile.TemporaryDirectory(prefix="bench-caches-", dir=given.dir) as folder:
                    found = measure(peer, kind, count, each, folder)
                kept = results[peer.name]
                kept.update({key: min(value, kept.get(key, value)) for key, value in found.items()})
        print(f"\n{kind}: {count} arrays of {each * 8 >> 10} KiB, load {os.getloadavg()[0]:.1f}", flush=True)
        rows = [[name, *(f"{value:.3g}" for value in found.values())] for name, found in results.items()]
        print_rows([["", *results[Joblib.name]], *rows])
        print_targets(kind, results)
    if given.json:
        write_json(given.json, "caches", {"load": os.getloadavg()[0], **report})


if __name__ == "__main__":
    main()
