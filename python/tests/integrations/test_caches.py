"""The store of `joblib.Memory`, and the disk of diskcache."""

import gc
import io
import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from cache_libraries import opened, values

import vellum
from vellum.integrations._values import Values


def disk_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)


@pytest.fixture
def cached(path):
    """A cached function, its memory, and the list of its calls."""
    joblib = pytest.importorskip("joblib")
    from vellum.integrations import joblib as door

    door.register()
    memory, calls = joblib.Memory(str(path), backend="vellum", verbose=0), []

    def function(number):
        calls.append(number)
        return {"number": number, "values": values(number)}

    return memory.cache(function), memory, calls


def test_a_result_is_computed_once(cached, path):
    function, memory, calls = cached
    for _ in range(2):
        for number in range(3):
            found = function(number)
            assert found["number"] == number
            np.testing.assert_array_equal(found["values"], values(number))
            found["values"][:] = 0  # the caller's own
    assert calls == [0, 1, 2]
    assert function.check_call_in_cache(1) and not function.check_call_in_cache(9)
    function.clear(warn=False)
    assert function(1)["number"] == 1 and calls == [0, 1, 2, 1]
    memory.reduce_size(items_limit=0)
    assert function(1)["number"] == 1 and len(calls) == 5
    memory.clear(warn=False)
    assert memory.store_backend.get_items() == []
    assert not vellum.Store(f"{path}/joblib").verify(progress=False).damages


def test_results_as_views(path):
    joblib = pytest.importorskip("joblib")
    opened("joblib", path)[0](1)
    memory = joblib.Memory(str(path), backend="vellum", verbose=0, mmap_mode="r")
    function = memory.cache(values)
    found = function(1)
    np.testing.assert_array_equal(found, values(1))
    assert not found.flags.writeable
    memory.clear(warn=False)
    np.testing.assert_array_equal(found, values(1))


def test_joblib_in_workers(cached, path):
    joblib = pytest.importorskip("joblib")
    function, memory, _ = cached
    function(0)
    shared = memory.cache(values)
    found = joblib.Parallel(2)(joblib.delayed(shared)(number) for number in range(6))
    for number in range(6):
        np.testing.assert_array_equal(found[number], values(number))
        assert shared.check_call_in_cache(number)
    memory.clear(warn=False)  # also what workers have stored, which may still be at work
    assert not shared.check_call_in_cache(3)
    np.testing.assert_array_equal(shared(3), values(3))


@pytest.mark.parametrize("door", ["joblib", "diskcache"])
def test_entries_share_their_content(door, path):
    pytest.importorskip(door)
    get, _ = opened(door, path)
    store = f"{path}/joblib" if door == "joblib" else f"{path}.vellum"
    get(0)
    first = disk_bytes(store)
    for number in range(1, 10):
        get(number)
    assert disk_bytes(store) - first < 3 * values(0).nbytes < 9 * values(0).nbytes


def test_diskcache_takes_all_kinds_of_values(path):
    diskcache = pytest.importorskip("diskcache")
    from vellum.integrations.diskcache import VellumDisk

    given = {
        "text": "ä" * 100_000,
        "bytes": b"x" * 100_000,
        "array": np.arange(100_000),
        "both": {"a": np.arange(100_000), "b": [1, 2]},
        "small": np.arange(3),
        "number": 1.5,
        "short": "ä",
        ("a", 1): b"y" * 50_000,
    }
    with diskcache.Cache(path, disk=VellumDisk) as cache:
        for key, value in given.items():
            cache[key] = value
        cache.set("file", io.BytesIO(b"z" * 70_000), read=True)
    with diskcache.Cache(path, disk=VellumDisk) as cache:
        for key, value in given.items():
            np.testing.assert_equal(cache[key], value)
        assert cache.get("file", read=True).read() == b"z" * 70_000
        cache["array"] += 1
        assert cache["array"][0] == 1
        del cache["text"]
        assert "text" not in cache and cache.pop("bytes") == b"x" * 100_000
        cache.clear()
        assert cache._disk._values.items() == []


def fill(path, first):
    given = Values(path)
    for number in range(first, first + 3):
        given.put(f"n{number}", bytes([number]) * 10_000, [])
    return sorted(name for name, _, _ in given.items())


def test_processes_write_and_read_one_store(path):
    given = Values(str(path))
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(fill, [str(path)] * 4, [0, 3, 6, 9]))
        names = {f"n{number}" for number in range(12)}
        assert {name for name, _, _ in given.items()} == names
        given.remove("n1")  # of a branch that a worker has open
        assert pool.submit(fill, str(path), 0).result() == sorted(names)  # it is there again
    given.put("n5", b"other", [])
    for each in (given, pickle.loads(pickle.dumps(given))):
        assert each.get("n5").head.tobytes() == b"other" and each.get("n1").head.tobytes() == b"\1" * 10_000
        assert each.get("n99") is None and each.has("n1") and not each.has("n99")
    given.remove()
    assert given.items() == []


def names_of(path, number):
    return sorted(name for name, _ in vellum.open(path, version=f"values-{number}").visit())


def marks_of(path, number):
    return list(vellum.open(path, version=f"values-{number}").attrs.get("gone", []))


def remove(path, prefix):
    given = Values(path)
    given.put("other", b"x", [])  # in a branch of its own
    given.remove(prefix)


def clean(path):
    Values(path).put("last", b"x", [])


def test_what_another_process_removes_is_dropped(path):
    given = Values(str(path))
    for number in range(4):
        given.put(f"n/{number}", b"x" * 10_000, [])
    with ProcessPoolExecutor(1) as pool:
        pool.submit(remove, str(path), "n").result()
        assert given.items()[0][0] == "other" and len(given.items()) == 1
        assert len(names_of(path, 0)) == 4 == len(marks_of(path, 1))  # it may not change this branch
        given.put("more", b"y", [])
        assert names_of(path, 0) == ["more"]
        pool.submit(clean, str(path)).result()
        assert names_of(path, 1) == ["last", "other"] and marks_of(path, 1) == []
    assert sorted(name for name, _, _ in given.items()) == ["last", "more", "other"]


def test_values_of_a_process_that_has_ended_are_dropped(path):
    given = Values(str(path))
    given.put("own", b"x", [])
    with ProcessPoolExecutor(1) as pool:
        pool.submit(fill, str(path), 0).result()
    assert names_of(path, 1) == ["n0", "n1", "n2"]
    given.remove("n1")
    assert names_of(path, 1) == ["n0", "n2"] and marks_of(path, 0) == []
    given.remove()
    assert names_of(path, 0) == names_of(path, 1) == marks_of(path, 0) == []


def test_removed_values_give_their_space_back(path):
    given = Values(str(path))
    for number in range(8):
        given.put(f"n{number}", os.urandom(1 << 20), [])
    with ProcessPoolExecutor(1) as pool:
        pool.submit(remove, str(path), "n7").result()
    given.put("n6", b"another", [])
    for number in range(7):
        given.remove(f"n{number}")
    assert [name for name, _, _ in given.items()] == ["other"]
    del given  # and with it the branch, whose pages gc() keeps while it is open
    gc.collect()
    store = vellum.Store(path)
    store.gc()
    assert store.stat().stored_bytes < 3 << 20


def test_two_caches_of_one_directory_in_a_process(path):
    """Threads that use them wait for each other, and are not Busy."""
    caches = [Values(str(path)), Values(f"{path.parent}/./{path.name}")]
    for number, each in enumerate(caches):
        each.put(f"first-{number}", b"x", [])
    caches.append(pickle.loads(pickle.dumps(caches[0])))

    def fill(number):
        for each in range(30):
            caches[number].put(f"{number}-{each}", bytes([each]) * 5_000, [])
            assert caches[number].get(f"{number}-{each}").head.tobytes() == bytes([each]) * 5_000
            if each % 3 == 0:
                caches[number].remove(f"{number}-{each}")

    with ThreadPoolExecutor(3) as pool:
        for each in [pool.submit(fill, number) for number in range(3)]:
            each.result()
    assert len(caches[0].items()) == 2 + 3 * 20
    assert vellum.Store(path).branches == ["values-0"]


def test_a_fork_waits_for_no_thread_of_its_parent(path):
    given = Values(str(path))
    given.put("a", b"x", [])
    taken, done = threading.Event(), threading.Event()

    def hold():
        with given._locked():
            taken.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
            assert pool.submit(given.has, "a").result(timeout=120)
    finally:
        done.set()
        holder.join()


def test_a_value_and_a_group_have_different_names(path):
    given = Values(str(path))
    given.put("a/b/c", b"x", [])
    for name in ("a", "a/b", "a/b/c/d"):
        with pytest.raises(vellum.InvalidArgument, match="'a/b/c'"):
            given.put(name, b"y", [])
    assert given.get("a/b/c").head.tobytes() == b"x" and len(given.items()) == 1
    given.remove("a/b/c")
    given.put("a", b"y", [])
    assert given.get("a").head.tobytes() == b"y"


@pytest.mark.parametrize("door", ["joblib", "diskcache"])
def test_a_cache_that_is_opened_again_has_its_branch(door, path):
    pytest.importorskip(door)
    for _ in range(3):
        get, cache = opened(door, path)
        for number in range(2):
            np.testing.assert_array_equal(get(number), values(number))
        cache.clear(**({"warn": False} if door == "joblib" else {}))
        del get, cache
        gc.collect()
    assert vellum.Store(f"{path}/joblib" if door == "joblib" else f"{path}.vellum").branches == ["values-0"]
