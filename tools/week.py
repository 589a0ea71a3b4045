#!/usr/bin/env python3
"""A remote's week in minutes: a program writes, `vellum replicate` follows, and everything that may go wrong does.

  tools/week.py [--seconds N] [--hour S] [--seed N] [--program VELLUM] [--keep DIR]      at a directory
  tools/with-s3.sh versitygw tools/week.py ...                                           at an S3 server (or ceph)

- SQLite writes rows into a database under `vellum run`, and notes each row after its commit.
- `vellum replicate` sends each commit, and removes old snapshots at the remote.
- Each hour (of --hour seconds) there is a snapshot. `vellum forget` and `vellum gc` run in the store, `gc` at the remote.
- A replica, a lazy clone at first, pulls and is compared.
- Any of these processes is killed at random.
- The bucket is lost, or replaced by an older copy of it, or some of its objects are removed, cut or flipped. The
  store then has to bring back all of it: by replicate, or by `vellum repair URL --from STORE`.

What was reported must be there: after a kill, each noted row is in the database; in a clone of the remote, each
snapshot has its content, and the database has each row that was noted before the newest commit that replicate has
reported. Standard error has a line for each finding. The last line of the output counts everything. Exit status 1 if
anything was lost or wrong, 2 for a bad argument.
"""

import argparse
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse
import xml.etree.ElementTree

REMOTE_SNAPSHOTS = 8  # the store keeps more of them, so that it has all that the remote may lose
STORE_SNAPSHOTS = 16
COMMAND_S = 300  # a command that takes longer hangs
INTERVAL_S = 1  # of replicate
MOST_TRIES = 50  # of a command that is killed at random, or finds the store busy
CATCH_UP_S = 120  # a replication that does not catch up within this time after a disaster has failed

WRITER = """
import os, random, sqlite3, sys, time
file, noted, seed = sys.argv[1:]
base = sqlite3.connect(file)
base.execute("pragma synchronous=full")
base.execute("create table if not exists rows (n integer primary key, content blob)")
number = base.execute("select coalesce(max(n), 0) from rows").fetchone()[0]
log = os.open(noted, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
dice = random.Random(f"{seed} {number}")
while True:
    number += 1
    with base:
        base.execute("insert into rows values (?, ?)", (number, dice.randbytes(dice.randint(50, 3000))))
        if number % 7 == 0:
            base.execute("update rows set content = ? where n = ?", (dice.randbytes(500), dice.randint(1, number)))
    os.write(log, b"%d\\n" % number)
    if dice.random() < 0.7:
        time.sleep(dice.random() * 0.05)
"""


class Directory:
    """The objects of a remote in a directory."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.url = f"file://{root}"

    def keys(self):
        return sorted(str(one.relative_to(self.root)) for one in self.root.rglob("*") if one.is_file())

    def get(self, key):
        return (self.root / key).read_bytes()

    def put(self, key, content):
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".week")
        new.write_bytes(content)
        new.rename(path)

    def remove(self, key):
        (self.root / key).unlink(missing_ok=True)


class Bucket:
    """The objects of a remote at an S3 server, by curl(1), which signs the requests."""

    def __init__(self, url):
        self.url = url
        parts = urllib.parse.urlsplit(url)
        options = urllib.parse.parse_qs(parts.query)
        self.endpoint = f"{options['endpoint'][0]}/{parts.netloc}"
        self.prefix = parts.path.strip("/") + "/"
        self.region = options["region"][0]

    def request(self, *arguments, content=None):
        user = f"{os.environ['AWS_ACCESS_KEY_ID']}:{os.environ['AWS_SECRET_ACCESS_KEY']}"
        digest = hashlib.sha256(content or b"").hexdigest()
        command = ("curl", "-sS", "-f", "--retry", "5", "--aws-sigv4", f"aws:amz:{self.region}:s3", "--user", user)
        command += ("-H", f"x-amz-content-sha256: {digest}", *arguments)
        return subprocess.run(command, input=content, capture_output=True, check=True, timeout=COMMAND_S).stdout

    def path(self, key):
        return f"{self.endpoint}/{self.prefix}{urllib.parse.quote(key)}"

    def keys(self):
        names, token = [], None
        while True:
            query = {"list-type": "2", "prefix": self.prefix}
            if token:
                query = {"continuation-token": token, **query}
            listing = xml.etree.ElementTree.fromstring(
                self.request(f"{self.endpoint}?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}")
            )
            for node in listing.iter():
                node.tag = node.tag.rpartition("}")[2]
            names += [one.findtext("Key")[len(self.prefix):] for one in listing.iter("Contents")]
            token = listing.findtext("NextContinuationToken")
            if not token:
                return sorted(names)

    def get(self, key):
        return self.request(self.path(key))

    def put(self, key, content):
        kind = "content-type: application/octet-stream"  # curl 7.88 signs an empty one, which it does not send
        self.request("-X", "PUT", "--data-binary", "@-", "-H", kind, self.path(key), content=content)

    def remove(self, key):
        self.request("-X", "DELETE", self.path(key))


class Process:
    """A process group that lasts, with its output in a file."""

    def __init__(self, name, command, directory):
        self.name = name
        self.log = pathlib.Path(directory) / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def ended(self):
        return self.process.poll() is not None

    def stop(self, how, timeout=60):
        """Returns the exit status; None if the process has to be killed after all."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, how)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return None


class Week:
    def __init__(self, options, directory):
        self.options = options
        self.program = str(pathlib.Path(options.program).resolve())
        self.directory = pathlib.Path(directory)
        self.dice = random.Random(options.seed)
        self.store, self.data, self.noted = (str(self.directory / name) for name in ("store", "app.db", "noted"))
        given = os.environ.get("VELLUM_TEST_S3_URL")
        self.objects = Bucket(given) if given else Directory(self.directory / "remote")
        self.url = self.objects.url
        self.snapshots = {}  # name: hash of its content
        self.old_copy = {}
        self.counts = dict.fromkeys(
            ("rows", "snapshots", "kills", "lost", "replaced", "damaged", "repairs", "clones", "pulls", "findings"), 0
        )
        self.writer = self.replication = None
        self.begun = 0

    def finding(self, text):
        self.counts["findings"] += 1
        print(f"week.py: {datetime.datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)

    # Runs a command to its end, or kills it: one time in `kill_in`. Returns the exit status; None: killed.
    def command(self, *arguments, expected=(0,), kill_in=0, quiet=False):
        with (self.directory / "commands.log").open("ab") as log:
            log.write(f"$ {datetime.datetime.now():%H:%M:%S} vellum {' '.join(arguments)}\n".encode())
            log.flush()
            process = subprocess.Popen((self.program, *arguments), stdout=log, stderr=log, start_new_session=True)
            try:
                if kill_in and self.dice.randrange(kill_in) == 0:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(self.dice.random() ** 2 * 2)
                    if process.poll() is None:
                        process.kill()
                        process.wait()
                        self.counts["kills"] += 1
                        return None
                status = process.wait(COMMAND_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.finding(f"vellum {' '.join(arguments)} did not end within {COMMAND_S} s")
                return None
        if status not in expected and not quiet:
            self.finding(f"vellum {' '.join(arguments)} ended with {status}, see commands.log")
        return status

    def content_of(self, store, version):
        """The hash of a version's content; None if it cannot be read."""
        done = subprocess.run((self.program, "cat", store, version), capture_output=True, timeout=COMMAND_S)
        return hashlib.sha256(done.stdout).hexdigest() if done.returncode == 0 else None

    def begin_writing(self):
        command = (self.program, "run", "--store", self.store, "--file", self.data, "--",
                   sys.executable, "-c", WRITER, self.data, self.noted, str(self.options.seed))
        self.writer = Process("writer", command, self.directory)

    def begin_replication(self):
        self.begun += 1
        command = (self.program, "replicate", self.store, self.url, "--interval", f"{INTERVAL_S}s", "--json",
                   "--keep-last", str(REMOTE_SNAPSHOTS))
        self.replication = Process(f"replicate-{self.begun}", command, self.directory)

    def last_noted(self):
        with contextlib.suppress(FileNotFoundError):
            lines = pathlib.Path(self.noted).read_bytes().split(b"\n")[:-1]
            return int(lines[-1]) if lines else 0
        return 0

    # The state that replication has reported last: {} before its first line.
    def reported(self):
        for line in reversed(self.replication.log.read_text(errors="replace").splitlines()):
            with contextlib.suppress(json.JSONDecodeError):
                state = json.loads(line)
                if isinstance(state, dict) and "pushes" in state:
                    return state
        return {}

    def rows_of(self, file):
        base = sqlite3.connect(file)
        try:
            if base.execute("pragma integrity_check").fetchone()[0] != "ok":
                return -1
            numbers = base.execute("select count(*), coalesce(max(n), 0) from rows").fetchone()
            return numbers[1] if numbers[0] == numbers[1] else -1
        except sqlite3.DatabaseError:
            return -1
        finally:
            base.close()

    # Kills the writer, or vellum and the writer, and looks for each noted row in the file.
    def kill_writer(self):
        self.writer.stop(signal.SIGKILL)
        self.counts["kills"] += 1
        noted = self.last_noted()
        self.command("run", "--store", self.store, "--file", self.data, "--", "true")
        copy = self.directory / "app.copy"
        shutil.copyfile(self.data, copy)
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(self.data + "-journal", str(copy) + "-journal")
        rows = self.rows_of(copy)
        for one in (copy, pathlib.Path(str(copy) + "-journal")):
            one.unlink(missing_ok=True)
        if rows < noted:
            self.finding(f"after a kill of the writer the file has {rows} rows of {noted}")
        self.begin_writing()

    def hour(self):
        name = f"h{self.counts['snapshots'] + 1:05}"
        if self.command("snapshot", self.store, name) != 0:
            return
        self.counts["snapshots"] += 1
        self.snapshots[name] = self.content_of(self.store, name)
        if self.snapshots[name] is None:
            self.finding(f"the new snapshot {name} cannot be read")
        self.command("forget", self.store, "--keep-last", str(STORE_SNAPSHOTS), kill_in=8)

    def collect(self):
        self.command("gc", self.store, kill_in=4)
        self.command("gc", self.url, kill_in=4, expected=(0, 7))

    def kill_replication(self):
        self.replication.stop(signal.SIGKILL)
        self.counts["kills"] += 1
        self.begin_replication()

    # Nothing that comes next may find a snapshot lost that the remote has had.
    def wait_for_replication(self):
        noted, since = self.last_noted(), time.monotonic()
        asked = datetime.datetime.now(datetime.timezone.utc)
        while time.monotonic() - since < CATCH_UP_S:
            if self.replication.ended():
                self.finding(f"replicate has ended, see {self.replication.log.name}")
                time.sleep(1)
                self.begin_replication()
            state = self.reported()
            if state.get("time") and not state.get("failure"):
                seen = datetime.datetime.fromisoformat(state["time"].replace("Z", "+00:00"))
                # A commit of the last interval may have come while the push was on its way.
                if (seen - asked).total_seconds() > INTERVAL_S + state.get("behind_ms", 0) / 1000:
                    return noted
            time.sleep(0.2)
        self.finding(f"replicate has not caught up in {CATCH_UP_S} s, see {self.replication.log.name}")
        return 0

    def compare(self, store, rows):
        """Each snapshot of `store` has its content, the newest ones are there, and main has the noted rows."""
        listed = subprocess.run((self.program, "snapshot", store, "--names"), capture_output=True, text=True,
                                timeout=COMMAND_S)
        names = set(listed.stdout.split())
        if listed.returncode != 0:
            self.finding(f"the snapshots of {store} cannot be listed: {listed.stderr.strip()}")
            return
        for name in sorted(self.snapshots)[-REMOTE_SNAPSHOTS // 2:]:
            if name not in names and rows:
                self.finding(f"{store} lacks {name}")
        for name in sorted(names & set(self.snapshots)):
            if self.content_of(store, name) != self.snapshots[name]:
                self.finding(f"{store} has another content of {name}")
        file = self.directory / "clone.db"
        file.unlink(missing_ok=True)
        if self.command("export", store, "main", str(file)) == 0:
            with contextlib.suppress(FileNotFoundError):
                found = self.rows_of(file)
                # A commit in the middle of a transaction needs SQLite's journal, which is not watched.
                if 0 <= found < rows:
                    self.finding(f"main of {store} has {found} rows of {rows} that were replicated")
        file.unlink(missing_ok=True)

    def check_remote(self):
        self.check_clone(self.wait_for_replication())

    def check_clone(self, rows):
        clone = str(self.directory / "clone")
        for _ in range(MOST_TRIES):  # a killed clone goes on
            if self.command("clone", self.url, clone, kill_in=3) is not None:
                break
        self.counts["clones"] += 1
        if os.path.isdir(clone):
            self.compare(clone, rows)
            shutil.rmtree(clone)

    def follow(self):
        replica = str(self.directory / "replica")
        if not os.path.isdir(replica):
            self.command("clone", "--lazy", self.url, replica, kill_in=4)
        elif self.command("pull", replica, kill_in=4) == 0:
            self.counts["pulls"] += 1
            self.compare(replica, 0)

    def copy_bucket(self):
        copy = {}
        for key in self.objects.keys():
            with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):  # removed meanwhile
                copy[key] = self.objects.get(key)
        self.old_copy = copy

    def remove_all(self):
        for key in self.objects.keys():
            self.objects.remove(key)

    def damage(self):
        keys = self.objects.keys()
        for key in self.dice.sample(keys, min(len(keys), self.dice.randint(1, 5))):
            with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
                content = bytearray(self.objects.get(key))
                how = self.dice.randrange(3)
                if how == 0 or not content:
                    self.objects.remove(key)
                elif how == 1:
                    self.objects.put(key, bytes(content[:self.dice.randrange(len(content))]))
                else:
                    content[self.dice.randrange(len(content))] ^= 1 << self.dice.randrange(8)
                    self.objects.put(key, bytes(content))

    # The clone whose hold it is starts again in any case.
    def forget_damaged_holds(self):
        command = (self.program, "--json", "verify", self.url)
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            output = subprocess.run(command, capture_output=True, timeout=COMMAND_S).stdout
            for damage in json.loads(output).get("damages", ()):
                if damage["object"].startswith("holds/"):
                    self.command("forget", self.url, "--hold", damage["object"].removeprefix("holds/"))

    # Replication ends, as an operator would end it before a restore; with one in three it does not.
    def disaster(self):
        kind = self.dice.choice(("lost", "replaced", "damaged"))
        stopped = self.dice.randrange(3) != 0
        if stopped:
            self.replication.stop(signal.SIGTERM)
        if kind == "damaged":
            self.damage()
        else:
            self.remove_all()
            for key, content in self.old_copy.items() if kind == "replaced" else ():
                self.objects.put(key, content)
        self.counts[kind] += 1
        if stopped:
            self.begin_replication()
        else:
            self.kill_replication()
        self.wait_for_replication()
        status = self.command("verify", self.url, "--read-data", expected=(0, 3, 7, 10, 11))
        if status != 0:
            self.counts["repairs"] += 1
            if kind == "damaged":
                self.forget_damaged_holds()
            for _ in range(MOST_TRIES):
                status = self.command("repair", self.url, "--from", self.store, kill_in=4, expected=(0, 7, 11))
                if status not in (None, 7):
                    break
                time.sleep(0.2)
            if status == 11:
                # An older copy has brought snapshots back that the store has removed since.
                self.command("forget", self.url, "--keep-last", str(REMOTE_SNAPSHOTS))
                self.command("repair", self.url, "--from", self.store)
            self.command("verify", self.url, "--read-data")
        # A lazy clone refers to objects that are gone: it starts again.
        for name in ("replica", "replica.vellum-clone"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
        self.check_remote()

    def run(self):
        self.begin_writing()
        while self.last_noted() == 0:
            time.sleep(0.05)
        self.begin_replication()
        self.hour()
        self.wait_for_replication()
        begin = next_hour = time.monotonic()
        steps = ((self.kill_writer, 4), (self.kill_replication, 4), (self.collect, 4), (self.follow, 8),
                 (self.copy_bucket, 1), (self.check_remote, 3), (self.disaster, 2))
        while (passed := time.monotonic() - begin) < self.options.seconds:
            if time.monotonic() >= next_hour:
                next_hour += self.options.hour
                self.hour()
            step = self.dice.choices([one for one, _ in steps], [weight for _, weight in steps])[0]
            if self.options.progress:
                print(f"{passed:6.0f} s  {step.__name__:18} {self.summary()}", flush=True)
            step()
            if self.writer.ended():
                self.finding("the writer has ended, see writer.log")
                self.begin_writing()
            time.sleep(self.dice.random())
        self.writer.stop(signal.SIGTERM)
        if self.replication.stop(signal.SIGTERM) != 0:
            self.finding(f"replicate could not send the rest, see {self.replication.log.name}")
        self.check_clone(self.last_noted())

    def summary(self):
        self.counts["rows"] = self.last_noted()
        return ", ".join(f"{count} {name}" for name, count in self.counts.items())

    def stop(self):
        for one in (self.writer, self.replication):
            if one is not None:
                one.stop(signal.SIGKILL)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="the length of the week (default: an hour)")
    parser.add_argument("--hour", type=float, default=10, help="seconds between two snapshots (default: 10)")
    parser.add_argument("--seed", type=int, default=None, help="of the random steps (default: another one each time)")
    parser.add_argument("--program", default="build/release/bin/vellum", help="the vellum to test")
    parser.add_argument("--keep", metavar="DIR", help="a new directory for stores and logs, which stays")
    parser.add_argument("--progress", action="store_true", help="print a line for each step")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    if not os.access(options.program, os.X_OK):
        parser.error(f"{options.program}: no such program; run `make build` first, or give --program")
    return options


def main():
    options = parse()
    if options.keep:
        os.makedirs(options.keep)
    with contextlib.nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory() as directory:
        week = Week(options, directory)
        os.environ["VELLUM_CACHE_DIR"] = str(week.directory / "cache")
        print(f"seed {options.seed}, {week.url}", flush=True)
        try:
            week.run()
        finally:
            week.stop()
        print(week.summary())
        return 1 if week.counts["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
