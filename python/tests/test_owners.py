"""An extent has one owner: an array in use never shows the memory of another one."""

import gc

import numpy as np
import pytest

import vellum


def fails_inside(region, work):
    kept = []
    with pytest.raises(ZeroDivisionError), region.transaction():
        kept.append(work())
        raise ZeroDivisionError
    return kept


def stale_by_rollback(r):
    x = r.create_array("scratch", 1000, "f8")
    r.rollback()
    return x


def stale_by_transaction(r):
    return fails_inside(r, lambda: r.create_array("scratch", 1000, "f8"))[0]


def stale_by_removal(r):
    x = r.create_array("scratch", 1000, "f8")
    r.commit()
    del r["scratch"]
    r.commit()
    return x


def stale_by_removal_and_rollback(r):
    x = r.create_array("scratch", 1000, "f8")
    del r["scratch"]
    r.rollback()
    return x


def stale_by_group(r):
    x = r.create_array("g/scratch", 1000, "f8")
    r.commit()
    del r["g"]
    return x


def stale_view(r):
    return np.asarray(stale_by_rollback(r))[2:900][3:].view("u1").view(np.ndarray)


def stale_memoryview(r):
    return np.frombuffer(memoryview(stale_by_rollback(r)), dtype="f8")


def stale_structured(r):
    x = r.create_array("scratch", 100, np.dtype([("a", "f8"), ("b", "i4")]))
    r.rollback()
    return x["a"]


def stale_strings(r):
    data = r.create_strings("scratch", ["a" * 1000]).data
    r.rollback()
    data.flags.writeable = True
    return data


def stale_scalar(r):
    x = r.create_array("scratch", (), "f8")
    r.rollback()
    return x


STALE = [
    stale_by_rollback, stale_by_transaction, stale_by_removal, stale_by_removal_and_rollback, stale_by_group,
    stale_view, stale_memoryview, stale_structured, stale_strings, stale_scalar,
]  # fmt: skip


@pytest.mark.parametrize("stale", STALE)
@pytest.mark.parametrize("reopen", [False, True])
def test_stores_into_a_stale_array_change_no_other(path, stale, reopen):
    r = vellum.open(path, create=True)
    r["first"] = np.arange(10.0)
    r.commit()
    kept = stale(r)
    if reopen:
        r.close()
        r = vellum.open(path)
    r.create_array("array", data=np.full(1000, 2.0))
    r.create_array("scalar", (), "f8")
    r.create_strings("strings", ["text"] * 100)
    r.create_array("g/array", data=np.full((10, 10), 2.0))
    r.resize("first", 400_000)
    r.attrs["k"] = "x" * 5000  # the document moves
    if kept.dtype.names is None:
        kept[...] = 7
    assert not np.shares_memory(kept, r["array"])
    r.commit()
    r.close()
    v = vellum.open(path, version="main")
    assert v["array"].tolist() == [2] * 1000 and v["scalar"] == 0 and list(v["strings"]) == ["text"] * 100
    assert v["g/array"].tolist() == [[2] * 10] * 10 and v["first"][:10].tolist() == list(range(10))
    assert not v["first"][10:].any() and v.attrs["k"] == "x" * 5000


def test_a_place_that_the_last_commit_has_is_not_given_out(region):
    region["a"] = np.full(1000, 1.0)
    region.commit()

    def work():
        del region["a"]
        gc.collect()
        return region.create_array("b", data=np.full(1000, 2.0))

    (b,) = fails_inside(region, work)
    b[:] = 3
    assert region["a"].tolist() == [1] * 1000 and list(region) == ["a"]


def test_a_version_comes_back_beside_arrays_in_its_place(region):
    region["a"] = np.full(1000, 1.0)
    region.create_strings("s", ["one", "two"])
    region["same"] = np.arange(5)
    region.snapshot("v")
    same = region["same"]
    del region["a"], region["s"]
    region.commit()
    place = region.create_array("b", data=np.full(600_000, 2.0))  # over the ranges of both
    others = [region.create_array(f"c{i}", data=np.full(1000, 3.0 + i)) for i in range(4)]
    same[:] = 0
    region.commit()
    region.rollback("v")
    for each in (place, *others):
        each[:] = 9
    assert region["a"].tolist() == [1] * 1000 and list(region["s"]) == ["one", "two"]
    assert same.tolist() == list(range(5)), "an array that the version has shows the old content"
    region.commit()
    assert sorted(region) == ["a", "s", "same"]
    with vellum.open(region.store.path, version="main") as v:
        assert v["a"].tolist() == [1] * 1000 and list(v["s"]) == ["one", "two"]
    assert not region.store.verify().damages


def test_an_array_of_another_dtype_in_the_place_of_a_versions(region):
    region["a"] = np.arange(1000, dtype="i8")
    region.snapshot("v")
    del region["a"]
    region.commit()
    a = region.create_array("a", data=np.full(1000, 2.0))
    region.commit()
    region.rollback("v")
    a[:] = 5
    assert region["a"].tolist() == list(range(1000))


def test_the_space_of_arrays_without_users_comes_back(region):
    region["kept"] = np.arange(3)
    region.commit()
    size = region._mapping.core.size_bytes
    for _ in range(40):
        region.create_array("big", 4 << 20, "u1")[:] = 1  # 16 MiB with its reserve
        region.commit()
        del region["big"]
        gc.collect()
        region.commit()
    assert region._mapping.core.size_bytes == size
    assert not region.create_array("new", 4 << 20, "u1").any()


def test_new_rows_are_zero_after_a_store_into_rows_that_went(region):
    x = region.create_array("x", data=np.ones(100))
    region.resize("x", 50)
    x[60:] = 7
    assert region.resize("x", 100)[50:].tolist() == [0] * 50


def test_a_name_costs_no_walk_through_all_names(region):
    """The name of an array is looked up by its address."""
    for i in range(300):
        region[f"g{i % 7}/x{i}"] = np.arange(3)
    entries = region._mapping.catalog.entries

    class Unwalked(dict):
        def __iter__(self):
            raise AssertionError("all names were visited")

        items = values = keys = __iter__

    region._mapping.catalog.entries = Unwalked(entries)
    try:
        assert region["g3/x10"].name == "g3/x10" and region["g3/x10"][1:].attrs == {}
    finally:
        region._mapping.catalog.entries = entries
