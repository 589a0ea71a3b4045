"""`Store`: the directory that holds every version, without one of them in memory."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from . import _core
from ._arguments import Path, number, text, version_name, version_names, where
from ._native import open_store
from .diff import Diff
from .progress import Callback, shown
from .replication import Replication

VersionInfo = _core.VersionInfo


class Store:
    """A store. Names of branches and of snapshots share one name space.

    `path` is a directory, or the URL of a remote: that one is only read, and has the names of now.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self._native = open_store(path, create)

    @classmethod
    def _of(cls, native: _core.Store) -> Store:
        """One that is open already: a remote is not asked again."""
        store = cls.__new__(cls)
        store._native = native
        return store

    @property
    def path(self) -> str:
        """The directory, or the URL."""
        return self._native.path

    @property
    def id(self) -> str:
        """32 hex digits, made with the store."""
        return self._native.id

    def __repr__(self) -> str:
        return f"<Store {self.path!r}>"

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.path,)

    # `vellum.open`, which region.py puts here: it is above this.
    opener: Callable[..., Any]

    def open(self, branch: str = "main", **options: object) -> Any:
        """As `vellum.open`: a `Region`."""
        return Store.opener(self.path, branch, **options)

    # ---- Names

    def versions(self) -> list[VersionInfo]:
        """All snapshots, oldest first, then all branches."""
        return self._native.versions()

    def version(self, name: str) -> VersionInfo:
        """One of them."""
        return self._native.version(version_name(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._native.contains(version_name(name))

    @property
    def branches(self) -> list[str]:
        """The names of the branches."""
        return [version.name for version in self.versions() if version.is_branch]

    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots, oldest first."""
        return [version.name for version in self.versions() if not version.is_branch]

    def log(self, branch: str | None = None, *, commits: bool = False) -> list[VersionInfo]:
        """The snapshots, newest first; of one branch, or of all.

        `commits`: before them the commits of the branch that can be read, newest first: its last one, and those
        before it back to the last checkpoint, which closing the branch makes. `main@12` names commit 12 wherever a
        version is read.
        """
        versions = self.versions()
        found = [v for v in versions if not v.is_branch and branch in (None, v.branch)][::-1]
        if not commits:
            return found
        heads = [v for v in versions if v.is_branch and branch in (None, v.name)]
        return [v for head in heads for v in [head, *self._native.commits(head.name)]] + found

    def create_branch(self, name: str, version: str) -> None:
        """A branch that starts at a version, or at a branch's last commit while that branch is being written."""
        self._native.create_branch(version_name(name), version_name(version))

    def create_snapshot(self, name: str, version: str, message: str = "") -> None:
        """A snapshot of a branch's last commit, also while a writer is at work; or a second name."""
        self._native.create_snapshot(version_name(name), version_name(version), text(message, "message"))

    def remove_snapshot(self, name: str) -> None:
        """Removes a snapshot; `gc()` gives its space back."""
        self._native.remove_snapshot(version_name(name))

    # Their names before.

    @property
    def tags(self) -> list[str]:
        """Deprecated: `snapshots`."""
        warn_of_name("Store.tags", "Store.snapshots")
        return self.snapshots

    def create_tag(self, name: str, version: str, message: str = "") -> None:
        """Deprecated: `create_snapshot`."""
        warn_of_name("Store.create_tag()", "Store.create_snapshot()")
        self.create_snapshot(name, version, message)

    def remove_tag(self, name: str) -> None:
        """Deprecated: `remove_snapshot`."""
        warn_of_name("Store.remove_tag()", "Store.remove_snapshot()")
        self.remove_snapshot(name)

    def remove_branch(self, name: str) -> None:
        """Removes a branch. Busy: it has a writer."""
        self._native.remove_branch(version_name(name))

    def forget(
        self,
        *,
        keep_last: int = 0,
        keep_daily: int = 0,
        keep_weekly: int = 0,
        keep_monthly: int = 0,
        keep_yearly: int = 0,
        dry_run: bool = False,
    ) -> list[str]:
        """Removes the snapshots that no rule keeps, and returns their names. Without a rule: InvalidArgument."""
        rules = (keep_last, keep_daily, keep_weekly, keep_monthly, keep_yearly)
        names = self._native.not_kept(*(number(each, "number of snapshots to keep", (1 << 32) - 1) for each in rules))
        if not dry_run:
            for name in names:
                self._native.remove_snapshot(name)
        return names

    # ---- Remotes: other machines have versions, too

    @property
    def remotes(self) -> list[_core.RemoteInfo]:
        """The remotes that the store knows, by name."""
        return self._native.remotes()

    def add_remote(
        self, name: str, url: str, *, one_writer: bool = False, lock: datetime.timedelta | None = None
    ) -> bool:
        """Makes a remote known: "s3://bucket/prefix", or "file:///mnt/shared/x" for a directory.

        First it probes the server. False: it lets two creators of an object win, and so only this store may push,
        which takes `one_writer=True`. Credentials are read from the environment or ~/.aws.

        With `lock`, such as `datetime.timedelta(days=30)`, nobody can remove what is pushed before that time is over,
        and as long as a version needs it (S3 Object Lock, in compliance mode). A bucket without it is refused.
        """
        lock_s = 0 if lock is None else math.ceil(lock.total_seconds())
        return self._native.add_remote(text(name, "name of a remote"), text(url, "URL"), bool(one_writer), lock_s)

    def remove_remote(self, name: str) -> None:
        """Forgets a remote. What it holds stays there."""
        self._native.remove_remote(text(name, "name of a remote"))

    def push(
        self,
        remote: str = "origin",
        versions: Iterable[str] = (),
        *,
        take_over: bool = False,
        progress: bool | Callback | None = None,
    ) -> _core.PushReport:
        """Sends versions to a remote, all that there are or those named, all or none.

        Busy: another store has pushed a branch since. `take_over` pushes anyway: the remote's newer commits are lost.
        """
        with shown("push", progress) as callback:
            return self._native.push(_remote(remote), version_names(versions), bool(take_over), callback)

    def pull(
        self,
        remote: str = "origin",
        versions: Iterable[str] = (),
        *,
        packs: bool = False,
        take_over: bool = False,
        progress: bool | Callback | None = None,
    ) -> _core.PullReport:
        """Gets versions from a remote, all that it has or those named.

        `packs`: also fetches all packs that a lazy clone has not stored locally.

        A branch with commits of this store's own stays as it is: `is_ahead` of its entry in the report, and
        `is_older` where the remote has lost commits. IOFailure: the remote has other commits, too. `take_over`: the
        branch is replaced, and its own commits are lost.
        """
        with shown("pull", progress) as callback:
            names = version_names(versions)
            return self._native.pull(_remote(remote), names, bool(packs), bool(take_over), callback)

    def replicate(self, url: str, *, interval: float = 1.0, take_over: bool = False) -> Replication:
        """Sends each commit and each new snapshot to a remote as it is made, concurrently with any writer.

        It returns at once, and a thread pushes, until `stop()` of what it returns, or the end of its `with` block.
        A machine that is lost takes no commit with it that is older than `interval` seconds, as long as the server
        answers and a push takes no more than half of that. A remote that the store does not know is added as
        "replica". A push that fails is tried again; `take_over` is that of `push`.
        """
        return Replication(self, url, interval, take_over)

    # ---- Content and upkeep

    def diff(self, a: str, b: str) -> Diff:
        """What differs, by the name of each array."""
        return Diff(self._native, version_name(a), version_name(b))

    def stat(self) -> _core.StoreStat:
        """The space that the store takes, and that of each version."""
        return self._native.stat()

    def verify(self, *, read_data: bool = True, progress: bool | Callback | None = None) -> _core.VerifyReport:
        """Looks for damage: `damages` of the report is empty where all is well."""
        with shown("verify", progress) as callback:
            return self._native.verify(bool(read_data), callback)

    def gc(
        self, *, dry_run: bool = False, recompress: int = 0, progress: bool | Callback | None = None
    ) -> _core.GcReport:
        """Frees the space of data that no version needs. `recompress`: a level of zstd, 1 to 19."""
        with shown("gc", progress) as callback:
            return self._native.collect_garbage(bool(dry_run), number(recompress, "level of zstd", 19), callback)


def _remote(name: str) -> str:
    return text(name, "name of a remote")


def warn_of_name(old: str, new: str) -> None:
    """A name from before."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)


def clone(
    url: str,
    path: Path,
    versions: Iterable[str] = (),
    *,
    lazy: bool = False,
    progress: bool | Callback | None = None,
) -> Store:
    """Makes a store from a remote, which it then knows as "origin": of all versions, or of those named.

    `lazy`: data stay at the remote and are fetched when they are read; `Store.pull(packs=True)` gets all of them.
    The directory must not exist. A clone that was cut off goes on where it ended.
    """
    with shown("clone", progress) as callback:
        _core.Store.clone(text(url, "URL"), where(path)[0], version_names(versions), bool(lazy), callback)
    return Store(path)
