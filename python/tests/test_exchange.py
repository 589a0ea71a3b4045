"""Import and export with the libraries themselves, each where it is installed."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import vellum

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
DTYPES = ["?", "u1", ">i4", "<f2", "<f8", "<c16", "<M8[ns]", "<m8[s]", "S7", "<U5", [("a", "<i4"), ("b", "<f8")]]
FORMATS = ["npz", "hdf5", "zarr"]
TEXT = ["", "a", "ä", "日本", "x" * 5000] * 1000
RAW = [b"", b"\0\0", b"\xff", b"abc\0"] * 1200


def need(kind):
    if kind != "npz":
        pytest.importorskip({"hdf5": "h5py", "zarr": "zarr"}[kind])


def export(group, kind, target, **options):
    getattr(group, f"export_{kind}")(target, **options)


def take(group, kind, source, **options):
    getattr(group, f"import_{kind}")(source, **options)


def fill(r):
    """Data of every kind, some of it longer than a part."""
    rng = np.random.default_rng(4)
    for i, dtype in enumerate(DTYPES):
        x = r.create_array(f"g/types/{i}", (5, 3), dtype)
        if x.dtype.names or x.dtype.kind in "SU":
            x[2] = x[2] if x.dtype.names else "abc"
        else:
            x[...] = rng.integers(0, 2, x.shape).astype(x.dtype)
    r["g/types/10"]["b"] = 2.5
    r["number"] = np.float32(7)
    r["empty"] = np.empty((0, 4), "i8")
    r["long"] = rng.integers(0, 1 << 60, (3, 700_001))
    r["wide"] = rng.integers(0, 100, (2000, 3, 700), dtype="i2")
    r.create_strings("text", TEXT)
    r.create_bytes("g/raw", RAW)
    r.create_strings("none")
    r.create_dict("g/settings", {"rate": 0.5, "deep": {"list": [1, None, "x"]}})
    r.create_group("g/nothing")
    r["long"].attrs.update(unit="m", scale=2, exact=0.1, list=[1, 2.5], deep={"a": None}, large=1 << 70, yes=True)
    r.attrs["title"] = "a test"
    r["g"].attrs["words"] = ["a", "b"]


def content_of(group, prefix=""):
    """All of a group as plain values, to compare."""
    found = {(prefix, "attrs"): dict(group.attrs)}
    for name in group:
        item = group[name]
        at = f"{prefix}/{name}"
        if isinstance(item, vellum.Group):
            found |= content_of(item, at)
            continue
        found[at, "attrs"] = dict(item.attrs)
        if isinstance(item, vellum.Array):
            found[at] = (item.dtype, item.shape, item.tobytes())
        else:
            found[at] = dict(item) if isinstance(item, vellum.Dict) else (item.kind, list(item))
    return found


@pytest.fixture
def full(path):
    """A version with data of every kind."""
    with vellum.open(path, create=True) as r:
        fill(r)
        r.snapshot("full")
    return vellum.open(path, version="full")


@pytest.mark.parametrize("kind", FORMATS)
def test_all_of_a_version_comes_back(full, kind, tmp_path):
    need(kind)
    export(full, kind, tmp_path / "out")
    with vellum.open(tmp_path / "back", create=True) as back:
        take(back, kind, tmp_path / "out")
    found, expected = content_of(vellum.open(tmp_path / "back", mode="r")), content_of(full)
    if kind == "zarr":  # which has one byte order
        assert found["/g/types/2"][0] == "<i4"
        expected["/g/types/2"] = (np.dtype("<i4"), (5, 3), full["g/types/2"].astype("<i4").tobytes())
    assert found == expected


@pytest.mark.parametrize("kind", FORMATS)
def test_some_of_a_version(full, kind, tmp_path):
    need(kind)
    export(full["g"], kind, tmp_path / "out", names=["types", "raw"])
    with vellum.open(tmp_path / "back", create=True) as back:
        take(back.create_group("h"), kind, tmp_path / "out", names=["types/3", "raw"])
        assert sorted(back["h"]) == ["raw", "types"] and sorted(back["h/types"]) == ["3"]
        np.testing.assert_array_equal(back["h/types/3"], full["g/types/3"])
    with pytest.raises(ValueError, match="a list"):
        export(full, kind, tmp_path / "other", names="g")
    with pytest.raises(vellum.NotFound):
        export(full, kind, tmp_path / "other", names=["h"])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("kind", FORMATS)
def test_neither_replaces_anything(full, kind, tmp_path, region, monkeypatch):
    need(kind)
    export(full, kind, tmp_path / "out", names=["number"])
    with pytest.raises(FileExistsError):
        export(full, kind, tmp_path / "out", names=["number"])
    full_number = float(full["number"])
    other = vellum.open(tmp_path / "other", create=True)
    other["number"] = np.float32(0)
    with pytest.raises(vellum.AlreadyExists):
        take(other, kind, tmp_path / "out")
    with pytest.raises(vellum.ReadOnly):
        take(full, kind, tmp_path / "out")
    assert other["number"] == 0 and full_number == 7
    monkeypatch.setattr(vellum.Array, "_leave_memory", lambda part: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export(full, kind, tmp_path / "cut")
    assert not (tmp_path / "cut").exists(), "what a failed export leaves is removed"


def test_npz_is_numpys(full, tmp_path):
    full.export_npz(tmp_path / "x.npz", compress=True)
    with np.load(tmp_path / "x.npz") as file:
        np.testing.assert_array_equal(file["long"], full["long"])
        np.testing.assert_array_equal(file["g/types/10"], full["g/types/10"])
        assert file["number"] == 7 and file["text/offsets"][-1] == len("".join(TEXT).encode())
    values = {"a": np.arange(7), "b": np.asfortranarray(np.arange(600_000).reshape(20, 300, 100)), "c": np.float64(2)}
    np.savez_compressed(tmp_path / "y.npz", **values)
    with vellum.open(tmp_path / "back", create=True) as back:
        back.import_npz(tmp_path / "y.npz")
        for name, value in values.items():
            np.testing.assert_array_equal(back[name], value)
        assert sorted(back) == ["a", "b", "c"]


def npz(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return path


def npy(array, cut=None):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()[:cut]


def strings_npz(path, offsets, data=b"abc"):
    members = {"s__offsets.npy": npy(offsets), "s__data.npy": npy(np.frombuffer(data, "u1"))}
    return npz(path, vellum_json=json.dumps({"s": {"kind": "string"}}), **members)


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [0, 9], [1, 3], [0, -1], []])
def test_wrong_offsets_are_refused(region, tmp_path, offsets):
    with pytest.raises(ValueError, match=r"offsets of 's' are wrong"):
        region.import_npz(strings_npz(tmp_path / "x", np.array(offsets, "i8")))


def test_wrong_files_are_refused(region, tmp_path):
    with pytest.raises(ValueError, match="early"):
        region.import_npz(npz(tmp_path / "x", **{"a.npy": npy(np.arange(100), -7)}))
    with pytest.raises(ValueError, match="objects"):
        np.savez(tmp_path / "y.npz", b=np.array([{}], object))
        region.import_npz(tmp_path / "y.npz")
    with pytest.raises(ValueError, match="kind 'x'"):
        region.import_npz(npz(tmp_path / "z", vellum_json='{"s": {"kind": "x"}}'))
    with pytest.raises(ValueError, match="entries"):
        region.import_npz(npz(tmp_path / "v", vellum_json="[1]"))
    with pytest.raises(ValueError, match=r"is no name"):
        region.import_npz(npz(tmp_path / "w", **{"..__a.npy": npy(np.arange(3))}))


def test_hdf5_is_h5pys(full, tmp_path):
    h5py = pytest.importorskip("h5py")
    full.export_hdf5(tmp_path / "x.h5", compression="gzip", chunks=True)
    with h5py.File(tmp_path / "x.h5") as file:
        np.testing.assert_array_equal(file["long"], full["long"])
        assert file["long"].compression == "gzip" and file["long"].attrs["unit"] == "m"
        assert file["text"].asstr()[3] == "日本" and file["g/raw"][1].tobytes() == b"\0\0"
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["g/x"] = np.arange(12.0).reshape(3, 4)
        file["g/x"].attrs["is"] = file["g"].ref
        file["g/again"] = file["g"]  # a circle
        file["external"] = h5py.ExternalLink("x.h5", "long")
    with vellum.open(tmp_path / "back", create=True) as back, h5py.File(tmp_path / "y.h5") as file:
        with pytest.warns(RuntimeWarning, match="'is' stays behind"):
            back.import_hdf5(file["g"], names=["x"])
        np.testing.assert_array_equal(back["x"], np.arange(12).reshape(3, 4))
        back.create_group("all").import_hdf5(tmp_path / "x.h5", names=["text", "number"])
        assert list(back["all/text"]) == TEXT
        with pytest.warns(RuntimeWarning):
            back.create_group("every").import_hdf5(file)
        assert [name for name, _ in back["every"].visit()] == ["g/x"]


def test_what_hdf5_has_not(region, tmp_path):
    h5py = pytest.importorskip("h5py")
    region.create_array("t", 3, [("when", "<M8[s]")])
    region.create_strings("s", ["a\0b"])
    for name, error in (("t", "'t': HDF5 has no values of dtype"), ("s", "create_bytes")):
        with pytest.raises(ValueError, match=error):
            region.export_hdf5(tmp_path / "x.h5", names=[name])
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file.create_dataset("ref", (2,), h5py.ref_dtype)
        file["none"] = h5py.Empty("f8")
    for name in ("ref", "none"):
        with pytest.raises(ValueError, match="choose others by `names`"):
            region.import_hdf5(tmp_path / "y.h5", names=[name])


def test_zarr_is_zarrs(full, tmp_path):
    zarr = pytest.importorskip("zarr")
    full.export_zarr(tmp_path / "x", names=["long", "text", "g"], chunks="auto")
    opened = zarr.open_group(tmp_path / "x", mode="r")
    np.testing.assert_array_equal(opened["long"][:], full["long"])
    assert opened["long"].attrs["deep"] == {"a": None} and opened["text"][3] == "日本"
    memory = zarr.storage.MemoryStore()
    full.export_zarr(memory, names=["long"], chunks=(1, 1000), shards=(1, 100_000))
    group = zarr.open_group(memory)
    assert group["long"].shards == (1, 100_000)
    group.create_array("old", data=np.arange(20).reshape(4, 5), chunks=(3, 2))
    with vellum.open(tmp_path / "back", create=True) as back:
        back.import_zarr(group)
        np.testing.assert_array_equal(back["long"], full["long"])
        np.testing.assert_array_equal(back["old"], np.arange(20).reshape(4, 5))
        with pytest.raises(vellum.InvalidArgument, match=r"'q', of dtype float128"):
            back.create_array("q", 3, "f16")
            back.export_zarr(tmp_path / "q")
    assert not (tmp_path / "q").exists()


MEASURED = """
import re, sys, vellum
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) >> 10
kind, there, back, out = sys.argv[1:]
{imports}
old = vellum.open(there, version="v")
with vellum.open(there + "-small", create=True) as r:   # whatever the library itself takes
    r["x"] = old["x"][:1000]
    getattr(r, "export_" + kind)(out + "-small")
with vellum.open(there + "-small2", create=True) as r:
    getattr(r, "import_" + kind)(out + "-small")
before = peak()
getattr(old, "export_" + kind)(out)
print(peak() - before)
with vellum.open(back, create=True, memory_limit_bytes=16 << 20) as r:
    before = peak()
    getattr(r, "import_" + kind)(out)
    print(peak() - before)
    assert (r["x"][::999] == old["x"][::999]).all()
"""


@pytest.mark.parametrize("kind", FORMATS)
def test_memory_does_not_grow_with_the_content(kind, tmp_path):
    """An array of 160 MiB passes through in less than half of its size."""
    need(kind)
    with vellum.open(tmp_path / "s", create=True) as r:
        x = r.create_array("x", (20 << 10, 1 << 10), "i8")
        x[:, ::64] = np.arange(20 << 10)[:, None]
        r.snapshot("v")
    program = MEASURED.format(imports={"hdf5": "import h5py", "zarr": "import zarr"}.get(kind, ""))
    names = [str(tmp_path / name) for name in ("s", "back", "out")]
    ended = subprocess.run([sys.executable, "-c", program, kind, *names], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    exported, imported = map(int, ended.stdout.split())
    assert exported < 70 and imported < 70, f"{exported} and {imported} MiB more"


def test_a_damaged_page_is_an_exception(tmp_path):
    with vellum.open(tmp_path / "s", create=True) as r:
        r["x"] = np.random.default_rng(1).integers(1, 1 << 62, 1_000_000)
        r.snapshot("v")
    for pack in (tmp_path / "s").rglob("*.pack"):
        with pack.open("r+b") as file:
            file.seek(5_000_000)
            file.write(b"damage")
    with pytest.raises(vellum.Corrupted):
        vellum.open(tmp_path / "s", version="v").export_npz(tmp_path / "x")


def test_progress_counts_the_bytes(full, tmp_path):
    seen = []
    full.export_npz(tmp_path / "x", names=["long"], progress=lambda *step: seen.append(step))
    assert seen[-1] == (full["long"].nbytes, full["long"].nbytes, "B") and len(seen) > 1
    with vellum.open(tmp_path / "back", create=True) as back:
        seen.clear()
        back.import_npz(tmp_path / "x", progress=lambda *step: seen.append(step))
        assert seen[-1][0] == full["long"].nbytes


@pytest.fixture
def columns(path):
    """A version of a table: a group with columns."""
    with vellum.open(path, create=True) as r:
        t = r.create_group("t")
        t["n"] = np.arange(1000)
        t["f"] = np.linspace(0, 1, 1000, dtype="f4")
        t["when"] = np.datetime64("2026-01-01", "ns") + np.arange(1000) * np.timedelta64(1, "h").astype("m8[ns]")
        t.create_strings("word", [f"word {i}" for i in range(1000)])
        t.create_bytes("raw", [bytes([i % 256]) * (i % 7) for i in range(1000)])
        r["image"] = np.zeros((10, 10))
        r["complex"], r["short"] = np.arange(1000, dtype="c16"), np.arange(3)
        r.snapshot("v")
    return vellum.open(path, version="v")


def address(array):
    return array.__array_interface__["data"][0]


def test_arrow_has_no_copy(columns):
    pa = pytest.importorskip("pyarrow")
    t = columns["t"]
    table = t.to_arrow()
    table.validate(full=True)
    assert table.column_names == list(t)
    for name in ("n", "f", "when"):
        assert table[name].chunk(0).buffers()[1].address == address(t[name])
        np.testing.assert_array_equal(table[name].to_numpy(), t[name])
    offsets, data = table["word"].chunk(0).buffers()[1:]
    assert (offsets.address, data.address) == (address(t["word"].offsets), address(t["word"].data))
    assert table["word"].to_pylist() == list(t["word"]) and table["raw"].to_pylist() == list(t["raw"])
    assert pa.table(t) == table and pa.array(t["word"]) == table["word"].chunk(0)
    assert t.to_arrow(["f", "n"]).column_names == ["f", "n"]
    for name, error in (("image", "one axis"), ("complex", "c.* is no column"), ("t", "is no column")):
        with pytest.raises(ValueError, match=error):
            columns.to_arrow([name])
    with pytest.raises(ValueError, match="one length"):
        columns.to_arrow(["t/n", "short"])


OTHERS = {
    "truth": np.arange(1000) % 3 == 0,
    "day": np.datetime64("2026-01-01", "D") + np.arange(1000),
    "text": np.array([f"{i}" for i in range(1000)]),
    "bytes": np.array([b"%d" % i for i in range(1000)]),
    "swapped": np.arange(1000, dtype=">i4"),
    "time": np.where(np.arange(1000) % 2, np.datetime64("NaT"), np.datetime64("2026-01-01", "s")),
    "half": np.arange(1000, dtype="f2"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_arrow_has_a_copy_of_what_it_stores_otherwise(region, name):
    pytest.importorskip("pyarrow")
    region["n"], region[name] = np.arange(1000), OTHERS[name]
    table = region.to_arrow()
    table.validate(full=True)
    assert table["n"].to_pylist() == list(range(1000))
    np.testing.assert_array_equal(np.array(table[name].to_pylist(), OTHERS[name].dtype), OTHERS[name])


@pytest.mark.parametrize("change", ["replace", "remove", "append", "rollback"])
def test_arrows_strings_of_a_branch_stay_as_they_are(region, change):
    """The bytes and their start change with the branch; Arrow would read the bytes after it."""
    pytest.importorskip("pyarrow")
    strings = region.create_strings("s", ["alpha", "beta"])
    region.commit()
    strings.append("gamma")
    secret = region.create_array("secret", 4 << 20, "u1")
    secret[:] = ord("S")
    taken, table = strings.to_arrow(), region.to_arrow(["s"])
    if change == "replace":
        strings[0] = "x" * (3 << 20)
    elif change == "remove":
        del strings[:2]
    elif change == "append":
        strings.extend(["ü" * 1000] * 1000)
    else:
        region.rollback()
    for values in (taken, table["s"].chunk(0)):
        values.validate(full=True)
        assert values.to_pylist() == ["alpha", "beta", "gamma"]


def test_a_frame_of_a_group_is_right_or_refused(region):
    pd = pytest.importorskip("pandas")
    region["t/n"], region["t/f"] = np.arange(3), np.arange(3.0)
    d = region.create_dict("d", {"a": 1})
    for each in (region["t"], region, d, region.attrs):
        with pytest.raises(TypeError, match="dict"):
            pd.DataFrame(each)
        with pytest.raises(TypeError, match="dict"):
            np.asarray(each)
    assert pd.DataFrame(dict(region["t"]))["f"].tolist() == [0, 1, 2]


def test_xarray_opens_what_zarr_has(region, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    region["g/x"], region["y"], region["scalar"] = np.arange(6.0).reshape(2, 3), np.arange(4), np.float64(5)
    region.create_strings("s", ["a", "b"])
    region["y"].attrs["unit"] = "m"
    region["named"] = np.zeros((4, 2))
    region["named"].attrs["_ARRAY_DIMENSIONS"] = ["time", "place"]
    region.export_zarr(tmp_path / "z")
    with xarray.open_zarr(tmp_path / "z", consolidated=False) as found:
        assert found["y"].values.tolist() == [0, 1, 2, 3] and found["y"].attrs == {"unit": "m"}
        assert float(found["scalar"]) == 5 and found["s"].values.tolist() == ["a", "b"]
        assert found["named"].dims == ("time", "place")
    with xarray.open_zarr(tmp_path / "z", group="g", consolidated=False) as found:
        assert found["x"].values.tolist() == [[0, 1, 2], [3, 4, 5]]
    with vellum.open(tmp_path / "back", create=True) as back:
        back.import_zarr(tmp_path / "z")
        assert dict(back["y"].attrs) == {"unit": "m"}
        assert dict(back["named"].attrs) == {"_ARRAY_DIMENSIONS": ["time", "place"]}


def test_polars_and_pandas_frames_have_no_copy(columns):
    t = columns["t"]
    pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(t)
    assert frame["n"].to_numpy(allow_copy=False).__array_interface__["data"][0] == address(t["n"])
    assert frame["word"][999] == "word 999" and float(frame["f"].sum()) == pytest.approx(500, rel=1e-3)
    assert pl.Series(t["word"]).to_list() == list(t["word"])
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: t[name] for name in ("n", "f", "when")}, copy=False)
    assert all(np.shares_memory(frame[name].to_numpy(), t[name]) for name in frame)


def test_dlpack_has_no_copy(columns, path):
    n = columns["t/n"]
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert address(np.from_dlpack(n)) == address(n) and not np.from_dlpack(n).flags.writeable
    torch = pytest.importorskip("torch")
    with vellum.open(path) as r:
        tensor = torch.from_dlpack(r["t/n"])
        tensor += 1
        assert tensor.data_ptr() == address(r["t/n"]) and r["t/n"][0] == 1


def test_a_table_in_duckdb(columns):
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    columns_of_t = duckdb.from_arrow(columns["t"].to_arrow(["n", "word"]))
    assert columns_of_t.aggregate("sum(n), max(word)").fetchall() == [(499500, "word 999")]
