"""The layout of a region: a header, one JSON document, and the extents of arrays.

The header is the region's first page. Its first 40 bytes, little-endian::

    0   8  magic, "VLMarray"
    8   4  format, 1
    12  4  CRC-32 of the document
    16  8  offset of the document in the region
    24  8  its length in bytes
    32  8  length of its extent

The document is UTF-8, an object of entries by name; the root group has the name "". Each entry has a `kind`:

`group`
    `attrs`
`array`
    `attrs`, `dtype`, `shape`, `extent`; C order. A dtype is numpy's string, such as "<f4", or an object: of
    `base` and `shape`, or of the `names`, `formats`, `offsets`, `itemsize` and `aligned` of a structured one
`string`, `bytes`
    `attrs`, `length`, `offsets` (an extent of `length` + 1 64-bit integers) and `data` (an extent of bytes);
    value i is `data[offsets[i]:offsets[i + 1]]`
`dict`
    `attrs`, `items`

An extent is `[offset, length]`, in bytes of the region; extents do not overlap. Space in no extent is free.
A document is hostile until `Catalog.load` has checked it: another program or a person may have written it.
"""

from __future__ import annotations

import copy
import json
import re
import struct
import weakref
import zlib
from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from .errors import AlreadyExists, Corrupted, InvalidArgument, NewerFormat, NotFound
from .space import PAGE, Extent, Memory, Space

MAGIC = b"VLMarray"
FORMAT = 1
HEADER = struct.Struct("<8sIIQQQ")
MOST_DOCUMENT_BYTES = 1 << 30
MOST_REGION_BYTES = 1 << 46
_PLAIN_DTYPE = re.compile(r"[<>|][a-zA-Z][0-9]*(\[[0-9]*[a-zA-Z]+\])?")

_PARTS = ("extent", "offsets", "data")

Entry = dict[str, Any]


def checked_name(name: str) -> str:
    """The name itself, unless it cannot be one."""
    parts = name.split("/") if isinstance(name, str) else []
    if not parts or len(name) > 1000 or any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise InvalidArgument(f"{name!r} is no name: names are 1 to 1000 characters, with single '/' between groups")
    return name


def describe_dtype(dtype: np.dtype[Any]) -> Any:
    """A dtype as JSON; only of types whose values are plain bytes."""
    if not dtype.hasobject:
        described = _described(dtype)
        try:
            if dtype_from(described) == dtype:
                return described
        except ValueError:
            pass
    raise InvalidArgument(
        f"values of dtype {dtype} are not plain bytes that numpy itself describes: for text and bytes of any "
        "length use create_strings() or create_bytes(), for small objects create_dict()"
    )


def _described(dtype: np.dtype[Any]) -> Any:
    if dtype.subdtype is not None:
        return {"base": _described(dtype.subdtype[0]), "shape": list(dtype.subdtype[1])}
    if dtype.names is None:
        return dtype.str
    fields = [dtype.fields[name] for name in dtype.names] if dtype.fields else []
    return {
        "names": list(dtype.names),
        "formats": [_described(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def dtype_from(described: Any, depth: int = 0) -> np.dtype[Any]:
    """The dtype that JSON describes. ValueError: none."""
    try:
        if isinstance(described, str) and _PLAIN_DTYPE.fullmatch(described):
            dtype = np.dtype(described)
        elif depth > 32:
            raise ValueError("a dtype nested deeply")
        elif "base" in described:
            dtype = np.dtype((dtype_from(described["base"], depth + 1), tuple(described["shape"])))
        else:
            fields: Any = {key: described[key] for key in ("names", "offsets", "itemsize")}
            fields["formats"] = [dtype_from(each, depth + 1) for each in described["formats"]]
            dtype = np.dtype(fields, align=bool(described["aligned"]))
    except (TypeError, ValueError, KeyError, OverflowError, SyntaxError, MemoryError) as error:
        raise ValueError(f"{described!r} is no dtype") from error
    if dtype.hasobject or not 0 <= dtype.itemsize <= 1 << 31:
        raise ValueError("a dtype whose values are not plain bytes")
    return dtype


def byte_count(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The bytes of an array."""
    count = dtype.itemsize
    for length in shape:
        count *= length
    return count


class _Reader:
    """Checks a document. Every complaint is a ValueError."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.extents: list[Extent] = []

    def number(self, value: Any) -> int:
        if type(value) is not int or not 0 <= value <= MOST_REGION_BYTES:
            raise ValueError(f"{value!r} is not a length")
        return value

    def extent(self, value: Any, least_bytes: int) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"{value!r} is not an extent")
        offset, length = self.number(value[0]), self.number(value[1])
        if offset + length > self.size_bytes:
            raise ValueError("an extent reaches past the region's end")
        if least_bytes > length:
            raise ValueError(f"an extent of {length} bytes for {least_bytes}")
        self.extents.append((offset, length))

    def entry(self, name: Any, entry: Any) -> None:
        if name != "":
            checked_name(name)
        if not isinstance(entry, dict) or not isinstance(entry.get("attrs"), dict):
            raise ValueError("an entry without attributes")
        kind = entry.get("kind")
        if kind == "array":
            shape = entry["shape"]
            if not isinstance(shape, list) or len(shape) > 64:
                raise ValueError(f"{shape!r} is not a shape")
            entry["shape"] = tuple(self.number(length) for length in shape)
            self.extent(entry["extent"], byte_count(entry["shape"], dtype_from(entry["dtype"])))
            self.extents_aligned(entry["extent"][0])
        elif kind in ("string", "bytes"):
            self.extent(entry["offsets"], (self.number(entry["length"]) + 1) * 8)
            self.extents_aligned(entry["offsets"][0])
            self.extent(entry["data"], 0)
        elif kind == "dict":
            if not isinstance(entry["items"], dict):
                raise ValueError("a dict without items")
        elif kind != "group":
            raise ValueError(f"an entry of kind {kind!r}")

    def extents_aligned(self, offset: int) -> None:
        if offset % 64 != 0:
            raise ValueError("an extent that is not aligned")

    def require_apart(self) -> None:
        end = 0
        for offset, length in sorted(self.extents):
            if offset < end:
                raise ValueError("two extents overlap")
            end = offset + length

    def require_groups(self, entries: dict[str, Entry]) -> None:
        for name in entries:
            parent = name.rpartition("/")[0]
            if entries.get(parent, {}).get("kind") != "group":
                raise ValueError(f"{name!r} is in no group")


def _checked(document: bytes, size_bytes: int, extent: Extent) -> dict[str, Entry]:
    reader = _Reader(size_bytes)
    reader.extents += [(0, PAGE), extent]
    try:
        entries = json.loads(document.decode("utf-8"))
        if not isinstance(entries, dict) or "" not in entries:
            raise ValueError("it has no root")
        for name, entry in entries.items():
            reader.entry(name, entry)
        reader.require_groups(entries)
        reader.require_apart()
    except (ValueError, KeyError, RecursionError, OverflowError) as error:
        raise ValueError(f"{error}" if isinstance(error, ValueError) else f"{error!r} is wrong") from error
    return entries


def extents_of(entry: Entry) -> list[Extent]:
    """The extents of an entry: one of an array, two of strings, none of others."""
    return [tuple(entry[part]) for part in _PARTS if part in entry]


class Described(Memory, Protocol):
    """The region that a catalog is of."""

    def require_open(self) -> None: ...  # noqa: D102
    def read(self, offset: int, length: int) -> bytes: ...  # noqa: D102
    def write(self, offset: int, content: bytes) -> None: ...  # noqa: D102


class Catalog:
    """The entries of a region, and the space that they leave. One for each mapping."""

    def __init__(self, mapping: Described) -> None:
        self._mapping = weakref.ref(mapping)  # which holds this
        self.entries: dict[str, Entry] = {}
        self.space = Space(mapping)
        self.dirty = False
        self.generation = 0  # how often the entries were read: values of an earlier one are not in the region
        self._is_written = False  # since the last commit
        self.load()

    @property
    def mapping(self) -> Described:
        """The region that the catalog is of."""
        mapping = self._mapping()
        assert mapping is not None
        return mapping

    # ---- Reading and writing the region

    def load(self) -> None:
        """Reloads the catalog from the region and drops unwritten changes. REQUIRES: the region is as committed."""
        self._take(*self._read())

    def take(self, entries: dict[str, Entry], document: Extent) -> None:
        """Takes entries that the region does not have yet; the next `write` writes them into another extent."""
        self._take(entries, document)
        self._extent = (PAGE, 0)
        self.dirty = True

    def _take(self, entries: dict[str, Entry], document: Extent) -> None:
        self.dirty = self._is_written = False
        self.generation += 1
        self.entries, self._extent = entries, document
        self._names = {entry["extent"][0]: name for name, entry in entries.items() if "extent" in entry}
        self._begins = sorted(self._names)
        self.space.take(self.used())

    def used(self) -> list[Extent]:
        """What the header, the document and the entries take."""
        used = [extent for entry in self.entries.values() for extent in extents_of(entry)]
        return [(0, PAGE), self._extent, *used]

    @property
    def document(self) -> Extent:
        """The extent of the document."""
        return self._extent

    def _read(self) -> tuple[dict[str, Entry], Extent]:
        size_bytes = self.mapping.core.size_bytes
        header = HEADER.unpack(self.mapping.read(0, HEADER.size)) if size_bytes >= PAGE else None
        if header is None or (not any(header[0]) and not any(header[1:])):
            return {"": {"kind": "group", "attrs": {}}}, (PAGE, 0)
        if header[0] != MAGIC:
            raise InvalidArgument(
                f"{self.mapping.title} holds no arrays: another program has written it, not this package"
            )
        if header[1] != FORMAT:
            raise NewerFormat(f"{self.mapping.title} has arrays of format {header[1]}; this is {FORMAT}")
        _, _, checksum, offset, length, room = header
        problem = "its place is wrong"
        if length <= room and length <= MOST_DOCUMENT_BYTES and offset + room <= size_bytes:
            document = self.mapping.read(offset, length)
            problem = "its checksum is wrong"
            if zlib.crc32(document) == checksum:
                try:
                    return _checked(document, size_bytes, (offset, room)), (offset, room)
                except ValueError as error:
                    raise Corrupted(f"{self.mapping.title}: its list of arrays is wrong: {error}") from error
        raise Corrupted(f"{self.mapping.title}: its list of arrays is wrong: {problem}")

    def write(self) -> None:
        """Brings the region up to date; the next commit makes it durable."""
        if not self.dirty:
            return
        self.dirty = False  # before: another thread may change the entries meanwhile
        try:
            self._write(json.dumps(self.entries, separators=(",", ":")).encode("utf-8"))
        except BaseException:
            self.dirty = True
            raise
        self._is_written = True

    def committed(self) -> None:
        """The written catalog is now the last commit: its freed extents may be used again."""
        if self._is_written:
            self._is_written = False
            self.space.committed(self.used())

    def _write(self, document: bytes) -> None:
        if len(document) > MOST_DOCUMENT_BYTES:
            raise InvalidArgument("the list of arrays, attributes and dicts is larger than 1 GiB")
        if len(document) > self._extent[1]:
            old, self._extent = self._extent, self.space.allocate(max(2 * len(document), PAGE))
            self.space.free(old)
        offset, room = self._extent
        self.mapping.write(offset, document)
        checksum = zlib.crc32(document)
        self.mapping.write(0, HEADER.pack(MAGIC, FORMAT, checksum, offset, len(document), room))

    # ---- Entries

    def find(self, name: str) -> Entry:
        """The entry. NotFound: there is none."""
        self.mapping.require_open()
        entry = self.entries.get(name)
        if entry is None:
            raise NotFound(f"{self.mapping.title} has no {name!r}")
        return entry

    def name_at(self, offset: int) -> str | None:
        """The name of the array whose extent holds a byte."""
        at = bisect_right(self._begins, offset) - 1
        name = self._names[self._begins[at]] if at >= 0 else None
        if name is None or offset >= sum(self.entries[name]["extent"]):
            return None
        return name

    @contextmanager
    def creating(self, name: str, entry: Entry) -> Iterator[None]:
        """For the making of an entry: an error takes it back, its extents, and the groups that were made for it.

        AlreadyExists, before anything is done: the name is taken.
        """
        self.mapping.require_open()
        checked_name(name)
        if name in self.entries:
            raise AlreadyExists(f"{self.mapping.title} has a {name!r} already")
        parts = name.split("/")
        made = ["/".join(parts[:i]) for i in range(len(parts), 0, -1)]
        made = [each for each in made if each not in self.entries]
        parent = made[-1].rpartition("/")[0]
        if self.entries[parent]["kind"] != "group":
            kind = self.entries[parent]["kind"]
            raise AlreadyExists(f"{parent!r} of {self.mapping.title} is no group, but of kind {kind}")
        try:
            yield
        except BaseException:
            self.entries.setdefault(name, entry)
            for each in made:
                if each in self.entries:
                    self._drop(each)
            raise

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """For many new entries and attributes: an error removes them. Stores into old arrays remain."""
        before = {name: copy.deepcopy(entry["attrs"]) for name, entry in self.entries.items()}
        try:
            yield
        except BaseException:
            for name in [name for name in self.entries if name not in before]:
                self._drop(name)
            for name, attrs in before.items():
                if self.entries[name]["attrs"] != attrs:
                    self.entries[name]["attrs"] = attrs
            raise

    def add(self, name: str, entry: Entry) -> None:
        """A new entry and its parent groups. REQUIRES: within `creating`."""
        parts = name.split("/")[:-1]
        for i in range(len(parts)):
            self.entries.setdefault("/".join(parts[: i + 1]), {"kind": "group", "attrs": {}})
        entry.setdefault("attrs", {})
        self.entries[name] = entry
        if "extent" in entry:
            self._list(name, entry["extent"])
        self.dirty = True

    def move(self, name: str, part: str, extent: Extent) -> None:
        """Gives a part of an entry another extent, and the old one back."""
        entry = self.entries[name]
        old: Extent = tuple(entry[part])
        if part == "extent":
            self._unlist(old)
            self._list(name, extent)
        entry[part] = extent
        self.dirty = True
        self.space.free(old)

    def remove(self, name: str) -> None:
        """Removes an entry with its content."""
        within = [name]
        if self.find(name)["kind"] == "group":
            within += [each for each in self.entries if each.startswith(name + "/")]
        for each in within:
            self._drop(each)

    def _drop(self, name: str) -> None:
        entry = self.entries.pop(name)
        self.dirty = True
        if "extent" in entry and self._names.get(entry["extent"][0]) == name:
            self._unlist(tuple(entry["extent"]))
        for extent in extents_of(entry):
            self.space.free(extent)

    # The arrays in the order of their places.

    def _list(self, name: str, extent: Extent) -> None:
        self._names[extent[0]] = name
        insort(self._begins, extent[0])

    def _unlist(self, extent: Extent) -> None:
        del self._names[extent[0]]
        del self._begins[bisect_right(self._begins, extent[0]) - 1]
