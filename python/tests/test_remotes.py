"""Push and pull, with a remote that is a directory."""

import numpy as np
import pytest

import vellum


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/remote"


@pytest.fixture
def pushed(numbers, url):
    """A store whose versions are in a remote "origin", too."""
    store = vellum.Store(numbers)
    assert store.add_remote("origin", url)
    store.push()
    return store


def test_push_and_clone(pushed, url, values, tmp_path):
    assert [(remote.name, remote.url) for remote in pushed.remotes] == [("origin", url)]
    again = pushed.push()
    assert {version.name for version in again.versions} == {"main", "first"}
    assert all(version.was_there for version in again.versions) and again.bytes_uploaded == 0
    clone = vellum.clone(url, tmp_path / "clone")
    assert (clone.snapshots, clone.branches) == (["first"], ["main"]) and clone.remotes[0].name == "origin"
    np.testing.assert_array_equal(vellum.open(tmp_path / "clone", version="first")["x"], values)
    with pytest.raises(vellum.AlreadyExists):
        vellum.clone(url, tmp_path / "clone")


def test_pull_brings_what_is_new(pushed, url, values, tmp_path):
    vellum.clone(url, tmp_path / "clone", ["first"])
    with vellum.open(pushed.path) as r:
        r["x"][::1000] = 7
        r.snapshot("second")
        r["x"][1] = 8  # not committed
        sent = r.push(versions=["second"])
        assert [version.name for version in sent.versions] == ["second"]
        assert 0 < sent.bytes_uploaded < values.nbytes / 10, "what changed"
    seen = []
    clone = vellum.Store(tmp_path / "clone")
    clone.pull(progress=lambda *step: seen.append(step))
    assert seen and set(clone.snapshots) == {"first", "second"}
    expected = values.copy()
    expected[::1000] = 7
    np.testing.assert_array_equal(vellum.open(clone.path, version="second")["x"], expected)


def test_pull_beside_a_writer(pushed, url, values, tmp_path):
    vellum.clone(url, tmp_path / "clone")
    with vellum.open(pushed.path) as r:
        r["x"][0] = 7
        r.snapshot("second")
    pushed.push()
    with vellum.open(tmp_path / "clone") as r:
        r["x"][1] = 8
        seen = []
        report = r.pull(versions=["second"], progress=lambda *step: seen.append(step))
        assert seen and [version.name for version in report.versions] == ["second"]
        assert set(r.store.snapshots) == {"first", "second"}
        assert r["x"][0] == values[0] and r["x"][1] == 8, "the writer's memory stays as it is"
        with pytest.raises(BlockingIOError):
            r.pull(versions=["main"])
    assert vellum.open(tmp_path / "clone", version="second")["x"][0] == 7


def test_lazy_clone(pushed, url, values, tmp_path):
    clone = vellum.clone(url, tmp_path / "clone", lazy=True)
    assert not list((tmp_path / "clone" / "packs").iterdir())
    np.testing.assert_array_equal(vellum.open(clone.path, version="first")["x"], values)
    clone.pull(packs=True)
    assert list((tmp_path / "clone" / "packs").iterdir())
    np.testing.assert_array_equal(vellum.open(clone.path, version="first")["x"], values)


def test_two_that_push_one_branch(pushed, url, tmp_path):
    clone = vellum.clone(url, tmp_path / "clone")
    for store in (clone, pushed):
        with vellum.open(store.path) as r:
            r["x"][0] = 1
    clone.push()
    with pytest.raises(BlockingIOError):
        pushed.push()
    assert pushed.push(take_over=True).versions


def test_a_pull_takes_over_only_when_asked(pushed, url, values, tmp_path):
    clone = vellum.clone(url, tmp_path / "clone")
    with vellum.open(clone.path) as r:
        r["x"][0] = 1
    (main,) = [version for version in clone.pull().versions if version.name == "main"]
    assert main.is_ahead and not main.is_older
    with vellum.open(pushed.path) as r:
        r["x"][0] = 2
    pushed.push()
    with pytest.raises(vellum.IOFailure, match="changed both"):
        clone.pull()
    assert vellum.open(clone.path, version="main")["x"][0] == 1
    clone.pull(take_over=True)
    assert vellum.open(clone.path, version="main")["x"][0] == 2


def test_errors(pushed, url, tmp_path):
    with pytest.raises(vellum.NotFound):
        pushed.push("unknown")
    with pytest.raises(vellum.NotFound):
        pushed.pull(versions=["third"])
    with pytest.raises(ValueError, match="a list"):
        pushed.push("origin", "first")
    with pytest.raises(vellum.InvalidArgument):
        pushed.add_remote("other", "ftp://somewhere")
    with pytest.raises(FileExistsError):
        pushed.add_remote("origin", url)
    pushed.remove_remote("origin")
    assert pushed.remotes == []
