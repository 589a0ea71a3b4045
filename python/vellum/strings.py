"""Strings and bytes of any length, in the layout of Arrow: 64-bit offsets, and the bytes one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ._arguments import is_utf8
from ._mapping import Mapping
from .array import Array
from .attributes import Attributes
from .catalog import Entry
from .errors import Corrupted, InvalidArgument, ReadOnly
from .reference import VersionReference, reference_to
from .space import PAGE, Extent, round_up

_LEAST_ROOM = 1 << 20


def _encoded(values: Iterable[str | bytes], kind: str) -> list[bytes]:
    expected = str if kind == "string" else (bytes, bytearray, memoryview)
    out = []
    for value in values:
        if not isinstance(value, expected):
            raise InvalidArgument(f"{value!r} is no {'str' if kind == 'string' else 'bytes'}")
        if isinstance(value, str) and not is_utf8(value):
            raise InvalidArgument(f"{value!r} cannot be written as UTF-8: use create_bytes()")
        out.append(value.encode("utf-8") if isinstance(value, str) else bytes(value))
    return out


class Strings(Sequence[Any]):
    """A sequence of `str` or of `bytes`. Appending is cheap; changing the length of a value moves those after it.

    `offsets` and `data` are arrays over the memory itself, as Arrow's large strings have them. `to_arrow()` puts them
    together.
    """

    def __init__(self, mapping: Mapping, name: str) -> None:
        self._mapping = mapping
        self._name = name

    def _entry(self) -> Entry:
        return self._mapping.catalog.find(self._name)

    @property
    def kind(self) -> str:
        """What the values are: "string" or "bytes"."""
        kind: str = self._entry()["kind"]
        return kind

    @property
    def attrs(self) -> Attributes:
        """The attributes: JSON values by name."""
        return Attributes(self._mapping, self._name)

    @property
    def offsets(self) -> Array:
        """Where each value begins in `data`, and the end of the last one."""
        entry = self._entry()
        shape = (entry["length"] + 1,)
        array: Array = self._mapping.view(tuple(entry["offsets"]), shape, np.dtype("<i8"), Array)
        array.flags.writeable = False
        return array

    @property
    def data(self) -> Array:
        """The bytes of all values. Corrupted: the offsets do not fit them."""
        entry = self._entry()
        end = int(self.offsets[-1])
        if not 0 <= end <= entry["data"][1]:
            raise Corrupted(f"{self._mapping.title}: the offsets of {self._name!r} are wrong")
        array: Array = self._mapping.view(tuple(entry["data"]), (end,), np.dtype("u1"), Array)
        array.flags.writeable = False
        return array

    def __len__(self) -> int:
        length: int = self._entry()["length"]
        return length

    def _decode(self, content: bytes) -> Any:
        return content.decode("utf-8") if self._entry()["kind"] == "string" else content

    def _bounds(self, begin: int, end: int) -> np.ndarray[Any, Any]:
        bounds = np.array(self.offsets[begin : end + 1])
        if bounds[0] < 0 or bounds[-1] > self._entry()["data"][1] or np.any(bounds[1:] < bounds[:-1]):
            raise Corrupted(f"{self._mapping.title}: the offsets of {self._name!r} are wrong")
        return bounds

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step != 1:
                return [self[i] for i in range(begin, end, step)]
            return self._range(begin, max(begin, end))
        return self._range(*self._one(index))[0]

    def _one(self, index: Any) -> tuple[int, int]:
        at = int(index.__index__())
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"{self._name!r} has {len(self)} values, and no number {index}")
        return at, at + 1

    def _range(self, begin: int, end: int) -> list[Any]:
        if begin == end:
            return []
        bounds = self._bounds(begin, end)
        content = self.data[bounds[0] : bounds[-1]].tobytes()
        at = (bounds - bounds[0]).tolist()
        return [self._decode(content[a:b]) for a, b in zip(at, at[1:], strict=False)]

    def __iter__(self) -> Iterator[Any]:
        for begin in range(0, len(self), 4096):
            yield from self._range(begin, min(begin + 4096, len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._entry()['kind']} values {self._name!r}, {len(self)} of them>"

    def __reduce__(self) -> Any:
        """A list of the values; for a worker process a reference, where the version is read-only."""
        reference = reference_to(self._mapping)
        return (list, (list(self),)) if reference is None else (_restore_strings, (reference, self._name))

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy, as an array of Python objects."""
        out = np.empty(len(self), dtype=object)
        out[:] = list(self)
        return out

    @property
    def is_live(self) -> bool:
        """Whether the values may change: they are a branch's."""
        return self._mapping.version is None

    def check_offsets(self) -> None:
        """Corrupted: the offsets are not in order, or do not fit the bytes. Reads all of them."""
        self._bounds(0, len(self))

    def to_arrow(self) -> Any:
        """A `pyarrow.LargeStringArray` or `LargeBinaryArray`; of a version over its memory, of a branch a copy."""
        from .exchange import arrow

        return arrow.strings_of(self)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """For consumers of Arrow arrays: `polars.Series(strings)`, `pyarrow.array(strings)`."""
        return self.to_arrow().__arrow_c_array__(requested_schema)

    # ---- Changes

    def append(self, value: str | bytes) -> None:
        """Adds a value."""
        self.extend([value])

    def extend(self, values: Iterable[str | bytes]) -> None:
        """Adds values."""
        self._splice(len(self), len(self), values)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step != 1:
                raise InvalidArgument("only ranges without a step can be replaced")
            self._splice(begin, max(begin, end), value)
        else:
            self._splice(*self._one(index), [value])

    def __delitem__(self, index: Any) -> None:
        begin, end = (index.indices(len(self))[:2]) if isinstance(index, slice) else self._one(index)
        if isinstance(index, slice) and index.indices(len(self))[2] != 1:
            raise InvalidArgument("only ranges without a step can be removed")
        self._splice(begin, max(begin, end), [])

    def _splice(self, begin: int, end: int, values: Iterable[str | bytes]) -> None:
        """Puts values in place of those of a range, and moves the ones behind it."""
        if self._mapping.version is not None:
            raise ReadOnly(f"{self._mapping.title} is open read-only")
        entry = self._entry()
        new = _encoded(values, entry["kind"])
        bounds = self._bounds(begin, len(self))  # of the replaced strings and of those that move
        tail = self.data[bounds[end - begin] :].tobytes()
        lengths = np.fromiter((len(value) for value in new), dtype=np.int64, count=len(new))
        middle = bounds[0] + np.concatenate([[0], np.cumsum(lengths)])
        after = bounds[end - begin + 1 :] + (middle[-1] - bounds[end - begin])
        offsets = np.concatenate([middle, after]).astype("<i8")
        count = len(self) - (end - begin) + len(new)
        self._make_room("offsets", (count + 1) * 8)
        self._make_room("data", int(offsets[-1]))
        written = self._mapping.view(tuple(entry["offsets"]), (count + 1,), np.dtype("<i8"), Array)
        written[begin:] = offsets
        content = b"".join(new) + tail
        if content:
            self._mapping.write(entry["data"][0] + int(bounds[0]), content)
        entry["length"] = count
        self._mapping.catalog.dirty = True

    def _make_room(self, part: str, length: int) -> None:
        entry, catalog = self._entry(), self._mapping.catalog
        old: Extent = tuple(entry[part])
        if length <= old[1]:
            return
        new = catalog.space.allocate(*_space(length))
        kept = self._mapping.view(old, (old[1],), np.dtype("u1"), Array)
        self._mapping.view(new, (new[1],), np.dtype("u1"), Array)[: old[1]] = kept
        del kept
        catalog.move(self._name, part, new)


def _restore_strings(version: VersionReference, name: str) -> Strings:
    return Strings(version.open_kept(), name)


def _space(length: int) -> tuple[int, int, int]:
    """Length and alignment of an extent, and the room behind it."""
    length = round_up(max(length, 1), PAGE)
    return length, PAGE, max(3 * length, _LEAST_ROOM - length)


def create(mapping: Mapping, name: str, kind: str, values: Iterable[str | bytes]) -> Strings:
    """New values under a name."""
    values = list(values)
    encoded = _encoded(values, kind)
    if mapping.version is not None:
        raise ReadOnly(f"{mapping.title} is open read-only")
    sizes = (8 * (len(encoded) + 1), sum(map(len, encoded)))
    entry: Entry = {"kind": kind, "length": 0, "attrs": {}}
    with mapping.catalog.creating(name, entry):
        for part, size in zip(("offsets", "data"), sizes, strict=True):
            entry[part] = mapping.catalog.space.allocate(*_space(size))
        mapping.catalog.add(name, entry)
        strings = Strings(mapping, name)
        strings.extend(values)
    return strings
