"""Versions that are read from a remote without a clone: a directory, and an S3 server (moto, or a real one)."""

import concurrent.futures
import multiprocessing
import pickle

import numpy as np
import pytest

import vellum


@pytest.fixture(autouse=True)
def no_copies(monkeypatch):
    """Read data is not cached: each test reads from the remote itself."""
    monkeypatch.setenv("VELLUM_CACHE_DIR", "")


def push_to(url, path):
    store = vellum.Store(path)
    # moto checks for an object before it writes one: two creators may win, which the probe has to
    # detect.
    store.add_remote("origin", url, one_writer=True)
    store.push()
    return store


@pytest.fixture
def pushed(numbers, url):
    return push_to(url, numbers)


def total(part):
    return int(part.sum())


def test_opens_beside_the_writer(pushed, url, values):
    with vellum.open(pushed.path) as live:
        live["x"][0] = 7
        old = vellum.open(url, version="first")
        assert (old.version, old.writable, old.store.path) == ("first", False, url)
        x = old["x"]
        np.testing.assert_array_equal(x[500_000:500_010], values[500_000:500_010])
        np.testing.assert_array_equal(x, values)
        assert not x.flags.writeable and live["x"][0] == 7
    assert old.store.snapshots == ["first"] and [v.name for v in old.log()] == ["first"]


def test_rows_of_a_batch_come_at_once(pushed, url, values):
    x = vellum.open(url, version="first")["x"]
    rows = np.random.default_rng(3).choice(len(x), 100, replace=False)
    x.prefetch(rows=rows)
    np.testing.assert_array_equal(x[rows], values[rows])


def test_the_head_of_a_branch_and_a_diff(numbers, url, values):
    with vellum.open(numbers) as live:
        live["x"][::1000] = 7
    push_to(url, numbers)
    expected = values.copy()
    expected[::1000] = 7
    head = vellum.open(url, mode="r")
    np.testing.assert_array_equal(head["x"], expected)
    np.testing.assert_array_equal(head.diff("first")["x"].rows, np.arange(0, len(values), 1000))


def test_pickles_as_a_reference_to_workers(pushed, url, values):
    x = vellum.open(url, version="first")["x"][10:]
    with vellum.pickle_references():
        assert len(pickle.dumps(x)) <= 1024
    parts = np.array_split(x, 4)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
        assert sum(pool.map(total, parts)) == int(values[10:].sum())


def test_errors(pushed, url, tmp_path):
    with pytest.raises(KeyError, match="second"):
        vellum.open(url, version="second")
    nowhere = url.replace(tmp_path.name, "nowhere")
    with pytest.raises(FileNotFoundError):
        vellum.open(nowhere, version="first")
    with pytest.raises(PermissionError):
        vellum.open(url)
    with pytest.raises(PermissionError):
        vellum.Store(url).create_branch("b", "first")
    with pytest.raises(ValueError, match="push"):
        vellum.open(url, create=True)
    with pytest.raises(ValueError, match="s3://"):
        vellum.open("ftp://somewhere/s", version="first")
    with pytest.raises(ValueError, match="bucket"):
        vellum.open("s3://B", version="first")
