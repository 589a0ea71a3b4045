"""What differs between two versions, array by array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from . import _core, _mapping
from .array import Array
from .catalog import Entry, byte_count, dtype_from
from .changed import Ranges, changed_ranges, no_ranges


@dataclass(frozen=True, eq=False)
class ArrayDiff:
    """What differs in one array, or in strings or a dict.

    `kind` is "added", "removed", "replaced" (with another dtype, or other lengths behind the first axis) or
    "changed". `ranges` has a row for each changed range: begin and end, in bytes of the array. `rows` are the
    indices along the first axis that it touches. `nbytes` counts the changed bytes. Added, removed and replaced
    ones, and those of other kinds than arrays, have neither ranges nor rows.
    """

    kind: str
    nbytes: int = 0
    ranges: Ranges = field(default_factory=no_ranges)
    rows: Ranges = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __repr__(self) -> str:
        return f"<{self.kind}: {self.nbytes} bytes in {len(self.ranges)} ranges, {len(self.rows)} rows>"


class Diff(Mapping[str, ArrayDiff]):
    """The names of the entries that differ, each with its `ArrayDiff`. A change of attributes counts, with no bytes."""

    def __init__(self, store: _core.Store, a: str, b: str) -> None:
        self.versions = (a, b)
        before, after = _open(store, a), _open(store, b)
        words = np.frombuffer(store.diff(a, b), dtype=np.uint64).astype(np.int64).reshape(-1, 2)
        #: All changed ranges of the region: begin and end in bytes.
        self.region_ranges: Ranges = np.stack([words[:, 0], words[:, 0] + words[:, 1]], axis=1)
        self._found = dict(self._compare(before, after))

    def _compare(self, before: _mapping.Mapping, after: _mapping.Mapping) -> Iterator[tuple[str, ArrayDiff]]:
        old, new = before.catalog.entries, after.catalog.entries
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                yield name, ArrayDiff("removed")
            elif name not in old:
                yield name, ArrayDiff("added")
            else:
                found = self._of(before, old[name], after, new[name])
                if found is not None:
                    yield name, found

    def _of(self, before: _mapping.Mapping, old: Entry, after: _mapping.Mapping, new: Entry) -> ArrayDiff | None:
        if old["kind"] != new["kind"]:
            return ArrayDiff("replaced")
        if old["kind"] == "array":
            return self._of_array(before, old, after, new)
        same = all(old[key] == new.get(key) for key in old)
        parts = [part for part in ("offsets", "data") if part in new]
        nbytes = sum(int(np.diff(self._inside(new[part]), axis=1).sum()) for part in parts)
        return None if same and nbytes == 0 else ArrayDiff("changed", nbytes)

    def _of_array(
        self, before: _mapping.Mapping, old: Entry, after: _mapping.Mapping, new: Entry
    ) -> ArrayDiff | None:
        if old["dtype"] != new["dtype"] or tuple(old["shape"][1:]) != tuple(new["shape"][1:]):
            return ArrayDiff("replaced")
        if bool(old["shape"]) != bool(new["shape"]):
            return ArrayDiff("replaced")
        dtype, shape = dtype_from(new["dtype"]), tuple(new["shape"])
        if old["extent"][0] == new["extent"][0]:
            longest = max(byte_count(tuple(old["shape"]), dtype), byte_count(shape, dtype))
            ranges = self._inside([new["extent"][0], longest])
        else:
            ranges = _compare_content(before, old, after, new)
        rows = _rows(ranges, max(byte_count(shape[1:], dtype), 1))
        nbytes = int((ranges[:, 1] - ranges[:, 0]).sum())
        same = nbytes == 0 and old["attrs"] == new["attrs"] and tuple(old["shape"]) == shape
        return None if same else ArrayDiff("changed", nbytes, ranges, rows)

    def _inside(self, extent: list[int]) -> Ranges:
        """The changed ranges of an extent, relative to its begin."""
        begin, end = extent[0], extent[0] + extent[1]
        first = np.searchsorted(self.region_ranges[:, 1], begin, side="right")
        last = np.searchsorted(self.region_ranges[:, 0], end, side="left")
        return np.clip(self.region_ranges[first:last], begin, end) - begin

    def __getitem__(self, name: str) -> ArrayDiff:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<Diff {self.versions[0]} to {self.versions[1]}: {self._found}>"


def _open(store: _core.Store, name: str) -> _mapping.Mapping:
    return _mapping.Mapping(store, store.open_version(name, _core.OpenOptions()), store.version(name))


def _compare_content(before: _mapping.Mapping, old: Entry, after: _mapping.Mapping, new: Entry) -> Ranges:
    """For an array that has moved. Rows that only one has are changed."""
    dtype = dtype_from(new["dtype"])
    sizes = [byte_count(tuple(entry["shape"]), dtype) for entry in (old, new)]
    common, longest = min(sizes), max(sizes)
    views = [
        mapping.view(tuple(entry["extent"]), (common,), np.dtype("u1"), Array)
        for mapping, entry in ((before, old), (after, new))
    ]
    ranges = changed_ranges(views[0], views[1])
    rest = np.array([[common, longest]], dtype=np.int64)
    return np.concatenate([ranges, rest]) if longest > common else ranges


def _rows(ranges: Ranges, row_bytes: int) -> Ranges:
    """The rows that byte ranges touch, ascending."""
    if len(ranges) == 0:
        return np.empty(0, dtype=np.int64)
    first, last = ranges[:, 0] // row_bytes, (ranges[:, 1] - 1) // row_bytes
    counts = last - first + 1
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return np.unique(starts + np.arange(int(counts.sum())))
