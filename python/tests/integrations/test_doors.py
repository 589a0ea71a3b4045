"""What holds for all doors of vellum.integrations: kills, leaks, imports.

VELLUM_KILLS is the number of kills, VELLUM_TURNS that of the turns in which a leak would show.
"""

import ctypes
import gc
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest
from doors import DOORS, write
from processes import PROCESSES

import vellum

KILLS = int(os.environ.get("VELLUM_KILLS", "4"))
TURNS = int(os.environ.get("VELLUM_TURNS", "20"))
FOLDER = pathlib.Path(vellum.__file__).parent / "integrations"
MODULES = sorted(found.stem for found in FOLDER.glob("[a-z]*"))
LIBRARIES = {"jupyter": "IPython"}

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")


def library_of(module):
    return LIBRARIES.get(module, module)


@pytest.fixture(params=DOORS)
def door(request):
    found = DOORS[request.param]
    pytest.importorskip(library_of(found.needs))
    return found


class Writer:
    """Such a process, and the last step that it has reported."""

    def __init__(self, door, path, done):
        name = next(name for name, each in DOORS.items() if each is door)
        self.pipe, there = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=write, args=(name, str(path), done + 1, there), daemon=True)
        self.process.start()
        there.close()
        self.done = done

    def report(self):
        self.done = self.pipe.recv()

    def kill(self):
        self.process.kill()
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL, "it ended by itself"
        try:
            while True:
                self.report()
        except EOFError:
            self.pipe.close()


def verify(path):
    """Each store that a door has made."""
    found = [each.parent for each in path.parent.rglob("vellum.store")]
    assert found and not [damage for each in found for damage in vellum.Store(each).verify(progress=False).damages]


def test_a_kill_loses_nothing(door, path):
    """At a random moment between the process's start and, about, its eighth step."""
    chance = random.Random(11)
    done = ahead = silent = 0
    for _ in range(2):  # of the first one, all that a process waits for only once
        writer, begin = Writer(door, path, done), time.monotonic()
        while writer.done < done + 4:
            writer.report()
        span = 2 * (time.monotonic() - begin)
        writer.kill()
        done = door.found(path, writer.done)
        assert writer.done <= done <= writer.done + door.ahead
    for number in range(KILLS):
        writer = Writer(door, path, done)
        time.sleep(chance.random() * span)
        writer.kill()
        found = door.found(path, writer.done)
        assert writer.done <= found <= writer.done + door.ahead
        silent += writer.done == done
        ahead += found > writer.done
        # Whatever the machine's load is, some kills are before the first step and others behind several.
        span *= 1.1 if writer.done == done else 0.95
        done = found
        if number % 20 == 0:
            verify(path)
    verify(path)
    print(f"{KILLS + 2} kills, {done} steps, {silent} kills before a step, {ahead} with one more than reported")


@pytest.mark.filterwarnings("ignore")
def test_nothing_leaks(door, path):
    """Opening, a few steps, reading and closing, again and again, take no more memory and no more descriptors."""
    process, trim = psutil.Process(), ctypes.CDLL(None).malloc_trim

    def turn(done):
        opened = door(path)
        for step in range(done + 1, done + 4):
            opened.step(step)
        opened.close()
        del opened
        assert door.found(path, done + 3) == done + 3
        return done + 3

    def used():
        gc.collect()
        trim(0)
        return process.memory_info().rss, process.num_fds(), len(process.memory_maps(grouped=False))

    done = 0
    for _ in range(TURNS // 4):
        done = turn(done)
    before = used()
    for _ in range(TURNS):
        done = turn(done)
    bytes_more, fds_more, maps_more = (new - old for new, old in zip(used(), before, strict=True))
    print(f"{TURNS} turns: {bytes_more >> 10} KiB, {fds_more} descriptors, {maps_more} mappings more")
    assert bytes_more < 8 << 20 and fds_more <= 2 and maps_more <= 20
    assert not [region for region in gc.get_objects() if isinstance(region, vellum.Region) and not region.closed]


def imported(program):
    """The doors and their libraries that a program imports."""
    names = [f"vellum.integrations.{each}" for each in MODULES] + [library_of(each) for each in MODULES]
    program = f"{program}\nimport sys; print(*[each for each in {names} if each in sys.modules])"
    return set(subprocess.check_output([sys.executable, "-c", program], text=True).split())


def test_the_package_imports_no_door():
    assert imported("import vellum") == set()


@pytest.mark.parametrize("name", MODULES)
def test_no_door_imports_another(name):
    pytest.importorskip(library_of(name))
    found = {each for each in imported(f"import vellum.integrations.{name}") if each.startswith("vellum.")}
    assert found == {f"vellum.integrations.{name}"}


@pytest.mark.parametrize("name", MODULES)
def test_a_missing_library_is_named(name):
    program = f"import sys; sys.modules[{library_of(name)!r}] = None; import vellum.integrations.{name}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1].startswith("ImportError: ")
    assert f"pip install vellum[{name}]" in ended.stderr.splitlines()[-1]


def test_each_door_is_in_the_table():
    assert {each.needs for each in DOORS.values()} == set(MODULES)
