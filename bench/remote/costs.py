#!/usr/bin/env python3
"""What a remote costs: the requests and bytes of replications, counted at a real server, and dollars a month.

    bench/remote/costs.py [--commits 100] [--pages 16] [--seconds 130] [--row NAME]... [--dir DIR] [--json FILE]

The server is that of VELLUM_TEST_S3_URL (http://HOST:PORT, credentials in AWS_*), or a versitygw that the run starts
(on the PATH, or VELLUM_VERSITYGW). A proxy before it counts requests. curl creates the bucket.

Rows: idle (--seconds of a replication without commits), second (--commits commits of --pages pages, one a second),
relaxed (the same with --interval 6s), minute (two commits, more than a minute apart), follow (pulls of a replica, one
with a commit and one without). The first upload is not counted. A month has 30.44 days, and the prices are Amazon's
list prices for requests in us-east-1. Storage, and traffic out of the region, are not included. A target that is missed ends the run with status 1.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from delay_proxy import DelayProxy
from server import s3_server
from table_lib import print_rows, write_json

BUCKET = f"vellum-costs-{int(time.time())}"
MONTH_S = 30.44 * 86400
DOLLARS = {"PUT": 0.005 / 1000, "LIST": 0.005 / 1000, "GET": 0.0004 / 1000, "DELETE": 0.0}
MIB_OF_REGION = 64
MAX_IDLE_DOLLARS, MAX_SECOND_DOLLARS, MAX_BYTES_RATIO, MAX_GARBAGE = 0.05, 15.0, 1.3, 0.1


def kind_of(request):
    method, target = request.what.split(" ", 1)
    if method == "GET" and "list-type=2" in target:
        return "LIST"
    return "DELETE" if method == "POST" else method


@dataclass
class Counted:
    """The requests of one row, which stand for `per_month` times as many in a month."""

    name: str
    requests: list
    per_month: float
    notes: dict = field(default_factory=dict)

    def count(self, kind):
        return sum(kind_of(r) == kind for r in self.requests)

    def dollars(self):
        return sum(self.count(kind) * price for kind, price in DOLLARS.items()) * self.per_month

    def columns(self):
        sent = sum(r.body for r in self.requests) * self.per_month
        return {"a month of": self.name,
                **{kind: f"{self.count(kind) * self.per_month:,.0f}" for kind in ("PUT", "LIST", "GET")},
                "GB sent": f"{sent / 1e9:.2f}", "dollars": f"{self.dollars():.2f}",
                "notes": ", ".join(f"{name} {value:.2f}" for name, value in self.notes.items())}


class Place:
    def __init__(self, options, scratch, server, proxy):
        self.options, self.scratch, self.proxy = options, scratch, proxy
        self.vellum, self.bench = f"{options.programs}/bin/vellum", f"{options.programs}/bench/bench_remote"
        self.near, self.far = f"http://{server.host}:{server.port}", f"http://127.0.0.1:{proxy.port}"
        self.environment = {**os.environ, "AWS_REGION": "us-east-1", **server.environment}

    def run(self, *command):
        return subprocess.run(command, env=self.environment, check=True, text=True, stdout=subprocess.PIPE).stdout

    def create_bucket(self):
        key, secret = (self.environment.get(f"AWS_{name}", "") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
        # By standard input: a command line is visible to all users.
        command = ("curl", "-sSf", "-X", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3", "-K", "-",
                   "-H", f"x-amz-content-sha256: {hashlib.sha256().hexdigest()}", f"{self.near}/{BUCKET}")
        subprocess.run(command, input=f'user = "{key}:{secret}"', text=True, check=True)

    def new_store(self, name):
        store = f"{self.scratch}/{name}"
        self.run(self.bench, "make", store, str(MIB_OF_REGION), f"{self.scratch}/{name}.bytes")
        return store, f"s3://{BUCKET}/{name}?endpoint={self.far}&region=us-east-1&addressing=path"


class Replication:
    """A context: `vellum replicate`, after its first upload. It ends with a signal, and all of its requests with it."""

    def __init__(self, place, store, url, interval="1s"):
        self.place = place
        self.command = (place.vellum, "replicate", store, url, "--interval", interval, "--json")
        self.process, self.since, self.until = None, 0.0, 0.0

    def begin(self):
        self.since = time.monotonic()

    def end(self):
        self.until = time.monotonic()

    def requests(self):
        """Those that began between begin() and end(). The proxy notes a request when its connection is used again or
        closed, so call it when the replication has ended."""
        return [r for r in self.place.proxy.requests() if self.since <= r.begun < self.until]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=self.place.environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdout.readline()  # the first report
        time.sleep(10)
        self.begin()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()


class Writer:
    """Commits to the open region; the writer stays open, so there is no checkpoint at its end."""

    def __init__(self, place, store, count, pages, pause_ms):
        self.process = subprocess.Popen((place.bench, "commit", store, str(count), str(pages), str(pause_ms)),
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def committed_bytes(self):
        return int(self.process.stdout.readline().split()[1])

    def end(self):
        self.process.communicate("")


def idle(place):
    store, url = place.new_store("idle")
    with Replication(place, store, url) as replication:
        time.sleep(place.options.seconds)
        replication.end()
    return Counted("idle", replication.requests(), MONTH_S / place.options.seconds)


def with_commits(place, name, interval):
    store, url = place.new_store(name)
    with Replication(place, store, url, interval) as replication:
        start = time.monotonic()
        writer = Writer(place, store, place.options.commits, place.options.pages, 1000)
        committed = writer.committed_bytes()
        seconds = time.monotonic() - start
        time.sleep(8)
        replication.end()
    requests = replication.requests()
    space = json.loads(place.run(place.vellum, "stat", url, "--json"))
    writer.end()
    sent = sum(r.body for r in requests if kind_of(r) == "PUT")
    garbage = 1 - space["needed_bytes"] / space["object_bytes"]
    # A machine that is slower than a commit a second needs the same requests in more time.
    return Counted(name, requests, MONTH_S / place.options.commits,
                   {"commits a second": place.options.commits / seconds, "sent / committed": sent / committed,
                    "garbage": garbage})


def minute(place):
    store, url = place.new_store("minute")
    with Replication(place, store, url) as replication:
        time.sleep(65)
        replication.begin()
        writer = Writer(place, store, 2, place.options.pages, 65000)
        writer.committed_bytes()
        replication.end()
    writer.end()
    return Counted("minute", replication.requests(), MONTH_S / 60 / 2)


def pulled(place, replica):
    """The requests of one pull: the replication beside it has none of these kinds."""
    since = time.monotonic()
    place.run(place.vellum, "pull", replica)
    return [r for r in place.proxy.requests() if r.begun >= since and kind_of(r) in ("GET", "LIST")]


def follow(place):
    store, url = place.new_store("follow")
    replica = f"{place.scratch}/replica"
    with Replication(place, store, url):
        place.run(place.vellum, "clone", url, replica)
        without = pulled(place, replica)
        writer = Writer(place, store, 1, place.options.pages, 10000)
        writer.committed_bytes()
        with_one = pulled(place, replica)
    writer.end()
    return (Counted("follow, a pull a minute, with a commit each", with_one, MONTH_S / 60),
            Counted("follow, a pull a minute, without commits", without, MONTH_S / 60))


ROWS = {
    "idle": lambda place: [idle(place)],
    "second": lambda place: [with_commits(place, "second", "1s")],
    "relaxed": lambda place: [with_commits(place, "relaxed", "6s")],
    "minute": lambda place: [minute(place)],
    "follow": lambda place: list(follow(place)),
}


def targets(counted):
    """(what, bound, measured) of the rows that have run."""
    found = {one.name: one for one in counted}
    out = []
    if "idle" in found:
        out.append(("idle: dollars a month", MAX_IDLE_DOLLARS, found["idle"].dollars()))
    if "second" in found:
        second = found["second"]
        out += [("a commit a second: dollars a month", MAX_SECOND_DOLLARS, second.dollars()),
                ("its bytes sent over those committed", MAX_BYTES_RATIO, second.notes["sent / committed"]),
                ("garbage after it", MAX_GARBAGE, second.notes["garbage"])]
    if "relaxed" in found:
        out.append(("a commit a second with --interval 6s: dollars", MAX_SECOND_DOLLARS, found["relaxed"].dollars()))
    return out


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--pages", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=130, help="of the row idle")
    parser.add_argument("--row", action="append", choices=list(ROWS))
    parser.add_argument("--programs", default=f"{TOP}/build/release", help="the build directory")
    parser.add_argument("--dir", default="/tmp", help="for stores and the server")
    parser.add_argument("--json", help="a file for the figures")
    return parser.parse_args()


def main():
    options = parse_options()
    if not shutil.which("curl"):
        raise RuntimeError("curl creates the bucket, and is not installed")
    counted = []
    with tempfile.TemporaryDirectory(prefix="remote-costs-", dir=options.dir) as scratch, \
            s3_server(f"{scratch}/server") as server, DelayProxy(server.host, server.port, 0) as proxy:
        place = Place(options, scratch, server, proxy)
        print(f"{server.description}; load {os.getloadavg()[0]:.1f}", flush=True)
        place.create_bucket()
        for name in options.row or ROWS:
            counted += ROWS[name](place)
    rows = [one.columns() for one in counted]
    print_rows([list(rows[0])] + [list(row.values()) for row in rows])
    results = [(what, bound, value, value <= bound) for what, bound, value in targets(counted)]
    for what, bound, value, holds in results:
        print(f"{what}: {value:.2f}, at most {bound:.2f}: {'holds' if holds else 'MISSED'}")
    if options.json:
        write_json(options.json, "remote-costs", {"rows": rows, "targets": results})
    return 0 if all(holds for *_, holds in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"costs: {error}")
