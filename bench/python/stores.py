#!/usr/bin/env python3
"""Versions of a chunked array by the doors of vellum.integrations and by what their users have today, in one run.

An array of --mib MiB of float32 in chunks of 256 KiB, values that hardly compress, in one data set. Each of
--versions versions changes 1 % of the chunks at random: all values of each ("whole"), or one value of each ("value").
A version is durable (fsync) when its time ends; the time includes the writes by the library. zarr's LocalStore and
h5netcdf keep no versions: a copy of the folder or of the file is one. xarray's to_zarr and to_netcdf, and fsspec's
local files, write the whole array as a version. Bytes are disk blocks of all versions after the first. Reads are of
the middle version, from the disk: all, and 1 % in one piece. Missing peers are omitted.
"""

import argparse
import os
import shutil
import tempfile

import numpy as np
from peers import sync_all, sync_file
from table import disk_bytes, make_cold, print_lines, timed

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
        self.file.create_variable("x", ("row", "column"), "f4", data=values, **options)

    @property
    def live(self):
        import h5netcdf

        if self.file is None:
            self.file = h5netcdf.File(f"{self.folder}/live.nc", "a", invalid_netcdf=True)
        return self.file["x"]

    def keep(self, version):
        self.file.close()  # what flush() leaves is not always a whole file
        self.file = None
        shutil.copyfile(f"{self.folder}/live.nc", f"{self.folder}/v{version}.nc")
        sync_file(f"{self.folder}/v{version}.nc")

    def open(self, version):
        import h5netcdf

        # A variable does not keep its file open.
        self.read = h5netcdf.File(f"{self.folder}/v{version}.nc", "r", invalid_netcdf=True)
        return self.read["x"]


class VellumZarr:
    """The store of vellum.integrations.zarr, chunks as they are; a snapshot is a version."""

    name = "vellum, zarr store"
    beside = (ZarrCopy.name, Icechunk.name)
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
    beside = (H5netcdf.name,)
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


class Whole:
    """An array in memory, of which each version is written as a whole, as `write` says."""

    def __init__(self, folder, values):
        self.folder, self.live = folder, values.copy()

    def file(self, version):
        return f"{self.folder}/v{version}"

    def keep(self, version):
        self.write(version)
        sync_all(self.folder)


def as_dataset(values):
    import xarray as xr

    return xr.Dataset({"x": (("row", "column"), values)})


class XarrayZarr(Whole):
    """xarray's to_zarr: a group for each version."""

    name = "xarray, to_zarr"
    needs = "xarray"

    def write(self, version):
        as_dataset(self.live).to_zarr(self.file(version), encoding={"x": {"chunks": CHUNK}}, consolidated=False)

    def open(self, version):
        import xarray as xr

        return xr.open_zarr(self.file(version), consolidated=False, chunks=None)["x"].variable


class XarrayNetcdf(Whole):
    """xarray's to_netcdf by h5netcdf: a file for each version."""

    name = "xarray, to_netcdf"
    needs = "h5netcdf"

    def write(self, version):
        as_dataset(self.live).to_netcdf(self.file(version), engine="h5netcdf")

    def open(self, version):
        import xarray as xr

        return xr.open_dataset(self.file(version), engine="h5netcdf", cache=False)["x"].variable


class VellumToVellum(Whole):
    """to_vellum() of all values, which stores what differs."""

    name = "vellum, to_vellum"
    beside = (XarrayZarr.name, XarrayNetcdf.name)
    needs = "xarray"

    def keep(self, version):
        from vellum.integrations.xarray import to_vellum

        to_vellum(as_dataset(self.live), f"{self.folder}/store", snapshot=f"v{version}")

    def open(self, version):
        import xarray as xr

        path = f"{self.folder}/store"
        return xr.open_dataset(path, engine="vellum", version=f"v{version}", cache=False)["x"].variable


class FsspecFiles(Whole):
    """fsspec's local files: the bytes in a file for each version."""

    name = "fsspec, local files"
    needs = "fsspec"

    def files(self, version):
        import fsspec

        return fsspec.filesystem("file"), self.file(version)

    def write(self, version):
        fs, file = self.files(version)
        fs.pipe(file, self.live.tobytes())

    def open(self, version):
        return Read(*self.files(version), self.live.shape)


class VellumFsspec(FsspecFiles):
    """The same bytes by vellum://; a snapshot is a version."""

    name = "vellum, fsspec"
    beside = (FsspecFiles.name,)

    def files(self, version):
        from vellum.integrations.fsspec import VellumFileSystem

        return VellumFileSystem(f"{self.folder}/store", version, create=True, skip_instance_cache=True), "x"

    def keep(self, version):
        fs, file = self.files("main")
        fs.pipe(file, self.live.tobytes())
        fs.snapshot(f"v{version}")

    def open(self, version):
        return Read(*self.files(f"v{version}"), self.live.shape)


class Read:
    """Rows of a file of an array's bytes."""

    def __init__(self, fs, file, shape):
        self.fs, self.file, self.shape = fs, file, shape

    def __getitem__(self, rows):
        begin, end, _ = rows.indices(self.shape[0])
        found = self.fs.cat_file(self.file, begin * COLUMNS * 4, end * COLUMNS * 4)
        return np.frombuffer(found, "f4").reshape(-1, COLUMNS)


PEERS = [
    *(ZarrCopy, Icechunk, H5netcdf, XarrayZarr, XarrayNetcdf, FsspecFiles),
    *(VellumZarr, VellumZarrCodec, VellumXarray, VellumToVellum, VellumFsspec),
]


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
    for peer in [each for each in PEERS if each.name in results and hasattr(each, "beside")]:
        mine = results[peer.name]
        for other in [results[name] for name in peer.beside if name in results]:
            name = next(name for name, found in results.items() if found is other)
            size = next(column for column in mine if column.startswith("MiB"))
            faster = other["commit s"] / mine["commit s"]
            print_lines([(f"{peer.name}: commit, times faster than {name}", faster, ">=", 1)])
            print_lines([(f"{peer.name}: bytes, of {name}'s", mine[size] / other[size], "<=", 1)])


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
