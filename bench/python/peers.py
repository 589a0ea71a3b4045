"""The peers of table.py: the usual ways to keep versions of an array.

Each takes a folder and the values, changes `live`, makes it durable as a version with `keep()`, and opens a version
with `open()`. Modules of a peer are imported where they are used: not all are installed.
"""

import importlib
import os
import shutil
import subprocess

import numpy as np

import vellum

COLUMNS = 256
CHUNK = (1024, COLUMNS)  # 1 MiB, as zarr and h5py advise


def sync_all(path):
    subprocess.run(["sync", "-f", path], check=True)


def sync_file(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


class Peer:
    """The defaults of a peer."""

    needs = ("numpy",)
    is_whole = True  # a version has all of its bytes, whatever the versions before it were

    def __init__(self, folder, values):
        self.folder, self.live, self.shape = folder, values.copy(), values.shape

    @classmethod
    def of(cls, folder, shape):
        """For workers: an object that opens versions, without the live array."""
        peer = cls.__new__(cls)
        peer.folder, peer.shape = folder, shape
        return peer

    @staticmethod
    def rows(opened, picked):
        return opened[picked]

    def reference(self, version):
        """The object to pickle for workers; None: they get the path and open it."""
        return None


class Vellum(Peer):
    """One region; a snapshot is a version."""

    name = "vellum"
    is_whole = False

    def __init__(self, folder, values):
        self.folder = folder
        self.region = vellum.open(f"{folder}/store", create=True)
        self.live = self.region.create_array("x", data=values)

    def keep(self, version):
        self.region.snapshot(f"v{version}")

    def open(self, version):
        return vellum.open(f"{self.folder}/store", version=f"v{version}")["x"]

    reference = open


class Memmap(Peer):
    """A mapped file; a copy of it is a version."""

    name = "np.memmap + copy"

    def __init__(self, folder, values):
        self.folder = folder
        self.shape = values.shape
        self.live = np.memmap(f"{folder}/live", "f4", "w+", shape=values.shape)
        self.live[:] = values

    def file(self, version):
        return f"{self.folder}/v{version}"

    def keep(self, version):
        self.live.flush()
        shutil.copyfile(f"{self.folder}/live", self.file(version))
        sync_file(self.file(version))

    def open(self, version):
        return np.memmap(self.file(version), "f4", "r", shape=self.shape)


class Save(Peer):
    """Plain memory; np.save is a version."""

    name = "np.save"

    def keep(self, version):
        path = f"{self.folder}/v{version}.npy"
        np.save(path, self.live)
        sync_file(path)

    def open(self, version):
        return np.load(f"{self.folder}/v{version}.npy", mmap_mode="r")


class Zarr(Peer):
    """Plain memory; a zarr group of chunks of 1 MiB is a version. Its default codec compresses."""

    name = "zarr"
    needs = ("zarr",)

    def keep(self, version):
        path = f"{self.folder}/v{version}"
        import zarr

        made = zarr.open_array(path, mode="w", shape=self.live.shape, dtype="f4", chunks=CHUNK)
        made[:] = self.live
        sync_all(path)

    def open(self, version):
        import zarr

        return zarr.open_array(f"{self.folder}/v{version}", mode="r")

    reference = open

    @staticmethod
    def rows(opened, picked):
        return opened.oindex[picked]


class H5py(Peer):
    """Plain memory; a data set of chunks of 1 MiB, compressed by lzf, is a version."""

    name = "h5py"
    needs = ("h5py",)

    def keep(self, version):
        import h5py

        path = f"{self.folder}/v{version}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=self.live, chunks=CHUNK, compression="lzf")
        sync_file(path)

    def open(self, version):
        import h5py

        return h5py.File(f"{self.folder}/v{version}.h5", "r")["x"]


class Icechunk(Peer):
    """A repository of Icechunk; a commit of a zarr array of chunks of 1 MiB is a version, with a tag."""

    name = "icechunk"
    is_whole = False
    needs = ("icechunk", "zarr")

    def repository(self):
        import icechunk

        icechunk.set_logs_filter("error")  # it warns of concurrent commits, but there are none
        return icechunk.Repository.open_or_create(icechunk.local_filesystem_storage(f"{self.folder}/repository"))

    def keep(self, version):
        import zarr

        repository = self.repository()
        session = repository.writable_session("main")
        # All chunks are written: each has a changed row, or the changed column.
        zarr.create_array(session.store, name="x", data=self.live, chunks=CHUNK, overwrite=True)
        repository.create_tag(f"v{version}", session.commit(f"version {version}"))
        sync_all(self.folder)

    def open(self, version):
        import zarr

        return zarr.open_array(self.repository().readonly_session(tag=f"v{version}").store, path="x", mode="r")

    reference = open
    rows = staticmethod(Zarr.rows)


class FromArrow:
    """An array as a table: rows are lists of floats."""

    def __init__(self, read, shape):
        self.read, self.shape = read, shape

    def __getitem__(self, where):
        begin, end, _ = where.indices(self.shape[0])
        return self.read(begin, end)


def as_table(values):
    import pyarrow as pa

    rows = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), COLUMNS)
    return pa.table({"x": rows})


def as_values(column):
    """The rows of a column of lists."""
    parts = [part.flatten().to_numpy(zero_copy_only=False) for part in column.chunks]
    return np.concatenate(parts).reshape(-1, COLUMNS)


class Parquet(Peer):
    """Plain memory; a Parquet file is a version: one column of lists, row groups of 1 MiB, snappy."""

    name = "parquet"
    needs = ("pyarrow.parquet",)

    def path(self, version):
        return f"{self.folder}/v{version}.parquet"

    def keep(self, version):
        import pyarrow.parquet as pq

        pq.write_table(as_table(self.live), self.path(version), row_group_size=CHUNK[0], use_dictionary=False)
        sync_file(self.path(version))

    def open(self, version):
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self.path(version))

        def read(begin, end):
            groups = range(begin // CHUNK[0], -(-end // CHUNK[0]))
            values = as_values(file.read_row_groups(list(groups))["x"])
            skipped = begin - groups.start * CHUNK[0]
            return values[skipped : skipped + end - begin]

        return FromArrow(read, self.shape)

    @staticmethod
    def rows(opened, picked):
        return opened[:][picked]  # each row group has some of them


class DuckDB(Peer):
    """Plain memory; a file of DuckDB is a version: a table with one column of arrays."""

    name = "duckdb"
    needs = ("duckdb", "pyarrow")

    def path(self, version):
        return f"{self.folder}/v{version}.duckdb"

    def keep(self, version):
        import duckdb

        with duckdb.connect(self.path(version)) as connection:
            connection.register("given", as_table(self.live))
            columns = f"row_number() over () - 1 as n, x::float[{COLUMNS}] as x"
            connection.execute(f"create table t as select {columns} from given")
        sync_file(self.path(version))

    def open(self, version):
        import duckdb

        connection = duckdb.connect(self.path(version), read_only=True)

        def read(begin, end):
            found = connection.sql(f"select x from t where n >= {begin} and n < {end} order by n")
            return as_values(found.to_arrow_table()["x"])

        opened = FromArrow(read, self.shape)
        opened.connection = connection
        return opened

    @staticmethod
    def rows(opened, picked):
        import pyarrow as pa

        opened.connection.register("picked", pa.table({"n": picked}))
        found = opened.connection.sql("select x from t join picked using (n) order by n")
        return as_values(found.to_arrow_table()["x"])


def installed(peer):
    """Imports the modules of a peer, also as the first call in a worker. False: they are not installed."""
    try:
        for module in peer.needs:
            importlib.import_module(module)
    except ImportError:
        return False
    return True


PEERS = [Vellum, Memmap, Save, Zarr, Icechunk, H5py, Parquet, DuckDB]
