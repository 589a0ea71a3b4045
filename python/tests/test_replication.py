"""Commits are pushed to a remote while they are made: a directory, and an S3 server (moto, or a real one)."""

import itertools
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import vellum


@pytest.fixture
def store(numbers, url):
    """A store with a snapshot "first" and a known remote."""
    store = vellum.Store(numbers)
    # moto checks for an object before it writes one: two creators may win, which the probe has to
    # detect.
    store.add_remote("there", url, one_writer=True)
    return store


@pytest.fixture
def directory(tmp_path):
    """The URL of a remote that no store has."""
    return f"file://{tmp_path}/replica"


def wait_until(happened, meanwhile=lambda: time.sleep(0.01)):
    patience = time.monotonic() + 300  # a machine may be slow, but a test ends
    while not happened():
        assert time.monotonic() < patience, "it does not happen"
        meanwhile()


def test_each_commit_arrives(store, url, values, tmp_path):
    with vellum.open(store.path) as r, r.replicate(url, interval=0.05) as replication:
        assert replication.running and replication.url == url
        wait_until(lambda: replication.state.versions >= 2)
        r["x"][0] = 7
        sent = r.commit().sequence
        wait_until(lambda: vellum.Store(url).version("main").sequence == sent)
        assert vellum.open(url, mode="r")["x"][0] == 7, "while the replication goes on"
        r["x"][1] = 8
        r.snapshot("second")
    state = replication.state
    assert not replication.running and (state.failure, state.behind_seconds) == ("", 0)
    assert state.pushes >= 2 and state.bytes_uploaded > 0
    clone = vellum.clone(url, tmp_path / "clone")
    assert clone.snapshots == ["first", "second"], "what was new at the end is there, too"
    expected = np.concatenate([[7, 8], values[2:]])
    np.testing.assert_array_equal(vellum.open(clone.path, version="second")["x"], expected)


def test_stop_gives_the_last_state(numbers, directory):
    store = vellum.Store(numbers)
    replication = store.replicate(directory)
    assert store.remotes[0].name == "replica", "a remote that was not known"
    state = replication.stop()
    assert state.versions == 2 and state.failure == "" and "versions=2" in repr(state)
    assert not replication.running and "ended" in repr(replication)
    assert replication.stop().versions == 2, "stopping twice"


def test_bad_arguments(numbers, tmp_path, directory):
    store = vellum.Store(numbers)
    for interval in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="interval"):
            store.replicate(directory, interval=interval)
    with pytest.raises(ValueError, match="ftp"):
        store.replicate("ftp://somewhere/s")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        store.replicate(f"file://{tmp_path}/file")
    assert store.remotes == []


def test_a_failure_is_reported_and_heals(numbers, tmp_path, directory):
    remote, moved = tmp_path / "replica", tmp_path / "moved"
    with vellum.open(numbers) as r, r.replicate(directory, interval=0.05) as replication:
        wait_until(lambda: replication.state.versions == 2)
        remote.rename(moved)
        remote.write_text("no directory")
        r["x"][0] = 7
        r.snapshot("second")
        wait_until(lambda: replication.state.failure)
        assert replication.running and replication.state.behind_seconds > 0
        remote.unlink()
        moved.rename(remote)
        wait_until(lambda: not replication.state.failure)
    assert vellum.Store(directory).snapshots == ["first", "second"]


def test_a_failure_at_the_end_is_raised(numbers, tmp_path, directory):
    with vellum.open(numbers) as r:
        replication = r.replicate(directory)
        wait_until(lambda: replication.state.versions == 2)
        (tmp_path / "replica").rename(tmp_path / "moved")
        (tmp_path / "replica").write_text("no directory")
        r["x"][0] = 7
        r.commit()
        with pytest.raises(OSError, match="does not have all commits"):
            replication.stop()
        assert replication.stop().failure, "raised once"


def taken_by_another(numbers, directory, tmp_path):
    """A store whose branch another store has pushed since, to the same remote."""
    store = vellum.Store(numbers)
    store.replicate(directory).stop()
    other = vellum.clone(directory, tmp_path / "clone")
    for path in (other.path, store.path):
        with vellum.open(path) as r:
            r["x"][0] += 1
    other.push()
    return store


def test_what_nothing_heals_ends_it(numbers, directory, tmp_path):
    store = taken_by_another(numbers, directory, tmp_path)
    replication = store.replicate(directory)
    wait_until(lambda: not replication.running)
    assert "main" in replication.state.failure
    with pytest.raises(BlockingIOError, match="main"):
        replication.stop()
    with pytest.raises(RuntimeError, match="of the block") as caught, store.replicate(directory) as replication:
        wait_until(lambda: not replication.running)
        raise RuntimeError("an error of the block")
    assert any("replication" in note and "main" in note for note in caught.value.__notes__)
    assert store.replicate(directory, take_over=True).stop().versions == 1


def test_no_lock_of_the_interpreter(numbers, directory):
    """Pushes and other threads of Python run concurrently."""
    with vellum.open(numbers) as r, r.replicate(directory, interval=0.002) as replication:
        counted, ended = [0], threading.Event()

        def count():
            while not ended.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        commits = itertools.count()

        def commit():
            number = next(commits)
            r["x"][number % 20] = number
            r.commit()

        # However many commits a push includes, there are more until the third one.
        wait_until(lambda: replication.state.pushes >= 3, commit)
        wait_until(lambda: replication.state.behind_seconds == 0)
        ended.set()
        thread.join()
        assert counted[0] > 0
        written = np.array(r["x"][:20])
    np.testing.assert_array_equal(vellum.open(directory, mode="r")["x"][:20], written)


PROGRAM = """
import os, signal, sys, vellum
r = vellum.open(sys.argv[1])
kept = r.replicate(sys.argv[2], interval=3600)
if sys.argv[3] == "fork":
    import warnings
    warnings.simplefilter("ignore")
    pid = os.fork()
    if pid == 0:
        assert not kept.running and kept.stop().versions == 0
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
r["x"][0] = 7
r.snapshot("second")
if sys.argv[3] == "raise":
    raise RuntimeError("an end")
"""


@pytest.mark.parametrize("way", ["end", "raise", "fork"])
def test_the_end_of_a_program_waits_for_a_last_push(numbers, directory, tmp_path, way):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    result = subprocess.run([sys.executable, program, numbers, directory, way], capture_output=True, text=True)
    assert result.returncode == (1 if way == "raise" else 0), result.stderr
    assert vellum.Store(directory).snapshots == ["first", "second"]


WAITING = """
import os, signal, sys, threading, vellum
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
try:
    vellum.Store(sys.argv[1]).replicate(sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
    sys.stdout.flush()
    os._exit(0)
"""


def test_ctrl_c_ends_the_wait_for_a_server(numbers, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"s3://bucket/s?endpoint=http://127.0.0.1:{silent.getsockname()[1]}&region=us-east-1&addressing=path"
        program = tmp_path / "program.py"
        program.write_text(WAITING)
        with subprocess.Popen([sys.executable, program, numbers, url], stdout=subprocess.PIPE, text=True) as process:
            connection, _ = silent.accept()  # the push waits for an answer
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=60)[0] == "interrupted\n"
            connection.close()
