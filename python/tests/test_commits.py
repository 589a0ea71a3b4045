import errno
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import vellum


def test_the_example_of_the_documentation(path):
    with vellum.open(path, branch="main", create=True) as r:
        x = r.create_array("x", shape=(10_000, 8), dtype="f4", chunks=None)
        with r.transaction("day 1"):
            x[:] = 1
        r.snapshot("day-1")
        x[17, 3] = 2
        r.snapshot("day-2", "one value")
        found = r.diff("day-1", "main")["x"]
        assert found.rows.tolist() == [17]
        assert [v.name for v in r.log()] == ["day-2", "day-1"]
        assert r.log()[0].message == "one value"
    old = vellum.open(path, version="day-1")["x"]
    assert old[17, 3] == 1 and vellum.open(path)["x"][17, 3] == 2
    assert not old.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        old[0] = 1


def test_a_transaction_is_whole_or_nothing(region):
    x = region.create_array("x", 100_000, "i4")
    x[:] = 1
    with pytest.raises(ZeroDivisionError), region.transaction():
        x[:] = 2
        region["y"] = np.arange(10)
        region.attrs["a"] = 1
        raise ZeroDivisionError
    assert (x == 1).all(), "what came before it was committed"
    assert "y" not in region and "a" not in region.attrs
    with region.transaction():
        x[:] = 3
        for call in (region.commit, region.rollback, lambda: region.snapshot("s")):
            with pytest.raises(BlockingIOError):
                call()
        with pytest.raises(BlockingIOError), region.transaction():
            pass
    region.rollback()
    assert (x == 3).all()


def test_arrays_of_a_rollback_stay_readable(region):
    region.commit()
    x = region.create_array("x", 100_000_000, "i1")
    x[::1000] = 1
    region.rollback()
    assert not x[:10_000_000].any()
    with pytest.raises(KeyError):
        region["x"]
    y = region.create_array("y", 3)
    assert not y.any()


def test_leaving_a_with_block_commits_or_rolls_back(path):
    with vellum.open(path, create=True) as r:
        r["x"] = np.arange(3)
    with pytest.raises(ZeroDivisionError), vellum.open(path) as r:
        r["x"][:] = 9
        raise ZeroDivisionError
    with vellum.open(path) as r:
        assert r["x"].tolist() == [0, 1, 2]
    r = vellum.open(path)
    r["x"][:] = 9
    r.close()
    assert vellum.open(path, mode="r")["x"].tolist() == [0, 1, 2]


def test_back_to_an_older_version(region):
    x = region.create_array("x", 100_000, "f8")
    x[:] = np.arange(100_000)
    region.snapshot("good")
    x[::7] = -1
    region["y"] = np.ones(1000)
    region.attrs["state"] = "bad"
    region.snapshot("bad")
    region.rollback("good")
    np.testing.assert_array_equal(x, np.arange(100_000))
    assert "y" not in region and "state" not in region.attrs
    assert not region.diff("good", "main")
    assert region.snapshots == ["good", "bad"], "nothing of the history is lost"
    region.rollback("bad")
    assert x[7] == -1 and region["y"].all()


def test_diff_names_rows_and_ranges(region):
    x = region.create_array("x", (1000, 4), "<i4")
    region["same"] = np.arange(100_000)
    region["gone"] = np.arange(5)
    region["typed"] = np.arange(5, dtype="i4")
    region.create_strings("s", ["a", "b"])
    region.snapshot("a")
    x[3, 1] = -1
    x[500:502] = -1
    del region["gone"], region["typed"]
    region["new"] = np.arange(3)
    region["typed"] = np.arange(5, dtype="f8")
    region["s"].append("c")
    region["same"].attrs["k"] = 1
    region.snapshot("b")
    diff = region.diff("a", "b")
    assert {name: d.kind for name, d in diff.items()} == {
        "gone": "removed", "new": "added", "typed": "replaced", "x": "changed", "s": "changed", "same": "changed",
    }  # fmt: skip
    assert diff["x"].rows.tolist() == [3, 500, 501]
    assert diff["x"].ranges.tolist() == [[52, 56], [8000, 8032]]
    assert diff["x"].nbytes == 36 and diff["same"].nbytes == 0
    back = region.diff("b", "a")
    assert back["gone"].kind == "added" and back["x"].nbytes == 36
    assert len(region.diff("a", "a")) == 0


def test_diff_of_resized_and_moved_arrays(region):
    x = region.create_array("x", (100, 2), "<i8", room=10)
    x[:] = 1
    region.snapshot("a")
    del x
    x = region.resize("x", 105)
    x[100:] = 2
    region.snapshot("b")
    assert region.diff("a", "b")["x"].rows.tolist() == [100, 101, 102, 103, 104]
    del x
    x = region.resize("x", 100_000)
    x[7] = 3
    region.snapshot("c")
    rows = region.diff("b", "c")["x"].rows
    assert rows[0] == 7 and rows[1:].tolist() == list(range(105, 100_000))


def test_bytes_changed(region):
    x = region.create_array("x", (1000, 100), "<i4")
    assert x.nbytes_changed == x.nbytes, "it is new"
    region.snapshot("a")
    assert x.nbytes_changed == 0
    x[5] = -1
    x[10:20, 3] = -1
    assert x.nbytes_changed == 400 + 40
    assert x[10:].nbytes_changed == 40
    assert x[:, 3].nbytes_changed == 44
    assert x[::-1].nbytes_changed in (440, x.nbytes)
    region.snapshot("b")
    assert vellum.open(region.store.path, version="b")["x"].nbytes_changed == 440


def test_branches_tags_and_checkout(region):
    region["x"] = np.arange(5)
    region.snapshot("first")
    region.commit()
    other = region.checkout("try", create=True)
    other["x"][:] = 9
    other.commit()
    assert region["x"].tolist() == [0, 1, 2, 3, 4]
    assert region.branches == ["main", "try"] and region.snapshots == ["first"]
    old = region.checkout("first")
    assert old.version == "first" and not old.writable and old["x"][1] == 1
    other.close()
    region.store.create_snapshot("again", "first")
    assert region.snapshots == ["first", "again"]
    assert region.forget(keep_last=1, dry_run=True) == ["first"]
    assert region.forget(keep_last=1) == ["first"]
    assert region.snapshots == ["again"]
    with pytest.raises(ValueError):
        region.forget()


def test_upkeep(numbers):
    seen = []
    with vellum.open(numbers) as r:
        stat = r.stat()
        assert stat.snapshots == 1 and stat.branches == 1 and stat.pack_bytes > 8_000_000
        report = r.verify(progress=lambda done, total, unit: seen.append((done, total, unit)))
        assert report.damages == [] and report.bytes_read > 0 and seen
        r.store.remove_snapshot("first")
        del r["x"]
        r.commit()
        assert r.gc(dry_run=True).freed_bytes == 0
    store = vellum.Store(numbers)
    store.gc()
    assert store.stat().stored_bytes < stat.stored_bytes // 4


def test_a_callback_that_raises_ends_the_call(numbers):
    def stop(done, total, unit):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vellum.Store(numbers).verify(progress=stop)


def test_a_bar_of_tqdm(numbers, capsys):
    pytest.importorskip("tqdm")
    vellum.Store(numbers).verify(progress=True)
    assert "verify" in capsys.readouterr().err


# ---- Errors


def test_errors_are_the_exceptions_of_their_meaning(path, tmp_path):
    with pytest.raises(FileNotFoundError) as found:
        vellum.open(path)
    assert found.value.errno == errno.ENOENT and found.value.code == "not_found"
    assert isinstance(found.value, vellum.Error)
    r = vellum.open(path, create=True)
    r["x"] = np.arange(3)
    r.snapshot("s")
    for missing in (lambda: r["y"], lambda: vellum.open(path, version="v"), lambda: r.diff("s", "v")):
        with pytest.raises(KeyError) as key:
            missing()
        assert key.value.code == "not_found" and "'" in str(key.value)
    with pytest.raises(KeyError):
        vellum.open(path, branch="other")
    with ThreadPoolExecutor(1) as other_thread, pytest.raises(BlockingIOError, match="main") as busy:
        other_thread.submit(vellum.open, path).result()
    assert busy.value.errno == errno.EAGAIN and "this process" in str(busy.value)
    with pytest.raises(FileExistsError):
        r.snapshot("s")
    with pytest.raises(ValueError, match="name"):
        r.snapshot(".hidden")
    with pytest.raises(PermissionError) as read_only:
        vellum.open(path, version="s")["new"] = np.arange(3)
    assert read_only.value.errno == errno.EROFS
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("x")
    with pytest.raises(OSError, match="other"):
        vellum.open(other)
    for arguments in ({"mode": "w"}, {"version": "s", "create": True}, {"engine": "steam"}):
        with pytest.raises(ValueError):
            vellum.open(path, **arguments)
    with pytest.raises(ValueError, match="s3://"):
        vellum.open("ftp://bucket/store")
    r.close()


def test_a_corrupted_page_is_an_exception_where_one_is_possible(numbers):
    for pack in numbers.rglob("*.pack"):
        with pack.open("r+b") as file:
            file.seek(5_000_000)
            file.write(b"damage")
    store = vellum.Store(numbers)
    damages = store.verify().damages
    assert damages and "snapshot 'first'" in damages[0].versions
    x = vellum.open(numbers, version="first")["x"]
    with pytest.raises(OSError, match="first") as corrupted:
        x.prefetch()
    assert corrupted.value.code == "corrupted"
    assert x[0] != 0, "other pages are as they were"


def test_commits_are_in_the_log_while_they_can_be_read(path):
    r = vellum.open(path, create=True)
    r["x"] = np.arange(3)
    r.commit("one")
    for value, message in ((7, "two"), (8, "three")):
        r["x"][0] = value
        r.commit(message)
    log = r.log(commits=True)
    assert [v.message for v in log][:2] == ["three", "two"]
    assert r.log() == [] and log[0].is_branch and not log[1].is_branch
    assert log[1].name == f"main@{log[0].sequence - 1}"
    assert vellum.open(path, version=log[1].name)["x"][0] == 7
    assert r.store.version(log[1].name).message == "two"
    r.store.create_snapshot("kept", log[1].name)
    r.close()
    assert [v.message for v in vellum.Store(path).log("main", commits=True)] == ["three", "two"]
    with pytest.raises(KeyError, match="can no longer be read"):
        vellum.open(path, version=log[2].name)
