#!/usr/bin/env python3
"""push, pull, clone and gc --recompress of this build against another program `vellum`: bytes and seconds, in pairs.

    bench/remote/against.py PROGRAM [--mib 16] [--rounds 5] [--round-trip-ms 20] [--programs DIR] [--dir DIR]
                            [--json FILE]

The server is that of VELLUM_TEST_S3_URL (http://HOST:PORT, credentials in AWS_*), or a versitygw that the run starts
(on the PATH, or VELLUM_VERSITYGW). A proxy before it adds the round trip and counts bytes. curl creates the bucket.

PROGRAM, the older one, makes a store with three versions, each with a word of 1 % of the pages of the last one changed.
In each round both programs get a copy of it and a prefix of their own, one after the other, in alternating order. The
figures are medians of the rounds, and the ratio of this build's median to PROGRAM's, with that of the minima and the
range of the ratios of pairs. `processor` is the command's user and system time. `sent` are the bodies of its requests,
`received` all replies with their headers; after gc `sent` is the space of the packs.
"""

import argparse
import os
import random
import shutil
import statistics
import string
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from delay_proxy import DelayProxy
from server import s3_server
from table import BUCKET, installed, make_bucket
from table_lib import print_rows, write_json

PAGE_BYTES = 4096
VERSIONS = ("base", "first", "second")
FIGURES = ("sent", "received", "processor", "wall")
MAX_RATIO = 1.05


class Place:
    """The data's directory, and the server, directly and behind the proxy."""

    def __init__(self, options, scratch, server, proxy):
        self.options, self.scratch, self.proxy = options, scratch, proxy
        self.near, self.far = (f"http://127.0.0.1:{port}" if port == proxy.port else f"http://{server.host}:{port}"
                               for port in (server.port, proxy.port))
        self.environment = {**os.environ, "AWS_REGION": "us-east-1", **server.environment,
                            "VELLUM_CACHE_DIR": f"{scratch}/cache"}

    def url(self, prefix):
        return f"s3://{BUCKET}/{prefix}?endpoint={self.far}&region=us-east-1&addressing=path"

    def run(self, *command):
        """{figure: value} of a command."""
        self.proxy.requests()
        start = time.monotonic()
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            errors = process.stderr.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - start
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command[:3])}: {errors.strip()}")
        requests = self.proxy.requests()
        return {"sent": sum(r.body for r in requests), "received": sum(r.received for r in requests),
                "processor": usage.ru_utime + usage.ru_stime, "wall": wall}


def make_store(place, vellum):
    """Words, which a higher level compresses further."""
    store, file = f"{place.scratch}/store", f"{place.scratch}/file"
    source, pages = random.Random(1), place.options.mib * 2**20 // PAGE_BYTES
    words = ["".join(source.choices(string.ascii_lowercase, k=source.randint(2, 9))) for _ in range(3000)]
    with open(file, "wb") as out:
        for _ in range(pages):
            out.write(" ".join(source.choices(words, k=PAGE_BYTES)).encode()[:PAGE_BYTES])
    place.run(vellum, "init", store)
    for number, name in enumerate(VERSIONS):
        if number != 0:
            with open(file, "r+b") as out:
                for page in range(number, pages, 100):
                    out.seek(page * PAGE_BYTES + 8 * number)
                    out.write(os.urandom(8))
        place.run(vellum, "import", store, "main", file, "--snapshot", name)
    os.remove(file)
    return store


def space_of_packs(store):
    """gc frees parts of files."""
    return sum(os.stat(entry).st_blocks * 512 for entry in os.scandir(f"{store}/packs"))


def one_round(place, vellum, prefix, made):
    """{step: {figure: value}}"""
    store, copy, url = f"{place.scratch}/{prefix}", f"{place.scratch}/{prefix}-clone", place.url(prefix)
    shutil.copytree(made, store)
    place.run(vellum, "remote", "add", store, "origin", url)
    out = {"push": place.run(vellum, "push", store, "base")}
    out["push of 1 %"] = place.run(vellum, "push", store, "first")
    out["clone"] = place.run(vellum, "clone", url, copy, "base")
    out["pull of 1 %"] = place.run(vellum, "pull", copy, "first")
    for name, path in (("gc --recompress", store), ("gc --recompress of a clone", copy)):
        out[name] = place.run(vellum, "gc", path, "--recompress")
        out[name]["sent"] = space_of_packs(path)
    out["push, recompressed"] = place.run(vellum, "push", store, "second")
    out["pull, recompressed"] = place.run(vellum, "pull", copy, "second")
    for path in (store, copy, f"{place.scratch}/cache"):
        shutil.rmtree(path, ignore_errors=True)
    return out


def print_table(here, there):
    """The rows that were printed, and the ratios by step and figure."""
    rows, ratios = [("step", "figure", "this build", "PROGRAM", "ratio", "of minima", "pairs")], {}
    for step in here[0]:
        for figure in FIGURES:
            if not any(one[step][figure] for one in there):
                continue  # gc receives nothing, and a pull sends nothing
            ours, theirs = ([one[step][figure] for one in rounds] for rounds in (here, there))
            pairs = [a / b for a, b in zip(ours, theirs)]
            mine, other = statistics.median(ours), statistics.median(theirs)
            text = (lambda v: f"{v:.0f}") if figure in ("sent", "received") else (lambda v: f"{v:.3f} s")
            ratios[f"{step}, {figure}"] = mine / other
            rows.append((step, figure, text(mine), text(other), f"{mine / other:.3f}",
                         f"{min(ours) / min(theirs):.3f}", f"{min(pairs):.2f} to {max(pairs):.2f}"))
    print_rows(rows, left_columns=2)
    return rows, ratios


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("--mib", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-trip-ms", type=float, default=20)
    parser.add_argument("--programs", default=f"{TOP}/build/release", metavar="DIR", help="the build")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="for the data")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    for program in (options.program, f"{options.programs}/bin/vellum"):
        if not installed(program):
            sys.exit(f"against: no program {program}")
    return options


def main():
    options = parse_options()
    os.makedirs(options.dir, exist_ok=True)
    programs = {"here": f"{options.programs}/bin/vellum", "there": options.program}
    rounds = {"here": [], "there": []}
    with tempfile.TemporaryDirectory(prefix="remote-against-", dir=options.dir) as scratch, \
            s3_server(f"{scratch}/server") as server, \
            DelayProxy(server.host, server.port, options.round_trip_ms / 1000) as proxy:
        place = Place(options, scratch, server, proxy)
        print(f"{server.description}; load {os.getloadavg()[0]:.1f}", flush=True)
        make_bucket(place)
        made = make_store(place, options.program)
        for number in range(options.rounds):
            for which in ("here", "there") if number % 2 == 0 else ("there", "here"):
                rounds[which].append(one_round(place, programs[which], f"{which}{number}", made))
            print(f"round {number + 1} of {options.rounds}; load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    rows, ratios = print_table(rounds["here"], rounds["there"])
    above = {name: ratio for name, ratio in ratios.items() if ratio > MAX_RATIO and not name.endswith("wall")}
    for name, ratio in above.items():
        print(f"MISSED: {name}: {ratio:.3f}, at most {MAX_RATIO}")
    if options.json:
        write_json(options.json, "remote-against", {"mib": options.mib, "rounds": options.rounds, "rows": rows})
    return 1 if above else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"against: {error}")
