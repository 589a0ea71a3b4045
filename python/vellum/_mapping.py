"""A mapped region, its catalog, and who still uses its memory."""

from __future__ import annotations

import functools
import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from .catalog import Catalog, extents_of
from .errors import InvalidArgument
from .space import PAGE, Extent

# Every mapping of the process, to find the one that contains an address. Threads open and close regions while
# others look: a dict copies itself in one step, a WeakSet does not.
_all: dict[int, weakref.ref[Mapping]] = {}
_numbers = itertools.count()


class _Extents:
    """The extents of a mapping that arrays use, each with a weak reference to its buffer, by offset.

    A buffer may go at any moment, in any thread, also while its own thread is in here.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._found: dict[int, tuple[Extent, weakref.ref[_core.Extent]]] = {}

    def buffer(self, extent: Extent, make: Callable[[], Any]) -> Any:
        """The extent's buffer, which is made if there is none."""
        with self.lock:
            found = self._found.get(extent[0])
            base: Any = found[1]() if found is not None and found[0] == extent else None
            if base is None:
                base = make()
                self._found[extent[0]] = (extent, weakref.ref(base, functools.partial(self._forget, extent[0])))
            return base

    def _forget(self, offset: int, dead: object) -> None:
        with self.lock:
            found = self._found.get(offset)
            if found is not None and found[1] is dead:
                del self._found[offset]

    def has(self, offset: int) -> bool:
        """Whether an array uses the extent that begins there."""
        found = self._found.get(offset)
        return found is not None and found[1]() is not None

    def live(self) -> set[Extent]:
        """The extents that arrays use."""
        return {extent for extent, base in self._found.copy().values() if base() is not None}


class _Ending:
    """Closes a mapping's region when the mapping is no longer reachable.

    `__del__` would be too early: weak references still give the object out while it runs.
    """

    def __init__(self, core: _core.Region) -> None:
        self.number = next(_numbers)
        self.core, self.pid = core, os.getpid()

    def __call__(self, dead: object, all_: dict[int, Any] = _all, getpid: Callable[[], int] = os.getpid) -> None:
        all_.pop(self.number, None)
        if self.pid == getpid():
            self.core.close()


class Mapping:
    """One region in memory.

    The handle that opened it holds it, and so does each array of it, by its extent. When the last of them
    goes, the region is closed. So memory is never unmapped under an array.
    """

    def __init__(
        self,
        store: _core.Store,
        core: _core.Region,
        version: _core.VersionInfo | None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.options = options or {}  # of `open`, those that were given
        self.thread = threading.get_ident()
        self.handle: weakref.ref[Any] | None = None  # the Region, of a branch that is open
        self.core = core
        self.version = version  # None: open to write
        self.name = core.name
        self.sequence = core.sequence  # of the opened version
        self.is_open = True  # its handle was not closed
        self.is_held = True  # a handle exists, or none is ever needed
        # In a child of fork(2), see forks.py: the parent's regions, and the extents that are the child's own memory.
        self.parents: list[_core.Region] = []
        self.covered: dict[Extent, int] = {}
        self.extents = _Extents()
        self.catalog = Catalog(self)
        self.ending = _Ending(core)
        _all[self.ending.number] = weakref.ref(self, self.ending)

    @property
    def title(self) -> str:
        """For messages."""
        kind = "branch" if self.version is None or self.version.is_branch else "snapshot"
        return f"{kind} '{self.name}' of {self.store.path}"

    def require_open(self) -> None:
        """For access by name. Arrays do not use it: they outlive the handle."""
        if not self.is_open:
            raise InvalidArgument(f"{self.title} is closed")

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the region. REQUIRES: the range is within the region."""
        self.core.prefetch(offset // PAGE * PAGE, round_to_pages(offset, length))
        return bytes(memoryview(extent_of(None, self.core, offset, length)))

    def write(self, offset: int, content: bytes) -> None:
        """Stores bytes into the region. REQUIRES: the range is within the region."""
        memoryview(extent_of(None, self.core, offset, len(content)))[:] = content

    def grow_to(self, size_bytes: int) -> None:
        """Makes the region large enough."""
        if size_bytes > self.core.size_bytes:
            self.core.grow(max(size_bytes, min(2 * self.core.size_bytes, self.core.capacity_bytes)))

    # ---- Arrays

    def view(self, extent: Extent, shape: tuple[int, ...], dtype: np.dtype[Any], kind: type[Any]) -> Any:
        """An array over the first bytes of an extent."""
        base = self.extents.buffer(extent, lambda: extent_of(self, self.core, *extent))
        return np.ndarray.__new__(kind, shape, dtype, buffer=base)

    def live(self) -> set[Extent]:
        """The extents that arrays use."""
        return self.extents.live()

    def has_views(self, extent: Extent) -> bool:
        """Whether an array of the extent lives."""
        return self.extents.has(extent[0])

    def names_in_use(self) -> list[str]:
        """The names of arrays that live."""
        live = self.live()
        return sorted(n for n, entry in self.catalog.entries.items() if live.intersection(extents_of(entry)))

    # ---- Its end

    def rollback(self) -> None:
        """Back to the last commit. Arrays that it does not have stay readable, as zeros."""
        size_bytes = self.core.size_bytes
        self.core.rollback()
        self.grow_to(size_bytes)
        self.catalog.load()


def extent_of(owner: Mapping | None, core: _core.Region, offset: int, length: int) -> Any:
    """A buffer over a range of a region; the stubs of CPython 3.11 do not know that it is one."""
    return _core.Extent(owner, core, offset, length)


def round_to_pages(offset: int, length: int) -> int:
    """The bytes of the pages that a range touches."""
    begin = offset // PAGE * PAGE
    return -(-(offset + length) // PAGE) * PAGE - begin


def everyone() -> list[Mapping]:
    """The mappings of the process."""
    return [mapping for mapping in (found() for found in _all.copy().values()) if mapping is not None]


def find(address: int, length: int = 1) -> Mapping | None:
    """The mapping that holds a range of memory."""
    for mapping in everyone():
        begin = mapping.core.address
        if begin <= address and address + length <= begin + mapping.core.size_bytes:
            return mapping
    return None


def writers() -> list[Mapping]:
    """The mappings that are open to write."""
    return [mapping for mapping in everyone() if mapping.version is None]


def readers() -> list[Mapping]:
    """The mappings of versions."""
    return [mapping for mapping in everyone() if mapping.version is not None]
