"""A refused or failed call changes nothing: neither names, values nor space."""

import numpy as np
import pytest

import vellum


class Fails:
    """A source whose reads fail."""

    dtype, shape = np.dtype("f8"), (3,)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("reading the source failed")


def some_then_failure():
    yield "x"
    raise RuntimeError("reading the source failed")


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
REFUSED = {
    "taken": lambda r: r.create_array("a", 1 << 20),
    "taken by a group": lambda r: r.create_array("g", 1 << 20),
    "taken by strings": lambda r: r.create_strings("s", ["x"]),
    "in an array": lambda r: r.create_array("new/a/../b", 3),
    "in what is no group": lambda r: r.create_array("a/b/c", 3),
    "strings in what is no group": lambda r: r.create_strings("a/b/c", ["x"]),
    "too large": lambda r: r.create_array("new", 2**62),
    "too large by much": lambda r: r.create_array("new/group/b", (2**40, 2**40), "f8"),
    "room too large": lambda r: r.create_array("new", 3, room=1 << 50),
    "room of the wrong kind": lambda r: r.create_array("new", 3, room=2.5),
    "a negative room": lambda r: r.create_array("new", 3, room=-1),
    "a negative length": lambda r: r.create_array("new", -1),
    "a length of the wrong kind": lambda r: r.create_array("new", "3"),
    "data of another shape": lambda r: r.create_array("new/group/b", (3,), data=[1, 2]),
    "data that cannot be read": lambda r: r.create_array("new", data=Fails()),
    "values that cannot be read": lambda r: r.__setitem__("new", Fails()),
    "an unknown dtype": lambda r: r.create_array("new", 3, "no such dtype"),
    "objects": lambda r: r.__setitem__("new", np.array([object()])),
    "masked": lambda r: r.create_array("new", data=MASKED),
    "masked values": lambda r: r.__setitem__("new", MASKED),
    "masked values of an array": lambda r: r.__setitem__("a", np.ma.array(np.arange(10.0), mask=True)),
    "masked values, stored": lambda r: r["a"].__setitem__(slice(0, 3), MASKED),
    "masked values, stored in all": lambda r: r["a"].__setitem__(..., np.ma.array(np.arange(10.0), mask=True)),
    "masked values, stored in a view": lambda r: r["a"][2:5].__setitem__([0, 1, 2], MASKED),
    "a masked element": lambda r: r["a"].__setitem__(0, np.ma.masked),
    "masked values, by put()": lambda r: r["a"].put([0, 1, 2], MASKED),
    "masked values, by numpy.put()": lambda r: np.put(r["a"], [0, 1, 2], MASKED),
    "masked values, by numpy.copyto()": lambda r: np.copyto(r["a"][:3], MASKED),
    "masked values, by numpy.putmask()": lambda r: np.putmask(r["a"][:3], [True] * 3, MASKED),
    "masked values, added": lambda r: r["a"][:3].__iadd__(MASKED),
    "masked values, multiplied": lambda r: r["a"][:3].__imul__(MASKED),
    "a dict that is no JSON": lambda r: r.create_dict("new", {"ok": 1, "bad": object()}),
    "strings that fail": lambda r: r.create_strings("new", some_then_failure()),
    "strings that are numbers": lambda r: r.create_strings("new", ["ok", 1]),
    "strings that are no UTF-8": lambda r: r.create_strings("new", ["ok", "\udcff"]),
    "more strings that fail": lambda r: r["s"].extend(some_then_failure()),
    "attributes": lambda r: r.attrs.update({"ok": 1, "bad": object()}),
    "attributes by name": lambda r: r["a"].attrs.update(ok=1, bad=object()),
    "items of a dict": lambda r: r["d"].update([("ok", 1), ("k", object())]),
    "several at once": lambda r: r.update({"new": np.arange(3), "bad": np.array([object()])}),
    "several, one of another shape": lambda r: r.update({"new": np.arange(3), "a": np.arange(3)}),
    "several, one in an array": lambda r: r.update({"new/b": np.arange(3), "new/b/c": np.arange(3)}),
    "resize too far": lambda r: r.resize("a", 1 << 40),
    "resize by far too far": lambda r: r.resize("a", 1 << 63),
    "resize to another shape": lambda r: r.resize("a", (5, 2)),
    "resize to no shape": lambda r: r.resize("a", ()),
    "resize of the wrong kind": lambda r: r.resize("a", 2.5),
    "resize by a truth": lambda r: r.resize("a", True),
    "resize of strings": lambda r: r.resize("s", 3),
    "removal of nothing": lambda r: r.__delitem__("new"),
    "chunks": lambda r: r.create_array("new", 3, chunks=(1,)),
}


def state_of(r):
    values = {n: (i.tolist() if isinstance(i, np.ndarray) else list(i)) for n, i in r.visit()}
    return values, list(r), dict(r.attrs), dict(r["a"].attrs), dict(r["d"]), r._mapping.core.size_bytes


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_changes(path, what):
    r = vellum.open(path, create=True)
    r["a"] = np.arange(10.0)
    r.create_strings("s", ["one"])
    r.create_dict("d", {"k": 1})
    r["g/b"] = np.arange(3)
    r.commit()
    before = state_of(r)
    for _ in range(3):
        with pytest.raises((ValueError, KeyError, RuntimeError, vellum.Error)):
            REFUSED[what](r)
    assert state_of(r) == before
    r["after"] = np.arange(3)
    r["g/after"] = np.arange(3)
    r.attrs["k"] = "x" * 5000
    r.commit()
    r.close()
    del r
    v = vellum.open(path, version="main")
    assert v["after"].tolist() == [0, 1, 2] and v["a"].tolist() == list(range(10)) and len(v.attrs["k"]) == 5000
    assert not vellum.Store(path).verify().damages


def test_many_names_after_a_refusal_are_committed(path):
    with vellum.open(path, create=True) as r:
        r["first"] = np.arange(3)
    with vellum.open(path) as r:
        for i in range(100):
            r[f"result-{i}"] = np.full(1000, i)
        with pytest.raises(ValueError, match="capacity_bytes"):
            r.create_array("scratch", (1 << 41,), "f8")
    assert len(vellum.open(path, version="main")) == 101


def test_large_arrays_ask_for_no_room_that_they_may_not_have(region):
    x = region.create_array("x", 300 << 30, "u1")
    y = region.create_array("y", 300 << 30, "u1")
    x[-1], y[0] = 1, 2
    region.commit()
    v = vellum.open(region.store.path, version="main")
    assert v["x"][-1] == 1 and v["y"][0] == 2
    assert region.store.stat().stored_bytes < 10 << 20


def test_a_small_region(path):
    r = vellum.open(path, create=True, capacity_bytes=64 << 20)
    with pytest.raises(ValueError, match="capacity_bytes"):
        r.create_array("b", 80 << 20, "u1")
    r["x"] = np.arange(3)
    r.commit()


def test_a_mask_without_masked_values_is_taken(region):
    region["x"] = np.ma.array([1.0, 2.0])
    assert type(region["x"]) is vellum.Array and region["x"].tolist() == [1, 2]
    region["x"][:] = np.ma.array([3.0, 4.0], mask=False)
    region["x"] += np.ma.array([1.0, 1.0])
    assert type(region["x"]) is vellum.Array and region["x"].tolist() == [4, 5]


def test_resize_takes_a_shape(region):
    region["x"] = np.arange(30.0).reshape(10, 3)
    assert region.resize("x", (5, 3)).tolist() == np.arange(15.0).reshape(5, 3).tolist()
    assert region.resize("x", np.int64(7)).shape == (7, 3)


def test_setdefault_gives_the_regions_own(region):
    x = region.setdefault("x", np.zeros(4))
    x[:] = 1
    assert region["x"].tolist() == [1] * 4
    assert region.setdefault("x", np.zeros(9)).shape == (4,)
    region.attrs.setdefault("l", []).append(1)
    assert region.attrs["l"] == [1]


@pytest.mark.parametrize("kind", ["npz", "hdf5", "zarr"])
def test_an_import_that_fails_leaves_nothing(tmp_path, region, kind):
    pytest.importorskip({"npz": "numpy", "hdf5": "h5py", "zarr": "zarr"}[kind])
    with vellum.open(tmp_path / "other", create=True) as other:
        other["a/first"] = np.arange(3)
        other.create_strings("a/s", ["x"])
        other["taken"] = np.arange(3)
        other.attrs["from"] = kind
        getattr(other, f"export_{kind}")(tmp_path / f"file.{kind}")
    region["taken"] = np.arange(5)
    region.attrs["mine"] = 1
    with pytest.raises(vellum.AlreadyExists):
        getattr(region, f"import_{kind}")(tmp_path / f"file.{kind}")
    assert list(region) == ["taken"] and region["taken"].tolist() == list(range(5)) and region.attrs == {"mine": 1}
