#!/usr/bin/env python3
"""Runs bench_fams cell by cell, each in its own process and directory, and prints tables.

    bench/fams/table.py [--medium pm|disk]... [--dir DIR] [--pm-dir DIR] [--rounds 3] [--seconds 1]
                        [--structure NAME]... [--workload NAME]... [--store NAME]... [--every N]...
    bench/fams/table.py --instrumentation

pm: persistent memory, emulated: --pm-dir, on tmpfs, with PMEM_IS_PMEM_FORCE=1. disk: --dir, on a file
system that matters. Operations per second are medians of --rounds; x is the factor by which
vellum-cards is faster. B/op: bytes written according to the disk's own counter, per operation, until
the last commit; other programs' writes count too, and should be avoided. A cell ends after --seconds.
All of it takes about an hour; --every 1 --every 100 --rounds 1 a tenth of that.

msync, msync-pages and msync-folios are not crash-consistent, volatile keeps nothing, floor supports no
reads. On tmpfs a flush costs only its system call: there, only Vellum and PMDK do the work that
persistent memory needs: write-backs of cache lines and fences.
--instrumentation: structures in plain memory, compiled by the same clang without and with the pass,
outside of the window of tracked memory and in it.
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
WORKLOADS = {"list": ("insert", "remove", "traverse"),
             "btree": ("insert", "update", "read", "E"),
             "hash": ("insert", "update", "read", "A", "B", "C", "D", "F"),
             "scattered": ("scattered",)}
READS = ("traverse", "read", "C")  # nothing to commit: measured once
SCATTERED_STORES = 64
VELLUM = ("vellum-cards", "vellum-marks", "vellum-pages")
PMDK = ("pmdk", "pmdk-arena")
DATABASES = ("lmdb", "sqlite", "bdb")
MSYNC = ("msync", "msync-pages", "msync-folios")
STORES = {"pm": (*VELLUM, *PMDK, *DATABASES, "msync", "volatile"),
          "disk": (*VELLUM, *PMDK, *DATABASES, *MSYNC, "floor")}
SPEED, CLOSED, BYTES = ("operations per second", "operations per second, closed",
                        "device bytes per operation")
MEDIA = {"pm": "emulated persistent memory", "disk": "disk"}


def can_run(store, structure, medium):
    if structure == "scattered":
        return store not in DATABASES
    return not (medium == "pm" and store in MSYNC[1:])


def everies(structure, workload, options):
    if structure == "scattered":
        return [SCATTERED_STORES]
    return [max(options.every)] if workload in READS else options.every


def run_cell(medium, structure, workload, every, store, options, more=()):
    """Its figures, or the error as text."""
    parent = options.pm_dir if medium == "pm" else options.dir
    os.makedirs(parent, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="fams-table-", dir=parent)  # two of these may run
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PMEM_")}
    if medium == "pm":
        environment["PMEM_IS_PMEM_FORCE"] = "1"
    # Reads take little time.
    operations = options.operations * (4 if workload in READS else 1)
    with tempfile.NamedTemporaryFile(suffix=".json") as out, tempfile.TemporaryFile("w+") as said:
        command = [options.program, "--store", store, "--structure", structure, "--workload", workload,
                   "--every", str(every), "--keys", str(options.keys), "--seconds", str(options.seconds),
                   "--operations", str(operations), "--check", "0" if options.no_check else "1",
                   "--dir", directory, "--json", out.name, *more]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said,
                                   start_new_session=True)
        try:
            process.wait(options.timeout)
            if process.returncode == 0:
                return json.load(out)["figures"]
            said.seek(0)
            return (said.read().strip().splitlines() or [f"exit {process.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            return f"> {options.timeout:g} s"
        finally:
            kill_group(process)
            shutil.rmtree(directory, ignore_errors=True)


def stores_built(options):
    said = subprocess.run([options.program, "--list", "1", "--dir", options.pm_dir], check=True,
                          capture_output=True, text=True).stdout
    return said.split()


class Results:
    """{(medium, structure, workload, every, store): medians}, and the errors."""

    def __init__(self):
        self.runs, self.troubles = {}, {}

    def add(self, key, result):
        if isinstance(result, dict):
            self.runs.setdefault(key, []).append(result)
        else:
            self.troubles[key] = result

    def median(self, key, what=SPEED):
        values = [run[what] for run in self.runs.get(key, ()) if what in run]
        return statistics.median(values) if values and key not in self.troubles else None


def cells_of(options, built):
    for medium in options.medium:
        stores = [s for s in STORES[medium] if s in built and s in (options.store or STORES[medium])]
        for structure in options.structure:
            for workload in WORKLOADS[structure]:
                if options.workload and workload not in options.workload:
                    continue
                for every in everies(structure, workload, options):
                    yield from ((medium, structure, workload, every, store) for store in stores
                                if can_run(store, structure, medium))


def measure(options, built):
    """Round robin, to expose all to the same disturbances."""
    results, cells = Results(), list(cells_of(options, built))
    for turn in range(options.rounds):
        for number, key in enumerate(cells):
            if key in results.troubles:
                continue
            result = run_cell(*key, options)
            results.add(key, result)
            said = f"{result[SPEED]:,.0f}/s" if isinstance(result, dict) else result
            print(f"{turn + 1}/{options.rounds} {number + 1}/{len(cells)} {', '.join(map(str, key))}: "
                  f"{said}", file=sys.stderr, flush=True)
    return results


def base_store(options, built):
    """The peers of the ratios."""
    wanted = [store for store in (*VELLUM, *STORES["disk"]) if store in built]
    return next(store for store in wanted if not options.store or store in options.store)


def short(number):
    if number is None:
        return "-"
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.{0 if number >= 100 * limit else 1 if number >= 10 * limit else 2}f} {unit}"
    return f"{number:.0f}"


def print_table(medium, structure, workload, results, options, built):
    every = everies(structure, workload, options)
    base = base_store(options, built)
    columns = ["ops/s", "x"] + (["B/op"] if medium == "disk" else [])
    title = f"{MEDIA[medium]}: {structure}" + ("" if structure == workload else f", {workload}")
    rows = [[title, *(cell for n in every for cell in (
                "no commits" if workload in READS else f"every {n:,}", *[""] * (len(columns) - 1)))],
            ["", *columns * len(every)]]
    for store in STORES[medium]:
        keys = [(medium, structure, workload, n, store) for n in every]
        if not any(key in results.runs or key in results.troubles for key in keys):
            continue
        row = [store]
        for key in keys:
            speed, base_speed = results.median(key), results.median((*key[:-1], base))
            row += [short(speed), f"{base_speed / speed:.2f}" if speed and base_speed else "-"]
            if medium == "disk":
                row.append(short(results.median(key, BYTES)))
        rows.append(row)
    if len(rows) > 2:
        print_rows(rows)
        print()


class Targets:
    def __init__(self):
        self.all = []

    def at_least(self, name, value, bound, limit=None):
        """`limit`: the figure of structures in plain memory, the upper bound."""
        if value is not None:
            self.all.append({"name": name, "value": value, "bound": bound, "holds": value >= bound})
            if limit is not None:
                self.all[-1]["limit"] = limit

    def print(self):
        if self.all:
            print_rows([["target", "value", "bound", "volatile", "holds"],
                        *([t["name"], f"{t['value']:.2f}" if t["value"] < 1000 else short(t["value"]),
                           f">= {t['bound']:.2f}" if t["bound"] < 1000 else f">= {short(t['bound'])}",
                           f"{t['limit']:.2f}" if "limit" in t else "",
                           "yes" if t["holds"] else "NO"] for t in self.all)])
            print()


def ratio_to_best(results, key, base, stores):
    """The factor over the fastest of them, and that one's name."""
    speeds = [(results.median((*key, store)), store) for store in stores]
    best = max(((speed, store) for speed, store in speeds if speed), default=None)
    own = results.median((*key, base))
    return (own / best[0], best[1]) if own and best else (None, "")


def add_target(targets, results, key, base, stores, bound):
    ratio, best = ratio_to_best(results, key, base, stores)
    medium, structure, workload, every = key
    what = "" if structure == workload else f", {workload}"
    commits = "" if workload in READS else f", every {every}"
    limit, _ = ratio_to_best(results, key, "volatile", stores)
    targets.at_least(f"{medium}, {structure}{what}{commits}: {base} to {best}", ratio, bound,
                     None if best == "volatile" else limit)


def judge(results, options, built):
    targets, base = Targets(), base_store(options, built)
    keys = {}  # in the order of the cells, each once
    for key in results.runs:
        keys[key[:-1]] = True
    for key in keys:
        medium, structure, workload, every = key
        if structure == "scattered":
            if medium == "disk":
                for store in MSYNC:
                    add_target(targets, results, key, base, [store], 10)
        elif workload in READS:
            # Nothing is committed: at best it is as fast as memory.
            if medium == "pm":
                add_target(targets, results, key, base, ["volatile"], 1 / 1.05)
                add_target(targets, results, key, base, PMDK, 1 / 1.05)
        elif medium == "pm":
            add_target(targets, results, key, base, PMDK, {1: 1.2, 100: 2}.get(every, 1))
        else:
            if every == 1:
                add_target(targets, results, key, base, ["floor"], 0.8)
            if every == 100:
                what = f"{medium}, {structure}, {workload}, every {every}: {base}, operations/s"
                targets.at_least(what, results.median((*key, base)), 400e3)
            if every in (1, 100):
                add_target(targets, results, key, base, [*PMDK, *DATABASES, *MSYNC], 1)
    return targets


INSTRUMENTATION = ("volatile", "instrumented", "instrumented-window")


def instrumentation(options, built):
    """Slowdowns of the pass only: nothing is committed, and marks stay."""
    if "instrumented" not in built:
        sys.exit("table: vellum-clang++ was not there when bench_fams was built")
    results = Results()
    rows = [["in memory, ops/s", "plain", "outside of the window", "x", "in the window", "x"]]
    for structure in options.structure:
        if structure == "scattered":
            continue
        for workload in WORKLOADS[structure]:
            if options.workload and workload not in options.workload:
                continue
            key = ("pm", structure, workload, 1000)
            for _ in range(options.rounds):
                for store in INSTRUMENTATION:
                    results.add((*key, store), run_cell(*key, store, options))
            plain, outside, inside = (results.median((*key, store)) for store in INSTRUMENTATION)
            if not (plain and outside and inside):
                continue
            rows.append([f"{structure}, {workload}", short(plain), short(outside),
                         f"{plain / outside:.2f}", short(inside), f"{plain / inside:.2f}"])
    print_rows(rows)
    print()
    return results


def print_troubles(results):
    for key, trouble in results.troubles.items():
        print(f"{', '.join(map(str, key))}: {trouble}")


def write_report(file, results, targets, options):
    figures = {}
    for key in results.runs:
        medium, structure, workload, every, store = key
        name = f"{medium}, {structure}, {workload}, every {every}, {store}"
        for what in (SPEED, CLOSED, BYTES, f"{BYTES}, closed"):
            value = results.median(key, what)
            if value is not None:
                figures[f"{name}, {what}"] = value
    report = {"keys": options.keys, "operations": options.operations, "rounds": options.rounds,
              "troubles": {", ".join(map(str, key)): t for key, t in results.troubles.items()},
              "figures": figures, "targets": targets.all}
    write_json(file, "fams", report)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=f"{TOP}/build/release/bench/bench_fams")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="on a disk")
    parser.add_argument("--pm-dir", default="/dev/shm", help="on tmpfs")
    parser.add_argument("--medium", action="append", choices=MEDIA)
    parser.add_argument("--structure", action="append", choices=WORKLOADS)
    parser.add_argument("--workload", action="append",
                        choices=sorted({w for all_of in WORKLOADS.values() for w in all_of}))
    parser.add_argument("--store", action="append",
                        choices=sorted({*STORES["pm"], *STORES["disk"]}))
    parser.add_argument("--every", action="append", type=int, help="operations a commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--operations", type=int, default=500_000,
                        help="of workloads that go on as long as one likes")
    parser.add_argument("--seconds", type=int, default=1, help="of a cell, in addition to filling")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a cell")
    parser.add_argument("--no-check", action="store_true",
                        help="does not open each file again to compare all that it has")
    parser.add_argument("--instrumentation", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.medium = options.medium or list(MEDIA)
    options.structure = options.structure or list(WORKLOADS)
    options.every = options.every or [1, 10, 100, 1000]
    return options


def main():
    options = parse_options()
    if not os.access(options.program, os.X_OK):
        sys.exit(f"table: no program {options.program}: make bench NAME=fams builds it")
    built = stores_built(options)
    targets = Targets()
    if options.instrumentation:
        results = instrumentation(options, built)
    else:
        results = measure(options, built)
        for medium in options.medium:
            for structure in options.structure:
                for workload in WORKLOADS[structure]:
                    print_table(medium, structure, workload, results, options, built)
        targets = judge(results, options, built)
        targets.print()
    print_troubles(results)
    if options.json:
        write_report(options.json, results, targets, options)
    return 1 if results.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
