"""Handlers that others install after Vellum's, of any kind, do not prevent page loads."""

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


def ended(program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("way", ["r.commit()", "vellum.Store(sys.argv[1]).verify(progress=lambda *a: None)"])
def test_a_daemon_thread_in_a_call_at_the_interpreters_end(path, way):
    """Requesting the interpreter's lock unwinds the thread in CPython before 3.14."""
    program = f"""
import vellum, threading, sys, os
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
r = vellum.open(sys.argv[1], create=True)
r["x"] = [0.0] * 1000
x = r["x"]
r.snapshot("s")
is_in = threading.Event()
def saver():
    while True:
        x[:] += 1
        is_in.set()
        {way}
threads = [threading.Thread(target=saver, daemon=True) for _ in range(3)]
[t.start() for t in threads]
is_in.wait()
"""
    for i in range(5):
        found = ended(program, path / str(i))
        assert (found.returncode, found.stderr) == (0, "")


def test_a_child_of_fork_ends_beside_threads_of_its_parent(path):
    program = """
import vellum, threading, sys, os, warnings
warnings.simplefilter("ignore")
r = vellum.open(sys.argv[1], create=True)
r["x"] = [0.0] * 1000
r.commit()
def looks():
    while True:
        r.store.versions()
threads = [threading.Thread(target=looks, daemon=True) for _ in range(3)]
[t.start() for t in threads]
for _ in range(20):
    child = os.fork()
    if child == 0:
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""
    found = ended(program, path)
    assert (found.returncode, found.stderr) == (0, "")


CTRL_C = """
import vellum, numpy as np, sys, os, signal, threading
signal.signal(signal.SIGINT, {handler})
r = vellum.open(sys.argv[1], create=True)
x = r.create_array("x", 12_000_000, "i8")
r.commit()
x[:] = np.random.default_rng(1).integers(0, 1 << 62, len(x))
begun = threading.Event()
def interrupts():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupts).start()
handled = []
def commits():
    begun.set()
    r.commit()
try:
    {work}
    print("committed", len(handled), vellum.open(sys.argv[1], mode="r")["x"][0] == x[0])
except KeyboardInterrupt:
    print("interrupted", vellum.open(sys.argv[1], mode="r")["x"][0], {after})
r.commit()
with vellum.open(sys.argv[1], mode="r") as v:
    assert np.array_equal(v["x"], x)
"""


def test_ctrl_c_ends_a_long_commit(path):
    program = CTRL_C.format(handler="signal.default_int_handler", work="commits()", after="bool(x[0] != 0)")
    found = ended(program, path)
    assert (found.returncode, found.stdout, found.stderr) == (0, "interrupted 0 True\n", "")


def test_ctrl_c_rolls_a_long_transaction_back(path):
    work = """
    r.rollback()
    with r.transaction():
        x[:] = np.random.default_rng(1).integers(0, 1 << 62, len(x))
        begun.set()"""
    program = CTRL_C.format(handler="signal.default_int_handler", work=work, after="bool(x.any())")
    found = ended(program, path)
    assert (found.returncode, found.stdout, found.stderr) == (0, "interrupted 0 False\n", "")


def test_a_handler_that_does_not_raise_lets_a_commit_go_on(path):
    """It may use the region itself: no lock is held when it runs."""
    handler = "lambda *a: (r.commit(), handled.append(1))"
    program = CTRL_C.format(handler=handler, work="commits()", after="''")
    found = ended(program, path)
    assert (found.returncode, found.stdout, found.stderr) == (0, "committed 1 True\n", "")
