"""For tests with Hypothesis: strategies, and a state machine that compares a region with plain numpy copies.

A test of one's own is a subclass, perhaps with more rules::

    TestArrays = vellum.testing.ArrayMachine.TestCase

A program that keeps more than arrays can derive its machine from `ArrayMachine`, whose `region` is the open branch
and whose `model` is what it must hold.
"""

from __future__ import annotations

import functools
import multiprocessing
import pickle
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import vellum

__all__ = ["ArrayMachine", "dtypes", "names"]

Model = dict[str, np.ndarray[Any, Any]]


def names() -> st.SearchStrategy[str]:
    """Names of arrays, some of them in groups."""
    return st.sampled_from(["a", "b", "c", "g/a", "g/h/a"])


def dtypes() -> st.SearchStrategy[np.dtype[Any]]:
    """Dtypes that a region takes."""
    plain: list[Any] = ["?", "i1", "<i2", ">u4", "<f4", "<f8", "<c16", "S5", "<U3", "<M8[us]"]
    structured = [[("a", "<i4"), ("b", "<f8")], [("a", "u1"), ("b", "<i2", (3,))]]
    return st.sampled_from([np.dtype(each) for each in [*plain, *structured]])


def _slices(length: int) -> st.SearchStrategy[slice]:
    ends = st.tuples(st.integers(0, length), st.integers(0, length))
    return st.builds(lambda pair, step: slice(min(pair), max(pair), step), ends, st.integers(1, 3))


def _random(seed: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Values of small numbers, which every dtype has."""
    values = np.zeros(shape, dtype)
    numbers = np.random.default_rng(seed).integers(0, 2 if dtype == "?" else 100, shape)
    for name in dtype.names or ():
        values[name] = numbers.reshape(shape + (1,) * (values[name].ndim - len(shape)))
    if not dtype.names:
        values[...] = numbers.astype(dtype)
    return values


def _copied(model: Model) -> Model:
    return {name: array.copy() for name, array in model.items()}


@functools.cache
def _worker() -> ProcessPoolExecutor:
    """One process for all machines of this one: a start costs more than a rule."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("forkserver"))


def _values(arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """For the worker: the content of arrays that it received as references."""
    assert all(isinstance(array, vellum.Array) for array in arrays)
    return [np.array(array) for array in arrays]


class ArrayMachine(RuleBasedStateMachine):
    """Arrays, commits, snapshots, rollbacks, reopening, a worker; every version is compared with a plain copy."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="vellum-testing-")
        self.path = f"{self.folder}/store"
        self.region = vellum.open(self.path, create=True)
        self.region.commit()
        self.model: Model = {}
        self.committed: Model = {}
        self.snapshots: dict[str, Model] = {}
        self.kept: list[tuple[str, vellum.Array]] = []

    def teardown(self) -> None:
        """Compares every snapshot a last time."""
        self.region.close()
        for name, model in self.snapshots.items():
            self.compare(vellum.open(self.path, version=name), model)
        damages = vellum.Store(self.path).verify(progress=False).damages
        shutil.rmtree(self.folder)
        assert not damages, damages[0].reason

    @staticmethod
    def compare(region: vellum.Region, model: Model) -> None:
        """Whether a region holds exactly the arrays of a model."""
        found = dict(region.visit())
        assert found.keys() == model.keys()
        for name, expected in model.items():
            assert found[name].dtype == expected.dtype and found[name].shape == expected.shape, name
            np.testing.assert_array_equal(found[name], expected, err_msg=name)

    @invariant()
    def holds_the_model(self) -> None:
        """The open branch equals the model after each rule."""
        self.compare(self.region, self.model)

    # ---- Rules

    @rule(name=names(), dtype=dtypes(), shape=st.lists(st.integers(0, 40), max_size=3), seed=st.integers(0, 99))
    def create(self, name: str, dtype: np.dtype[Any], shape: list[int], seed: int) -> None:
        """Makes an array, or finds that the name is taken."""
        values = _random(seed, tuple(shape), dtype)
        if name in self.model:
            try:
                self.region.create_array(name, data=values)
            except FileExistsError:
                return
            raise AssertionError(f"{name} was made twice")
        self.region.create_array(name, data=values)
        self.model[name] = values

    @precondition(lambda self: self.model)
    @rule(data=st.data(), seed=st.integers(0, 99))
    def store(self, data: Any, seed: int) -> None:
        """Stores into a part of an array."""
        name = data.draw(st.sampled_from(sorted(self.model)))
        expected = self.model[name]
        part = tuple(data.draw(_slices(n)) for n in expected.shape)
        values = _random(seed, expected[part].shape, expected.dtype)
        expected[part] = values
        self.region[name][part] = values

    @precondition(lambda self: any(array.ndim for array in self.model.values()))
    @rule(data=st.data(), rows=st.one_of(st.integers(0, 60), st.integers(1000, 100_000)))
    def resize(self, data: Any, rows: int) -> None:
        """Changes the length along the first axis."""
        name = data.draw(st.sampled_from([n for n in sorted(self.model) if self.model[n].ndim]))
        old = self.model[name]
        try:
            self.region.resize(name, rows)
        except BufferError:
            assert any(kept == name for kept, _ in self.kept), name
            return
        self.model[name] = np.zeros((rows, *old.shape[1:]), old.dtype)
        self.model[name][: len(old)] = old[:rows]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        """Removes an array."""
        name = data.draw(st.sampled_from(sorted(self.model)))
        del self.region[name], self.model[name]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def keep(self, data: Any) -> None:
        """Keeps an array in use."""
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.kept.append((name, self.region[name]))

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), seed=st.integers(0, 99), drops=st.booleans())
    def use(self, data: Any, seed: int, drops: bool) -> None:
        """Stores into an array that was removed or rolled back, which changes no other array."""
        at = data.draw(st.integers(0, len(self.kept) - 1))
        name, array = self.kept.pop(at) if drops else self.kept[at]
        try:
            assert array.name == name
        except ValueError:
            array[...] = _random(seed, array.shape, array.dtype)

    @rule()
    def commit(self) -> None:
        """Commits."""
        self.region.commit()
        self.committed = _copied(self.model)

    @rule()
    def rollback(self) -> None:
        """Drops uncommitted changes."""
        self.region.rollback()
        self.model = _copied(self.committed)

    @rule()
    def snapshot(self) -> None:
        """Keeps a version."""
        name = f"s{len(self.snapshots)}"
        self.region.snapshot(name)
        self.committed = _copied(self.model)
        self.snapshots[name] = _copied(self.model)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), fails=st.booleans())
    def transaction(self, data: Any, fails: bool) -> None:
        """A transaction that zeroes an array, and ends or fails."""
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.committed = _copied(self.model)
        try:
            with self.region.transaction("zeroes"):
                self.region[name][...] = np.zeros((), self.model[name].dtype)
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            return
        self.model[name][...] = np.zeros((), self.model[name].dtype)
        self.committed = _copied(self.model)

    @rule(commits=st.booleans())
    def reopen(self, commits: bool) -> None:
        """Closes the branch and opens it again."""
        if commits:
            self.commit()
        self.region.close()
        self.region = vellum.open(self.path)
        self.model = _copied(self.committed)

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def back_to(self, data: Any) -> None:
        """Makes an old version the newest."""
        name = data.draw(st.sampled_from(sorted(self.snapshots)))
        self.region.rollback(name)
        self.model, self.committed = _copied(self.snapshots[name]), _copied(self.snapshots[name])

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def read(self, data: Any) -> None:
        """Reads an old version, as it is and from a pickle."""
        name = data.draw(st.sampled_from(sorted(self.snapshots)))
        old = vellum.open(self.path, version=name)
        self.compare(old, self.snapshots[name])
        for array_name, expected in self.snapshots[name].items():
            part = np.s_[::2] if expected.ndim else ()
            with vellum.pickle_references():
                back = pickle.loads(pickle.dumps(old[array_name][part]))
            np.testing.assert_array_equal(back, expected[part])

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def work(self, data: Any) -> None:
        """Another process reads an old version by references while this one writes."""
        name = data.draw(st.sampled_from(sorted(self.snapshots)))
        old, model = vellum.open(self.path, version=name), self.snapshots[name]
        arrays = sorted(model)
        found = _worker().submit(_values, [old[array] for array in arrays]).result()
        for array, values in zip(arrays, found, strict=True):
            np.testing.assert_array_equal(values, model[array], err_msg=array)

    @precondition(lambda self: len(self.snapshots) > 1)
    @rule(data=st.data())
    def diff(self, data: Any) -> None:
        """The changed rows of two versions are those that differ."""
        first, second = (data.draw(st.sampled_from(sorted(self.snapshots))) for _ in range(2))
        old, new = self.snapshots[first], self.snapshots[second]
        found = self.region.diff(first, second)
        for name in old.keys() | new.keys():
            a, b = old.get(name), new.get(name)
            if a is None or b is None:
                assert found[name].kind == ("added" if a is None else "removed")
            elif a.dtype == b.dtype and a.shape == b.shape:
                changed = a.tobytes() != b.tobytes()
                assert (name in found and found[name].nbytes > 0) == changed, name
                if changed and a.ndim:
                    rows = [i for i in range(len(a)) if a[i].tobytes() != b[i].tobytes()]
                    assert found[name].rows.tolist() == rows
            else:
                assert name in found
