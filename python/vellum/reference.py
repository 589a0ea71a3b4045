"""Arrays and versions in other processes: pickled as a reference, opened lazily where they arrive."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _mapping
from .catalog import dtype_from
from .errors import InvalidArgument, NotFound

if TYPE_CHECKING:
    from .array import Array
    from .region import Region

# Versions that arrived with pickles stay open for those that follow, the latest so many.
_MOST_KEPT = 8
_kept: OrderedDict[VersionReference, _mapping.Mapping] = OrderedDict()


@dataclass(frozen=True)
class VersionReference:
    """Names one version for ever: its name might go, and be given to another."""

    path: str
    store_id: str
    name: str
    order: int  # of a snapshot; 0: a branch's head
    sequence: int

    @staticmethod
    def of(mapping: _mapping.Mapping) -> VersionReference:
        """That of an open version."""
        assert mapping.version is not None
        order = mapping.version.order
        return VersionReference(mapping.store.path, mapping.store.id, mapping.name, order, mapping.sequence)

    def __reduce__(self) -> tuple[Any, ...]:
        return VersionReference, (self.path, self.store_id, self.name, self.order, self.sequence)

    def open(self) -> _mapping.Mapping:
        """The version, opened once in a process. NotFound: it is not there any more."""
        for mapping in _mapping.readers():
            if VersionReference.of(mapping) == self:
                return mapping
        return self.open_kept()

    def open_kept(self) -> _mapping.Mapping:
        """The version, opened beside the handles of others, which may close them."""
        mapping = _kept.get(self)
        if mapping is None:
            mapping = _kept[self] = self.open_anew(_core.OpenOptions())
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return mapping

    def open_anew(self, options: _core.OpenOptions) -> _mapping.Mapping:
        """The version, opened for the caller."""
        from .store import _native

        store = _native(self.path, False)
        if store.id != self.store_id:
            raise NotFound(f"{self.path} is another store than the one that was pickled")
        core, info = store.open_version(self.name, options), store.version(self.name)
        if info.order != self.order or core.sequence != self.sequence:
            why = "has gone on" if self.order == 0 else "is another snapshot now"
            raise NotFound(f"'{self.name}' of {self.path} {why} since it was pickled: pickle arrays of a snapshot")
        return _mapping.Mapping(store, core, info)


# ---- Pickle

# What hands objects over to processes of this machine, by the names of modules. What others pickle may be kept: on a
# disk, in another place, for longer than the version.
_HAND_OVER = frozenset(
    {
        "multiprocessing.reduction", "multiprocess.reduction", "loky.backend.reduction",
        "joblib.externals.loky.backend.reduction", "dask.multiprocessing", "distributed.protocol.pickle",
        "distributed.protocol.serialize", "ray._private.serialization",
    }
)  # fmt: skip
_is_asked: ContextVar[bool] = ContextVar("vellum.pickle_references", default=False)


@contextmanager
def pickle_references() -> Iterator[None]:
    """Inside, arrays, strings and groups of a version pickle as references, whoever pickles them.

    A reference is a few hundred bytes, and opens the version where it arrives: the store must be there, and the
    snapshot in it. Without this, `multiprocessing`, joblib's workers and Dask get references, and files get values.
    """
    before = _is_asked.set(True)
    try:
        yield
    finally:
        _is_asked.reset(before)


def goes_by_reference() -> bool:
    """Whether what is being pickled goes to a worker, or references were asked for."""
    if _is_asked.get():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _HAND_OVER:
            return True
        frame = frame.f_back
    return False


def reduce_item(mapping: _mapping.Mapping, name: str) -> tuple[Any, ...] | None:
    """A reference to strings or a group. None: the values have to be pickled."""
    mapping.require_open()
    if mapping.version is None or not goes_by_reference():
        return None
    return _restore_item, (VersionReference.of(mapping), name)


def _restore_item(version: VersionReference, name: str) -> Any:
    from .group import Group

    return Group(version.open_kept())[name]


def reduce_array(array: Array) -> tuple[Any, ...] | None:
    """A reference to an array of a version. None: its values have to be pickled."""
    place = array._place()
    if place is None or place[0].version is None:
        return None
    mapping, name, offset = place
    same = dtype_from(mapping.catalog.entries[name]["dtype"]) == array.dtype
    dtype = None if same else array.dtype
    strides = None if array.flags.c_contiguous else array.strides
    return _restore_array, (VersionReference.of(mapping), name, offset, array.shape, strides, dtype)


def _restore_array(
    version: VersionReference,
    name: str,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[Any] | None,
) -> Array:
    from .array import Array
    from .group import _array

    mapping = version.open()
    whole = _array(mapping, mapping.catalog.entries[name])
    flat = whole.reshape(-1).view(np.uint8) if whole.nbytes else np.empty(0, np.uint8)
    array: Array = np.ndarray.__new__(
        Array, shape, whole.dtype if dtype is None else dtype, buffer=flat, offset=offset, strides=strides
    )
    return array


def reduce_region(region: Region) -> tuple[Any, ...]:
    """A reference to a version. A branch that is open to write does not pickle."""
    mapping = region._used()
    if mapping.version is None:
        raise TypeError(
            f"{mapping.title} is open to write, and has one writer at a time: pickle a version, or pass "
            "vellum.WriterReference.of(region), whose open() in the other process makes that one the writer"
        )
    return _restore_region, (VersionReference.of(mapping),)


def _restore_region(version: VersionReference) -> Region:
    from .region import Region

    return Region(version.open_anew(_core.OpenOptions()))


@dataclass(frozen=True)
class WriterReference:
    """For handing a branch over to another process, which becomes its writer: `WriterReference.of(r).open()`.

    `open()` is Busy while the other process, or anybody else, has the branch open.
    """

    path: str
    store_id: str
    branch: str

    @staticmethod
    def of(region: Region) -> WriterReference:
        """That of an open branch."""
        mapping = region._used()
        if mapping.version is not None:
            raise InvalidArgument(f"{mapping.title} is open to read: it pickles as it is")
        return WriterReference(mapping.store.path, mapping.store.id, mapping.name)

    def open(self) -> Region:
        """Opens the branch to write."""
        from .region import open as open_region
        from .store import _native

        if _native(self.path, False).id != self.store_id:
            raise NotFound(f"{self.path} is another store than the one that was pickled")
        return open_region(self.path, self.branch)
