"""Old versions by fsspec, zarr and xarray, and how these find the doors."""

import warnings

import numpy as np
import pytest

import vellum

SHAPE = (7, 20_000)


def row(step):
    """What a step writes, into row `step % 7`. Some rows compress."""
    rng = np.random.default_rng(step)
    return rng.integers(0, 256 if step % 3 else 2, SHAPE[1], dtype="u1")


def shadow(step):
    """The state after a step."""
    values = np.zeros(SHAPE, "u1")
    for each in range(max(step - len(values), 0) + 1, step + 1):
        values[each % len(values)] = row(each)
    return values


class Files:
    """By fsspec, in one transaction a step."""

    needs = "fsspec"

    @staticmethod
    def system(path, version="main"):
        from vellum.integrations.fsspec import VellumFileSystem

        return VellumFileSystem(str(path), version, create=version == "main", skip_instance_cache=True)

    @classmethod
    def write(cls, path, step):
        fs = cls.system(path)
        with fs.transaction:
            fs.pipe("step", str(step).encode())
            with fs.open(f"rows/{step % SHAPE[0]}", "wb") as file:
                file.write(row(step).tobytes())

    @classmethod
    def read(cls, path, version):
        fs, values = cls.system(path, version), np.zeros(SHAPE, "u1")
        for name in fs.find("rows"):
            values[int(name.rpartition("/")[2])] = np.frombuffer(fs.cat(name), "u1")
        return int(fs.cat("step")), values


class Zarr:
    """By zarr, compressed by its codec: the lengths of chunks vary."""

    needs = "zarr"

    @staticmethod
    def write(path, step):
        import zarr

        from vellum.integrations.zarr import VellumStore

        with VellumStore(path) as store:
            group = zarr.open_group(store, mode="a")
            if "x" not in group:
                group.create_array("x", shape=SHAPE, chunks=(1, SHAPE[1]), dtype="u1")
            group["x"][step % SHAPE[0]] = row(step)
            group.attrs["step"] = step

    @staticmethod
    def read(path, version):
        import zarr

        from vellum.integrations.zarr import VellumStore

        group = zarr.open_group(VellumStore(path, version=version), mode="r")
        return group.attrs["step"], group["x"][:]


class Xarray:
    """By xarray, the whole data set each time."""

    needs = "xarray"

    @staticmethod
    def write(path, step):
        import xarray as xr

        from vellum.integrations.xarray import to_vellum

        to_vellum(xr.Dataset({"x": (("row", "column"), shadow(step))}, attrs={"step": step}), path)

    @staticmethod
    def read(path, version):
        import xarray as xr

        with xr.open_dataset(path, engine="vellum", version=version) as opened:
            return opened.attrs["step"], opened["x"].values


DOORS = [Files, Zarr, Xarray]


@pytest.fixture(params=DOORS, ids=lambda door: door.needs)
def door(request):
    pytest.importorskip(request.param.needs)
    return request.param


def test_an_old_version_stays_beside_the_live_one(door, path):
    for step in range(1, 10):
        door.write(path, step)
        vellum.Store(path).create_snapshot(f"s{step}", "main")
    for step in (1, 5, 9):
        found, values = door.read(path, f"s{step}")
        assert found == step
        np.testing.assert_array_equal(values, shadow(step))


def test_the_entry_points_are_found(path):
    fsspec, xr = pytest.importorskip("fsspec"), pytest.importorskip("xarray")
    assert fsspec.get_filesystem_class("vellum").__name__ == "VellumFileSystem"
    assert "vellum" in xr.backends.list_engines()
    Xarray.write(path, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert xr.open_dataset(path).attrs["step"] == 1, "without engine="
