"""`vellum://` for fsspec: fsspec's own tests of file systems, and what they do not have."""

import concurrent.futures
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import vellum

fsspec = pytest.importorskip("fsspec")
from fsspec.tests import abstract as peers  # noqa: E402

from vellum.integrations.fsspec import VellumFileSystem, _parsed  # noqa: E402


class Fixtures(peers.AbstractFixtures):
    @pytest.fixture
    def fs(self, tmp_path):
        return VellumFileSystem(str(tmp_path / "store"), create=True, skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self, fs):
        fs.mkdir("top")
        return "top"


class TestPeersCopy(peers.AbstractCopyTests, Fixtures):
    pass


class TestPeersGet(peers.AbstractGetTests, Fixtures):
    pass


class TestPeersOpen(peers.AbstractOpenTests, Fixtures):
    pass


class TestPeersPipe(peers.AbstractPipeTests, Fixtures):
    pass


class TestPeersPut(peers.AbstractPutTests, Fixtures):
    pass


@pytest.fixture
def fs(path):
    return VellumFileSystem(str(path), create=True, skip_instance_cache=True)


def commits(path):
    return vellum.Store(path).version("main").sequence


def test_the_url_of_the_documentation(path, fs):
    with fsspec.open(f"vellum://{path}@main/a/b.txt", "wb", create=True) as file:
        file.write(b"one")
    fs.snapshot("first")
    with fsspec.open(f"vellum://{path}@main/a/b.txt", "wb") as file:
        file.write(b"two, longer")
    old, name = fsspec.core.url_to_fs(f"vellum://{path}@first/a/b.txt")
    assert (old.cat(name), fs.cat("a/b.txt")) == (b"one", b"two, longer")
    assert old.unstrip_protocol(name) == f"vellum://{path}@first/a/b.txt"
    assert [each["name"] for each in fs.ls("a")] == ["a/b.txt"] and fs.isdir("a") and fs.du("") == 11
    assert pickle.loads(pickle.dumps(old)).cat(name) == b"one"
    with pytest.raises(ValueError, match="names no version"):
        fsspec.open(f"vellum://{path}/a")


def test_a_version_refuses_writes(path, fs):
    fs.pipe("x", b"1")
    fs.snapshot("first")
    old = VellumFileSystem(str(path), "first")
    for change in (
        lambda: old.pipe("x", b"2"),
        lambda: old.open("y", "wb"),
        lambda: old.rm("x"),
        lambda: old.mkdir("d"),
        lambda: old.mv("x", "y"),
        lambda: old.transaction.__enter__(),
    ):
        with pytest.raises(vellum.ReadOnly, match=r"@first is a snapshot, which never changes: write to a branch"):
            change()
    assert old.ls("", detail=False) == ["x"] and old.cat("x") == b"1"
    assert not old._intrans


def test_a_transaction_is_one_commit(path, fs):
    fs.pipe("x", b"before")
    before = commits(path)
    with fs.transaction:
        with fs.open("x", "wb") as file:
            file.write(b"after")
        fs.pipe("d/y", b"y")
        fs.pipe("d/z", b"z")
        assert commits(path) == before
        assert VellumFileSystem(str(path), skip_instance_cache=True).cat("x") == b"before"
    assert commits(path) == before + 1
    assert fs.cat(["x", "d/y", "d/z"]) == {"x": b"after", "d/y": b"y", "d/z": b"z"}
    with pytest.raises(ZeroDivisionError), fs.transaction:
        fs.pipe("d/y", b"lost")
        with fs.open("x", "wb") as file:
            file.write(b"lost")
        raise ZeroDivisionError
    assert fs.cat("d/y") == b"y" and fs.cat("x") == b"after" and commits(path) == before + 1
    fs.pipe({"a": b"1", "b": b"2", "c": b"3"})
    assert commits(path) == before + 2


def test_others_write_between_calls(path, fs):
    fs.pipe("x", b"1")
    other = VellumFileSystem(str(path), skip_instance_cache=True)
    assert other.cat("x") == b"1"
    program = f"""
from vellum.integrations.fsspec import VellumFileSystem
VellumFileSystem({str(path)!r}).pipe("x", b"2")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert other.cat("x") == b"2" and fs.cat("x") == b"2"
    fs.pipe("x", b"3")
    assert other.cat("x") == b"3"


def test_a_branch_that_the_program_has_open_is_busy(path, fs):
    fs.pipe("x", b"1")
    with vellum.open(path) as region:
        region["y"] = np.arange(3, dtype="<i8")  # half-done work, which no call commits or rolls back
        before = commits(path)
        for change in (
            lambda: fs.pipe("x", b"2"),
            lambda: fs.pipe_file("x", b"2", mode="create"),
            lambda: fs.open("z", "wb"),
            lambda: fs.mkdir("d"),
            lambda: fs.transaction.__enter__(),
        ):
            with pytest.raises(vellum.Busy, match=r"branch .main. .* is open in this process: close that region"):
                change()
        assert "y" in region and commits(path) == before and not fs._intrans
        assert fs.cat("x") == b"1" and not fs.exists("y")
    assert fs.cat("y") == np.arange(3, dtype="<i8").tobytes() and fs.size("y") == 24
    with pytest.raises(ValueError, match="not bytes to append to"), fs.open("y", "ab") as file:
        file.write(b"1")
    fs.pipe("x", b"2")
    kept = vellum.open(path)["x"]  # an array without its region holds no branch
    fs.pipe("z", b"3")
    assert bytes(kept) == b"2"


def test_two_file_systems_share_no_transaction(path, fs):
    fs.pipe("x", b"1")
    before = commits(path)
    with pytest.raises(vellum.Busy, match="is open in this process"), fs.transaction:
        fs.mkdir("d")
        with fsspec.open(f"vellum://{path}@main/other.csv", "wb") as file:
            file.write(b"2")
    assert commits(path) == before and fs.find("", withdirs=True) == ["x"]


def test_a_file_of_which_a_half_is_written_stays_as_it_was(path, fs):
    fs.pipe("x", b"before")
    before = commits(path)
    for mode in ("wb", "ab"):
        with pytest.raises(ZeroDivisionError), fs.open("x", mode) as file:
            file.write(b"half")
            raise ZeroDivisionError
        assert file.closed
    with pytest.raises(ZeroDivisionError), fs.open("x", "wb", block_size=5) as file:
        file.write(b"more than a block of a buffer")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), fs.open("x") as file:
        raise ZeroDivisionError
    assert file.closed and fs.cat("x") == b"before" and commits(path) == before
    with fs.transaction:
        with pytest.raises(ZeroDivisionError), fs.open("x", "wb") as file:
            file.write(b"half")
            raise ZeroDivisionError
        fs.pipe("y", b"1")
    assert fs.cat(["x", "y"]) == {"x": b"before", "y": b"1"} and commits(path) == before + 1
    with pytest.raises(ZeroDivisionError), fs.transaction, fs.open("x", "w") as file:
        file.write("half")
        raise ZeroDivisionError
    assert fs.cat("x") == b"before" and commits(path) == before + 1


def test_threads_of_one_file_system_write_in_turn(path, fs):
    fs.pipe("x", b"1")
    before = commits(path)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: fs.pipe_file(f"d/{each}", b"1"), range(40)))
    assert len(fs.find("d")) == 40 and commits(path) == before + 40


def test_a_store_and_a_file_have_at_in_their_names(tmp_path):
    (tmp_path / "me@home").mkdir()
    path = tmp_path / "me@home" / "store"
    with fsspec.open(f"vellum://{path}@main/x", "wb", create=True) as file:  # the last "@": no store is there
        file.write(b"1")
    with fsspec.open(f"vellum://{path}@main/x@2/y@3", "wb") as file:  # the first one behind a store
        file.write(b"2")
    fs, name = fsspec.core.url_to_fs(f"vellum://{path}@main/x@2/y@3")
    assert (fs.store, fs.version, name) == (str(path), "main", "x@2/y@3")
    assert fs.cat("x") == b"1" and fs.cat(fs.unstrip_protocol(name)) == b"2"
    for url, parts in {
        "s3://bucket/p?endpoint=http://h@day-1/x@2": ("s3://bucket/p?endpoint=http://h", "day-1", "x@2"),
        "@day-1/x@2": ("", "day-1", "x@2"),
    }.items():
        assert _parsed(f"vellum://{url}") == parts


def test_files_grow_and_shrink(fs):
    rng = np.random.default_rng(1)
    shadow = b""
    for length in (0, 1, 5000, 100, 0, 3 << 20, 7, 10_000):
        shadow = rng.bytes(length)
        fs.pipe("x", shadow)
        assert fs.cat("x") == shadow and fs.size("x") == length
        with fs.open("x", "ab") as file:
            file.write(b"tail")
            file.write(b"s")
        assert fs.cat("x") == shadow + b"tails" and fs.cat_file("x", -5) == b"tails"
    with fs.open("x") as file:
        file.seek(9_999)
        assert file.read() == shadow[9_999:] + b"tails"
    with pytest.raises(FileExistsError):
        fs.pipe_file("x", b"", mode="create")
    with pytest.raises(FileNotFoundError):
        fs.cat("y")


def test_what_is_no_name_is_refused(fs):
    for name in ("a/../b", "a//b", "./a"):
        with pytest.raises((ValueError, OSError)):
            fs.pipe(name, b"1")
    fs.pipe("a", b"1")
    with pytest.raises((ValueError, OSError)):
        fs.pipe("a/b", b"1")
    with pytest.raises((ValueError, OSError)):
        fs.pipe("", b"1")
    assert fs.find("") == ["a"]


def test_frames(path, fs):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": range(1000), "b": [str(each) for each in range(1000)]})
    frame.to_parquet(f"vellum://{path}@main/f.parquet", storage_options={"create": True})
    fs.snapshot("first")
    frame[:10].to_parquet(f"vellum://{path}@main/f.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(f"vellum://{path}@first/f.parquet"), frame)
    assert len(pd.read_parquet(f"vellum://{path}@main/f.parquet")) == 10


def test_dask_reads_and_writes(path, fs):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": range(1000)})
    dd.from_pandas(frame, npartitions=4).to_parquet(f"vellum://{path}@main/d", storage_options={"create": True})
    fs.snapshot("first")
    fs.rm("d", recursive=True)
    assert dd.read_parquet(f"vellum://{path}@first/d").a.sum().compute() == 499_500
    assert len([each for each in VellumFileSystem(str(path), "first").find("d") if each.endswith("parquet")]) == 4


def test_kerchunk_reads_a_netcdf_file_inside(path, fs, tmp_path):
    h5py, hdf = pytest.importorskip("h5py"), pytest.importorskip("kerchunk.hdf")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(1000.0), chunks=(100,))
    fs.put(str(tmp_path / "x.h5"), "x.h5")
    fs.snapshot("first")
    url = f"vellum://{path}@first/x.h5"
    with fsspec.open(url) as file:
        found = hdf.SingleHdf5ToZarr(file, url, inline_threshold=0).translate()
    where = [each for each in found["refs"].values() if isinstance(each, list)]
    assert len(where) == 10
    target, offset, length = where[3]
    part, name = fsspec.core.url_to_fs(target)
    assert part.cat_file(name, offset, offset + length) == np.arange(300.0, 400.0).tobytes()


def test_a_version_at_a_remote(path, fs, url):
    fs.pipe("d/x", b"remote")
    fs.snapshot("first")
    store = vellum.Store(path)
    store.add_remote("origin", url, one_writer=True)
    store.push("origin")
    there, name = fsspec.core.url_to_fs(f"vellum://{url}@first/d/x")
    assert there.cat(name) == b"remote" and there.find("") == ["d/x"]
    with pytest.raises(vellum.ReadOnly, match="at a remote"):
        VellumFileSystem(url).pipe("x", b"1")


def test_a_chain_names_the_remote(path, fs, tmp_path):
    fs.pipe("d/x", b"remote")
    fs.snapshot("first")
    there, name = fsspec.core.url_to_fs(f"vellum://@first/d/x::file://{path}")
    assert there.cat(name) == b"remote"
    store = vellum.Store(path)
    store.add_remote("origin", f"file://{tmp_path}/remote")
    store.push("origin")
    there, name = fsspec.core.url_to_fs(f"vellum://@first/d/x::file://{tmp_path}/remote")
    assert there.store == f"file://{tmp_path}/remote" and there.cat(name) == b"remote"


def test_damage_is_an_error(path, fs):
    fs.pipe("x", np.random.default_rng(1).bytes(1 << 20))
    fs.snapshot("first")
    vellum.close_all()
    packs = [os.path.join(at, n) for at, _, names in os.walk(path) for n in names if n.endswith(".pack")]
    for pack in packs:
        with open(pack, "r+b") as file:
            size = file.seek(0, 2)
            for at in range(size // 4, size, 4096):
                file.seek(at)
                file.write(b"\xff" * 16)
    program = f"""
import fsspec, vellum
try:
    fsspec.open("vellum://{path}@first/x").open().read()
except vellum.Corrupted as error:
    print("corrupted")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "corrupted\n"), ended.stderr
