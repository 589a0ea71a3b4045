#!/usr/bin/env python3
"""Fetches the benchmarks' peers at their newest into an environment of their own, build/bench, and lists them.

    bench/fetch_peers.py [--list] [NAME...]

Python packages come from PyPI, into build/bench/venv, beside the package's wheel (make python). Its interpreter is the
newest one that takes the wheel: current releases of zarr and Icechunk need Python 3.12, so build the wheel with
PYTHON=python3.12. restic and kopia come from Go's module proxy (Go is needed), borg from PyPI (its C libraries are
needed: apt-get install libacl1-dev libssl-dev liblz4-dev libxxhash-dev libzstd-dev pkg-config), into build/bench/bin.
The versions of programs of Go are in this file; PyPI's are the newest of the day. A peer that is not available is
named with the reason, and the benchmarks omit it. --list fetches nothing.

The benchmarks' tables look here before they look at the PATH (table_lib.path_with_peers).
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f"{TOP}/bench")
from table_lib import PEERS, print_rows  # noqa: E402

VENV = f"{PEERS}/venv"
PACKAGES = ("numpy", "zarr", "icechunk", "h5py", "duckdb", "pyarrow")
# The newest releases on 2026-11-28.
PROGRAMS = {"restic": "github.com/restic/restic/cmd/restic@v0.19.1", "kopia": "github.com/kopia/kopia@v0.23.1"}
SECONDS = 1800  # for one peer


class Failed(Exception):
    """The reason why a peer is not there."""


def run(*command, env=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS,
                              env={**os.environ, **(env or {})})
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: not done after {SECONDS} s") from None
    if done.returncode != 0:
        raise Failed((done.stderr.strip().splitlines() or [f"{command[0]}: exit status {done.returncode}"])[-1])
    return done.stdout


def wheel_and_python():
    """The package's wheel, one for the stable ABI if there is one, and the newest interpreter that takes it."""
    wheels = glob.glob(f"{TOP}/build/python/cp3*/wheels/vellum-*.whl")
    if not wheels:
        raise Failed("no wheel in build/python: make python")
    wheel = max(wheels, key=lambda path: ("-abi3-" in path, os.path.getmtime(path)))
    first = int(re.search(r"-cp3(\d+)-", wheel).group(1))
    minors = range(30, first - 1, -1) if "-abi3-" in wheel else (first,)
    for minor in minors:
        try:
            run(f"python3.{minor}", "--version")  # a stand-in of pyenv is found, and may not run
            return wheel, f"python3.{minor}"
        except Failed:
            continue
    raise Failed(f"no Python on the PATH takes {os.path.basename(wheel)}")


def make_environment():
    if os.path.exists(f"{VENV}/done"):
        return
    wheel, python = wheel_and_python()
    shutil.rmtree(VENV, ignore_errors=True)
    run(python, "-m", "venv", VENV)
    run(f"{VENV}/bin/pip", "install", "-q", "--disable-pip-version-check", wheel, "numpy")
    with open(f"{VENV}/done", "w", encoding="utf-8"):
        pass


def version_of_package(name):
    said = run(f"{VENV}/bin/python", "-c", f"from importlib.metadata import version; print(version({name!r}))")
    return said.strip()


def fetch_package(name):
    make_environment()
    run(f"{VENV}/bin/pip", "install", "-q", "--disable-pip-version-check", "--upgrade", name)


def fetch_borg():
    fetch_package("borgbackup")
    os.makedirs(f"{PEERS}/bin", exist_ok=True)
    if not os.path.lexists(f"{PEERS}/bin/borg"):
        os.symlink("../venv/bin/borg", f"{PEERS}/bin/borg")


def fetch_program(name):
    os.makedirs(f"{PEERS}/bin", exist_ok=True)
    run("go", "install", "-ldflags=-s -w", PROGRAMS[name], env={"GOBIN": f"{PEERS}/bin"})


def fetch(name):
    if name in PROGRAMS:
        fetch_program(name)
    elif name == "borg":
        fetch_borg()
    else:
        fetch_package(name)


def opened(url):
    with urllib.request.urlopen(url, timeout=20) as reply:
        return json.load(reply)


def version(name):
    """Of what is in the environment. Failed if it is not there."""
    if name in PACKAGES:
        return version_of_package(name)
    if not os.path.exists(f"{PEERS}/bin/{name}"):
        raise Failed("not fetched")
    return re.search(r"\d+(\.\d+)+\w*", run(f"{PEERS}/bin/{name}", *VERSION_OPTION[name])).group(0)


VERSION_OPTION = {"restic": ("version",), "kopia": ("--version",), "borg": ("--version",)}
NAMES = (*PACKAGES, "borg", *PROGRAMS)


def date_of(name, number):
    """Of the release, as its registry says; "" if it cannot be asked."""
    try:
        if name in PROGRAMS:
            module = PROGRAMS[name].split("@")[0].split("/cmd/")[0]
            return opened(f"https://proxy.golang.org/{module}/@v/v{number}.info")["Time"][:10]
        package = "borgbackup" if name == "borg" else name
        return opened(f"https://pypi.org/pypi/{package}/{number}/json")["urls"][0]["upload_time"][:10]
    except (OSError, KeyError, IndexError, ValueError):
        return ""


def found(names):
    """{name: version} of those that are there."""
    out = {}
    for name in names:
        try:
            out[name] = version(name)
        except Failed:
            pass
    return out


def ensure(names):
    """Fetches those that are not there. {name: why it could not be}."""
    reasons = {}
    present = found(names)
    for name in names:
        if name in present:
            continue
        print(f"fetch_peers: fetching {name}", file=sys.stderr, flush=True)
        try:
            fetch(name)
        except Failed as reason:
            reasons[name] = str(reason)
    return reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no peer {unknown.pop()}: there are {', '.join(NAMES)}")
    names = options.names or NAMES
    reasons = {} if options.list else ensure(names)
    present = found(names)
    print_rows([["peer", "version", "released"]] + [
        [name, present.get(name, "-"), date_of(name, present[name]) if name in present
         else reasons.get(name, "not fetched")] for name in names], left_columns=3)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
