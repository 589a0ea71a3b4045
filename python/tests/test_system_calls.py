"""Calls that pass memory to the kernel, on arrays without a page in memory."""

import hashlib
import io
import os
import pickle
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import vellum


@pytest.fixture
def cold(numbers):
    """An array of a version without a page in memory."""
    return vellum.open(numbers, version="first")["x"]


def test_np_save(cold, tmp_path, values):
    np.save(tmp_path / "x.npy", cold)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), values)


def test_np_savez(cold, tmp_path, values):
    np.savez(tmp_path / "x.npz", x=cold)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npz")["x"], values)


def test_tofile(cold, tmp_path, values):
    cold[1000:].tofile(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == values[1000:].tobytes()


def test_file_write(cold, tmp_path, values):
    with open(tmp_path / "x", "wb", buffering=0) as file:
        assert file.write(cold) == cold.nbytes
    with open(tmp_path / "x", "ab") as file:
        file.write(cold[::2].copy())
    assert (tmp_path / "x").read_bytes() == values.tobytes() + values[::2].tobytes()


def test_os_writev_and_pwrite(cold, tmp_path, values):
    with open(tmp_path / "x", "wb") as file:
        assert os.writev(file.fileno(), [cold[:5], cold[500_000:500_005]]) == 80
        os.pwrite(file.fileno(), cold[900_000:900_005], 80)
    assert (tmp_path / "x").read_bytes() == values[
        [*range(5), *range(500_000, 500_005), *range(900_000, 900_005)]
    ].tobytes()


def test_sendall(cold, values):
    left, right = socket.socketpair()
    sender = threading.Thread(target=lambda: (left.sendall(memoryview(cold)), left.close()))
    sender.start()
    received = b"".join(iter(lambda: right.recv(1 << 20), b""))
    sender.join()
    assert received == values.tobytes()


def test_hashlib(cold, values):
    assert hashlib.sha256(cold).digest() == hashlib.sha256(values).digest()


def test_pickle_of_protocol_5(cold, values):
    buffers = []
    data = pickle.dumps(np.asarray(cold), protocol=5, buffer_callback=buffers.append)
    np.testing.assert_array_equal(pickle.loads(data, buffers=buffers), values)
    out = io.BytesIO()
    pickle.dump(np.asarray(cold[:1000]), out, protocol=5)
    np.testing.assert_array_equal(pickle.loads(out.getvalue()), values[:1000])


def test_subprocess_input(cold, values):
    program = "import sys, hashlib; print(hashlib.md5(sys.stdin.buffer.read()).hexdigest())"
    ended = subprocess.run([sys.executable, "-c", program], input=memoryview(cold).cast("B"), capture_output=True)
    assert ended.stdout.decode().strip() == hashlib.md5(values).hexdigest()


def test_reads_into_a_branch(numbers, tmp_path, values):
    (tmp_path / "raw").write_bytes(values[::-1].tobytes())
    with vellum.open(numbers) as r:
        with open(tmp_path / "raw", "rb", buffering=0) as file:
            assert file.readinto(r["x"]) == values.nbytes
        left, right = socket.socketpair()
        left.sendall(b"12345678")
        y = r.create_array("y", 1_000_000, "u1")
        assert right.recv_into(y[500_000:500_008]) == 8
        assert os.preadv(os.open(tmp_path / "raw", os.O_RDONLY), [y[:8]], 0) == 8
    r = vellum.open(numbers, mode="r")
    np.testing.assert_array_equal(r["x"], values[::-1])
    assert r["y"][500_000:500_008].tobytes() == b"12345678"
    assert r["y"][:8].tobytes() == values[-1].tobytes()


def test_other_ways_of_paging(numbers, tmp_path, values):
    """Where system calls cannot wait, taking the buffer loads all of it."""
    cold = vellum.open(numbers, version="first", engine="sigsegv")
    assert cold.engine == "sigsegv" and not cold.serves_system_calls
    np.save(tmp_path / "x.npy", cold["x"])
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), values)
    for number, start in enumerate((0, 300_000)):
        cold = vellum.open(numbers, version="first", engine="sigsegv")["x"]
        with open(tmp_path / f"y{number}", "wb", buffering=0) as file:
            assert file.write(cold[start:]) == cold[start:].nbytes
        assert (tmp_path / f"y{number}").read_bytes() == values[start:].tobytes()


def test_reads_into_a_branch_by_other_ways_of_paging(numbers, tmp_path, values):
    (tmp_path / "raw").write_bytes(values[::-1].tobytes())
    with vellum.open(numbers, engine="sigsegv") as r, open(tmp_path / "raw", "rb", buffering=0) as file:
        assert file.readinto(r["x"]) == values.nbytes
        r.commit()
        file.seek(0)
        assert file.readinto(r["x"][:100]) == 800
    np.testing.assert_array_equal(vellum.open(numbers, mode="r")["x"], values[::-1])


def test_a_corrupted_page_is_an_error_not_bytes(numbers, tmp_path):
    for pack in numbers.rglob("*.pack"):
        with pack.open("r+b") as file:
            file.seek(5_000_000)
            file.write(b"damage")
    for engine in ("automatic", "sigsegv"):
        cold = vellum.open(numbers, version="first", engine=engine)["x"]
        with pytest.raises(OSError), open(tmp_path / "x", "wb", buffering=0) as file:
            while True:  # a short write, then the error
                written = file.write(cold)
                cold = cold[written // 8 :]
