"""xarray over a region: xarray's own tests of back ends, and what they do not have."""

import asyncio
import contextlib
import functools
import inspect

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


def without_a_plugin(function):
    """A coroutine as a test; pytest runs none by itself."""

    @functools.wraps(function)
    def run(*arguments, **options):
        return asyncio.run(function(*arguments, **options))

    return run


for name, function in inspect.getmembers(peers.CFEncodedBase, inspect.iscoroutinefunction):
    if name.startswith("test_"):
        setattr(TestPeersSuite, name, without_a_plugin(function))
