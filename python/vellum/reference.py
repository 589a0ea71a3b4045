"""Arrays and versions in other processes: pickled as a reference, opened lazily where they arrive."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any

from . import _core, _mapping
from ._native import open_store
from .errors import NotFound

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
        """The version, opened independently of other handles, which may be closed."""
        mapping = _kept.get(self)
        if mapping is None:
            mapping = _kept[self] = self.open_anew(_core.OpenOptions())
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return mapping

    def open_anew(self, options: _core.OpenOptions) -> _mapping.Mapping:
        """The version, opened for the caller."""
        store = open_store(self.path, False)
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
    """Inside, arrays, strings and groups of a version pickle as references in every thread and library.

    A reference is a few hundred bytes, and opens the version where it arrives: the store must be there, and the
    snapshot in it. Without this, `multiprocessing`, joblib's workers and Dask get references, and files get values.
    """
    before = _is_asked.set(True)
    try:
        yield
    finally:
        _is_asked.reset(before)


def goes_by_reference() -> bool:
    """Whether the pickle goes to a worker, or references were requested."""
    if _is_asked.get():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _HAND_OVER:
            return True
        frame = frame.f_back
    return False


def reference_to(mapping: _mapping.Mapping) -> VersionReference | None:
    """A reference for the pickled object. None: its values are pickled."""
    mapping.require_open()
    return VersionReference.of(mapping) if mapping.version is not None and goes_by_reference() else None
