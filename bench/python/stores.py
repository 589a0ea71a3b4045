#!/usr/bin/env python3
"""Versions of a chunked array by the doors of vellum.integrations and by what their users have today, in one run.

An array of --mib MiB of float32 in chunks of 256 KiB, values that hardly compress, in one data set. Each of
--versions versions changes 1 % of the chunks at random: all values of each ("whole"), or one value of each ("value").
A version is durable (fsync) when its time ends; the time includes the writes by the library. zarr's LocalStore and
h5netcdf keep no versions: a copy of the folder or of the file is one. Bytes are disk blocks of all versions after the
first. Reads are of the middle version, from the disk: all, and 1 % in one piece. Missing peers are omitted.
"""

import argparse
import os
import shutil
import tempfile

import numpy as np
from peers import sync_all, sync_file
from table import disk_bytes, make_cold, timed

import vellum

COLUMNS = 256
CHUNK = (256, COLUMNS)
PATTERNS = {"whole": "all values of 1 % of the chunks", "value": "a value in each of 1 % of the chunks"}


class ZarrCopy:
    """zarr's LocalStore; a copy of its folder is a version."""

    name = "zarr, LocalStore + copy"
    needs = "zarr"

    def __init__(self, folder, values):
        import zarr

        self.folder = folder
        self.live = zarr.create_array(f"{folder}/live", data=values, chunks=CHUNK)

    def keep(self, version):
        shutil.copytree(f"{self.folder}/live", f"{self.folder}/v{version}")
        sync_all(self.folder)

    def open(self, version):
        import zarr

        return zarr.open_array(f"{self.folder}/v{version}", mode="r")


class Icechunk:
    """A repository of Icechunk; a commit with a tag is a version."""

    name = "Icechunk"
    needs = "icechunk"

    def __init__(self, folder, values):
        import icechunk
        import zarr

        icechunk.set_logs_filter("error")
        self.folder = folder
        storage = icechunk.local_filesystem_storage(f"{folder}/repository")
        self.repository = icechunk.Repository.open_or_create(storage)
        self.session = self.repository.writable_session("main")
        zarr.create_array(self.session.store, name="x", data=values, chunks=CHUNK)

    @property
    def live(self):
        import zarr

        if self.session.read_only:
            self.session = self.repository.writable_session("main")
        return zarr.open_array(self.session.store, path="x", mode="r+")

    def keep(self, version):
        self.repository.create_tag(f"v{version}", self.session.commit(f"version {version}"))
        sync_all(self.folder)

    def open(self, version):
        import zarr

        return zarr.open_array(self.repository.readonly_session(tag=f"v{version}").store, path="x", mode="r")


class H5netcdf:
    """A netCDF file by h5netcdf, chunks compressed by lzf; a copy of it is a version."""

    name = "h5netcdf + copy"
    needs = "h5netcdf"

    def __init__(self, folder, values):
        import h5netcdf

        self.folder = folder
        self.file = h5netcdf.File(f"{folder}/live.nc", "w", invalid_netcdf=True)
        self.file.dimensions = {"row": len(values), "column": COLUMNS}
        options = {"chunks": CHUNK, "compression": "lzf"}
        self.live = self.file.create_variable("x", ("row", "column"), "f4", data=values, **options)

    def keep(self, version):
        self.file.flush()
        shutil.copyfile(f"{self.folder}/live.nc", f"{self.folder}/v{version}.nc")
        sync_file(f"{self.folder}/v{version}.nc")

    def open(self, version):
        import h5netcdf

        return h5netcdf.File(f"{self.folder}/v{version}.nc", "r", invalid_netcdf=True)["x"]


class VellumZarr:
    """The store of vellum.integrations.zarr, chunks as they are; a snapshot is a version."""

    name = "vellum, zarr store"
    needs = "zarr"
    compressors = None

    def __init__(self, folder, values):
        import zarr

        from vellum.integrations.zarr import VellumStore

        self.path = f"{folder}/store"
        self.store = VellumStore(self.path)
        self.live = zarr.create_array(self.store, name="x", data=values, chunks=CHUNK, compressors=self.compressors)

    def keep(self, version):
        self.store.snapshot(f"v{version}")

    def open(self, version):
        import zarr

        from vellum.integrations.zarr import VellumStore

        return zarr.open_array(VellumStore(self.path, version=f"v{version}"), path="x", mode="r")


class VellumZarrCodec(VellumZarr):
    """The same; zarr compresses the chunks by its default codec."""

    name = "vellum, zarr store, zarr's codec"
    compressors = "auto"


class VellumXarray:
    """An array of a region, which xarray opens by engine="vellum"; a snapshot is a version."""

    name = "vellum, xarray"
    needs = "xarray"

    def __init__(self, folder, values):
        import xarray as xr

        from vellum.integrations.xarray import to_vellum

        self.path = f"{folder}/store"
        to_vellum(xr.Dataset({"x": (("row", "column"), values)}), self.path)
        self.region = vellum.open(self.path)
        self.live = self.region["x"]

    def keep(self, version):
        self.region.snapshot(f"v{version}")

    def open(self, version):
        import xarray as xr

        return xr.open_dataset(self.path, engine="vellum", version=f"v{version}", cache=False)["x"].variable


PEERS = [ZarrCopy, Icechunk, H5netcdf, VellumZarr, VellumZarrCodec, VellumXarray]


def is_installed(peer):
    try:
        __import__(peer.needs)
    except ImportError:
        return False
    return True


def change(peer, rows, rng, pattern):
    """Changes 1 % of the chunks, and returns the rows."""
    live = peer.live
    chunks = rng.choice(rows // CHUNK[0], max(rows // CHUNK[0] // 100, 1), replace=False)
    for chunk in chunks:
        begin = int(chunk) * CHUNK[0]
        if pattern == "whole":
            live[begin : begin + CHUNK[0]] = rng.normal(size=CHUNK).astype("f4")
        else:
            live[begin + int(rng.integers(CHUNK[0])), int(rng.integers(COLUMNS))] = 1.5


def measure(peer_type, folder, values, versions, pattern):
    rng, rows, mib = np.random.default_rng(2), len(values), values.nbytes >> 20
    peer = peer_type(folder, values)
    peer.keep("first")
    sync_all(folder)
    before, seconds, middle = disk_bytes(folder), [], None
    for version in range(versions):
        seconds.append(timed(lambda v=version: (change(peer, rows, rng, pattern), peer.keep(v)))[0])
        if version == versions // 2:
            middle = np.array(peer.live[:])
    sync_all(folder)
    out = {"commit s": float(np.median(seconds)), f"MiB of {versions}": (disk_bytes(folder) - before) / 2**20}
    begin = rows // 2
    make_cold(folder, mib)
    out["1 % ms"] = timed(lambda: np.asarray(peer.open(versions // 2)[begin : begin + rows // 100]))[0] * 1e3
    make_cold(folder, mib)
    out["all s"], found = timed(lambda: np.asarray(peer.open(versions // 2)[:]))
    assert np.array_equal(found, middle), f"{peer.name}: another content"
    return out


def print_targets(results):
    from table import print_lines

    ours = {name: found for name, found in results.items() if name.startswith("vellum")}
    others = [found for name, found in results.items() if not name.startswith("vellum")]
    size = next(key for key in others[0] if key.startswith("MiB")) if others else ""
    for name, found in ours.items() if others else ():
        faster = min(other["commit s"] for other in others) / found["commit s"]
        smaller = found[size] / min(other[size] for other in others)
        print_lines([(f"{name}: commit, times faster than each", faster, ">=", 1)])
        print_lines([(f"{name}: bytes, of each", smaller, "<=", 1)])


def main():
    from table_lib import print_rows, write_json

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--pattern", choices=PATTERNS)
    parser.add_argument("--dir")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    values = np.random.default_rng(1).normal(size=((arguments.mib << 20) // (COLUMNS * 4), COLUMNS)).astype("f4")
    report = {"mib": arguments.mib, "versions": arguments.versions}
    with tempfile.TemporaryDirectory(prefix="bench-python-", dir=arguments.dir) as top:
        for pattern in [arguments.pattern] if arguments.pattern else PATTERNS:
            results = report.setdefault(pattern, {})
            for peer in filter(is_installed, PEERS):
                folder = f"{top}/{pattern}-{PEERS.index(peer)}"
                os.mkdir(folder)
                results[peer.name] = measure(peer, folder, values, arguments.versions, pattern)
                vellum.close_all()
                shutil.rmtree(folder)
            columns = list(dict.fromkeys(column for found in results.values() for column in found))
            print(f"\n{arguments.mib} MiB, {arguments.versions} versions, {PATTERNS[pattern]}", flush=True)
            rows = [[name, *(f"{found[c]:.3g}" for c in columns)] for name, found in results.items()]
            print_rows([["", *columns], *rows])
            print_targets(results)
    if arguments.json:
        write_json(arguments.json, "stores", report)


if __name__ == "__main__":
    main()
