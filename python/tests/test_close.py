import gc
import threading

import numpy as np
import pytest

import vellum


def test_a_closed_region_raises(path):
    r = vellum.open(path, create=True)
    r["g/x"] = np.arange(3)
    d, g, s = r.create_dict("d"), r["g"], r.create_strings("s", ["a"])
    r.commit()
    r.close()
    r.close()
    uses = [
        lambda: r["g/x"], lambda: list(r), lambda: r.commit(), lambda: r.create_array("y", 3), lambda: g["x"],
        lambda: d.get("k"), lambda: s[0], lambda: list(g), lambda: r.log(), lambda: r.__enter__(),
        lambda: g.create_array("z", 3),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(ValueError, match="closed"):
            use()
    assert r.closed and "closed" in repr(r)


def test_arrays_keep_the_memory(path):
    with vellum.open(path, create=True) as r:
        x = r.create_array("x", 1_000_000, "i4")
        x[:] = 1
    part = x[5:10]
    del x, r
    gc.collect()
    part[:] = 2  # the branch is still open
    assert part.tolist() == [2] * 5
    again = vellum.open(path)  # takes over the memory, at the last commit
    assert part.tolist() == [1] * 5
    part[:] = 3
    again.commit()
    again.close()
    del again, part
    gc.collect()
    assert vellum.open(path, mode="r")["x"][7] == 3


def test_the_last_array_closes_the_branch(path):
    r = vellum.open(path, create=True)
    x = r.create_array("x", 10)
    r.commit()
    r.close()
    import subprocess
    import sys

    program = f"import vellum; vellum.open({str(path)!r})"
    assert "Busy" in subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    del x
    gc.collect()
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr == ""


def test_a_version_outlives_its_region_and_its_name(path):
    with vellum.open(path, create=True) as r:
        r["x"] = np.arange(100_000)
        r.snapshot("s")
        old = vellum.open(path, version="s")["x"]
        r["x"][:] = 0
        r.commit()
        r.store.remove_snapshot("s")
        r.gc()
    assert old[99_999] == 99_999


def test_an_uncommitted_close_forgets_arrays_that_are_in_use(path):
    r = vellum.open(path, create=True)
    x = r.create_array("x", 1000, "i8")
    r.commit()
    x[:] = 1
    r.close()
    assert not x.any()


def test_commits_beside_threads_that_write(region):
    x = region.create_array("x", (4, 200_000), "i8")
    stop = threading.Event()

    def write(row):
        value = 0
        while not stop.is_set():
            value += 1
            x[row] = value

    threads = [threading.Thread(target=write, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        region.commit()
        old = vellum.open(region.store.path, mode="r")["x"]
        assert old.shape == x.shape
        old.sum()
    stop.set()
    for thread in threads:
        thread.join()
    region.commit()
    np.testing.assert_array_equal(vellum.open(region.store.path, mode="r")["x"], x)
