"""What lies where in a region: a header, one JSON document, and the extents of arrays.

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
A document is hostile until `Catalog.load` has checked it: it may come from another program, or from a person.
"""

from __future__ import annotations

import json
import re
import struct
import weakref
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import AlreadyExists, Corrupted, InvalidArgument, NewerFormat, NotFound

if TYPE_CHECKING:
    from ._mapping import Mapping

MAGIC = b"VLMarray"
FORMAT = 1
HEADER = struct.Struct("<8sIIQQQ")
PAGE = 4096
MOST_DOCUMENT_BYTES = 1 << 30
MOST_REGION_BYTES = 1 << 46
_PLAIN_DTYPE = re.compile(r"[<>|][a-zA-Z][0-9]*(\[[0-9]*[a-zA-Z]+\])?")

Entry = dict[str, Any]
Extent = tuple[int, int]


def round_up(value: int, to: int) -> int:
    """The least multiple of `to` that is not below `value`."""
    return -(-value // to) * to


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
                raise ValueError(f"{name!r} lies in no group")


def _checked(document: bytes, size_bytes: int, extent: Extent) -> tuple[dict[str, Entry], list[Extent]]:
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
    return entries, reader.extents


class Catalog:
    """The entries of a region, and the space that they leave. One for each mapping."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = weakref.ref(mapping)  # which holds this
        self.entries: dict[str, Entry] = {}
        self.dirty = False
        self.load()

    @property
    def mapping(self) -> Mapping:
        """The region that the catalog is of."""
        mapping = self._mapping()
        assert mapping is not None
        return mapping

    # ---- Reading and writing the region

    def load(self) -> None:
        """Takes what the region says, and forgets changes that are not written."""
        size_bytes = self.mapping.core.size_bytes
        header = HEADER.unpack(self.mapping.read(0, HEADER.size)) if size_bytes >= PAGE else None
        self.dirty = False
        self._extent: Extent = (PAGE, 0)
        if header is None or (not any(header[0]) and not any(header[1:])):
            self.entries = {"": {"kind": "group", "attrs": {}}}
            self._use([(0, PAGE)])
            return
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
                    self.entries, used = _checked(document, size_bytes, (offset, room))
                except ValueError as error:
                    raise Corrupted(f"{self.mapping.title}: its list of arrays is wrong: {error}") from error
                self._extent = (offset, room)
                self._use(used)
                return
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

    def _write(self, document: bytes) -> None:
        if len(document) > MOST_DOCUMENT_BYTES:
            raise InvalidArgument("the list of arrays, attributes and dicts is larger than 1 GiB")
        if len(document) > self._extent[1]:
            old, self._extent = self._extent, self.allocate(max(2 * len(document), PAGE), PAGE)
            self.free(old)
        offset, room = self._extent
        self.mapping.write(offset, document)
        checksum = zlib.crc32(document)
        self.mapping.write(0, HEADER.pack(MAGIC, FORMAT, checksum, offset, len(document), room))

    # ---- Space

    def _use(self, used: list[Extent]) -> None:
        """The free space is what lies between extents, and behind the last one."""
        self._free: list[Extent] = []
        end = 0
        for offset, length in sorted(used):
            if offset > end:
                self._free.append((end, offset - end))
            end = offset + length
        self._end = round_up(end, PAGE)

    def allocate(self, length: int, alignment: int = PAGE) -> Extent:
        """An extent of zeros."""
        length = max(length, 64)
        for i, (offset, room) in enumerate(self._free):
            start = round_up(offset, alignment)
            if start + length > offset + room:
                continue
            rest = [(offset, start - offset), (start + length, offset + room - start - length)]
            self._free[i : i + 1] = [extent for extent in rest if extent[1] > 0]
            self.mapping.core.zero(start, length)
            return start, length
        start = round_up(self._end, alignment)
        if start > self._end:
            self._free.append((self._end, start - self._end))
        self._end = start + length
        self.mapping.grow_to(self._end)
        return start, length

    def free(self, extent: Extent) -> None:
        """Gives an extent back. Where arrays still show it, it stays until the region is opened again."""
        if extent[1] == 0 or self.mapping.has_views(extent):
            return
        self.mapping.core.zero(*extent)
        self._free.append(extent)

    # ---- Entries

    def find(self, name: str) -> Entry:
        """The entry. NotFound: there is none."""
        self.mapping.require_open()
        entry = self.entries.get(name)
        if entry is None:
            raise NotFound(f"{self.mapping.title} has no {name!r}")
        return entry

    def add(self, name: str, entry: Entry) -> Entry:
        """A new entry, and the groups that it lies in."""
        self.mapping.require_open()
        checked_name(name)
        if name in self.entries:
            raise AlreadyExists(f"{self.mapping.title} has a {name!r} already")
        parts = name.split("/")[:-1]
        for i in range(len(parts)):
            group = "/".join(parts[: i + 1])
            found = self.entries.setdefault(group, {"kind": "group", "attrs": {}})
            if found["kind"] != "group":
                raise AlreadyExists(f"{group!r} of {self.mapping.title} is no group, but of kind {found['kind']}")
        entry.setdefault("attrs", {})
        self.entries[name] = entry
        self.dirty = True
        return entry

    def remove(self, name: str) -> None:
        """Removes an entry, with all that lies in it."""
        self.find(name)
        for each in [n for n in self.entries if n == name or n.startswith(name + "/")]:
            entry = self.entries.pop(each)
            for part in ("extent", "offsets", "data"):
                if part in entry:
                    self.free(tuple(entry[part]))
        self.dirty = True
