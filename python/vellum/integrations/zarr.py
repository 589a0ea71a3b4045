"""A store of zarr 3 over a region: `zarr.open_group(VellumStore("/data/s"))`.

A key is an array of bytes in the region. What zarr writes is in memory until `sync()`, `snapshot()` or `close()`
commits all of it in one step. A version is read-only, and any number may be open beside the live branch.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import vellum
from vellum import blobs
from vellum.region import open_alone

try:
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
    from zarr.core.buffer import default_buffer_prototype
except ImportError as error:
    raise ImportError("vellum.integrations.zarr needs zarr 3: pip install vellum[zarr]") from error

__all__ = ["VellumStore"]

_Values = list[Any]  # `list` is a method of a store


class _Opened:
    """An open region, which all stores of a process over one branch share; its lock keeps writes out of a commit."""

    def __init__(self, region: vellum.Region) -> None:
        self.region = region
        self.lock = threading.RLock()
        self._rollbacks = 0
        self._lost: set[tuple[int, int]] = set()  # epochs that a rollback has ended

    @property
    def epoch(self) -> tuple[int, int]:
        """What is the same from a commit or a rollback to the next one."""
        return self.region._mapping.core.sequence, self._rollbacks

    def rollback(self) -> None:
        """Drops what all stores have written since the last commit."""
        self._lost.add(self.epoch)
        self._rollbacks += 1
        self.region.rollback()

    def has_lost(self, epoch: tuple[int, int] | None) -> bool:
        """Whether a rollback has dropped what was written in an epoch."""
        return epoch in self._lost


_branches: weakref.WeakValueDictionary[tuple[str, str], _Opened] = weakref.WeakValueDictionary()
_opening = threading.Lock()


def _opened(path: str, branch: str, create: bool) -> _Opened:
    """The branch, to write. Busy: a region that is no store's has it open. REQUIRES: the path is absolute."""
    with _opening:
        found = _branches.get((path, branch))
        if found is None or found.region.closed:
            found = _branches[path, branch] = _Opened(open_alone(path, branch, create=create))
        return found


def _given(region: vellum.Region) -> _Opened:
    """A region that is open, which other stores over it share."""
    if not region.writable:
        return _Opened(region)
    with _opening:
        found = _branches.get((region.store.path, region.branch))
        if found is None or found.region is not region:
            found = _branches[region.store.path, region.branch] = _Opened(region)
        return found


class VellumStore(Store):  # type: ignore[misc]
    """A region as a store of zarr's.

    store
        A directory, or the URL of a remote, whose versions are open to read; or an open `vellum.Region`.
    branch
        The branch to write.
    version
        A snapshot or a branch, to read as it is now.
    group
        The group of the region that holds the keys.
    read_only
        The branch's last commit, to read.
    create
        Makes the store and the branch where they are missing.
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(
        self,
        store: Any,
        branch: str = "main",
        *,
        version: str | None = None,
        group: str = "",
        read_only: bool | None = None,
        create: bool = True,
    ) -> None:
        given = store if isinstance(store, vellum.Region) else None
        if given is not None:
            branch, version = given.branch, given.version
        if version is not None and read_only is False:
            raise vellum.ReadOnly(f"version {version!r} never changes: open a branch to write")
        super().__init__(read_only=version is not None or bool(read_only))
        self._path = given.store.path if given is not None else _absolute(os.fspath(store))
        self._branch, self._version, self._group = branch, version, group.strip("/")
        self._create = create
        self._used: _Opened | None = None if given is None else _given(given)
        self._epoch: tuple[int, int] | None = None  # of the last write, or of one that is lost
        if self._used is None:
            self._use()

    def _use(self) -> _Opened:
        if self._used is None or self._used.region.closed:
            if self.read_only:
                version = self._branch if self._version is None else self._version
                self._used = _Opened(vellum.open(self._path, version=version))
            else:
                self._used = _opened(self._path, self._branch, self._create)
        return self._used

    @property
    def region(self) -> vellum.Region:
        """The region that is open."""
        return self._use().region

    @property
    def _where(self) -> tuple[Any, ...]:
        return self._path, self._branch, self._version, self._group, self.read_only

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VellumStore) and self._where == other._where

    def __str__(self) -> str:
        name = self._branch if self._version is None else self._version
        return f"vellum://{self._path}@{name}/{self._group}".rstrip("/")

    def __repr__(self) -> str:
        return f"VellumStore({str(self)!r})"

    def __reduce__(self) -> Any:
        return _restored, self._where

    def with_read_only(self, read_only: bool = False) -> VellumStore:
        """The same place, to read or to write. ReadOnly: a version, to write."""
        return VellumStore(self._path, self._branch, version=self._version, group=self._group, read_only=read_only)

    # ---- Commits

    def _to_change(self) -> _Opened:
        if self.read_only:
            raise ValueError(
                f"{self}: the store was opened in read-only mode and does not support writing"
                + (": a version never changes, open a branch" if self._version is not None else "")
            )
        return self._use()

    _check_writable = _to_change

    @contextmanager
    def _writing(self) -> Iterator[vellum.Region]:
        """For a write: another store's commit or rollback comes before it or behind it."""
        used = self._to_change()
        with used.lock:
            if not used.has_lost(self._epoch):
                self._epoch = used.epoch
            yield used.region

    def _require_whole(self, used: _Opened) -> None:
        """RuntimeError: what this store has written is gone, so that a commit would be of a part of it."""
        if used.has_lost(self._epoch):
            raise RuntimeError(
                f"{self}: another store of this branch has rolled back, and what this one had written is lost: "
                "call rollback(), and write it again"
            )

    def sync(self, message: str = "") -> vellum.CommitReport:
        """Makes everything durable that was written since the last commit, in one step.

        RuntimeError: another store has rolled back what this one wrote. So it is until `rollback()`.
        """
        used = self._to_change()
        with used.lock:
            self._require_whole(used)
            return used.region.commit(message)

    def snapshot(self, name: str, message: str = "") -> vellum.CommitReport:
        """Commits as `sync()` does, and keeps that version under a name."""
        used = self._to_change()
        with used.lock:
            self._require_whole(used)
            return used.region.snapshot(name, message)

    def rollback(self) -> None:
        """Drops what was written since the last commit, also by other stores of this process over the branch."""
        used = self._to_change()
        with used.lock:
            used.rollback()
            self._epoch = None

    def close(self) -> None:
        """Commits as `sync()` does, and gives the branch to other writers once nobody in this process uses it."""
        used, self._used = self._used, None
        super().close()
        if used is not None and not self.read_only and not used.region.closed:
            with used.lock:
                self._require_whole(used)
                used.region.commit()
        self._epoch = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, or rolls back after an exception."""
        if kind is not None and not self.read_only and self._used is not None:
            self.rollback()
        self.close()

    # ---- Keys

    def _name(self, key: str) -> str:
        return f"{self._group}/{key}" if self._group else key

    def _found(self, key: str) -> vellum.Array | None:
        if not isinstance(key, str):
            raise TypeError(f"{key!r} is no key")
        name, region = self._name(key), self._use().region
        if name not in region:
            return None
        found = region[name]
        return found if isinstance(found, vellum.Array) else None

    def _inside(self, prefix: str) -> vellum.Group | None:
        """The group of the keys with a prefix that ends in "/", or has none."""
        name, region = self._name(prefix.rstrip("/")).rstrip("/"), self._use().region
        found = (region[name] if name in region else None) if name else region
        return found if isinstance(found, vellum.Group) else None

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """The value of a key, or a part of it. None: there is none."""
        found = self._found(key)
        if found is None:
            return None
        content = blobs.bytes_of(found, *_bounds(found.nbytes, byte_range))
        made = (prototype or default_buffer_prototype()).buffer
        # Of a version it is the memory itself; what is written to a branch later would change it.
        return made.from_array_like(content if self._use().region.version is not None else content.copy())

    def set_sync(self, key: str, value: Any) -> None:
        """Stores a value."""
        self._to_change()
        if not hasattr(value, "as_numpy_array"):
            raise TypeError(f"a value is a Buffer of zarr's, and not {value!r}")
        with self._writing() as region:
            blobs.put(region, self._name(key), value.as_numpy_array().view("u1"))

    def delete_sync(self, key: str) -> None:
        """Removes a key, and the groups that have no key then."""
        with self._writing():
            if self._found(key) is not None:
                self._remove(self._name(key))

    def _remove(self, name: str) -> None:
        region = self._use().region
        del region[name]
        above = name.rpartition("/")[0]
        while above not in ("", self._group) and not any(True for _ in region[above]):
            del region[above]
            above = above.rpartition("/")[0]

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """The value of a key, or a part of it. None: there is none."""
        if "://" in self._path:  # others go on while its pages come from the remote
            return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)
        await self._ensure_open()
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> _Values:
        """Parts of values."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether there is a value."""
        return self._found(key) is not None

    async def getsize(self, key: str) -> int:
        """The bytes of a value. FileNotFoundError: there is none."""
        found = self._found(key)
        if found is None:
            raise FileNotFoundError(f"{self}: {key!r}")
        return int(found.nbytes)

    async def set(self, key: str, value: Any) -> None:
        """Stores a value."""
        self._to_change()
        await self._ensure_open()
        self.set_sync(key, value)

    async def set_if_not_exists(self, key: str, value: Any) -> None:
        """Stores a value where there is none."""
        with self._writing():
            if self._found(key) is None:
                self.set_sync(key, value)

    async def delete(self, key: str) -> None:
        """Removes a key."""
        self.delete_sync(key)

    async def delete_dir(self, prefix: str) -> None:
        """Removes the keys in a group of keys."""
        with self._writing():
            found = self._inside(prefix)
            if found is not None and found.name not in ("", self._group):
                self._remove(found.name)
            elif found is not None:
                for name in list(found):
                    del found[name]

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self._keys(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """The keys that begin with a prefix."""
        for key in self._keys(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The names in a group of keys."""
        found = self._inside(prefix)
        for name in [] if found is None else sorted(found):
            yield name

    def _keys(self, prefix: str) -> Iterator[str]:
        above, found = prefix.rpartition("/")[0], self._inside(prefix.rpartition("/")[0])
        for name, item in [] if found is None else sorted(found.visit(), key=lambda each: each[0]):
            key = f"{above}/{name}" if above else name
            if isinstance(item, vellum.Array) and key.startswith(prefix):
                yield key


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


def _restored(path: str, branch: str, version: str | None, group: str, read_only: bool) -> VellumStore:
    return VellumStore(path, branch, version=version, group=group, read_only=read_only, create=False)


def _bounds(length: int, part: Any) -> tuple[int, int]:
    """Begin and end of a request for a part."""
    if part is None:
        return 0, length
    if isinstance(part, RangeByteRequest):
        return part.start, part.end
    if isinstance(part, OffsetByteRequest):
        return part.offset, length
    if isinstance(part, SuffixByteRequest):
        return max(0, length - part.suffix), length
    raise TypeError(f"Unexpected byte_range, got {part!r}")
