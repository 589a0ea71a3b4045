"""Threads that concurrently open, fault, commit, pickle and look arrays up: also without the interpreter's lock."""

import pickle
import subprocess
import sys
import sysconfig
import threading

import numpy as np

import vellum


def at_once(*works, rounds=30):
    """Runs each in a separate thread, and raises the first exception of a thread."""
    errors = []

    def run(work):
        try:
            for i in range(rounds):
                work(i)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_all_at_once(numbers, values):
    r = vellum.open(numbers)
    x = r["x"]

    def first():
        return vellum.open(numbers, version="first")["x"]

    def commits(i):
        x[i::5000] += 1
        r.commit()

    def faults(i):
        np.testing.assert_array_equal(first()[i * 100 :: 50_000], values[i * 100 :: 50_000])

    def pickles(i):
        with vellum.pickle_references():
            data = pickle.dumps(first()[i : i + 4])
        assert pickle.loads(data).tolist() == values[i : i + 4].tolist()

    def looks(i):
        assert all(x[j : j + 5].name == "x" for j in range(100))

    def opens(i):
        assert first()[i] == values[i]

    def attributes(i):
        r.attrs[f"{i % 10}"] = i
        dict(r.attrs)

    at_once(commits, faults, pickles, opens, opens, looks, looks, attributes, rounds=60)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "a module has asked for the lock"


def test_extents_in_use_are_known(region):
    """An array that is created while the last one of its extent is freed keeps its memory."""
    region["x"] = np.arange(1000)

    def comes_and_goes(i):
        for _ in range(100):
            x = region["x"]
            assert region._used().names_in_use() == ["x"]
            del x

    at_once(comes_and_goes, comes_and_goes, comes_and_goes)
    assert region._used().names_in_use() == []


def test_an_end_with_arrays_in_cycles(numbers):
    """The interpreter ends while regions and arrays still exist."""
    program = """
import sys, vellum
class Cycle:
    pass
kept = Cycle()
kept.self, kept.region = kept, vellum.open(sys.argv[1], version="first")
kept.array, kept.live = kept.region["x"], vellum.open(sys.argv[1])["x"]
sys.kept = kept
"""
    ended = subprocess.run([sys.executable, "-c", program, str(numbers)], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
