"""The doors of vellum.integrations, a class each, for the tests that kill their writers and look for leaks.

A door writes steps, 1, 2 and so on. `step()` returns the step that is acknowledged then: it stays whatever follows.
`found()` is the newest step of what is stored, after a comparison of all of it with the shadow, which is
computed from the step's number alone.
"""

import functools
import os
import sys

import numpy as np
from vector_libraries import BATCH, LIBRARIES, batch, door_of, keys_of

import vellum

SLOTS = 7


def row(step):
    """What a step writes. Some rows compress."""
    return np.random.default_rng(step).integers(0, 256 if step % 3 else 2, 40_000, dtype="u1")


def removed(step):
    """The slot that a step removes, if it removes one."""
    return (step + 2) % SLOTS if step % 3 == 0 else None


def shadow(step):
    """What is in each slot after a step, which writes one."""
    found = {}
    for each in range(max(1, step - SLOTS + 1), step + 1):
        found[each % SLOTS] = row(each)
        found.pop(removed(each), None)
    return found


def same(found, wanted):
    return found.keys() == wanted.keys() and all(np.array_equal(found[key], wanted[key]) for key in wanted)


class Door:
    """Opens a path to write."""

    needs = ""  # the library, and the module
    ahead = 1  # steps that may be stored and not acknowledged

    def __init__(self, path):
        raise NotImplementedError

    def close(self):
        pass


class Files(Door):
    """A transaction or a call of many files is a step."""

    needs = "fsspec"

    def __init__(self, path):
        self.fs = self.system(path)

    @staticmethod
    def system(path):
        from vellum.integrations.fsspec import VellumFileSystem

        return VellumFileSystem(str(path), create=True, skip_instance_cache=True)

    def step(self, step):
        place, gone = f"rows/{step % SLOTS}", f"rows/{removed(step)}"
        if removed(step) is None:
            self.fs.pipe({"step": str(step).encode(), place: row(step).tobytes()})
            return step
        with self.fs.transaction:
            self.fs.pipe("step", str(step).encode())
            with self.fs.open(place, "wb") as file:
                file.write(row(step).tobytes())
            if self.fs.exists(gone):
                self.fs.rm(gone)
        return step

    @classmethod
    def found(cls, path, done):
        fs = cls.system(path)
        step = int(fs.cat("step"))
        rows = {int(name.rpartition("/")[2]): np.frombuffer(fs.cat(name), "u1") for name in fs.find("rows")}
        assert same(rows, shadow(step))
        return step


class Zarr(Door):
    """A `sync()` is a step."""

    needs = "zarr"

    def __init__(self, path):
        import zarr

        from vellum.integrations.zarr import VellumStore

        self.store = VellumStore(path)
        self.group = zarr.open_group(self.store, mode="a")
        if "x" not in self.group:
            self.group.create_array("x", shape=(SLOTS, len(row(1))), chunks=(1, len(row(1))), dtype="u1")

    def step(self, step):
        self.group["x"][step % SLOTS] = row(step)
        if removed(step) is not None:
            self.store.delete_sync(f"x/c/{removed(step)}/0")
        self.group.attrs["step"] = step
        self.store.sync()
        return step

    def close(self):
        self.store.close()

    @staticmethod
    def found(path, done):
        import zarr

        from vellum.integrations.zarr import VellumStore

        group = zarr.open_group(VellumStore(path, version="main"), mode="r")
        step, rows = group.attrs["step"], group["x"][:]
        assert same(dict(enumerate(rows)), dict.fromkeys(range(SLOTS), np.zeros_like(row(1))) | shadow(step))
        return step


class Xarray(Door):
    """A data set that replaces the one before is a step."""

    needs = "xarray"

    def __init__(self, path):
        self.path = path

    def step(self, step):
        import xarray as xr

        from vellum.integrations.xarray import to_vellum

        variables = {f"slot{slot}": ("column", values) for slot, values in shadow(step).items()}
        to_vellum(xr.Dataset(variables, attrs={"step": step}), self.path)
        return step

    @staticmethod
    def found(path, done):
        import xarray as xr

        with xr.open_dataset(path, engine="vellum", version="main") as opened:
            step = int(opened.attrs["step"])
            assert same({int(name[4:]): each.values for name, each in opened.items()}, shadow(step))
        return step


class Joblib(Door):
    """A call whose result is kept is a step. It clears an older one."""

    needs = "joblib"

    def __init__(self, path):
        import joblib

        from vellum.integrations.joblib import register

        register()
        self.memory = joblib.Memory(str(path), backend="vellum", verbose=0)
        self.cached = self.memory.cache(row)

    def step(self, step):
        self.cached(step)
        if step > SLOTS:
            self.cached.call_and_shelve(step - SLOTS).clear()
        return step

    @classmethod
    def found(cls, path, done):
        cached = cls(path).cached
        is_whole = cached.check_call_in_cache(done + 1) and not cached.check_call_in_cache(done + 1 - SLOTS)
        step = done + is_whole
        assert not cached.check_call_in_cache(step - SLOTS)
        for each in range(max(1, step - SLOTS + 2), step + 1):
            assert cached.check_call_in_cache(each)
            assert np.array_equal(cached(each), row(each))
        return step


class Diskcache(Door):
    """A value that is set, and sometimes one that is deleted, are a step."""

    needs = "diskcache"

    def __init__(self, path):
        import diskcache

        from vellum.integrations.diskcache import VellumDisk

        self.cache = diskcache.Cache(path, disk=VellumDisk)

    def step(self, step):
        self.cache[step % SLOTS] = row(step)
        if removed(step) is not None:
            self.cache.delete(removed(step))
        return step

    def close(self):
        self.cache.close()

    @classmethod
    def found(cls, path, done):
        opened = cls(path)
        rows = {key: opened.cache[key] for key in opened.cache}
        opened.close()
        if same(rows, shadow(done + 1)):
            return done + 1
        half = shadow(done) | {(done + 1) % SLOTS: row(done + 1)}
        assert same(rows, shadow(done)) or (removed(done + 1) is not None and same(rows, half))
        return done


class Vectors(Door):
    """A commit of a batch in an index, of a number in the region beside it, and sometimes of a removal, is a step."""

    def __init__(self, path):
        self.region = vellum.open(path, create=True)
        self.kept = door_of(self.needs).Index(self.region, "words", LIBRARIES[self.needs][1].new())

    def step(self, step):
        self.kept.add(batch(step), keys_of(step))
        if step % 4 == 0:
            self.kept.remove(keys_of(step - 2)[5:9])
        self.region["steps"] = step
        if step % 3 == 0:
            self.kept.save()
        self.region.commit()
        return step

    def close(self):
        self.region.close()

    @classmethod
    def found(cls, path, done):
        library, region = LIBRARIES[cls.needs][1], vellum.open(path, version="main")
        step = int(region["steps"][()])
        index = door_of(cls.needs).Index(region, "words").index
        gone = [int(key) for each in range(4, step + 1, 4) for key in keys_of(each - 2)[5:9]]
        keys = np.setdiff1d(np.arange(BATCH, (step + 1) * BATCH), gone)
        wanted = np.concatenate([batch(each) for each in range(1, step + 1)])
        assert np.array_equal(library.stored(index, keys), wanted[keys - BATCH])
        for key in gone[-2:]:
            assert library.nearest(index, wanted[key - BATCH])[0] != key
        assert library.nearest(index, wanted[-1]) == (keys[-1], 0)
        return step


class Faiss(Vectors):
    needs = "faiss"


class Hnswlib(Vectors):
    needs = "hnswlib"


class Usearch(Vectors):
    needs = "usearch"


class Torch(Door):
    """A version of a training's step is a step. Each process goes on from the newest version."""

    needs = "torch"
    kept = 10

    def __init__(self, path):
        from torch_training import Training

        from vellum.integrations import torch as door

        self.path, self.door, self.training = path, door, Training()
        if os.path.exists(path) and (names := door.names(path)):
            self.training.restore(door.load(path, max(names, key=self.number)))
        self.writer = door.StorageWriter(path, planes=self.training.step % 2 == 1)

    @staticmethod
    def number(name):
        return int(name.partition("-")[2])

    def step(self, step):
        self.training.advance()
        assert self.training.step == step
        done = self.save(step)
        old = f"step-{step - self.kept - 1}"
        if old in self.writer.store:  # a process that was killed in this step may have removed it
            self.door.remove(self.path, old)
        return done

    def save(self, step):
        self.door.save(self.writer, f"step-{step}", self.training.state())
        return step

    def close(self):
        self.writer.close()

    @classmethod
    def found(cls, path, done):
        from torch_training import digest

        from vellum.integrations import torch as door

        steps = sorted(map(cls.number, door.names(path)))
        assert steps[-cls.kept :] == list(range(max(1, steps[-1] - cls.kept + 1), steps[-1] + 1))
        for step in {steps[-1], steps[-min(len(steps), 5)]}:
            assert digest(door.load(path, f"step-{step}")) == digest_after(step)
        return steps[-1]


@functools.cache
def shown():
    """A training without an interruption, and the digests of its steps."""
    from torch_training import Training

    return Training(), {}


def digest_after(step):
    from torch_training import digest

    training, digests = shown()
    while training.step < step:
        training.advance()
        digests[training.step] = digest(training.state())
    return digests[step]


class TorchAsync(Torch):
    """A version of a training's step that is saved beside the next one. It is durable when the next one begins."""

    ahead = 2

    def save(self, step):
        self.writer.save_async(self.training.state(), f"step-{step}", optimizer=self.training.optimizer)
        return step - 1


@functools.cache
def shell():
    """IPython, once in a process."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    main = sys.modules["__main__"]  # a shell puts its own module there
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    sys.modules["__main__"] = main
    made.user_ns["row"] = row
    return made


class Jupyter(Door):
    """A cell is a step: a change, an undo or a redo."""

    needs = "jupyter"

    def __init__(self, path):
        self.shell = shell()
        self.shell.run_line_magic("load_ext", "vellum")
        self.run(f"%vellum open {path}")

    def run(self, cell):
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        result.raise_error()
        assert "Error in callback" not in captured.stdout, captured.stdout
        return self.shell.user_ns["region"]

    @staticmethod
    def kind(step):
        return "undo" if step % 5 == 4 else "redo" if step % 10 == 0 else "change"

    @classmethod
    def cells(cls, step):
        """The steps whose changes are there, oldest first, and those that are undone."""
        done, undone = [], []
        for each in range(1, step + 1):
            if cls.kind(each) == "change":
                done, undone = [*done, each], []
            elif cls.kind(each) == "undo":
                undone = [done.pop(), *undone]
            else:
                done.append(undone.pop(0))
        return done, undone

    def step(self, step):
        self.run(f"region['x'] = row({step})" if self.kind(step) == "change" else f"%{self.kind(step)}")
        return step

    def close(self):
        self.run("%vellum close")
        self.shell.user_ns.pop("region")
        self.shell.run_line_magic("unload_ext", "vellum")

    @classmethod
    def found(cls, path, done):
        opened = cls(path)
        try:
            region = opened.run("")
            step = done if np.array_equal(region["x"], row(cls.cells(done)[0][-1])) else done + 1
            there, undone = cls.cells(step)
            assert np.array_equal(region["x"], row(there[-1]))
            if undone:
                assert np.array_equal(opened.run("%redo")["x"], row(undone[0]))
                assert np.array_equal(opened.run("%undo")["x"], row(there[-1]))
            if len(there) > 1:
                assert np.array_equal(opened.run("%undo")["x"], row(there[-2]))
                assert np.array_equal(opened.run("%redo")["x"], row(there[-1]))
        finally:
            opened.close()
        return step


DOORS = {
    "fsspec": Files,
    "zarr": Zarr,
    "xarray": Xarray,
    "torch": Torch,
    "torch-async": TorchAsync,
    "faiss": Faiss,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
    "joblib": Joblib,
    "diskcache": Diskcache,
    "jupyter": Jupyter,
}


def write(name, path, step, pipe):
    """The process that is killed: writes steps without end, and a word after each."""
    door = DOORS[name](path)
    while True:
        pipe.send(door.step(step))
        step += 1
