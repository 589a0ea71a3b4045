"""xarray over a region: xarray's own tests of back ends, and what they do not have."""

import asyncio
import contextlib
import functools
import inspect
import re

import numpy as np
import pytest

import vellum

xr = pytest.importorskip("xarray")
peers = pytest.importorskip("xarray.tests.test_backends", reason="xarray's tests are not installed")

from vellum.integrations.xarray import VellumDataStore, to_vellum  # noqa: E402


@pytest.fixture(params=["s", "ms", "us", "ns"])
def time_unit(request):
    return request.param


@pytest.fixture(params=[False, True])
def use_dask(request):
    if request.param:
        pytest.importorskip("dask")
    return request.param


class TestPeersSuite(peers.CFEncodedBase):
    engine = "vellum"

    @contextlib.contextmanager
    def create_store(self):
        with peers.create_tmp_file() as path:
            yield VellumDataStore(vellum.open(path, create=True))

    def save(self, dataset, path, mode="w", **options):
        options.pop("format", None)
        return to_vellum(dataset, path, mode=mode, **options)

    @pytest.mark.parametrize(("decoded_fn", "encoded_fn"), peers.MASK_AND_SCALE_DATA)
    @pytest.mark.parametrize("dtype", [np.dtype("float64")])  # in JSON a scale of float32 is one of float64
    def test_roundtrip_mask_and_scale(self, decoded_fn, encoded_fn, dtype):
        super().test_roundtrip_mask_and_scale(decoded_fn, encoded_fn, dtype)

    def test_invalid_dataarray_names_raise(self, tmp_path):
        wrong = {0: TypeError, (4, 5): TypeError, True: TypeError, "": ValueError, "a/b": ValueError}
        for name, error in wrong.items():
            with pytest.raises(error, match=re.escape(repr(name))):
                to_vellum(xr.Dataset({name: ("x", [1, 2])}), tmp_path / "store")

    def test_append_with_invalid_dim_raises(self, tmp_path):
        data = xr.Dataset({"a": ("x", [1, 2, 3]), "b": ("x", [4, 5, 6])})
        to_vellum(data, tmp_path / "store")
        with pytest.raises(ValueError, match="'b' has 3 along 'x', and what is written has 2"):
            to_vellum(data[["a"]].isel(x=slice(2)), tmp_path / "store", mode="a")
        to_vellum(data.isel(x=slice(2)), tmp_path / "store", mode="a")  # none stays with the other length
        with xr.open_dataset(tmp_path / "store", engine="vellum") as found:
            xr.testing.assert_identical(found, data.isel(x=slice(2)))

    @pytest.mark.skip(reason="a region has no dimensions without a length")
    def test_encoding_unlimited_dims(self):
        pass

    @pytest.mark.skip(reason="bytes are of one length, and not characters along an axis, as in zarr")
    def test_encoding_kwarg_fixed_width_string(self):
        pass


def without_a_plugin(function):
    """A coroutine as a test; pytest runs none by itself."""

    @functools.wraps(function)
    def run(*arguments, **options):
        return asyncio.run(function(*arguments, **options))

    return run


for name, function in inspect.getmembers(peers.CFEncodedBase, inspect.iscoroutinefunction):
    if name.startswith("test_"):
        setattr(TestPeersSuite, name, without_a_plugin(function))


def test_a_branch_that_the_program_has_open_is_busy(path):
    bad = xr.Dataset({"v": ("t", [1, 2, 3], {"bad": object()})})
    with vellum.open(path, create=True) as region:
        region["z"] = np.arange(3)
        with pytest.raises(vellum.Busy, match="is open in this process"):
            to_vellum(bad, path)
        assert "z" in region and vellum.Store(path).version("main").sequence == 0
    with pytest.raises(vellum.InvalidArgument) as kept:
        to_vellum(bad, path)
    to_vellum(xr.Dataset({"v": ("t", [1, 2, 3])}), path)  # which the error, that is kept, does not hinder
    assert kept.value is not None and list(vellum.open(path, version="main")) == ["v"]


def test_nothing_is_decoded_on_demand(path):
    to_vellum(xr.Dataset({"v": ("t", np.array([1, -1], "i2"), {"scale_factor": 0.5, "_FillValue": -1})}), path)
    with xr.open_dataset(path, engine="vellum") as found:
        np.testing.assert_array_equal(found["v"], [0.5, np.nan])
    with xr.open_dataset(path, engine="vellum", decode_cf=False) as found:
        np.testing.assert_array_equal(found["v"], [1, -1])
