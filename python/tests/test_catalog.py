"""The list of arrays is untrusted until it is checked."""

import json
import struct
import zlib

import numpy as np
import pytest

import vellum
from vellum import _core
from vellum.catalog import HEADER, MAGIC, dtype_from

GOOD = {
    "": {"kind": "group", "attrs": {}},
    "x": {"kind": "array", "attrs": {}, "dtype": "<i4", "shape": [3], "extent": [1 << 20, 4096]},
    "s": {"kind": "string", "attrs": {}, "length": 1, "offsets": [2 << 20, 64], "data": [3 << 20, 64]},
}


def write(path, document, **header):
    native = _core.Store.open_or_create(str(path))
    options = _core.OpenOptions()
    options.capacity_bytes = 64 << 20
    core = native.create_region("main", 8 << 20, options)
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    fields = {
        "magic": MAGIC, "format": 1, "checksum": zlib.crc32(content), "offset": 4096, "length": len(content),
        "room": 65536, **header,
    }  # fmt: skip
    memory = memoryview(_core.Extent(None, core, 0, core.size_bytes))
    memory[: HEADER.size] = HEADER.pack(*fields.values())
    memory[4096 : 4096 + len(content)] = content
    core.commit()
    core.close()


def changed(name, **fields):
    document = json.loads(json.dumps(GOOD))
    document[name].update(fields)
    return document


def test_a_good_one_opens(path):
    write(path, GOOD)
    with vellum.open(path) as r:
        assert r["x"].tolist() == [0, 0, 0] and r["s"][0] == ""


BAD = {
    "shape negative": changed("x", shape=[-1]),
    "shape of text": changed("x", shape="3"),
    "shape huge": changed("x", shape=[1 << 46, 1 << 46]),
    "shape of booleans": changed("x", shape=[True]),
    "shape of fractions": changed("x", shape=[1.5]),
    "dtype of objects": changed("x", dtype="|O"),
    "dtype unknown": changed("x", dtype="nonsense"),
    "dtype nested": changed("x", dtype=[["a"]]),
    "dtype huge": changed("x", dtype="<V2147483647", shape=[1 << 40]),
    "dtype of code": changed("x", dtype="__import__('os')"),
    "extent past the end": changed("x", extent=[8 << 20, 4096]),
    "extent too small": changed("x", extent=[1 << 20, 8]),
    "extent misaligned": changed("x", extent=[(1 << 20) + 4, 4096]),
    "extent in the header": changed("x", extent=[0, 4096]),
    "extent in the document": changed("x", extent=[8192, 4096]),
    "extents overlap": changed("x", extent=[2 << 20, 4096]),
    "extent of one": changed("x", extent=[1 << 20]),
    "extent wraps": changed("x", extent=[(1 << 64) - 4096, 8192]),
    "offsets too small": changed("s", length=100),
    "kind unknown": changed("x", kind="image"),
    "kind missing": {"": {"attrs": {}}},
    "no attributes": {"": {"kind": "group"}},
    "no root": {"x": GOOD["x"]},
    "no group": {**GOOD, "g/y": {"kind": "group", "attrs": {}}},
    "name of dots": {**GOOD, "..": {"kind": "group", "attrs": {}}},
    "dict of a list": {**GOOD, "d": {"kind": "dict", "attrs": {}, "items": []}},
    "a list": [],
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe",
    "nested deeply": b"[" * 60000,
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_one_is_corrupted(path, bad):
    write(path, BAD[bad])
    with pytest.raises(vellum.Corrupted, match="main"):
        vellum.open(path)


@pytest.mark.parametrize(
    "header", [{"offset": 1 << 50}, {"length": 70000}, {"room": 1 << 60}, {"checksum": 1}, {"length": 0}]
)
def test_a_bad_header_is_corrupted(path, header):
    write(path, GOOD, **header)
    with pytest.raises(vellum.Corrupted):
        vellum.open(path)


def test_other_formats_and_other_programs(path, tmp_path):
    write(path, GOOD, format=2)
    with pytest.raises(ValueError, match="format 2"):
        vellum.open(path)
    write(tmp_path / "other", GOOD, magic=b"anything")
    with pytest.raises(ValueError, match="another program"):
        vellum.open(tmp_path / "other")


@pytest.mark.parametrize("offsets", [(-1, 5), (5, 2), (0, 1 << 60)])
def test_bad_offsets_of_strings_are_corrupted(path, offsets):
    write(path, GOOD)
    native = _core.Store.open(str(path))
    core = native.open_region("main", _core.OpenOptions())
    memoryview(_core.Extent(None, core, 2 << 20, 16))[:] = struct.pack("<qq", *offsets)
    core.commit()
    core.close()
    with vellum.open(path) as r, pytest.raises(vellum.Corrupted):
        r["s"][0]


def test_flipped_bytes_never_crash(path):
    with vellum.open(path, create=True) as r:
        r.create_array("g/x", 3, [("a", "<i4"), ("b", "<f8", (2,))])
        r.create_strings("s", ["a", "bc"])
        r.commit()
    native = _core.Store.open(str(path))
    core = native.open_region("main", _core.OpenOptions())
    memory = np.frombuffer(_core.Extent(None, core, 0, 16 << 20), "u1")
    good = memory[:].copy()
    fields = HEADER.unpack(good[: HEADER.size].tobytes())
    begin, length = fields[3], fields[4]
    rng = np.random.default_rng(3)
    mapping = vellum._mapping.Mapping(native, core, None)
    for _ in range(2000):
        memory[begin : begin + length] = good[begin : begin + length]
        at = begin + rng.integers(0, length, rng.integers(1, 4))
        memory[at] = rng.integers(32, 127, len(at))
        document = memory[begin : begin + length].tobytes()
        memory[: HEADER.size] = np.frombuffer(
            HEADER.pack(MAGIC, 1, zlib.crc32(document), begin, length, fields[5]), "u1"
        )
        try:
            mapping.catalog.load()
        except (vellum.Corrupted, vellum.InvalidArgument):
            continue
        for name, entry in mapping.catalog.entries.items():
            if entry["kind"] == "array":
                vellum.array.array_of(mapping, entry).tobytes()
            assert isinstance(name, str)


def test_dtype_from_takes_what_describe_gives():
    struct_of = {"names": ["a"], "formats": ["<i4"], "offsets": [0], "itemsize": 4, "aligned": False}
    assert dtype_from(struct_of) == np.dtype([("a", "<i4")])
    for bad in (
        None, 5, {}, [], "O", "|O", "<i4,<i4", "i4", "<i3", "<V99999999999", {**struct_of, "itemsize": 2},
        {**struct_of, "offsets": [-1]}, {**struct_of, "formats": []}, {**struct_of, "formats": ["|O"]},
        {**struct_of, "names": [3]}, {"base": "<i4", "shape": [-1]}, {"base": "<i4", "shape": 3},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            dtype_from(bad)
