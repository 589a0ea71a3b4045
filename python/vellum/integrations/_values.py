"""What caches share: values by name in a store, which many processes read and write.

A branch has one writer, so each process that writes has a branch of its own, which the next process takes over. All
read all branches. The bytes of a value lie on pages of their own, and what entries have in common is stored once.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vellum

_PAGE = 4096

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Found:
    """A value, as views of a version's memory, or of the branch's own."""

    head: Bytes
    buffers: list[Bytes]


class Values:
    """Values by name. A put and a removal are commits."""

    def __init__(self, path: str) -> None:
        self.path = os.fspath(path)
        self._lock = threading.RLock()
        self._pid = 0
        self._begin()

    def __reduce__(self) -> Any:
        return Values, (self.path,)

    def _begin(self) -> None:
        if self._pid != os.getpid():  # also in the child of a fork: the parent's branch stays the parent's
            self._pid = os.getpid()
            self._store: vellum.Store | None = None
            self._own: vellum.Region | None = None
            self._read: dict[str, tuple[int, vellum.Region]] = {}

    # ---- Regions

    def _writer(self) -> vellum.Region:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        number = 0
        while self._own is None:
            try:
                self._own = vellum.open(self.path, f"values-{number}", create=True)
            except vellum.Busy:
                number += 1
        return self._own

    def _regions(self, fixed: bool) -> Iterator[vellum.Region]:
        """Those of all branches. `fixed`: the own one, too, as a version that stays as it is."""
        try:
            self._store = self._store or vellum.Store(self.path)
        except vellum.StoreNotFound:
            return
        for version in self._store.versions():
            if not version.is_branch:
                continue
            if self._own is not None and version.name == self._own.branch and not fixed:
                yield self._own
                continue
            kept = self._read.get(version.name)
            if kept is None or kept[0] != version.sequence:
                kept = version.sequence, vellum.open(self.path, version=version.name)
                self._read[version.name] = kept
            yield kept[1]

    def _entries(self, prefix: str, fixed: bool) -> list[tuple[vellum.Region, str]]:
        """The regions and names of values, the newest last."""
        regions = list(self._regions(fixed))
        gone = {each for region in regions for each in region.attrs.get("gone", [])}
        found = []
        for region in regions:
            item = region[prefix] if prefix in region else region if prefix == "" else None
            names = [prefix] if isinstance(item, vellum.Array) else []
            if isinstance(item, vellum.Group):
                names = [f"{prefix}/{inner}".strip("/") for inner, _ in item.visit()]
            found += [(region, name) for name in names if region[name].attrs["id"] not in gone]
        return sorted(found, key=lambda each: float(each[0][each[1]].attrs["time"]))

    # ---- Values

    def put(self, name: str, head: bytes, buffers: list[Any]) -> int:
        """Stores a value, and returns its length. A value of that name is replaced."""
        parts = [np.frombuffer(head, np.uint8), *(np.frombuffer(each, np.uint8) for each in buffers)]
        places, end = [], 0
        for part in parts:
            places.append([end, len(part)])
            end = -(-(end + len(part)) // _PAGE) * _PAGE
        with self._lock:
            self._begin()
            region = self._writer()
            with region.transaction(name):
                region.pop(name, None)
                array = np.asarray(region.create_array(name, end, "u1", room=0))
                for part, (begin, length) in zip(parts, places, strict=True):
                    array[begin : begin + length] = part
                region[name].attrs.update({"places": places, "id": secrets.token_hex(8), "time": time.time()})
        return sum(len(part) for part in parts)

    def get(self, name: str, *, fixed: bool = False) -> Found | None:
        """A value. `fixed`: it stays as it is while its arrays are in use; otherwise copy it at once."""
        with self._lock:
            self._begin()
            found = self._entries(name, fixed)
            if not found or found[-1][1] != name:
                return None
            array = found[-1][0][name]
            array.prefetch()
            parts = [np.asarray(array[begin : begin + length]) for begin, length in array.attrs["places"]]
        return Found(parts[0], parts[1:])

    def has(self, prefix: str) -> bool:
        """Whether there is a value of that name, or in that group."""
        with self._lock:
            self._begin()
            return bool(self._entries(prefix, False))

    def items(self) -> list[tuple[str, int, float]]:
        """Name, length and time of all values."""
        with self._lock:
            self._begin()
            found = {name: region[name] for region, name in self._entries("", False)}
            return [(name, array.nbytes, float(array.attrs["time"])) for name, array in found.items()]

    def remove(self, prefix: str = "") -> None:
        """Removes a value, or those in a group. What another process is writing it may not change: it marks them."""
        with self._lock:
            self._begin()
            found = self._entries(prefix, False)
            if not found:
                return
            own = self._writer()
            gone = {r[n].attrs["id"] for r, n in found if r.branch != own.branch}
            with own.transaction("remove"):
                for region, name in found:
                    if region.branch == own.branch:
                        own.pop(name, None)
                if gone:
                    own.attrs["gone"] = sorted({*own.attrs.get("gone", []), *gone})
