"""What vector indexes share in a region: a log of what was added, and the library's own serialized form by its pages.

A new vector changes links all over a graph, so the pages of a graph that changed are many. Therefore `add` writes the
vectors themselves into a log, and the region's next commit makes them durable: a thousand cost their own bytes.
`save` brings the library's serialized form up to date, of which only the pages that changed are written, and empties
the log. An index is opened from that form and the log behind it. It is committed, rolled back and kept as a snapshot
with all the rest of its region.

In the group of an index: `log/keys`, `log/vectors` and `log/removed`, a row for each call's vector or removal, in
their order, as many as there are keys; `parts/0`, `parts/1`, the serialized form, cut where it grows, so that what
follows stays in its place; and the attribute `next`, the key after all that were given.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import vellum

_PAGE = 4096
_STEP = 1 << 20
_LOG_ROOM = 1 << 16  # rows before a log is moved

Bytes = NDArray[np.uint8]
Write = Callable[[int, Any], None]  # the number of a part, and the bytes that follow in it


class VectorIndex(ABC):
    """An index of a library, kept in a region.

    region
        The region or the group: a branch to change the index, or a version to query it.
    name
        The index's name there.
    new
        An index of the library, which is stored where there is none of that name.
    """

    _kind = ""

    def __init__(self, region: vellum.Group, name: str, new: Any = None) -> None:
        self._region, self._name = region, name
        self._index: Any = None
        self._state = ""
        if name not in region and new is not None:
            region.create_group(name).attrs.update({"kind": self._kind, **self._described(new)})
            self._index = new
            self._save()
        found = region[name]
        if not isinstance(found, vellum.Group) or found.attrs.get("kind") != self._kind:
            raise vellum.InvalidArgument(f"{name!r} of {region!r} is no index of {self._kind}")

    # ---- Of each library

    @abstractmethod
    def _described(self, index: Any) -> dict[str, Any]:
        """Attributes that opening it needs in addition to the serialized form."""

    @abstractmethod
    def _serialize(self, index: Any, write: Write) -> None:
        """Writes the serialized form, its parts in their order."""

    @abstractmethod
    def _deserialize(self, parts: list[Bytes], rows: int) -> Any:
        """The index of a serialized form, with space for that many more vectors."""

    @abstractmethod
    def _add(self, index: Any, vectors: NDArray[Any], keys: NDArray[np.uint64]) -> None:
        """Adds vectors."""

    @abstractmethod
    def _remove(self, index: Any, keys: NDArray[np.uint64]) -> None:
        """Removes vectors."""

    @abstractmethod
    def _keys_end(self, index: Any) -> int:
        """The key behind the largest one that the index has."""

    def _taken(self, index: Any, vectors: NDArray[Any]) -> NDArray[Any]:
        """Vectors as the library takes them, and as the log has them."""
        return np.ascontiguousarray(vectors, np.float32)

    # ---- Use

    @property
    def index(self) -> Any:
        """The library's index, to query it. After a rollback of the region it is loaded again."""
        state = self._group.attrs.get("state", "")
        if self._index is None or state != self._state:
            self._index, self._state = self._loaded(), state
        return self._index

    def add(self, vectors: ArrayLike, keys: ArrayLike | None = None) -> NDArray[np.uint64]:
        """Adds vectors, and returns their keys. The region's next commit makes them durable."""
        rows = np.asarray(vectors)
        if rows.ndim != 2:
            raise vellum.InvalidArgument(f"vectors have two axes, not the shape {rows.shape}")
        given = self._following(len(rows)) if keys is None else _keys(keys)
        if given.shape != rows.shape[:1]:
            raise vellum.InvalidArgument(f"{len(rows)} vectors, and keys of shape {given.shape}")
        rows = self._taken(self.index, rows)
        self._changed(lambda index: self._add(index, rows, given), given, rows)
        return given

    def remove(self, keys: ArrayLike) -> None:
        """Removes vectors by their keys."""
        given = _keys(keys)
        self._changed(lambda index: self._remove(index, given), given, None)

    def save(self) -> None:
        """Stores the library's serialized form, as far as it changed, and empties the log.

        Opening then adds nothing. If it fails, roll the region back.
        """
        if self.index is not None:
            self._save()

    @property
    def pending(self) -> int:
        """The rows of the log: what opening adds to the saved form."""
        return len(self._group["log/keys"]) if "log/keys" in self._group else 0

    # ---- The log

    @property
    def _group(self) -> vellum.Group:
        group: vellum.Group = self._region[self._name]
        return group

    def _following(self, count: int) -> NDArray[np.uint64]:
        first = self._next_key(self.index)
        return np.arange(first, first + count, dtype=np.uint64)

    def _next_key(self, index: Any) -> int:
        """The key after all that were ever given: a key is not given twice, also if its vector is removed."""
        known = self._group.attrs.get("next")
        return self._keys_end(index) if known is None else int(known)

    def _changed(self, change: Callable[[Any], None], keys: NDArray[np.uint64], rows: NDArray[Any] | None) -> None:
        """Changes the library's index, and then the log: what the library refuses is not logged."""
        index = self.index
        if not getattr(self._region, "writable", True):
            raise vellum.ReadOnly(f"{self._region!r} is open read-only: open a branch to change its indexes")
        self._refuse_dtype(rows)
        try:
            change(index)
            if rows is not None and len(keys):
                self._group.attrs["next"] = max(self._next_key(index), int(keys.max()) + 1)
            self._log(keys, rows)
        except BaseException:
            self._index = None  # part of it may be done: load it as the region has it
            raise
        self._mark()

    def _refuse_dtype(self, rows: NDArray[Any] | None) -> None:
        """A log has vectors of one dtype: others would change their values in it."""
        if rows is None or not self.pending or "log/vectors" not in self._group:
            return
        logged = self._group["log/vectors"].dtype
        if logged != rows.dtype:
            raise vellum.InvalidArgument(
                f"the log of {self._name!r} has vectors of {logged}, and these are {rows.dtype}: save() first"
            )

    def _log(self, keys: NDArray[np.uint64], rows: NDArray[Any] | None) -> None:
        """Adds rows to the log, and the keys last: a commit at any moment has whole rows, or rows without a key."""
        group = self._group
        begin, end = self.pending, self.pending + len(keys)
        if rows is not None:
            if "log/vectors" in group and group["log/vectors"].dtype != rows.dtype:
                del group["log/vectors"]  # of an empty log
            if "log/vectors" not in group:
                group.create_array("log/vectors", (begin, rows.shape[1]), rows.dtype, room=_LOG_ROOM)
        for name, kind in (("log/removed", "u1"), ("log/keys", "<u8")):
            if name not in group:
                group.create_array(name, 0, kind, room=_LOG_ROOM)
        if "log/vectors" in group:
            stored = group.resize("log/vectors", end)
            if rows is not None:
                stored[begin:] = rows
        group.resize("log/removed", end)[begin:] = 0 if rows is not None else _removal(group, begin)
        try:
            group.resize("log/keys", end)[begin:] = keys
        except BaseException:
            group.resize("log/keys", begin)
            raise

    def _loaded(self) -> Any:
        group = self._group
        if "parts" not in group or "state" not in group.attrs:
            raise vellum.Corrupted(f"the index {self._name!r} of {self._region!r} was saved in part: roll back")
        parts = [np.asarray(group["parts"][str(n)]) for n in range(len(group["parts"]))]
        for part in group["parts"].values():
            part.prefetch()
        index = self._deserialize(parts, self.pending)
        del parts, part
        if self.pending:
            self._replay(index, group["log"])
        return index

    def _replay(self, index: Any, log: vellum.Group) -> None:
        keys = np.array(log["keys"])
        removed = np.array(log["removed"][: len(keys)])
        ends = [*(np.flatnonzero(np.diff(removed)) + 1), len(keys)]
        for begin, end in zip([0, *ends], ends, strict=False):
            if removed[begin]:
                self._remove(index, keys[begin:end])
            else:
                self._add(index, np.array(log["vectors"][begin:end]), keys[begin:end])

    # ---- The serialized form

    def _save(self) -> None:
        group = self._group
        group.attrs.pop("state", None)
        writer = _Writer(group)
        self._serialize(self._index, writer.write)
        writer.end()
        for name in list(group["log"]) if "log" in group else []:
            group.resize(f"log/{name}", 0)
        following = max(group.attrs.get("next", 0), self._keys_end(self._index))
        group.attrs.update({**self._described(self._index), "next": following})
        self._mark()

    def _mark(self) -> None:
        self._state = secrets.token_hex(8)
        self._group.attrs["state"] = self._state


def _removal(group: vellum.Group, begin: int) -> int:
    """How a removal is marked: 1 or 2, and not as the one before, since faiss's positions change between them."""
    return 2 if begin and group["log/removed"][begin - 1] == 1 else 1


class _Writer:
    """Stores a serialized form over the one that is there. Pages that are equal are not touched."""

    def __init__(self, group: vellum.Group) -> None:
        self._parts = group.require_group("parts")
        self._number = 0
        self._place = 0  # in the part, of a page
        self._waiting = bytearray()

    def write(self, number: int, piece: Any) -> None:
        """The bytes that follow in a part. Parts come in their order."""
        while self._number < number:
            self._end_part()
            self._number += 1
        view = memoryview(piece).cast("B")
        if not self._waiting:
            whole = len(view) // _STEP * _STEP
            for at in range(0, whole, _STEP):
                self._store(view[at : at + _STEP])
            view = view[whole:]
        while len(self._waiting) + len(view) >= _STEP:
            taken = _STEP - len(self._waiting)
            self._store(bytes(self._waiting) + bytes(view[:taken]))
            self._waiting.clear()
            view = view[taken:]
        self._waiting += view

    def end(self) -> None:
        """The end of the form: parts of an earlier one that are left go."""
        self._end_part()
        for name in [name for name in self._parts if int(name) > self._number]:
            del self._parts[name]

    def _end_part(self) -> None:
        self._store(bytes(self._waiting))
        self._waiting.clear()
        self._sized(self._place)
        self._place = 0

    def _sized(self, length: int) -> None:
        name = str(self._number)
        if name not in self._parts:
            self._parts.create_array(name, length, "u1")
        elif len(self._parts[name]) != length:
            self._parts.resize(name, length)

    def _store(self, piece: Any) -> None:
        name, end = str(self._number), self._place + len(piece)
        if name not in self._parts or len(self._parts[name]) < end:
            self._sized(end)
        _copy_pages(np.asarray(self._parts[name])[self._place : end], np.frombuffer(piece, np.uint8))
        self._place = end


def _copy_pages(target: Bytes, source: Bytes) -> None:
    if np.array_equal(target, source):
        return
    whole = len(source) // _PAGE * _PAGE
    old, new = target[:whole].reshape(-1, _PAGE), source[:whole].reshape(-1, _PAGE)
    differs = (old != new).any(axis=1)
    old[differs] = new[differs]
    target[whole:] = source[whole:]


def _keys(keys: ArrayLike) -> NDArray[np.uint64]:
    given = np.atleast_1d(np.asarray(keys))
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise vellum.InvalidArgument(f"keys are whole numbers, not {given.dtype} of shape {given.shape}")
    return given.astype(np.uint64)
