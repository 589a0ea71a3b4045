"""The space of a region: which extents have an owner, and which are free."""

from __future__ import annotations

import weakref
from typing import Protocol

from . import _core
from .errors import InvalidArgument

PAGE = 4096

Extent = tuple[int, int]  # offset and length, in bytes of the region


def round_up(value: int, to: int) -> int:
    """The least multiple of `to` that is not below `value`."""
    return -(-value // to) * to


class Memory(Protocol):
    """The region that a space is of."""

    core: _core.Region

    @property
    def title(self) -> str: ...  # noqa: D102
    def live(self) -> set[Extent]: ...  # noqa: D102
    def has_views(self, extent: Extent) -> bool: ...  # noqa: D102
    def grow_to(self, size_bytes: int) -> None: ...  # noqa: D102


class Space:
    """The free space of a region.

    An extent is nobody else's as long as one of these has it: an entry of the catalog; the last commit, to which a
    rollback returns; an array, a buffer or a table in use, also after its name has gone. So two arrays never show the
    same memory, whatever was removed or rolled back between them.
    """

    def __init__(self, mapping: Memory) -> None:
        self._mapping = weakref.ref(mapping)
        self._free: list[Extent] = []  # by offset
        # Of no entry, until neither the last commit nor an array has it; True: it may have other bytes than zeros.
        self._leaving: dict[Extent, bool] = {}
        self._committed: frozenset[Extent] = frozenset()
        self._end = PAGE

    def _owner(self) -> Memory:
        mapping = self._mapping()
        assert mapping is not None
        return mapping

    def take(self, used: list[Extent]) -> None:
        """Starts from the extents of the last commit. Memory that arrays in use still show is not free either."""
        self._committed = frozenset(used)
        self._leaving = dict.fromkeys(self._owner().live() - self._committed, True)
        self._free, self._end = [], 0
        for offset, length in sorted([*used, *self._leaving]):
            if offset > self._end:
                self._free.append((self._end, offset - self._end))
            self._end = max(self._end, offset + length)
        self._end = round_up(self._end, PAGE)

    def committed(self, used: list[Extent]) -> None:
        """Sets the last commit: extents that it lacks may become free."""
        self._committed = frozenset(used)

    def is_committed(self, extent: Extent) -> bool:
        """Whether the last commit has an extent."""
        return extent in self._committed

    def allocate(self, length: int, alignment: int = PAGE, room: int = 0) -> Extent:
        """An extent of zeros; behind `length` bytes, up to `room` more if there is much more space than that.

        InvalidArgument: the region cannot grow so far. Then nothing has changed.
        """
        self._reclaim()
        mapping, length = self._owner(), max(length, 64)
        left = mapping.core.capacity_bytes - self._end - length
        room = max(0, min(room, left // 4) // PAGE * PAGE)
        found = self._fit(length + room, alignment) or self._fit(length, alignment)
        if found is None:
            return self._append(length + room, alignment)
        i, start, taken = found
        offset, free = self._free[i]
        mapping.core.zero(start, taken)
        rest = [(offset, start - offset), (start + taken, offset + free - start - taken)]
        self._free[i : i + 1] = [extent for extent in rest if extent[1] > 0]
        return start, taken

    def _fit(self, length: int, alignment: int) -> tuple[int, int, int] | None:
        for i, (offset, free) in enumerate(self._free):
            start = round_up(offset, alignment)
            if start + length <= offset + free:
                return i, start, length
        return None

    def _append(self, length: int, alignment: int) -> Extent:
        mapping, start = self._owner(), round_up(self._end, alignment)
        size_bytes, capacity_bytes = mapping.core.size_bytes, mapping.core.capacity_bytes
        if start + length > capacity_bytes:
            raise InvalidArgument(
                f"{mapping.title} has no room for {length} bytes: {start} of at most {capacity_bytes} are taken: "
                "remove something, or open the branch with a larger capacity_bytes"
            )
        mapping.grow_to(start + length)
        if start < size_bytes:  # bytes of an array without a name may remain there
            mapping.core.zero(start, min(start + length, size_bytes) - start)
        if start > self._end:
            self._free.append((self._end, start - self._end))
        self._end = start + length
        return start, length

    def free(self, extent: Extent) -> None:
        """Releases the extents that no entry uses."""
        if extent[1] == 0:
            return
        in_use = self._owner().has_views(extent)
        if not in_use:
            self._owner().core.zero(*extent)
        self._leaving[extent] = in_use

    def _reclaim(self) -> None:
        """Frees the released extents that have no other owner."""
        mapping = self._owner()
        unused = [each for each in self._leaving if each not in self._committed and not mapping.has_views(each)]
        if not unused:
            return
        for extent in unused:
            if self._leaving.pop(extent):
                mapping.core.zero(*extent)
        merged: list[Extent] = []
        for offset, length in sorted([*self._free, *unused]):
            if merged and sum(merged[-1]) == offset:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((offset, length))
        self._free = merged
