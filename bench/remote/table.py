#!/usr/bin/env python3
"""Versions that leave the machine, by Vellum and by what people use instead, against one server in one run.

    bench/remote/table.py [--mib 256] [--pushes 8] [--log-versions 1000] [--rtt-ms 20] [--dir DIR] [--json FILE]
                          [--peer NAME]...

The server is versitygw on its posix engine (`go install github.com/versity/versitygw/cmd/versitygw@latest`; --versitygw
says where it is), behind a proxy in this process that delays each direction by half of --rtt-ms. A file of --mib MiB
becomes a version; then 8 bytes change in 1 % of its pages, and each change becomes another one. Bytes are those of the
objects that the server has. Requests in sequence are counted by the proxy. The Vellum of build/release is measured, by
its command line, so its start counts like that of the peers. Peers that are not installed are left out: restic, rclone,
s5cmd. Every peer reads from the page cache.

Rows of lazy opening are not there yet: a row is a function of Bench that ROWS names.
"""

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from delay_proxy import DelayProxy  # noqa: E402
from table_lib import print_rows, write_json  # noqa: E402

PAGE = 4096
KEY, SECRET, BUCKET = "benchkey", "benchsecret", "bench"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def size_of(folder):
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)


class Server:
    def __init__(self, program, folder, rtt_ms):
        self.bucket = f"{folder}/objects/{BUCKET}"
        os.makedirs(self.bucket)
        port = free_port()
        self.process = subprocess.Popen(
            [program, "--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET, "posix", f"{folder}/objects"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            sys.exit("bench/remote/table.py: the server does not start")
        self.proxy = DelayProxy(port, rtt_ms / 2000)
        self.endpoint = f"http://127.0.0.1:{self.proxy.port}"

    def bytes(self, prefix):
        return size_of(f"{self.bucket}/{prefix}")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.proxy.close()


class Data:
    """A file whose pages compress by about four, and what changes of it."""

    def __init__(self, path, mib):
        self.path, self.pages = path, mib * 256
        self.random = random.Random(7)
        with open(path, "wb") as out:
            for _ in range(self.pages):
                out.write(self.random.randbytes(PAGE // 4) * 4)

    def change(self):
        with open(self.path, "r+b") as file:
            for page in self.random.sample(range(self.pages), self.pages // 100):
                file.seek(page * PAGE + 8 * self.random.randrange(PAGE // 8))
                file.write(self.random.randbytes(8))


class Peer:
    """What each peer does; `run` is timed, and its requests are counted."""

    def __init__(self, bench):
        self.bench, self.server, self.data = bench, bench.server, bench.data
        self.environment = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                            "AWS_REGION": "us-east-1", "HOME": bench.folder, "RESTIC_PASSWORD": "x",
                            "RESTIC_CACHE_DIR": f"{bench.folder}/restic-cache"}

    def command(self, *words):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench/remote/table.py: {' '.join(words)}: {done.stderr}")
        return done.stdout

    def run(self, *words):
        self.server.proxy.reset()
        start = time.monotonic()
        out = self.command(*words)
        proxy = self.server.proxy
        return {"seconds": time.monotonic() - start, "requests": proxy.requests, "in_sequence": proxy.depth, "out": out}


class Vellum(Peer):
    name = "Vellum"

    def prepare(self):
        self.vellum, self.store = f"{TOP}/build/release/bin/vellum", f"{self.bench.folder}/s"
        self.url = f"s3://{BUCKET}/vellum?endpoint={self.server.endpoint}&region=us-east-1"
        self.command(self.vellum, "init", self.store)
        self.command(self.vellum, "remote", "add", self.store, "origin", self.url, "--one-writer")

    def keep(self, n):
        self.command(self.vellum, "import", self.store, "main", self.data.path)
        self.command(self.vellum, "snapshot", self.store, f"v{n}", "main")

    def push(self, n):
        row = self.run(self.vellum, "push", self.store, f"v{n}")
        shown = json.loads(self.command(self.vellum, "show", self.store, f"v{n}", "--json"))
        row["added"] = shown["bytes_added"]
        return row

    def log(self):
        return self.run(self.vellum, "log", self.url)

    def restore(self, to):
        row = self.run(self.vellum, "clone", self.url, to, "v0")
        return row


class Restic(Peer):
    name = "restic"

    def prepare(self):
        self.words = ["restic", "-q", "-r", f"s3:{self.server.endpoint}/{BUCKET}/restic"]
        self.command(*self.words, "init")

    def keep(self, n):
        pass

    def push(self, n):
        return self.run(*self.words, "backup", "--tag", f"v{n}", self.data.path)

    def log(self):
        return self.run(*self.words, "snapshots")

    def restore(self, to):
        return self.run(*self.words, "restore", "latest", "--target", to)


class Rclone(Peer):
    name = "rclone"

    def prepare(self):
        self.words = ["rclone", "--s3-provider", "Other", "--s3-endpoint", self.server.endpoint, "--s3-env-auth",
                      "--s3-no-check-bucket", "--transfers", "16"]

    def keep(self, n):
        pass

    def push(self, n):
        return self.run(*self.words, "copyto", self.data.path, f":s3:{BUCKET}/rclone/v{n}")

    def log(self):
        return self.run(*self.words, "lsf", f":s3:{BUCKET}/rclone")

    def restore(self, to):
        """The objects of Vellum's remote: the stored bytes."""
        return self.run(*self.words, "copy", f":s3:{BUCKET}/vellum", to)


class S5cmd(Peer):
    name = "s5cmd"

    def prepare(self):
        self.words = ["s5cmd", "--endpoint-url", self.server.endpoint]

    def keep(self, n):
        pass

    def push(self, n):
        return self.run(*self.words, "cp", self.data.path, f"s3://{BUCKET}/s5cmd/v{n}")

    def log(self):
        return self.run(*self.words, "ls", f"s3://{BUCKET}/s5cmd/")

    def restore(self, to):
        """The objects of Vellum's remote: the stored bytes."""
        return self.run(*self.words, "cp", f"s3://{BUCKET}/vellum/*", to + "/")


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.server = Server(arguments.versitygw, folder, arguments.rtt_ms)
        self.data = Data(f"{folder}/data", arguments.mib)
        self.results = {}
        types = [Vellum] + [p for p in (Restic, Rclone, S5cmd) if shutil.which(p.name)]
        self.peers = [p(self) for p in types if not arguments.peer or p.name in arguments.peer]

    def prepare(self):
        for peer in self.peers:
            peer.prepare()
            peer.keep(0)
            before = self.server.bytes("")
            first = peer.push(0)
            self.results[peer.name] = {"first": {**first, "stored": self.server.bytes("") - before}}

    def row_pushes(self):
        rows = {peer.name: [] for peer in self.peers}
        for n in range(1, self.arguments.pushes + 1):
            self.data.change()
            for peer in self.peers:
                peer.keep(n)
                before = self.server.bytes("")
                rows[peer.name].append({**peer.push(n), "stored": self.server.bytes("") - before})
        for name, pushes in rows.items():
            self.results[name]["push"] = {key: statistics.median(p[key] for p in pushes)
                                          for key in ("seconds", "requests", "in_sequence", "stored")}
            if "added" in pushes[0]:
                self.results[name]["push"]["added"] = statistics.median(p["added"] for p in pushes)
                self.results[name]["push"]["of_added"] = (sum(p["stored"] for p in pushes) /
                                                          sum(p["added"] for p in pushes))

    def row_restore(self):
        for peer in self.peers:
            to = f"{self.folder}/restored-{peer.name}"
            self.results[peer.name]["restore"] = peer.restore(to)
            shutil.rmtree(to, ignore_errors=True)

    def row_log(self):
        vellum = self.peers[0]
        if vellum.name == "Vellum":
            for n in range(self.arguments.log_versions):
                vellum.command(vellum.vellum, "snapshot", vellum.store, f"x{n}", "main")
                if n % 100 == 99:
                    vellum.command(vellum.vellum, "push", vellum.store, "--all")
        for peer in self.peers:
            self.results[peer.name]["log"] = peer.log()

    ROWS = (row_pushes, row_restore, row_log)

    def print(self):
        rows = [["", "push s", "requests", "in sequence", "KiB stored", "restore s", "log s", "requests"]]
        for name, r in self.results.items():
            push = r["push"]
            rows.append([name, f"{push['seconds']:.2f}", f"{push['requests']:.0f}", f"{push['in_sequence']:.0f}",
                         f"{push['stored'] / 1024:.1f}", f"{r['restore']['seconds']:.2f}", f"{r['log']['seconds']:.2f}",
                         f"{r['log']['requests']}"])
        print_rows(rows)
        if "Vellum" not in self.results:
            return
        vellum = self.results["Vellum"]
        self.target("requests in sequence of a push", vellum["push"]["in_sequence"], 3)
        self.target("objects of a push over the bytes that its version added", vellum["push"]["of_added"], 1.1)
        self.target(f"requests of log, {self.arguments.log_versions} versions and more", vellum["log"]["requests"], 3)
        if "rclone" in self.results:
            share = self.results["rclone"]["restore"]["seconds"] / vellum["restore"]["seconds"]
            self.target("restore, as a share of rclone's speed for the stored bytes", share, 0.9, at_least=True)

    @staticmethod
    def target(text, value, wanted, at_least=False):
        met = value >= wanted if at_least else value <= wanted
        print(f"{text}: {value:.2f} (target {'>=' if at_least else '<='} {wanted}): {'met' if met else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--pushes", type=int, default=8)
    parser.add_argument("--log-versions", type=int, default=1000)
    parser.add_argument("--rtt-ms", type=float, default=20)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--versitygw", default=shutil.which("versitygw"))
    parser.add_argument("--dir")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if not arguments.versitygw:
        sys.exit("bench/remote/table.py: no versitygw in PATH; see the head of this file")
    folder = tempfile.mkdtemp(prefix="vellum-bench-remote-", dir=arguments.dir)
    bench = Bench(arguments, folder)
    try:
        bench.prepare()
        for row in Bench.ROWS:
            row(bench)
        bench.print()
    finally:
        bench.server.close()
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.json:
        for result in bench.results.values():
            for row in result.values():
                row.pop("out", None)
        write_json(arguments.json, "remote", {"options": {"mib": arguments.mib, "rtt_ms": arguments.rtt_ms},
                                              "results": bench.results})


if __name__ == "__main__":
    main()
