"""Handlers that others install after ours, of any kind, do not keep pages out."""

import subprocess
import sys

import pytest

PROGRAM = """
import vellum, numpy as np, ctypes, signal, sys
x = vellum.open(sys.argv[1], version="first")["x"]
r = vellum.open(sys.argv[1])
live = r["x"]
assert x[0] == live[0]
{install}
assert np.array_equal(x, live)
live[::1000] = 1
r.commit()
live += 1
r.rollback()
assert (live[::1000] == 1).all()
print("done")
"""

INSTALLS = {
    "faulthandler": "import faulthandler; faulthandler.enable()",
    "signal": "[signal.signal(n, lambda *a: sys.exit(9)) for n in (signal.SIGBUS, signal.SIGSEGV)]",
    "default": "[ctypes.CDLL(None).signal(n, 0) for n in (signal.SIGBUS, signal.SIGSEGV)]",
    "ignored": "[ctypes.CDLL(None).signal(n, 1) for n in (signal.SIGBUS, signal.SIGSEGV)]",
    "exits": "h = ctypes.CDLL(None)._exit; [ctypes.CDLL(None).signal(n, h) for n in (7, 11)]",
    "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGBUS, signal.SIGSEGV])",
    "torch": "import torch; torch.ones(3).sum()",
    "jvm": """
import jpype
jpype.startJVM()
assert jpype.JClass("java.lang.Integer")(5).intValue() == 5""",
    "absl": """
import absl.app
try:
    absl.app.run(lambda argv: None, argv=["program"])
except SystemExit:
    pass""",
}


def run(install, path, **more):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(install=install), str(path)], capture_output=True, text=True, **more
    )


def require_jvm():
    jpype = pytest.importorskip("jpype")
    try:
        jpype.getDefaultJVMPath()
    except jpype.JVMNotFoundException:
        pytest.skip("there is no JVM")


@pytest.mark.parametrize("how", INSTALLS)
def test_later_handlers(numbers, how):
    if how in ("torch", "absl"):
        pytest.importorskip(how)
    if how == "jvm":
        require_jvm()
    ended = run(INSTALLS[how], numbers)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_no_handler_is_installed(numbers):
    ended = run("assert ctypes.CDLL(None).signal(11, 0) == 0 and ctypes.CDLL(None).signal(7, 0) == 0", numbers)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_fault_needs_no_lock_of_the_interpreter(numbers):
    """One thread faults with the interpreter's lock while others commit, open and collect."""
    program = """
import vellum, numpy as np, sys, threading
path = sys.argv[1]
r = vellum.open(path)
x = r["x"]
stop = threading.Event()
def commits():
    while not stop.is_set():
        x[::5000] += 1
        r.commit()
def opens():
    while not stop.is_set():
        vellum.open(path, version="first").prefetch()
        r.store.gc()
threads = [threading.Thread(target=f) for f in (commits, opens, commits)]
[t.start() for t in threads]
for _ in range(40):
    old = vellum.open(path, version="first")["x"]
    for i in range(0, len(old), 8192):
        old[i]          # a fault, with the lock
stop.set()
[t.join() for t in threads]
print("done")
"""
    ended = subprocess.run([sys.executable, "-c", program, str(numbers)], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_ctrl_c_ends_a_long_call(numbers):
    program = """
import vellum, sys, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
def tell(done, total, unit):
    os.kill(os.getpid(), signal.SIGINT)
try:
    vellum.Store(sys.argv[1]).verify(progress=tell)
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", program, str(numbers)], capture_output=True, text=True)
    assert ended.stdout == "interrupted\n"
