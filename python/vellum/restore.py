"""The content of an old version becomes that of a branch, in place."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

import numpy as np

from . import _core, _mapping
from .catalog import Entry, byte_count, dtype_from
from .space import Extent

_Part = tuple[str, str]  # the name of an entry, and which of its extents


def take_content(mapping: _mapping.Mapping, version: str) -> None:
    """Makes the memory of a branch that is as committed equal to a version.

    Arrays in use show the version's content, where the version has them. An array of the version whose place another
    array occupies gets new memory: the other one keeps its own.
    """
    core = mapping.store.open_version(version, _core.OpenOptions())
    old = _mapping.Mapping(mapping.store, core, mapping.store.version(version))
    entries, document = copy.deepcopy(old.catalog.entries), old.catalog.document
    held = mapping.live() - _common(mapping.catalog.entries, entries)
    diff = np.frombuffer(mapping.store.diff(mapping.name, version), dtype=np.uint64).reshape(-1, 2)
    mapping.grow_to(core.size_bytes)
    for offset, length in _without(diff.tolist(), sorted(held)):
        _copy(old, offset, mapping, offset, length)
    if not held:
        mapping.catalog.load()
        return
    mapping.catalog.space.take(old.catalog.used())
    for name, part in parts_of(entries):
        extent: Extent = tuple(entries[name][part])
        if any(_overlap(extent, each) for each in held):
            moved = mapping.catalog.space.allocate(extent[1])
            _copy(old, extent[0], mapping, moved[0], used_bytes(old, name, part))
            entries[name][part] = moved
    mapping.catalog.take(entries, document)


def parts_of(entries: dict[str, Entry]) -> Iterator[_Part]:
    """Each extent of each entry."""
    for name, entry in entries.items():
        yield from ((name, part) for part in ("extent", "offsets", "data") if part in entry)


def _common(now: dict[str, Entry], then: dict[str, Entry]) -> set[Extent]:
    """The extents that one entry has, with values of one dtype, now and then."""
    return {
        tuple(now[name][part])
        for name, part in parts_of(now)
        if name in then and all(now[name].get(key) == then[name].get(key) for key in ("kind", "dtype"))
        if tuple(now[name][part]) == tuple(then[name][part])
    }


def _overlap(a: Extent, b: Extent) -> bool:
    return a[0] < b[0] + b[1] and b[0] < a[0] + a[1]


def _without(ranges: list[list[int]], held: list[Extent]) -> Iterator[Extent]:
    """What is left of ranges. REQUIRES: both are sorted."""
    first = 0
    for offset, length in ranges:
        end = offset + length
        while first < len(held) and sum(held[first]) <= offset:
            first += 1
        for begin, held_length in itertools.islice(held, first, None):
            if begin >= end:
                break
            if begin > offset:
                yield offset, begin - offset
            offset = begin + held_length
        if offset < end:
            yield offset, end - offset


def used_bytes(mapping: _mapping.Mapping, name: str, part: str) -> int:
    """How much of an extent its values take."""
    entry = mapping.catalog.entries[name]
    if part == "extent":
        return byte_count(tuple(entry["shape"]), dtype_from(entry["dtype"]))
    offsets_bytes = 8 * (int(entry["length"]) + 1)
    if part == "offsets":
        return offsets_bytes
    end = int.from_bytes(mapping.read(entry["offsets"][0] + offsets_bytes - 8, 8), "little", signed=True)
    return max(0, min(end, int(entry["data"][1])))


def _copy(source: _mapping.Mapping, begin: int, target: _mapping.Mapping, offset: int, length: int) -> None:
    """Copies bytes of a region; bytes past the source's end are zero."""
    kept = max(0, min(length, source.core.size_bytes - begin))
    if kept:
        out = memoryview(_mapping.extent_of(None, target.core, offset, kept))
        out[:] = memoryview(_mapping.extent_of(None, source.core, begin, kept))
    if kept < length:
        target.core.zero(offset + kept, length - kept)
