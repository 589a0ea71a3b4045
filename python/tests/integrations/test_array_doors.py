"""What holds for fsspec, zarr and xarray alike: kills, leaks, imports. VELLUM_TEST_KILLS is the number of kills."""

import gc
import multiprocessing
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import vellum

KILLS = int(os.environ.get("VELLUM_TEST_KILLS", "10"))
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


def write_on(connection, door, path, step):
    """A child: steps without end, and a word after each."""
    while True:
        door.write(path, step)
        connection.send(step)
        step += 1


def killed(door, path, step, words):
    """The last step that a child has reported before it is killed, in the middle of a later one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", *(f"vellum.integrations.{each.needs}" for each in DOORS)])
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=write_on, args=(there, door, str(path), step), daemon=True)
    child.start()
    there.close()
    try:
        for _ in range(words):
            step = here.recv()
    finally:
        child.kill()
        child.join()
    try:
        while True:
            step = here.recv()
    except EOFError:
        return step


def test_a_kill_leaves_a_whole_step(door, path):
    rng = np.random.default_rng(7)
    door.write(path, 1)
    found = 1
    for _ in range(KILLS):
        reported = killed(door, path, found + 1, int(rng.integers(1, 5)))
        found, values = door.read(path, "main")
        assert found in (reported, reported + 1)
        np.testing.assert_array_equal(values, shadow(found))
    assert not vellum.Store(path).verify().damages


def test_an_old_version_stays_beside_the_live_one(door, path):
    for step in range(1, 10):
        door.write(path, step)
        vellum.Store(path).create_snapshot(f"s{step}", "main")
    for step in (1, 5, 9):
        found, values = door.read(path, f"s{step}")
        assert found == step
        np.testing.assert_array_equal(values, shadow(step))


def used():
    """Descriptors and mappings of the process."""
    gc.collect()
    with open("/proc/self/maps", encoding="ascii") as lines:
        return len(os.listdir("/proc/self/fd")), sum(1 for _ in lines)


def test_nothing_leaks(door, path):
    def round_of(step):
        door.write(path, step)
        assert door.read(path, "main")[0] == step

    for step in range(1, 6):
        round_of(step)
    fds, maps = used()
    for step in range(6, 46):
        round_of(step)
    fds_after, maps_after = used()
    assert fds_after <= fds + 2, "each round opens the branch and a version"
    assert maps_after <= maps + 40, "each round maps two regions"


def test_the_package_imports_no_door():
    program = "import sys, vellum; print([n for n in ('fsspec', 'zarr', 'xarray', 'pandas') if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


@pytest.mark.parametrize("name", ["fsspec", "xarray", "zarr"])
def test_a_missing_library_is_named(name):
    program = f"import sys; sys.modules[{name!r}] = None; import vellum.integrations.{name}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"pip install vellum[{name}]" in ended.stderr.splitlines()[-1]
    assert ended.stderr.splitlines()[-1].startswith("ImportError")


def test_no_door_imports_another(door):
    others = [f"vellum.integrations.{each.needs}" for each in DOORS if each is not door]
    program = f"import sys, vellum.integrations.{door.needs}; print([n for n in {others} if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def test_the_entry_points_are_found(path):
    fsspec, xr = pytest.importorskip("fsspec"), pytest.importorskip("xarray")
    assert fsspec.get_filesystem_class("vellum").__name__ == "VellumFileSystem"
    assert "vellum" in xr.backends.list_engines()
    Xarray.write(path, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert xr.open_dataset(path).attrs["step"] == 1, "without engine="
