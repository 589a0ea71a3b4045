"""Arrays and versions in other processes."""

import concurrent.futures
import copy
import functools
import multiprocessing
import os
import pickle
import shutil
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


def references(item, protocol=None):
    with vellum.pickle_references():
        return pickle.dumps(item, protocol)


def test_pickles_that_were_asked_for_are_references(numbers, values):
    x = vellum.open(numbers, version="first")["x"]
    for part in (x, x[10:500_000], x[::-3], x[5:6], x.reshape(1000, 1000)[:, 7], x.view("u1")[3:9], x[7:7]):
        for protocol in (2, 4, 5):
            data = references(part, protocol)
            assert len(data) <= 1024
            back = pickle.loads(data)
            np.testing.assert_array_equal(back, part)
            assert (back.dtype == part.dtype and back.strides == part.strides) or part.size == 0
            assert not back.flags.writeable
    assert len(references(x + 1)) > x.nbytes, "a result is plain memory"


def with_pickle(item, file):
    file.write_bytes(pickle.dumps(item))
    return pickle.loads(file.read_bytes())


def with_joblib(item, file):
    joblib = pytest.importorskip("joblib")
    joblib.dump(item, file)
    return joblib.load(file)


def with_torch(item, file):
    torch = pytest.importorskip("torch")
    torch.save(item, file)
    return torch.load(file, weights_only=False)


def with_cloudpickle(item, file):
    cloudpickle = pytest.importorskip("cloudpickle")
    file.write_bytes(cloudpickle.dumps(item))
    return pickle.loads(file.read_bytes())


def with_pandas(item, file):
    pandas = pytest.importorskip("pandas")
    pandas.to_pickle(item, file)
    return pandas.read_pickle(file)


@pytest.fixture
def items(path):
    """A version with one of each."""
    with vellum.open(path, create=True) as r:
        r["x"], r["g/y"] = np.arange(6.0).reshape(2, 3), np.arange(3)
        r.create_strings("g/s", ["a", "ü"])
        r.create_bytes("b", [b"x"])
        r.create_dict("d", {"a": [1]})
        r.attrs["k"] = [1]
        r.snapshot("v")
    return vellum.open(path, version="v")


@pytest.mark.parametrize("saved", [with_pickle, with_joblib, with_torch, with_cloudpickle, with_pandas])
def test_what_is_saved_has_values(items, tmp_path, saved):
    back = saved({"x": items["x"], "row": items["x"][1], "g": items["g"], "b": items["b"]}, tmp_path / "file")
    items.store.remove_snapshot("v")
    items.close()
    shutil.rmtree(items_path := tmp_path / "store")
    assert not items_path.exists()
    again = saved(back, tmp_path / "again")  # the store was removed, and is not needed
    for found in (back, again):
        assert type(found["x"]) is np.ndarray and found["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert found["row"].tolist() == [3, 4, 5] and found["b"] == [b"x"]
        assert type(found["g"]) is dict and found["g"]["y"].tolist() == [0, 1, 2] and found["g"]["s"] == ["a", "ü"]


def kinds(*items):
    values = [item.tolist() if isinstance(item, np.ndarray) else list(item) for item in items]
    return [type(item).__name__ for item in items], values


def with_executor(method, items):
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(kinds, *items).result()


def with_workers_of_joblib(items):
    joblib = pytest.importorskip("joblib")
    (found,) = joblib.Parallel(2, backend="loky")([joblib.delayed(kinds)(*items)])
    return found


@pytest.mark.parametrize("handed", [functools.partial(with_executor, "spawn"), with_workers_of_joblib])
def test_workers_get_references(items, handed):
    found, values = handed([items["x"], items["g/s"], items["g"], items["b"], items["d"]])
    assert found == ["Array", "Strings", "Group", "Strings", "dict"]
    assert values == [[[0, 1, 2], [3, 4, 5]], ["a", "ü"], ["y", "s"], [b"x"], ["a"]]


def test_of_a_branch_everything_is_a_value(items):
    with vellum.open(items.store.path) as r:
        g, s = pickle.loads(references([r["g"], r["g/s"]]))
        assert g["y"].tolist() == [0, 1, 2] and s == ["a", "ü"]
        assert copy.deepcopy(r["g"])["s"] == ["a", "ü"]


def test_a_group_that_was_handed_over_outlives_the_handle_of_another(items):
    data = references(items["g"])
    back = pickle.loads(data)
    items.close()
    assert list(back["s"]) == ["a", "ü"] and pickle.loads(data)["y"].tolist() == [0, 1, 2]


def test_reports_go_to_other_processes(items):
    report = items.store.log()[0]
    back = pickle.loads(pickle.dumps(report))
    assert (back.name, back.sequence) == (report.name, report.sequence) and "name='v'" in repr(report)


def test_unpickled_elsewhere(numbers, values):
    x = vellum.open(numbers, version="first")["x"]
    program = "import pickle, sys; x = pickle.load(sys.stdin.buffer); print(x.sum(), x.name)"
    ended = subprocess.run([sys.executable, "-c", program], input=references(x[5:-5]), capture_output=True)
    assert ended.stdout.decode().split() == [str(values[5:-5].sum()), "x"], ended.stderr


def test_structured_arrays_and_fields(path):
    with vellum.open(path, create=True) as r:
        r["t"] = np.zeros(100, [("a", "<i4"), ("b", "<f8", (3,))])
        r["t"]["b"][7] = 5
        r.snapshot("s")
    t = vellum.open(path, version="s")["t"]
    assert pickle.loads(references(t["b"][7:8])).tolist() == [[5, 5, 5]]


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
            assert small.name == "x" and pickle.loads(references(small)).tolist() == small.tolist()
            with pytest.raises(vellum.ReadOnly):
                r.commit()
            with vellum.open(numbers.parent / "another", create=True) as mine:
                mine["y"] = x[:10]
            return 7

        assert in_child(child) == 7
        assert live[0] == 5
    assert vellum.open(numbers, mode="r")["x"][0] == 5
    assert vellum.open(numbers.parent / "another", mode="r")["y"][9] == values[9]


@pytest.mark.filterwarnings("ignore:.*last commit:RuntimeWarning")
def test_a_fork_has_arrays_that_are_not_committed(path):
    r = vellum.open(path, create=True)
    r["old"] = np.arange(5)
    r.commit()
    small = r.create_array("small", data=np.arange(1000.0))
    large = r.create_array("g/large", data=np.ones(40 << 20, "u1"))  # beyond the committed region
    scalars = [r.create_array(f"scalar{i}", data=np.float64(i)) for i in range(5)]
    data = r.create_strings("s", ["abc", "def"]).data
    stale = r.create_array("stale", 1000)
    del r["stale"]
    old = r["old"]

    def looks():
        assert small.tolist() == list(range(1000)) and int(large.sum()) == 40 << 20
        assert [float(s) for s in scalars] == [0, 1, 2, 3, 4] and data.tobytes() == b"abcdef"
        assert old.tolist() == [0, 1, 2, 3, 4] and stale.sum() == 0
        with pytest.raises(KeyError):
            r["small"]
        with pytest.raises(vellum.ReadOnly):
            r["new"] = np.arange(3)

    def child():
        looks()
        small[:] = 0  # the child's own
        small[:] = range(1000)

        def grandchild():
            looks()
            return 8

        return in_child(grandchild)

    assert in_child(child) == 8
    small[0] = 5
    r.commit()
    assert r["small"][0] == 5 and vellum.open(path, mode="r")["g/large"][-1] == 1


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
    data = references(vellum.open(numbers, version="first")["x"])
    head = references(vellum.open(numbers, mode="r")["x"])
    with vellum.open(numbers) as r:
        r["x"][0] = 0
        r.store.remove_snapshot("first")
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
        assert type(pickle.loads(references(r["x"][:5]))) is np.ndarray, "values, as they may change"
    with pickle.loads(reference).open() as again:
        again["x"][0] = 1
    assert vellum.open(numbers, mode="r")["x"][0] == 1
