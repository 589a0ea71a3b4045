"""Arrays and versions in other processes."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import vellum


def total(x):
    return int(x.sum()), type(x).__name__, x.flags.writeable


def total_of_region(r):
    return int(r["x"].sum()), r.version


def test_pickles_are_references(numbers, values):
    x = vellum.open(numbers, version="first")["x"]
    for part in (x, x[10:500_000], x[::-3], x[5:6], x.reshape(1000, 1000)[:, 7], x.view("u1")[3:9], x[7:7]):
        for protocol in (2, 4, 5):
            data = pickle.dumps(part, protocol)
            assert len(data) <= 1024
            back = pickle.loads(data)
            np.testing.assert_array_equal(back, part)
            assert (back.dtype == part.dtype and back.strides == part.strides) or part.size == 0
            assert not back.flags.writeable
    assert len(pickle.dumps(x + 1)) > x.nbytes, "a result is plain memory"


def test_unpickled_elsewhere(numbers, values):
    x = vellum.open(numbers, version="first")["x"]
    program = "import pickle, sys; x = pickle.load(sys.stdin.buffer); print(x.sum(), x.name)"
    ended = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(x[5:-5]), capture_output=True)
    assert ended.stdout.decode().split() == [str(values[5:-5].sum()), "x"], ended.stderr


def test_structured_arrays_and_fields(path):
    with vellum.open(path, create=True) as r:
        r["t"] = np.zeros(100, [("a", "<i4"), ("b", "<f8", (3,))])
        r["t"]["b"][7] = 5
        r.snapshot("s")
    t = vellum.open(path, version="s")["t"]
    assert pickle.loads(pickle.dumps(t["b"][7:8])).tolist() == [[5, 5, 5]]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_multiprocessing(numbers, values, method):
    r = vellum.open(numbers, version="first")
    parts = np.array_split(r["x"], 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with multiprocessing.get_context(method).Pool(2) as pool:
            found = pool.map(total, parts)
            assert pool.map(total_of_region, [r]) == [(int(values.sum()), "first")]
    assert [f[0] for f in found] == [int(part.sum()) for part in np.array_split(values, 8)]
    assert {f[1:] for f in found} == {("Array", False)}


def in_child(body):
    """Runs in a fork. Returns the exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 99
        try:
            status = body()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*last commit:RuntimeWarning")
def test_a_fork_has_versions_in_their_places(numbers, values):
    x = vellum.open(numbers, version="first")["x"]
    others = [vellum.open(numbers, version="first")["x"] for _ in range(20)]
    with vellum.open(numbers) as r:
        live = r["x"]
        live[0] = 5  # not committed
        small = x[3:7]

        def child():
            assert int(x.sum()) == int(values.sum())
            assert all(int(o[17]) == int(values[17]) for o in others)
            assert live[0] == values[0], "a child has the last commit"
            assert small.name == "x" and pickle.loads(pickle.dumps(small)).tolist() == small.tolist()
            with pytest.raises(vellum.ReadOnly):
                r.commit()
            with vellum.open(numbers.parent / "another", create=True) as mine:
                mine["y"] = x[:10]
            return 7

        assert in_child(child) == 7
        assert live[0] == 5
    assert vellum.open(numbers, mode="r")["x"][0] == 5
    assert vellum.open(numbers.parent / "another", mode="r")["y"][9] == values[9]


def test_the_branch_is_free_when_the_parent_is_done(numbers):
    with vellum.open(numbers) as r:
        ready, go = os.pipe()

        def child():
            os.read(ready, 1)
            return 0

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
            if pid == 0:
                os._exit(child())
        r["x"][:] = 0
    vellum.open(numbers).close()  # while the child lives
    os.write(go, b"x")
    assert os.waitpid(pid, 0)[1] == 0


def test_a_name_that_means_another_version_is_refused(numbers):
    data = pickle.dumps(vellum.open(numbers, version="first")["x"])
    head = pickle.dumps(vellum.open(numbers, mode="r")["x"])
    with vellum.open(numbers) as r:
        r["x"][0] = 0
        r.store.remove_tag("first")
        r.snapshot("first")
    program = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    for old in (data, head):
        ended = subprocess.run([sys.executable, "-c", program], input=old, capture_output=True)
        assert b"NotFound" in ended.stderr and b"snapshot" in ended.stderr


def test_writers_pickle_when_asked(numbers):
    with vellum.open(numbers) as r:
        with pytest.raises(TypeError, match="WriterReference"):
            pickle.dumps(r)
        reference = pickle.dumps(vellum.WriterReference.of(r))
        assert type(pickle.loads(pickle.dumps(r["x"][:5]))) is np.ndarray, "values, as they may change"
    with pickle.loads(reference).open() as again:
        again["x"][0] = 1
    assert vellum.open(numbers, mode="r")["x"][0] == 1
