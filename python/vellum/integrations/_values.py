"""What caches share: values by name in a store, which many processes read and write.

A branch has one writer, so each process that writes has a branch of its own, which the next process takes over. All
read all branches. The bytes of a value lie on pages of their own, and what entries have in common is stored once.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
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


class _Here:
    """What the values of one path share in a process: a lock, the branch to write, and the versions to read."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.store: vellum.Store | None = None
        self.own: vellum.Region | None = None
        self.read: dict[str, tuple[int, vellum.Region]] = {}
        self.swept: set[str] = set()  # marks of others that the own branch has followed


_here: weakref.WeakValueDictionary[str, _Here] = weakref.WeakValueDictionary()
_here_lock = threading.Lock()


def _in_a_child() -> None:
    """In the child of a fork: the parent's branch stays the parent's, and so do locks of its threads."""
    global _here, _here_lock
    _here, _here_lock = weakref.WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_in_a_child)


class Values:
    """Values by name. A put and a removal are commits."""

    def __init__(self, path: str) -> None:
        self.path = os.fspath(path)
        self._pid = 0

    def __reduce__(self) -> Any:
        return Values, (self.path,)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._pid != os.getpid():
            with _here_lock:
                self._here = _here.setdefault(os.path.realpath(self.path), _Here())
            self._pid = os.getpid()
        with self._here.lock:
            yield

    # ---- Regions

    def _writer(self) -> vellum.Region:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        here, number = self._here, 0
        while here.own is None:
            try:
                here.own = vellum.open(self.path, f"values-{number}", create=True)
            except vellum.Busy:
                number += 1
        return here.own

    @contextmanager
    def _changing(self, message: str) -> Iterator[vellum.Region]:
        """A transaction of the own branch, which first drops what others have marked."""
        own = self._writer()
        with own.transaction(message):
            swept = self._sweep(own)
            yield own
        self._here.swept = swept

    def _sweep(self, own: vellum.Region) -> set[str]:
        """Drops own values that others have marked, and own marks of values that no branch has any more."""
        others = [region for region in self._regions(False) if region is not own]
        marked = {each for region in others for each in region.attrs.get("gone", [])}
        if not marked <= self._here.swept:
            for name in [name for each, name in _ids(own).items() if each in marked]:
                del own[name]
        if gone := own.attrs.get("gone", []):
            there = {each for region in others for each in _ids(region)}
            own.attrs["gone"] = [each for each in gone if each in there]
        return marked

    def _regions(self, fixed: bool) -> Iterator[vellum.Region]:
        """Those of all branches. `fixed`: the own one, too, as a version that stays as it is."""
        here = self._here
        try:
            here.store = here.store or vellum.Store(self.path)
        except vellum.StoreNotFound:
            return
        for version in here.store.versions():
            if not version.is_branch:
                continue
            if here.own is not None and version.name == here.own.branch and not fixed:
                yield here.own
                continue
            kept = here.read.get(version.name)
            if kept is None or kept[0] != version.sequence:
                kept = version.sequence, vellum.open(self.path, version=version.name)
                here.read[version.name] = kept
            yield kept[1]

    def _entries(self, prefix: str, fixed: bool) -> list[tuple[vellum.Region, str]]:
        """The regions and names of values, the newest last."""
        regions = list(self._regions(fixed))
        gone = {each for region in regions for each in region.attrs.get("gone", [])}
        if len(regions) > 1:  # again, after the marks: a mark goes after its value
            regions = list(self._regions(fixed))
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
        with self._locked(), self._changing(name) as region:
            _refuse_group(region, name)
            _drop(region, name)
            array = np.asarray(region.create_array(name, end, "u1", room=0))
            for part, (begin, length) in zip(parts, places, strict=True):
                array[begin : begin + length] = part
            region[name].attrs.update({"places": places, "id": secrets.token_hex(8), "time": time.time()})
        return sum(len(part) for part in parts)

    def get(self, name: str, *, fixed: bool = False) -> Found | None:
        """A value. `fixed`: it stays as it is while its arrays are in use; otherwise copy it at once."""
        with self._locked():
            found = [each for each in self._entries(name, fixed) if each[1] == name]
            if not found:
                return None
            array = found[-1][0][name]
            array.prefetch()
            parts = [np.asarray(array[begin : begin + length]) for begin, length in array.attrs["places"]]
        return Found(parts[0], parts[1:])

    def has(self, prefix: str) -> bool:
        """Whether there is a value of that name, or in that group."""
        with self._locked():
            return bool(self._entries(prefix, False))

    def items(self) -> list[tuple[str, int, float]]:
        """Name, length and time of all values."""
        with self._locked():
            found = {name: region[name] for region, name in self._entries("", False)}
            return [(name, array.nbytes, float(array.attrs["time"])) for name, array in found.items()]

    def remove(self, prefix: str = "") -> None:
        """Removes a value, or those in a group. What another process is writing it may not change: it marks them."""
        with self._locked():
            found = self._entries(prefix, False)
            if not found:
                return
            own = self._writer()
            ids: dict[str, dict[str, str]] = {region.branch: {} for region, _ in found}
            for region, name in found:
                ids[region.branch][region[name].attrs["id"]] = name
            busy = [branch for branch in ids if branch != own.branch and not self._removed(branch, ids[branch])]
            with self._changing("remove") as own:
                for name in ids.get(own.branch, {}).values():
                    _drop(own, name)
                if gone := {each for branch in busy for each in ids[branch]}:
                    own.attrs["gone"] = sorted({*own.attrs.get("gone", []), *gone})

    def _removed(self, branch: str, ids: dict[str, str]) -> bool:
        """Removes values of a branch, unless another process is writing it."""
        try:
            other = vellum.open(self.path, branch)
        except vellum.Busy:
            return False
        with other, other.transaction("remove"):
            there = _ids(other)
            for each in ids.keys() & there.keys():
                _drop(other, there[each])
        return True


def _ids(region: vellum.Region) -> dict[str, str]:
    """The names of values by their ids, from the catalog: there may be thousands."""
    entries = region._used().catalog.entries
    return {entry["attrs"]["id"]: name for name, entry in entries.items() if entry["kind"] == "array"}


def _drop(region: vellum.Region, name: str) -> None:
    """Removes what has the name. Its memory is zeros at once: `pop()` has an array of it, which keeps the bytes."""
    if name in region:
        del region[name]


def _refuse_group(region: vellum.Region, name: str) -> None:
    """A value does not replace a group of values, and has no values below it."""
    parts = name.split("/")
    above = ["/".join(parts[:n]) for n in range(1, len(parts))]
    taken = [each for each in above if isinstance(region.get(each), vellum.Array)]
    if isinstance(group := region.get(name), vellum.Group):
        taken += [f"{name}/{inner}" for inner, _ in group.visit()]
    if taken:
        raise vellum.InvalidArgument(f"{region!r} has a value {taken[0]!r}: remove it before {name!r} is one")
