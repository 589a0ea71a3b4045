"""The peers of table.py: how each takes a snapshot of an LMDB environment, and how it restores one.

A command is a tuple of words with places: `{db}`, `{keep}` and `{out}` are the directories of the environment, of the
versions, and of a restored environment; `{name}` is the snapshot.
"""

import os
import re
import shutil
import subprocess


def run_quietly(command, environment):
    """What it prints. RuntimeError: what it said when it failed."""
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


class Peer:
    """`start` is run once, `wrap` is in front of the writing program, `program` is the one of its LMDB."""

    def __init__(self, name, snapshot, restore, start=(), wrap=(), program="bench_lmdb"):
        self.name, self.snapshot, self.restored = name, snapshot, restore
        self.start, self.wrap, self.program = start, wrap, program

    def installed(self):
        return shutil.which(self.snapshot[0]) is not None

    @staticmethod
    def words(command, places):
        return [word.format(**places) for word in command]

    def take(self, places, environment):
        if "{keep}/{name}" in self.snapshot:
            os.mkdir("{keep}/{name}".format(**places))
        run_quietly(self.words(self.snapshot, places), environment)

    def restore(self, places, environment):
        """The snapshot `name` becomes `{out}/data.mdb`."""
        run_quietly(self.words(self.restored, places), environment)


class IncrementalDumps(Peer):
    """LMDB 1.0 in its own way: a copy, then `mdb_dump -i` of the pages that later transactions have written. A restore
    loads the dumps up to its snapshot, in order."""

    def __init__(self, name, tools, program):
        super().__init__(name, (f"{tools}/mdb_dump",), (), program=program)
        self.tools, self.dumps = tools, []

    def last_transaction(self, places, environment):
        said = run_quietly((f"{self.tools}/mdb_stat", "-e", places["db"]), environment)
        return re.search(r"Last transaction ID: (\d+)", said).group(1)

    def take(self, places, environment):
        to = "{keep}/{name}".format(**places)
        if places["keep"] not in [keep for keep, _, _ in self.dumps]:
            self.dumps = []
            os.mkdir(to)
            run_quietly((f"{self.tools}/mdb_copy", places["db"], to), environment)
        else:
            run_quietly((f"{self.tools}/mdb_dump", "-i", self.dumps[-1][2], "-f", to, places["db"]), environment)
        self.dumps.append((places["keep"], places["name"], self.last_transaction(places, environment)))

    def restore(self, places, environment):
        (keep, base, _), *later = self.dumps
        shutil.copyfile(f"{keep}/{base}/data.mdb", f"{places['out']}/data.mdb")
        for _, name, _ in later[:[name for _, name, _ in self.dumps].index(places["name"])]:
            run_quietly((f"{self.tools}/mdb_load", "-i", "-f", f"{keep}/{name}", places["out"]), environment)


def copies(name, tool, program="bench_lmdb"):
    return Peer(name, (*tool, "{db}", "{keep}/{name}"), ("cp", "{keep}/{name}/data.mdb", "{out}/data.mdb"),
                program=program)


def vellum_peers(vellum, prefix="", program="bench_lmdb"):
    store, export = "{keep}/store", (vellum, "-q", "export", "{keep}/store", "{name}", "{out}/data.mdb")
    run = (vellum, "run", "--store", store, "--file", "{db}/data.mdb", "--")
    snapshot = (vellum, "snapshot", store, "{name}")
    return [
        Peer(f"{prefix}vellum backup", (vellum, "backup", store, "{db}/data.mdb", "--name", "{name}"), export,
             (vellum, "init", store), program=program),
        Peer(f"{prefix}vellum run", snapshot, export, (vellum, "init", store), run, program),
        Peer(f"{prefix}vellum run, not compressed", snapshot, export,
             (vellum, "init", store, "--compression", "none"), run, program),
    ]


def archives():
    """Deduplicated archives of the file."""
    repository = ("restic", "-q", "-r", "{keep}/restic")
    return [
        Peer("borg", ("borg", "create", "{keep}/borg::{name}", "{db}/data.mdb"),
             ("sh", "-c", "cd {out} && borg extract {keep}/borg::{name} && mv ./{db}/data.mdb ."),
             ("borg", "init", "-e", "none", "{keep}/borg")),
        Peer("restic", (*repository, "backup", "--tag", "{name}", "{db}/data.mdb"),
             ("sh", "-c", "restic -q -r {keep}/restic restore latest --tag {name} --target {out} && "
              "mv {out}/{db}/data.mdb {out}"), (*repository, "init")),
    ]


def peers_of(vellum, lmdb1):
    """`lmdb1`: the directory of LMDB 1.0's tools, or None."""
    peers = [copies("mdb_copy", ("mdb_copy",)), copies("mdb_copy -c", ("mdb_copy", "-c")), *archives(),
             *vellum_peers(vellum)]
    if lmdb1:
        program = "bench_lmdb1"
        peers += [copies("LMDB 1.0, mdb_copy", (f"{lmdb1}/mdb_copy",), program),
                  IncrementalDumps("LMDB 1.0, mdb_dump -i", lmdb1, program),
                  *vellum_peers(vellum, "LMDB 1.0, ", program)]
    return peers
