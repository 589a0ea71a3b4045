"""A zarr 3 store over a region: zarr's own tests of stores, and what they do not have."""

import asyncio
import functools
import inspect
import pickle

import numpy as np
import pytest

import vellum

zarr = pytest.importorskip("zarr", minversion="3.1")
peers = pytest.importorskip("zarr.testing.store")
from zarr.core.buffer import cpu, default_buffer_prototype  # noqa: E402

from vellum import blobs  # noqa: E402
from vellum.integrations.zarr import VellumStore  # noqa: E402


class TestPeersSuite(peers.StoreTests):
    store_cls = VellumStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        vellum.open(tmp_path / "store", create=True).commit()
        return {"store": str(tmp_path / "store")}

    async def set(self, store, key, value):
        blobs.put(store.region, key, value.as_numpy_array().view("u1"))

    async def get(self, store, key):
        return self.buffer_cls.from_array_like(blobs.bytes_of(store.region[key]).copy())

    @pytest.fixture
    def store(self, open_kwargs):
        return asyncio.run(self.store_cls.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return self.store_cls(**store_kwargs)

    def test_store_repr(self, store):
        assert repr(store) == f"VellumStore('vellum://{store.region.store.path}@main')"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


def without_a_plugin(function):
    """A coroutine as a test; pytest runs none by itself."""

    @functools.wraps(function)
    def run(*arguments, **options):
        return asyncio.run(function(*arguments, **options))

    return run


for name, function in inspect.getmembers(peers.StoreTests, inspect.iscoroutinefunction):
    if name.startswith("test_"):
        setattr(TestPeersSuite, name, without_a_plugin(function))


def filled(path, **options):
    store = VellumStore(path, **options)
    x = zarr.create_array(store, name="x", shape=(100, 100), chunks=(10, 10), dtype="f8", compressors=None)
    x[:] = np.arange(10_000).reshape(100, 100)
    return store, x


def commits(path):
    return vellum.Store(path).version("main").sequence


def test_a_commit_per_sync(path):
    store, x = filled(path)
    store.snapshot("first")
    before = commits(path)
    x[5, 5] = -1
    x[50:, :] = -2
    assert commits(path) == before
    old = zarr.open_group(VellumStore(path, version="first"), mode="r")["x"]
    head = zarr.open_group(VellumStore(path, read_only=True), mode="r")["x"]
    assert old[5, 5] == head[5, 5] == 505 and x[5, 5] == -1
    store.sync("some chunks")
    assert commits(path) == before + 1
    assert zarr.open_array(VellumStore(path, read_only=True), path="x", mode="r")[5, 5] == -1
    assert old[5, 5] == 505, "an old version stays beside the live one"
    x[:] = 0
    store.close()
    assert commits(path) == before + 2
    assert not zarr.open_array(VellumStore(path, read_only=True), path="x", mode="r")[:].any()


def test_a_block_commits_or_rolls_back(path):
    filled(path)[0].close()
    with pytest.raises(ZeroDivisionError), VellumStore(path) as store:
        zarr.open_array(store, path="x")[:] = 7
        raise ZeroDivisionError
    with VellumStore(path) as store:
        assert zarr.open_array(store, path="x")[99, 99] == 9999
        zarr.open_array(store, path="x")[99, 99] = 1
    assert zarr.open_array(VellumStore(path, read_only=True), path="x", mode="r")[99, 99] == 1


def test_a_rollback_of_another_store_is_no_commit_of_the_rest(path):
    filled(path)[0].close()
    before = commits(path)
    for end in ("sync", "close", "snapshot"):
        store = VellumStore(path)
        zarr.create_array(store, name="y", data=np.arange(10))
        with pytest.raises(ZeroDivisionError), VellumStore(path):
            raise ZeroDivisionError
        zarr.open_array(store, path="x")[0, 0] = -1  # a part of what it wrote
        with pytest.raises(RuntimeError, match="another store of this branch has rolled back"):
            store.snapshot("s") if end == "snapshot" else getattr(store, end)()
        assert commits(path) == before, end
        store.rollback()
        store.close()
    store, other = VellumStore(path), VellumStore(path)
    zarr.create_array(store, name="y", data=np.arange(10))
    other.sync()  # commits both
    other.rollback()
    store.sync()
    store.rollback()
    zarr.open_array(store, path="x")[0, 0] = 7
    store.close()
    assert zarr.open_array(VellumStore(path, read_only=True), path="x", mode="r")[0, 0] == 7
    assert zarr.open_array(VellumStore(path, read_only=True), path="y", mode="r")[9] == 9


def test_a_store_shares_no_region_that_it_was_not_given(path):
    with vellum.open(path, create=True) as region:
        region["plain"] = np.arange(3)
        with pytest.raises(vellum.Busy, match="is open in this process"):
            VellumStore(path)
        first, second = VellumStore(region, group="a"), VellumStore(region, group="b")
        zarr.create_group(first)
        second.rollback()
        with pytest.raises(RuntimeError, match="another store of this branch has rolled back"):
            first.sync()
        first.rollback()
        zarr.create_group(pickle.loads(pickle.dumps(second)))
        second.sync()
        assert list(region) == ["b"]


def test_a_version_refuses_writes(path):
    store, _ = filled(path)
    store.snapshot("first")
    old = VellumStore(path, version="first")
    assert old.read_only
    with pytest.raises(ValueError, match="a version never changes, open a branch"):
        old.sync()
    with pytest.raises(ValueError, match="a version never changes, open a branch"):
        asyncio.run(old.set("k", cpu.Buffer.from_bytes(b"1")))
    with pytest.raises(vellum.ReadOnly, match="'first' never changes: open a branch"):
        old.with_read_only(False)
    with pytest.raises((ValueError, vellum.ReadOnly)):
        zarr.open_array(old, path="x", mode="r+")[0] = 1
    with pytest.raises((ValueError, vellum.ReadOnly)):
        zarr.create_array(old, name="y", shape=3, dtype="i4")
    assert zarr.open_array(old, path="x", mode="r")[5, 5] == 505


def test_a_region_of_ones_own_with_a_group(path):
    with vellum.open(path, create=True) as region:
        region["plain"] = np.arange(3)
        store = VellumStore(region, group="z")
        zarr.create_group(store, attributes={"a": 1})
        zarr.create_array(store, name="y", data=np.arange(10.0))
        region.snapshot("both")
        assert sorted(region) == ["plain", "z"]
    old = vellum.open(path, version="both")
    assert zarr.open_group(VellumStore(old, group="z"), mode="r")["y"][3] == 3
    assert VellumStore(path, version="both", group="z") == VellumStore(old, group="z")


def test_pickles_open_the_same_place(path):
    store, x = filled(path)
    store.snapshot("first")
    assert pickle.loads(pickle.dumps(x))[5, 5] == 505
    old = pickle.loads(pickle.dumps(VellumStore(path, version="first")))
    assert old.read_only and zarr.open_array(old, path="x", mode="r")[5, 5] == 505


def test_a_value_that_was_read_stays(path):
    store, x = filled(path)
    before = asyncio.run(store.get("x/c/0/0", default_buffer_prototype()))
    content = before.to_bytes()
    x[:] = -1
    assert before.to_bytes() == content


def test_a_change_of_a_chunk_costs_a_chunk(path):
    store = VellumStore(path)
    x = zarr.create_array(store, name="x", shape=(64, 1 << 15), chunks=(1, 1 << 15), dtype="f8", compressors=None)
    x[:] = np.random.default_rng(1).normal(size=x.shape)
    store.snapshot("first")
    x[7] += 1
    report = store.snapshot("second")
    assert report.pages_changed <= (1 << 18) // 4096 + 4
    store.delete_sync("x/c/7/0")
    assert not x[7].any() and x[8].any()


def test_remotes_are_read_in_place(path, url):
    store, _ = filled(path)
    store.snapshot("first")
    local = vellum.Store(path)
    local.add_remote("origin", url, one_writer=True)
    local.push("origin")
    there = VellumStore(url, version="first")
    np.testing.assert_array_equal(zarr.open_array(there, path="x", mode="r")[:], np.arange(10_000).reshape(100, 100))
    with pytest.raises(ValueError, match="never changes"):
        there.delete_sync("x/c/0/0")


def test_xarray_writes_and_reads_zarr(path):
    xr = pytest.importorskip("xarray")
    data = xr.Dataset({"t": (("y", "x"), np.arange(12.0).reshape(3, 4))}, {"x": [1, 2, 3, 4]})
    with VellumStore(path) as store:
        data.to_zarr(store, consolidated=False)
        store.snapshot("first")
        data.isel(y=[0]).to_zarr(store, append_dim="y", consolidated=False)
    old = xr.open_zarr(VellumStore(path, version="first"), consolidated=False)
    xr.testing.assert_identical(old.load(), data)
    assert xr.open_zarr(VellumStore(path, read_only=True), consolidated=False).sizes["y"] == 4
