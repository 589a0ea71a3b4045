"""As a user without capabilities, whose userfaultfd does not handle the kernel's faults: as in most containers."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import vellum

NOBODY = 65534
SYSCTL = pathlib.Path("/proc/sys/vm/unprivileged_userfaultfd")

PROGRAM = """
import ctypes, errno, hashlib, os, pickle, socket, sys, threading
import numpy as np
import vellum
{imports}
path = sys.argv[1]
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({nobody})
    os.setuid({nobody})
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # a process that began as this user may read its own /proc, too
def cold(where=slice(None)):
    return vellum.open(path, version="first")["x"][where]
assert not vellum.open(path, version="first").serves_system_calls
values = np.array(cold())
out = path + "-out"
def holds(expected):
    with open(out, "rb") as file:
        assert file.read() == expected.tobytes()
{body}
print("done")
"""

CALLS = {
    "np.save": "np.save(out, cold()); assert np.array_equal(np.load(out + '.npy'), values)",
    "tofile": "cold().tofile(out); holds(values)",
    "write": "open(out, 'wb', buffering=0).write(cold()); holds(values)",
    "writev": "os.writev(os.open(out, 65), [cold(slice(9)), cold(slice(-9, None))]); holds(values[np.r_[:9, -9:0]])",
    "pickle": "assert np.array_equal(pickle.loads(pickle.dumps(np.asarray(cold()), 5)), values)",
    "hashlib": "assert hashlib.sha256(cold()).digest() == hashlib.sha256(values).digest()",
    "sendall": """
left, right = socket.socketpair()
threading.Thread(target=lambda: (left.sendall(memoryview(cold())), left.close())).start()
assert b"".join(iter(lambda: right.recv(1 << 20), b"")) == values.tobytes()
""",
    "readinto": """
values[::-1].tofile(out)
with vellum.open(path) as r:
    assert open(out, "rb", buffering=0).readinto(r["x"]) == values.nbytes
assert np.array_equal(vellum.open(path, mode="r")["x"], values[::-1])
""",
    "export": "vellum.open(path, version='first').export_npz(out); assert np.array_equal(np.load(out)['x'], values)",
    "plain view": """
plain = np.asarray(cold())
try:
    os.write(os.open(out, 65), plain[500_000:])
    assert False
except OSError as error:
    assert error.errno == errno.EFAULT
again = cold()
again.prefetch()
np.asarray(again).tofile(out)
holds(values)
""",
    "h5py": """
with h5py.File(out, "w") as file:
    old = cold()
    old.prefetch()
    file["x"] = old
    assert np.array_equal(file["x"], values)
""",
}


@pytest.fixture
def store():
    """A store of an unprivileged user, in memory."""
    if SYSCTL.exists() and SYSCTL.read_text().strip() != "0":
        pytest.skip("vm.unprivileged_userfaultfd is 1: everybody's userfaultfd answers the kernel")
    folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    folder.chmod(0o777)
    with vellum.open(folder / "store", create=True) as r:
        r["x"] = np.random.default_rng(1).integers(1, 1 << 62, 1_000_000)
        r.snapshot("first")
    if os.getuid() == 0:
        for at, _, names in os.walk(folder):
            for name in (".", *names):
                os.chown(os.path.join(at, name), NOBODY, NOBODY)
    yield folder / "store"
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", CALLS)
def test_system_calls(store, name):
    imports = {"h5py": "import h5py", "export": "import vellum.exchange.npz; ''.encode('cp437')"}.get(name, "")
    if name == "h5py":
        pytest.importorskip("h5py")
    program = PROGRAM.format(imports=imports, nobody=NOBODY, body=CALLS[name])
    ended = subprocess.run([sys.executable, "-c", program, str(store)], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
