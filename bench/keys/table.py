#!/usr/bin/env python3
"""What encryption costs: in a local store (bench_keys), and in a backup and its restore beside other programs.

    bench/keys/table.py [--mib 256] [--rounds 3] [--peer NAME]... [--without-local] [--dir DIR] [--json FILE] [-- ARGS]

Each peer backs a file up into its own repository in a directory, again after 8 bytes of 1 % of its pages have
changed, and restores the first backup into a file, which is compared. Vellum imports the file with a snapshot, and
exports a version; `push` sends both to a remote in another directory, and `clone` makes a store of that. `encrypted
remote` is a plain store whose remote is encrypted, with a key file. Encrypted
repositories are opened with a passphrase by each command, so each derives a key; `key file` is the same store without
this. The file is --mib MiB of integers of 64 bits, with three random bytes each: it compresses. The machine's file
systems are synchronised before each command, not within its time. Medians of --rounds, and bytes of the repository's
files. restic and kopia are always encrypted. Missing peers are omitted; on Debian: apt-get install restic borgbackup.
ARGS go to bench_keys.
"""

import argparse
import filecmp
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from table_lib import path_with_peers, print_rows, write_json

PAGE = 4096
PASSPHRASE = "correct horse battery staple on a shelf"
SECRETS = {"RESTIC_PASSWORD": PASSPHRASE, "BORG_PASSPHRASE": PASSPHRASE, "KOPIA_PASSWORD": PASSPHRASE,
           "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "KOPIA_CHECK_FOR_UPDATES": "false"}
FIGURES = ("first s", "first MiB", "second s", "second MiB", "restore s", "push s", "clone s")


class Peer:
    """Commands of words; `{file}`: the file, `{repository}`, `{remote}` and `{out}`: directories, `{name}`: of the
    backup. `extract` runs in `{out}`, where `restored` is the file afterwards."""

    def __init__(self, name, version, create, backup, extract, restored="{out}/{file}", environment=(), push=None):
        self.name, self.version, self.create, self.backup = name, version, create, backup
        self.extract, self.restored, self.environment, self.push = extract, restored, dict(environment), push

    def installed(self):
        return shutil.which(self.backup[0]) is not None

    def version_text(self):
        said = subprocess.run(self.version, capture_output=True, text=True, check=True).stdout
        return said.split("\n", 1)[0].split(" compiled")[0].strip()


def vellum_peer(vellum, name, secret, encrypts="store"):
    """`encrypts`: what the secret opens: the store, and so its remote, or the remote of a plain store."""
    encrypt = {what: ("--encrypt",) if secret and encrypts == what else () for what in ("store", "remote")}
    remote = (vellum, "remote", "add", "{repository}/s", "origin", "file://{remote}/r", *encrypt["remote"])
    return Peer(name, (vellum, "--version"), (vellum, "init", "{repository}/s", *encrypt["store"]),
                (vellum, "-q", "import", "{repository}/s", "main", "{file}", "--snapshot", "{name}"),
                (vellum, "-q", "export", "{repository}/s", "{name}", "{out}/restored"), "{out}/restored", secret,
                (remote, (vellum, "-q", "push", "{repository}/s", "--all"),
                 (vellum, "-q", "clone", "file://{remote}/r", "{out}/clone")))


def borg_peer(mode):
    return Peer("borg" if mode == "none" else "borg, encrypted", ("borg", "--version"),
                ("borg", "init", "-e", mode, "{repository}/b"), ("borg", "create", "{repository}/b::{name}", "{file}"),
                ("borg", "extract", "{repository}/b::{name}"),
                environment={"BORG_BASE_DIR": "{scratch}/borg"})


def peers_of(vellum):
    kopia = ("kopia", "--config-file", "{scratch}/kopia/config")
    return [
        vellum_peer(vellum, "vellum", {}),
        vellum_peer(vellum, "vellum, key file", {"VELLUM_KEY_FILE": "{scratch}/passphrase"}),
        vellum_peer(vellum, "vellum, encrypted", {"VELLUM_PASSPHRASE_FILE": "{scratch}/passphrase"}),
        vellum_peer(vellum, "vellum, encrypted remote", {"VELLUM_KEY_FILE": "{scratch}/passphrase"}, "remote"),
        borg_peer("none"),
        borg_peer("repokey-blake2"),
        Peer("restic, encrypted", ("restic", "version"), ("restic", "-q", "-r", "{repository}/r", "init"),
             ("restic", "-q", "-r", "{repository}/r", "backup", "--tag", "{name}", "{file}"),
             ("restic", "-q", "-r", "{repository}/r", "restore", "latest", "--tag", "{name}", "--target", "{out}"),
             environment={"XDG_CACHE_HOME": "{scratch}/restic"}),
        Peer("kopia, encrypted", ("kopia", "--version"),
             (*kopia, "repository", "create", "filesystem", "--path", "{repository}"),
             (*kopia, "snapshot", "create", "{folder}", "--tags", "name:{name}"),
             ("sh", "-c", f"kopia --config-file {{scratch}}/kopia/config restore $(kopia --config-file "
              "{scratch}/kopia/config snapshot list --all --json --tags name:{name} | "
              "sed -n 's/.*\"rootEntry\".*\"obj\":\"\\([^\"]*\\)\".*/\\1/p' | head -n 1) {out}"), "{out}/data",
             environment={"KOPIA_CACHE_DIRECTORY": "{scratch}/kopia/cache"}),
    ]


def fill(path, mib):
    content = bytearray(mib << 20)
    random_bytes = random.Random(1).randbytes(3 * (len(content) // 8))
    for i in range(3):
        content[i::8] = random_bytes[i::3]
    with open(path, "wb") as file:
        file.write(content)


def change(path):
    pages = os.path.getsize(path) // PAGE
    choice = random.Random(2)
    with open(path, "r+b") as file:
        for page in choice.sample(range(pages), pages // 100):
            file.seek(page * PAGE + 8 * choice.randrange(PAGE // 8))
            file.write(choice.randbytes(8))


def bytes_below(directory):
    """On the medium: blocks of files, some of which are preallocated."""
    return sum(os.stat(os.path.join(where, name)).st_blocks * 512
               for where, _, names in os.walk(directory) for name in names)


def run(words, places, environment):
    """Its seconds."""
    command = [word.format(**places) for word in words]
    os.sync()
    start = time.monotonic()
    result = subprocess.run(command, env=environment, cwd=places["out"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - start
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
    return seconds


def measure(peer, scratch, first):
    """The figures of one round, in an emptied directory."""
    work = f"{scratch}/work"
    shutil.rmtree(work, ignore_errors=True)
    places = {"scratch": scratch, "folder": f"{work}/folder", "file": f"{work}/folder/data", "name": "first",
              **{name: f"{work}/{name}" for name in ("repository", "remote", "out")}}
    for name in ("folder", "repository", "remote", "out"):
        os.makedirs(places[name])
    shutil.copyfile(first, places["file"])
    environment = {**os.environ, **SECRETS, **{k: v.format(**places) for k, v in peer.environment.items()}}
    run(peer.create, places, environment)
    before = bytes_below(places["repository"])
    figures = {"first s": run(peer.backup, places, environment)}
    full = bytes_below(places["repository"])
    change(places["file"])
    figures["second s"] = run(peer.backup, {**places, "name": "second"}, environment)
    figures["first MiB"] = (full - before) / 2**20
    figures["second MiB"] = (bytes_below(places["repository"]) - full) / 2**20
    figures["restore s"] = run(peer.extract, places, environment)
    restored = peer.restored.replace("{out}/{file}", "{out}{file}").format(**places)
    if not filecmp.cmp(restored, first, shallow=False):
        raise RuntimeError(f"{peer.name} has restored something else")
    if peer.push:
        add, push, clone = peer.push
        run(add, places, environment)
        figures["push s"] = run(push, places, environment)
        figures["clone s"] = run(clone, places, environment)
    return figures


def measure_peers(options, scratch):
    first = f"{scratch}/first"
    fill(first, options.mib)
    with open(f"{scratch}/passphrase", "w", encoding="utf-8") as file:
        file.write(PASSPHRASE + "\n")
    peers = [peer for peer in peers_of(f"{options.programs}/bin/vellum")
             if peer.installed() and (not options.peer or peer.name in options.peer)]
    versions = {peer.name: peer.version_text() for peer in peers}
    rounds = {peer.name: [] for peer in peers}
    for _ in range(options.rounds):
        for peer in peers:
            rounds[peer.name].append(measure(peer, scratch, first))
    medians = {name: {figure: statistics.median(one[figure] for one in many) for figure in many[0]}
               for name, many in rounds.items()}
    print(f"a file of {options.mib} MiB, medians of {options.rounds}; seconds, and MiB of the repository")
    print_rows([("", *FIGURES, "version")] +
               [(name, *(f"{of[figure]:.2f}" if figure in of else "-" for figure in FIGURES), versions[name])
                for name, of in medians.items()])
    for name in medians:
        plain, encrypted = medians.get(name.split(",")[0]), medians[name]
        if plain and plain is not encrypted:
            print(f"{name} / plain: " + ", ".join(f"{figure} {encrypted[figure] / plain[figure]:.2f}"
                                                  for figure in FIGURES if plain.get(figure)))
    return {"mib": options.mib, "rounds": rounds, "medians": medians, "versions": versions}


def measure_local(options, scratch):
    """What bench_keys has measured; it prints its table itself."""
    report = f"{scratch}/local.json"
    subprocess.run((f"{options.programs}/bench/bench_keys", "--json", report, *options.arguments), check=True)
    print()
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--without-local", action="store_true", help="not bench_keys")
    parser.add_argument("--programs", default=f"{TOP}/build/release")
    parser.add_argument("--dir")
    parser.add_argument("--json")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as scratch:
        report = {} if options.without_local else {"local": measure_local(options, scratch)}
        report["peers"] = measure_peers(options, scratch)
    if options.json:
        write_json(options.json, "keys", report)


if __name__ == "__main__":
    main()
