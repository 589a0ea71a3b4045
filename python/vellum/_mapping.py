"""A mapped region, its catalog, and who still uses its memory."""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np

from . import _core
from .catalog import Catalog, Extent
from .errors import InvalidArgument

# Every mapping of the process, for finding the one that an address lies in.
_all: weakref.WeakSet[Mapping] = weakref.WeakSet()
_PAGE = 4096


class Mapping:
    """One region in memory.

    The handle that opened it holds it, and so does each array of it, by its extent. When the last of them
    goes, the region is closed. So memory is never unmapped under an array.
    """

    def __init__(self, store: _core.Store, core: _core.Region, version: _core.VersionInfo | None) -> None:
        self.store = store
        self.core = core
        self.version = version  # None: open to write
        self.name = core.name
        self.sequence = core.sequence  # of what was opened
        self.is_open = True  # its handle was not closed
        self.is_held = True  # there is a handle, or nobody ever needs one
        self.pid = os.getpid()
        self.parents: list[_core.Region] = []  # in a child of fork(2): see reference.py
        self._extents: dict[int, tuple[Extent, weakref.ref[_core.Extent]]] = {}
        self.catalog = Catalog(self)
        _all.add(self)

    @property
    def title(self) -> str:
        """For messages."""
        kind = "branch" if self.version is None or self.version.is_branch else "snapshot"
        return f"{kind} '{self.name}' of {self.store.path}"

    def require_open(self) -> None:
        """For whoever comes by a name. Arrays do not: they go on after the end of the handle."""
        if not self.is_open:
            raise InvalidArgument(f"{self.title} is closed")

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the region. REQUIRES: they lie in it."""
        self.core.prefetch(offset // _PAGE * _PAGE, round_to_pages(offset, length))
        return bytes(memoryview(extent_of(None, self.core, offset, length)))

    def write(self, offset: int, content: bytes) -> None:
        """Stores bytes into the region. REQUIRES: they lie in it."""
        memoryview(extent_of(None, self.core, offset, len(content)))[:] = content

    def grow_to(self, size_bytes: int) -> None:
        """Makes the region large enough."""
        if size_bytes > self.core.size_bytes:
            self.core.grow(max(size_bytes, min(2 * self.core.size_bytes, self.core.capacity_bytes)))

    # ---- Arrays

    def view(self, extent: Extent, shape: tuple[int, ...], dtype: np.dtype[Any], kind: type[Any]) -> Any:
        """An array over the first bytes of an extent."""
        offset, length = extent
        found = self._extents.get(offset)
        base: Any = found[1]() if found is not None and found[0] == (offset, length) else None
        if base is None:
            base = extent_of(self, self.core, offset, length)
            key, extents = offset, self._extents
            token = weakref.ref(base, lambda dead: _forget(extents, key, dead))
            extents[offset] = ((offset, length), token)
        return np.ndarray.__new__(kind, shape, dtype, buffer=base)

    def has_views(self, extent: Extent) -> bool:
        """Whether an array of the extent lives."""
        found = self._extents.get(extent[0])
        return found is not None and found[1]() is not None

    def names_in_use(self) -> list[str]:
        """The names of arrays that live."""
        live = {offset for offset, (_, extent) in list(self._extents.items()) if extent() is not None}
        return sorted(
            name
            for name, entry in self.catalog.entries.items()
            if any(entry[part][0] in live for part in ("extent", "offsets", "data") if part in entry)
        )

    # ---- Its end

    def rollback(self) -> None:
        """Back to the last commit. Arrays that it does not have stay readable, as zeros."""
        size_bytes = self.core.size_bytes
        self.core.rollback()
        self.grow_to(size_bytes)
        self.catalog.load()

    def __del__(self) -> None:
        core = getattr(self, "core", None)
        if core is not None and self.pid == os.getpid():
            core.close()


def extent_of(owner: Mapping | None, core: _core.Region, offset: int, length: int) -> Any:
    """A buffer over a range of a region; the stubs of CPython 3.11 do not know that it is one."""
    return _core.Extent(owner, core, offset, length)


def _forget(extents: dict[int, Any], key: int, dead: object) -> None:
    found = extents.get(key)
    if found is not None and found[1] is dead:
        del extents[key]


def round_to_pages(offset: int, length: int) -> int:
    """The bytes of the pages that a range touches."""
    begin = offset // _PAGE * _PAGE
    return -(-(offset + length) // _PAGE) * _PAGE - begin


def find(address: int, length: int = 1) -> Mapping | None:
    """The mapping that holds a range of memory."""
    for mapping in list(_all):
        begin = mapping.core.address
        if begin <= address and address + length <= begin + mapping.core.size_bytes:
            return mapping
    return None


def writers() -> list[Mapping]:
    """The mappings that are open to write."""
    return [mapping for mapping in list(_all) if mapping.version is None]


def readers() -> list[Mapping]:
    """The mappings of versions."""
    return [mapping for mapping in list(_all) if mapping.version is not None]
