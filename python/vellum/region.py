"""`Region`: the arrays of a branch, to change them, or those of a version, to read them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from . import _core, _mapping
from ._arguments import Path, number, text, version_name
from ._native import open_store
from .array import Array
from .diff import Diff
from .errors import AlreadyExists, Busy, InvalidArgument, NotFound
from .group import Group
from .progress import Callback
from .reference import VersionReference
from .replication import Replication
from .restore import take_content
from .store import Store, VersionInfo, warn_of_name

_FIRST_BYTES = 64 << 20
# How far a branch can grow by itself: less, the more the branches take that are open already. A process has 128 TiB
# of addresses, and a region takes its capacity twice.
_CAPACITIES = ((12 << 40, 1 << 40), (24 << 40, 256 << 30), (36 << 40, 32 << 30))
_ENGINES = ("automatic", "uffd", "sigsegv", "mapped")
_LEAST_CAPACITY_BYTES = 4 << 30


class Region(Group):
    """The root group of a branch or a version, with commits, names and upkeep.

    Use it with `with`: the end of the block commits, or rolls back after an exception. `close()` without a commit
    drops uncommitted changes. Arrays stay usable afterwards: they keep the memory, and those of a branch keep the
    branch open, until the last of them is freed. Another opening in this process uses the same memory.
    """

    def __init__(self, mapping: _mapping.Mapping) -> None:
        super().__init__(mapping)
        self._open: _mapping.Mapping | None = mapping
        self._transaction: _core.Transaction | None = None
        self._depth = 0  # of `with` blocks
        mapping.handle, mapping.thread = weakref.ref(self), threading.get_ident()
        self._finalizer = weakref.finalize(self, _let_go, mapping)
        self._finalizer.atexit = False

    def _used(self) -> _mapping.Mapping:
        if self._open is None:
            raise InvalidArgument("this region is closed")
        return self._open

    def __repr__(self) -> str:
        if self._open is None:
            return "<Region, closed>"
        return f"<Region {self._open.title}: {', '.join(self) or 'empty'}>"

    # ---- Life

    @property
    def store(self) -> Store:
        """The region's store."""
        return Store._of(self._used().store)

    @property
    def branch(self) -> str:
        """The branch, or the one that the version was made on."""
        mapping = self._used()
        return mapping.name if mapping.version is None else mapping.version.branch

    @property
    def version(self) -> str | None:
        """The version that is open to read; None: a branch is open to write."""
        mapping = self._used()
        return None if mapping.version is None else mapping.name

    @property
    def writable(self) -> bool:
        """Whether a branch is open to write."""
        return self._used().version is None

    @property
    def engine(self) -> str:
        """The engine that loads pages: "uffd", "sigsegv" or "mapped"."""
        return self._used().core.engine

    @property
    def serves_system_calls(self) -> bool:
        """Whether a system call may touch pages that are not loaded. Otherwise taking a buffer loads them."""
        return self._used().core.serves_system_calls

    def close(self) -> None:
        """Drops uncommitted changes and ends the use of this object. Closing twice does nothing."""
        mapping, self._open = self._open, None
        if mapping is None:
            return
        del self._mapping
        mapping.handle = None
        if mapping.version is None and mapping.live():
            if self._transaction is not None and self._transaction.is_open:
                self._transaction.rollback()
            mapping.rollback()
        self._transaction = None
        mapping.is_open = False
        self._finalizer()

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._open is None

    def __enter__(self) -> Region:
        self._used()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        is_inner = self._depth > 0  # of a `with` block that has the same region
        try:
            is_free = self._open is not None and self._open.version is None and not self._is_in_transaction()
            if is_free and kind is None:
                self.commit()
            elif is_free and is_inner:
                self.rollback()
        finally:
            if not is_inner:
                self.close()

    # ---- Commits

    def commit(self, message: str = "") -> _core.CommitReport:
        """Makes everything durable that was changed since the last commit, in one step."""
        mapping = self._to_change()
        self._refuse_in_transaction("commit")
        return _committed(mapping, lambda: mapping.core.commit(text(message, "message")))

    def snapshot(self, name: str, message: str = "") -> _core.CommitReport:
        """Commits, and keeps that version under a name, until `forget()` or `Store.remove_snapshot()`."""
        mapping = self._to_change()
        self._refuse_in_transaction("snapshot")
        return _committed(mapping, lambda: mapping.core.snapshot(version_name(name), text(message, "message")))

    def rollback(self, to: str | None = None) -> None:
        """Drops uncommitted changes. With a version: its content becomes this branch's next commit.

        Arrays keep their addresses and show the restored content.
        """
        mapping = self._to_change()
        self._refuse_in_transaction("rollback")
        if to is not None:
            self.store.version(to)  # NotFound before anything is forgotten
        mapping.rollback()
        if to is not None:
            try:
                take_content(mapping, to)
                _committed(mapping, lambda: mapping.core.commit(f"rollback to {to}"))
            except BaseException:
                mapping.rollback()
                raise

    @contextmanager
    def transaction(self, message: str = "") -> Iterator[Region]:
        """What is changed inside becomes one commit, or is rolled back by an exception.

        What was changed before it is committed first.
        """
        mapping, message = self._to_change(), text(message, "message")
        self.commit()
        self._transaction = transaction = mapping.core.begin()
        try:
            yield self
            _committed(mapping, lambda: transaction.commit(message))
        except BaseException:
            if transaction.is_open:
                size_bytes = mapping.core.size_bytes
                transaction.rollback()
                mapping.grow_to(size_bytes)
                mapping.catalog.load()
            raise
        finally:
            self._transaction = None

    def _is_in_transaction(self) -> bool:
        return self._transaction is not None and self._transaction.is_open

    def _refuse_in_transaction(self, call: str) -> None:
        if self._is_in_transaction():
            raise Busy(f"{call}(): a transaction of {self._used().title} is open; its end commits or rolls back")

    # ---- Names and upkeep: those of the store

    def log(self, *, commits: bool = False) -> list[VersionInfo]:
        """The snapshots of this branch, newest first; as `Store.log`."""
        return self.store.log(self.branch, commits=commits)

    @property
    def branches(self) -> list[str]:
        """The names of the store's branches."""
        return self.store.branches

    @property
    def snapshots(self) -> list[str]:
        """The names of the store's snapshots, oldest first."""
        return self.store.snapshots

    @property
    def tags(self) -> list[str]:
        """Deprecated: `snapshots`."""
        warn_of_name("Region.tags", "Region.snapshots")
        return self.snapshots

    def diff(self, a: str, b: str | None = None) -> Diff:
        """What differs between two versions; by default up to this branch's last commit."""
        return self.store.diff(a, self.branch if b is None else b)

    def checkout(self, name: str, *, create: bool = False) -> Region:
        """Opens another branch to write, or a snapshot to read, in addition to this one.

        `create`: makes the branch, which begins at this region's last commit.
        """
        store = self.store
        if create:
            store.create_branch(name, self._used().name)
        if store.version(name).is_branch:
            return open(store.path, name)
        return open(store.path, version=name)

    def stat(self) -> _core.StoreStat:
        """The space that the store takes."""
        return self.store.stat()

    def verify(self, *, read_data: bool = True, progress: bool | Callback | None = None) -> _core.VerifyReport:
        """As `Store.verify`."""
        return self.store.verify(read_data=read_data, progress=progress)

    def gc(
        self, *, dry_run: bool = False, recompress: int = 0, progress: bool | Callback | None = None
    ) -> _core.GcReport:
        """As `Store.gc`."""
        return self.store.gc(dry_run=dry_run, recompress=recompress, progress=progress)

    def push(
        self,
        remote: str = "origin",
        versions: Iterable[str] = (),
        *,
        take_over: bool = False,
        progress: bool | Callback | None = None,
    ) -> _core.PushReport:
        """As `Store.push`. What is not committed stays behind."""
        return self.store.push(remote, versions, take_over=take_over, progress=progress)

    def pull(
        self,
        remote: str = "origin",
        versions: Iterable[str] = (),
        *,
        packs: bool = False,
        take_over: bool = False,
        progress: bool | Callback | None = None,
    ) -> _core.PullReport:
        """As `Store.pull`. Snapshots arrive while it is open; its branch is `Busy` where the remote's is newer."""
        return self.store.pull(remote, versions, packs=packs, take_over=take_over, progress=progress)

    def replicate(self, url: str, *, interval: float = 1.0, take_over: bool = False) -> Replication:
        """As `Store.replicate`: each commit goes to a remote as it is made."""
        return self.store.replicate(url, interval=interval, take_over=take_over)

    def forget(self, **rules: Any) -> list[str]:
        """As `Store.forget`."""
        return self.store.forget(**rules)

    def prefetch(self) -> None:
        """Brings all arrays into memory now. A page that cannot be read is `Corrupted`."""
        for _, item in self.visit():
            if isinstance(item, Array):
                item.prefetch()

    def __reduce__(self) -> Any:
        """A reference to a version. A branch that is open to write does not pickle."""
        mapping = self._used()
        if mapping.version is None:
            raise TypeError(
                f"{mapping.title} is open to write, and has one writer at a time: pickle a version, or pass "
                "vellum.WriterReference.of(region), whose open() in the other process makes that one the writer"
            )
        return _restore_region, (VersionReference.of(mapping),)


def _committed(mapping: _mapping.Mapping, commit: Callable[[], _core.CommitReport]) -> _core.CommitReport:
    mapping.catalog.write()
    report = commit()
    mapping.catalog.committed()
    return report


def _let_go(mapping: _mapping.Mapping) -> None:
    mapping.is_held = False


def open(
    path: Path,
    branch: str = "main",
    *,
    version: str | None = None,
    create: bool = False,
    mode: Literal["r", "r+"] | None = None,
    engine: str = "automatic",
    memory_limit_bytes: int = 0,
    capacity_bytes: int = 0,
    working_set: bool = False,
    share: bool = False,
    huge_pages: bool = False,
) -> Region:
    """Opens a branch to write, or a version to read.

    path
        The store's directory, or the URL of a remote ("s3://bucket/prefix", "file:///mnt/shared/x"), whose
        versions are open to read: with `version`, or mode "r". Their pages are loaded when they are touched.
    branch
        The branch. Its one writer at a time is `Busy` for other processes and threads. A thread that has it open gets
        the same region again, as it is: a notebook's cell may run twice.
    version
        A snapshot's name, or a branch's, for its current last commit: open to read, concurrently with any writer.
    create
        Makes the store and the branch where they are missing.
    mode
        "r+": the branch, to write (the default); "r": its last commit, to read.
    engine, memory_limit_bytes, working_set, share, huge_pages
        As in the C++ interface (region_options.hpp). A branch that is open already takes no other ones: `Busy`. With
        `huge_pages`, `prefetch()` of a version combines its pages into huge ones, as numpy's own arrays have.
    capacity_bytes
        How far the region can grow. It is address space, and costs nothing. By default it is 1 TiB, and less for the
        thirteenth branch that a process has open, so that hundreds can be.
    """
    if mode not in (None, "r", "r+"):
        raise InvalidArgument(f'mode is "r" or "r+", not {mode!r}')
    if version is not None and (mode == "r+" or create or branch != "main"):
        raise InvalidArgument("a version is open to read: it goes with neither branch, create nor mode 'r+'")
    is_read = version is not None or mode == "r"
    name = version_name(branch if version is None else version)
    given = _given(is_read, engine, memory_limit_bytes, capacity_bytes, working_set, share, huge_pages)
    if is_read and (create or "capacity_bytes" in given):
        raise InvalidArgument("a version opened to read is neither created nor grown: omit create, capacity_bytes")
    native = open_store(path, create)
    if is_read:
        return open_version(native, name, _options(given))
    found = _open_here(native, name)
    if found is not None:
        return _again(found, given)
    options = _options({"capacity_bytes": _capacity_of(native, name), **given})
    return Region(_mapping.Mapping(native, _open_branch(native, name, create, options), None, given))


def open_alone(path: Path, branch: str = "main", *, create: bool = False) -> Region:
    """As `open`, for code that commits and rolls back by itself. Busy: the caller or anybody else has it open.

    A commit of a region that is not its own would be one of half-done work, and a rollback would lose it.
    """
    require_free(path, branch, create)
    return open(path, branch, create=create)


def require_free(path: Path, branch: str, create: bool = False) -> None:
    """Busy: a region of this process has the branch open."""
    mapping = _open_here(open_store(path, create), version_name(branch))
    if mapping is not None and mapping.handle is not None and mapping.handle() is not None:
        raise Busy(f"{mapping.title} is open in this process: close that region before, or write by it")


def close_all() -> None:
    """Closes every region of the process, as `Region.close` does; also those without a reference.

    For a notebook whose cells run again. What is not committed is forgotten. Arrays in use keep their memory, and
    their branch stays open until they go.
    """
    for mapping in _mapping.everyone():
        handle = mapping.handle() if mapping.handle is not None else None
        if handle is not None:
            handle.close()


def _capacity_of(native: _core.Store, branch: str) -> int:
    taken = sum(mapping.core.capacity_bytes for mapping in _mapping.writers())
    capacity = next((capacity for limit, capacity in _CAPACITIES if taken < limit), _LEAST_CAPACITY_BYTES)
    size_bytes = native.version(branch).region_bytes if native.contains(branch) else 0
    return max(capacity, 4 * size_bytes)


def _given(is_read: bool, engine: str, memory_limit_bytes: int, capacity_bytes: int, *flags: bool) -> dict[str, Any]:
    """The options that differ from their defaults."""
    if text(engine, "name of an engine") not in _ENGINES:
        raise InvalidArgument(f"there is no engine {engine!r}: there are {', '.join(_ENGINES)}")
    values = {
        "engine": engine,
        "memory_limit_bytes": number(memory_limit_bytes, "number of bytes"),
        "capacity_bytes": number(capacity_bytes, "number of bytes"),
    }
    values |= {name: bool(flag) for name, flag in zip(("working_set", "share", "huge_pages"), flags, strict=True)}
    return {name: value for name, value in values.items() if value not in ("automatic", 0, False)}


def _options(given: dict[str, Any]) -> _core.OpenOptions:
    options = _core.OpenOptions()
    for name, value in given.items():
        setattr(options, name, value)
    return options


def open_version(native: _core.Store, name: str, options: _core.OpenOptions) -> Region:
    """Opens a version to read."""
    return Region(_mapping.Mapping(native, native.open_version(name, options), native.version(name)))


def _open_branch(native: _core.Store, branch: str, create: bool, options: _core.OpenOptions) -> _core.Region:
    try:
        return native.open_region(branch, options)
    except NotFound:
        if not create:
            raise
    try:
        return native.create_region(branch, _FIRST_BYTES, options)
    except AlreadyExists:  # another process was faster
        return native.open_region(branch, options)


def _open_here(native: _core.Store, branch: str) -> _mapping.Mapping | None:
    """A branch that this process has open."""
    for mapping in _mapping.writers():
        if mapping.store.id == native.id and mapping.name == branch:
            return mapping
    return None


def _again(mapping: _mapping.Mapping, given: dict[str, Any]) -> Region:
    """A branch that is open already: the region itself, or its memory, while arrays of a closed one are in use."""
    region: Region | None = mapping.handle() if mapping.handle is not None else None
    if region is not None and mapping.thread != threading.get_ident():
        raise Busy(f"{mapping.title} has a writer already, in another thread of this process: share its region")
    actual = {**mapping.options, "engine": mapping.core.engine}
    other = {name: value for name, value in given.items() if actual.get(name) != value}
    if other:
        users = ", ".join(mapping.names_in_use()) if region is None else ""
        why = f", and these arrays of it are in use: {users}" if users else ": close it before"
        raise Busy(f"{mapping.title} is open in this process without {other}{why}")
    if region is not None:
        return region
    mapping.is_open = mapping.is_held = True
    mapping.rollback()
    return Region(mapping)


Store.opener = staticmethod(open)


# ---- Other processes


def _restore_region(version: VersionReference) -> Region:
    return Region(version.open_anew(_core.OpenOptions()))


@dataclass(frozen=True)
class WriterReference:
    """For handing a branch over to another process, which becomes its writer: `WriterReference.of(r).open()`.

    `open()` is Busy while the other process, or anybody else, has the branch open.
    """

    path: str
    store_id: str
    branch: str

    @staticmethod
    def of(region: Region) -> WriterReference:
        """That of an open branch."""
        mapping = region._used()
        if mapping.version is not None:
            raise InvalidArgument(f"{mapping.title} is open to read: it pickles as it is")
        return WriterReference(mapping.store.path, mapping.store.id, mapping.name)

    def open(self) -> Region:
        """Opens the branch to write."""
        if open_store(self.path, False).id != self.store_id:
            raise NotFound(f"{self.path} is another store than the one that was pickled")
        return open(self.path, self.branch)
