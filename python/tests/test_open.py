"""The arguments that open() accepts and refuses, and a branch that is already open."""

import gc
import os
import threading

import numpy as np
import pytest

import vellum


def test_a_branch_that_is_open_is_given_back(path):
    r = vellum.open(path, create=True)
    r["x"] = np.arange(3)
    assert vellum.open(path) is r and vellum.open(path, create=True) is r
    assert vellum.open(os.path.relpath(path)) is r and r["x"].tolist() == [0, 1, 2]
    kept = [r]  # like a notebook's Out
    del r
    again = vellum.open(path)
    assert again is kept[0]
    again.commit()
    again.close()
    assert vellum.open(path) is not again


def test_blocks_of_one_region_inside_each_other(path):
    with vellum.open(path, create=True) as outer:
        outer["x"] = np.arange(3)
        with vellum.open(path) as inner:
            inner["x"][0] = 7
        assert outer["x"][0] == 7
        with pytest.raises(ZeroDivisionError), vellum.open(path) as inner:
            inner["x"][0] = 8
            raise ZeroDivisionError
        assert outer["x"][0] == 7
        with outer.transaction(), vellum.open(path) as inner:
            inner["x"][1] = 9
    assert outer.closed and vellum.open(path, mode="r")["x"].tolist() == [7, 9, 2]


def test_another_thread_is_another_writer(path):
    r = vellum.open(path, create=True)
    found = []

    def other():
        try:
            vellum.open(path)
        except vellum.Busy as error:
            found.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(found) == 1 and "thread" in found[0]
    r.close()


def test_close_all(path, tmp_path):
    kept = [vellum.open(path, create=True), vellum.open(tmp_path / "other", create=True)]
    kept[0]["x"] = np.arange(3)
    kept[0].snapshot("v")
    kept[0]["x"][:] = 9
    kept.append(vellum.open(path, version="v"))
    x = kept[0]["x"]
    vellum.close_all()
    assert all(each.closed for each in kept) and x.tolist() == [0, 1, 2]
    vellum.close_all()
    del x
    gc.collect()
    with vellum.open(path, engine=vellum.open(tmp_path / "other").engine) as r:
        assert r["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "option", [{"memory_limit_bytes": 1 << 20}, {"working_set": True}, {"capacity_bytes": 1 << 30}]
)
@pytest.mark.parametrize("close", [False, True])
def test_options_are_not_dropped(path, option, close):
    r = vellum.open(path, create=True)
    r["x"] = np.arange(3)
    x = r["x"]
    r.commit()
    if close:
        r.close()
    with pytest.raises(vellum.Busy, match=next(iter(option)) + (".*in use: x" if close else "")):
        vellum.open(path, **option)
    assert x.tolist() == [0, 1, 2]
    r.close()
    del x
    gc.collect()
    r = vellum.open(path, **option)
    assert vellum.open(path, **option) is r and vellum.open(path) is r and vellum.open(path, engine=r.engine) is r


REFUSED = [
    {"version": "v", "capacity_bytes": 1 << 30}, {"version": "v", "branch": "other"}, {"mode": "r", "create": True},
    {"version": "v", "create": True}, {"version": "v", "mode": "r+"}, {"mode": "w"},
    {"mode": "r", "capacity_bytes": 1}, {"engine": None}, {"engine": "none"}, {"engine": b"uffd"},
    {"memory_limit_bytes": -1}, {"memory_limit_bytes": 1.5}, {"memory_limit_bytes": 1 << 70},
    {"memory_limit_bytes": "1G"}, {"capacity_bytes": True}, {"branch": None}, {"branch": b"main"}, {"branch": 5},
    {"version": 5}, {"branch": "\udcff"},
]  # fmt: skip


@pytest.mark.parametrize("options", REFUSED)
def test_what_goes_together_or_is_nothing_is_refused(path, options):
    with vellum.open(path, create=True) as r:
        r["x"] = np.arange(3)
        r.snapshot("v")
    with pytest.raises(vellum.InvalidArgument):
        vellum.open(path, **options)


def test_every_wrong_argument_is_vellums_error(path, tmp_path):
    """Never a TypeError of the extension module, with signatures in C++."""
    r = vellum.open(path, create=True)
    r["x"] = np.arange(3)
    s = r.store
    calls = [
        lambda w: r.commit(w), lambda w: r.snapshot(w), lambda w: r.snapshot("v", w), lambda w: r.rollback([w]),
        lambda w: r.transaction(w).__enter__(), lambda w: r.checkout(w), lambda w: r.checkout(w, create=True),
        lambda w: r.diff(w), lambda w: r.diff("main", [w]), lambda w: s.version(w),
        lambda w: s.create_branch(w, "main"), lambda w: s.create_branch("b", w),
        lambda w: s.create_snapshot(w, "main"), lambda w: s.create_snapshot("b", w),
        lambda w: s.create_snapshot("b", "main", w), lambda w: s.remove_snapshot(w), lambda w: s.remove_branch(w),
        lambda w: s.forget(keep_last=[w]), lambda w: s.add_remote(w, "file:///x"), lambda w: s.add_remote("o", w),
        lambda w: s.remove_remote(w), lambda w: s.push(w), lambda w: s.push(versions=[w]), lambda w: s.pull(w),
        lambda w: s.pull(versions=w), lambda w: s.gc(recompress=[w]), lambda w: s.replicate(w),
        lambda w: s.replicate("file:///x", interval=[w]), lambda w: vellum.clone(w, tmp_path / "c"),
        lambda w: vellum.clone("file:///x", w), lambda w: vellum.open(w), lambda w: vellum.Store(w),
        lambda w: r["x"].advise(w), lambda w: r[w], lambda w: r.__setitem__(w, 1), lambda w: r.create_group(w),
        lambda w: r.create_array("y", [w, -1]), lambda w: r.create_array("y", 3, room=[w]),
        lambda w: r.resize("x", [w, w]), lambda w: r.export_npz(w), lambda w: r.import_npz(w),
        lambda w: r.create_strings("s2", [w, 5]),
    ]  # fmt: skip
    for i, call in enumerate(calls):
        for wrong in (5, None, 1.5, object()):
            with pytest.raises((vellum.InvalidArgument, vellum.NotFound)):
                call(wrong)
                pytest.fail(f"call {i} took {wrong!r}")
    assert list(r) == ["x"] and r.snapshots == [] and 5 not in s


def test_home_in_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with vellum.open("~/s", create=True) as r:
        r["x"] = np.arange(3)
        r.export_npz("~/x.npz")
        r.snapshot("v")
    assert (tmp_path / "s").is_dir() and np.load(tmp_path / "x.npz")["x"].tolist() == [0, 1, 2]
    with vellum.open("~/t", create=True) as t:
        t.import_npz("~/x.npz")
    assert vellum.Store("~/s").path == str(tmp_path / "s") and vellum.open("~/t", mode="r")["x"][2] == 2
    vellum.clone(f"file://{tmp_path}/remote", "~/c") if (tmp_path / "remote").exists() else None


@pytest.mark.parametrize("name", [b"bytes", "text", b"\xff\xfe not utf-8", "gr\u00fc\u00df"])
def test_paths_of_bytes(tmp_path, name):
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with vellum.open(path, create=True) as r:
        r["x"] = np.arange(3)
        r.snapshot("v")
        assert r.store.path == os.fsdecode(path) and repr(r)
    with vellum.pickle_references():
        import pickle

        data = pickle.dumps(vellum.open(path, version="v")["x"])
    assert pickle.loads(data).tolist() == [0, 1, 2]
    assert vellum.open(os.fsdecode(path), version="v")["x"].tolist() == [0, 1, 2]
    with pytest.raises(vellum.StoreNotFound, match="missing"):
        vellum.open(path + b" missing")
    assert os.listdir(os.fsencode(tmp_path)) == [os.fsencode(name)]


def test_names_of_files_in_attributes_are_exported(tmp_path, path):
    for module in ("h5py", "zarr"):
        pytest.importorskip(module)
    name = os.fsdecode(b"data-\xff.csv")
    with vellum.open(path, create=True) as r:
        r["x"] = np.arange(3)
        r.attrs["file"] = r["x"].attrs["files"] = name
        r.create_dict("d", {"file": name})
        for kind in ("npz", "hdf5", "zarr"):
            getattr(r, f"export_{kind}")(tmp_path / f"o.{kind}")
    for kind in ("npz", "hdf5", "zarr"):
        with vellum.open(tmp_path / f"back-{kind}", create=True) as back:
            getattr(back, f"import_{kind}")(tmp_path / f"o.{kind}")
            assert back.attrs["file"] == name and back["d"]["file"] == name and back["x"].attrs["files"] == name


def test_branches_begin_at_small_commits(path):
    r = vellum.open(path, create=True)
    r["x"] = np.zeros(1000)
    r.commit()
    for i in range(3):
        r["x"][i] = i + 1
        r.commit()
        with r.checkout(f"dev{i}", create=True) as branch:
            assert branch["x"][: i + 1].tolist() == list(range(1, i + 2))
    r.store.create_snapshot("t", "main")
    assert r.snapshots == ["t"] and r.branches == ["dev0", "dev1", "dev2", "main"]


def test_old_names_still_work(path):
    with vellum.open(path, create=True) as r:
        r.snapshot("a")
        with pytest.warns(DeprecationWarning, match="snapshots"):
            assert r.tags == ["a"]
        with pytest.warns(DeprecationWarning, match="create_snapshot"):
            r.store.create_tag("b", "a")
        with pytest.warns(DeprecationWarning, match="remove_snapshot"):
            r.store.remove_tag("a")
        with pytest.warns(DeprecationWarning, match="snapshots"):
            assert r.store.tags == ["b"]


def test_reports_show_what_they_have(path):
    with vellum.open(path, create=True) as r:
        r["x"] = np.arange(3)
        reports = [
            r.commit(),
            r.snapshot("v"),
            r.store.version("v"),
            r.stat(),
            r.verify(),
            r.gc(),
            r.stat().versions[0],
        ]
    for report in reports:
        fields = [name for name in dir(type(report)) if not name.startswith("_")]
        assert fields and all(f"{name}=" in repr(report) for name in fields), report
        assert all(getattr(type(report), name).__doc__ for name in fields) and type(report).__doc__
        assert hasattr(vellum, type(report).__name__)


def test_many_branches_at_once(tmp_path):
    """Addresses are 128 TiB; a branch takes twice its capacity."""
    kept = []
    for i in range(80):
        r = vellum.open(tmp_path / f"s{i}", create=True)
        r["x"] = np.full(3, i)
        kept.append(r)
    assert [r["x"][0] for r in kept] == list(range(80))
    r = vellum.open(tmp_path / "large", create=True, capacity_bytes=1 << 40)
    r.create_array("x", 400 << 30, "u1")[-1] = 1
    r.commit()
    r.close()
    del r
    gc.collect()
    with vellum.open(tmp_path / "large") as r:  # a region larger than the default capacity
        r["y"] = np.arange(3)
        assert r["x"][-1] == 1
