import copy
import os
import pathlib
import re

import numpy as np
import pytest

import vellum

DTYPES = [
    "?", "i1", "<u2", ">i4", "<f2", "<f8", "<c16", "<M8[ns]", "<m8[s]", "S7", "<U5", "V3",
    [("a", "<i4"), ("b", "<f8")],
    [("a", "<i2", (3, 2)), ("b", [("c", "S3"), ("d", ">u8")])],
    np.dtype([("a", "u1"), ("b", "<f8")], align=True),
    np.dtype({"names": ["a", "b"], "formats": ["<i4", "<f4"], "offsets": [8, 0], "itemsize": 16}),
]  # fmt: skip


def filled(shape, dtype):
    """Any bytes, except where they would not be valid values."""
    data = np.zeros(shape, dtype)
    if data.dtype.kind not in "U?":
        data = np.random.default_rng(7).bytes(data.nbytes)
        data = np.frombuffer(bytearray(data), "u1").view(dtype).reshape(shape)
    return data


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_plain_dtype_comes_back(path, dtype):
    data = np.zeros((5, 3), dtype)
    data[...] = filled((5, 3), np.dtype(dtype))
    with vellum.open(path, create=True) as r:
        r.create_array("x", data=data, dtype=dtype)
    x = vellum.open(path, mode="r")["x"]
    assert x.dtype == np.dtype(dtype)
    assert repr(x.tolist()) == repr(data.tolist())  # of NaN, too


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 4), (4, 0, 2), (3, 5, 7), (1,) * 32])
def test_every_shape_comes_back(path, shape):
    data = np.arange(np.prod(shape, dtype=int), dtype="i4").reshape(shape)
    with vellum.open(path, create=True) as r:
        r["x"] = data
    x = vellum.open(path, mode="r")["x"]
    assert x.shape == shape
    np.testing.assert_array_equal(x, data)


def test_objects_are_refused_by_name(region):
    for dtype in (object, [("a", "O")]):
        with pytest.raises(ValueError, match="create_strings"):
            region.create_array("x", 3, dtype)
    assert "x" not in region


def test_an_array_is_numpys(region):
    x = region.create_array("x", (4, 5), "f8")
    assert isinstance(x, np.ndarray)
    assert x.flags.c_contiguous and x.flags.writeable and x.flags.aligned
    assert not x.any()
    x[1] = 2
    assert region["x"][1, 3] == 2  # the same memory
    assert np.shares_memory(x, region["x"])
    assert x[1:, ::2].name == "x"
    assert type(x + 1) is type(x[0] * 2) is np.ndarray and type(x.sum()) is np.float64
    x += 1
    assert type(x) is type(np.add(x, 1, out=x)) is vellum.Array
    with pytest.raises(ValueError, match="no region"):
        x[[0, 1]].name
    assert copy.deepcopy(x).tolist() == x.tolist()


def test_new_arrays_are_zero_where_old_ones_were(region):
    for i in range(20):
        x = region.create_array("x", 10_000 + i, "i8")
        assert not x.any()
        x[:] = -1
        del x
        del region["x"]
        region.commit()


def test_an_array_is_replaced_only_by_its_like(region):
    region["x"] = np.arange(5)
    region["x"] = np.arange(5) * 2
    region["x"] += 1
    assert region["x"].tolist() == [1, 3, 5, 7, 9]
    with pytest.raises(ValueError, match="resize"):
        region["x"] = np.arange(6)
    with pytest.raises(FileExistsError):
        region.create_array("x", 3)
    with pytest.raises(ValueError, match="chunks"):
        region.create_array("y", 3, chunks=(1,))


def test_resize_in_place_and_beyond_its_room(path):
    with vellum.open(path, create=True) as r:
        x = r.create_array("x", (1000, 8), "i4", room=500)
        x[:] = 5
        r.create_array("y", 10, "i4")[:] = 6
        x = r.resize("x", 1500)
        assert x.shape == (1500, 8) and (x[:1000] == 5).all() and not x[1000:].any()
        x[1000:] = 7
        x = r.resize("x", 1200)
        x = r.resize("x", 1300)
        assert not x[1200:].any(), "rows that come back are zero"
        with pytest.raises(BufferError, match="in use"):
            r.resize("x", 1_000_000)
        assert r["x"].shape == (1300, 8)
        del x
        x = r.resize("x", 1_000_000)
        assert (x[:1000] == 5).all() and (x[1000:1200] == 7).all() and not x[1200:].any()
    old = vellum.open(path, mode="r")
    assert old["x"].shape == (1_000_000, 8) and old["x"][1100, 7] == 7
    assert old["y"].tolist() == [6] * 10
    with pytest.raises(ValueError, match="first axis"), vellum.open(path) as r:
        r["scalar"] = np.float64(1)
        r.resize("scalar", 2)


def test_removed_arrays_keep_their_memory_while_they_are_used(path):
    with vellum.open(path, create=True) as r:
        x = r.create_array("x", 1000, "i4")
        x[:] = 3
        r.commit()
        del r["x"]
        y = r.create_array("y", 1000, "i4")
        y[:] = 4
        r.commit()
        assert (x == 3).all()
        with pytest.raises(KeyError):
            r["x"]
    assert "x" not in vellum.open(path, mode="r")


def test_many_arrays(path):
    with vellum.open(path, create=True) as r:
        for i in range(2000):
            r.create_array(f"group{i % 7}/x{i}", 100, "i4")[:] = i
        r.commit()
    old = vellum.open(path, mode="r")
    assert len(old) == 7
    assert all(old[f"group{i % 7}/x{i}"][99] == i for i in range(0, 2000, 13))


def test_extension_dtypes_fail_clearly(region):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(ValueError, match="plain bytes"):
        region.create_array("x", 3, ml_dtypes.bfloat16)


def kernel_version():
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def huge_kib(array):
    """How much of an array's mapping is in huge pages, according to the kernel."""
    address, found, inside = array.__array_interface__["data"][0], 0, False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if not first.endswith(":"):
            begin, end = (int(part, 16) for part in first.split("-"))
            inside = begin <= address < end
        elif inside and first in ("ShmemPmdMapped:", "FilePmdMapped:"):
            found += int(line.split()[1])
    return found


def test_prefetch_of_rows(numbers, values):
    x = vellum.open(numbers, version="first")["x"]
    core = x._pages()[0].core
    before = core.resident_bytes
    x.prefetch(rows=[100_000, 300_000, 100_001, -1])
    assert before < core.resident_bytes <= before + 4 * 65536
    table = x[: len(x) // 4 * 4].reshape(-1, 4)
    thirds = np.arange(len(table)) % 3 == 0
    for view, rows in ((x[::-2], slice(5)), (table[:, ::-1], [3, 1, 2]), (table[:, 1], thirds)):
        view.prefetch(rows=rows)
    x.prefetch(rows=[])
    np.testing.assert_array_equal(x, values)
    np.array(x).view(vellum.Array).prefetch(rows=[1])
    with pytest.raises(IndexError):
        x.prefetch(rows=[len(x)])


def test_versions_in_huge_pages(numbers, values):
    plain = vellum.open(numbers, version="first")["x"]
    plain.prefetch()
    assert huge_kib(plain) == 0
    huge = vellum.open(numbers, version="first", huge_pages=True)["x"]
    huge.prefetch()
    np.testing.assert_array_equal(huge, values)
    if kernel_version() >= (6, 1):
        assert huge_kib(huge) >= 2048
