#!/usr/bin/env python3
"""One dataset, many versions: what changed from one day to the next, and workers that read any of them.

python3 dataset_versions.py [STORE]
"""

import multiprocessing
import sys
import tempfile

import numpy as np

import vellum


def mean(part):
    """Runs in a worker, which opens the version by itself: no data is sent."""
    return float(part["temperature"].mean())


def main(path):
    """Makes a table of measurements, corrects it day by day, and looks at old days."""
    rng = np.random.default_rng(0)
    row = np.dtype([("station", "u4"), ("temperature", "f4")])
    with vellum.open(path, create=True) as r:
        table = r.create_array("measurements", shape=100_000, dtype=row)
        table["station"] = np.arange(100_000) % 500
        table["temperature"] = rng.normal(15, 5, 100_000)
        r.create_strings("notes", ["as delivered"])
        r.snapshot("day-0")
        for day in range(1, 4):
            picked = rng.choice(100_000, 50, replace=False)
            with r.transaction(f"corrections of day {day}"):
                table["temperature"][picked] += 1
                r["notes"].append(f"{len(picked)} corrections")
            r.snapshot(f"day-{day}")
        for day in range(1, 4):
            changed = r.diff(f"day-{day - 1}", f"day-{day}")["measurements"]
            print(f"day {day}: {len(changed.rows)} rows, {changed.nbytes} bytes; {r['notes'][day]}")
    print(f"{vellum.Store(path).stat().stored_bytes >> 10} KiB for 4 versions of {table.nbytes >> 10} KiB")

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for day in (0, 3):
            old = vellum.open(path, version=f"day-{day}")["measurements"]
            print(f"day {day}: means {pool.map(mean, np.array_split(old, 4))}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/store")
