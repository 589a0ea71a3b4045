"""`vellum://store@version/path` for fsspec: what a store holds, as files.

A file is an array of bytes and a directory is a group; arrays of other types are files of their bytes. So everything
that opens files by fsspec reads any version: pandas, Dask, pyarrow, kerchunk. On a branch it writes, too: each call
is a commit, and so is each `fs.transaction`, of all its files together.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any

import numpy as np

import vellum
from vellum import blobs
from vellum.region import open_alone, require_free

try:
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
    from fsspec.transaction import Transaction
except ImportError as error:
    raise ImportError("vellum.integrations.fsspec needs fsspec: pip install vellum[fsspec]") from error

__all__ = ["VellumFileSystem"]

_PREFIX = "vellum://"


def _parsed(url: str) -> tuple[str, str, str]:
    """Store, version and path of a URL.

    Of several "@" the first one behind the directory of a store counts. Where no store is yet, the last one counts.
    In the URL of a remote it is the first one.
    """
    rest = url.removeprefix(_PREFIX)
    marks = [at for at, character in enumerate(rest) if character == "@"]
    if not marks:
        raise vellum.InvalidArgument(f"{url!r} names no version: vellum://store@version/path, such as @main")
    if marks[0] == 0 or "://" in rest[: marks[0]]:
        mark = marks[0]
    else:
        mark = next((at for at in marks[:-1] if _is_store(rest[:at])), marks[-1])
    version, _, path = rest[mark + 1 :].partition("/")
    return rest[:mark], version, path


def _is_store(path: str) -> bool:
    return os.path.exists(os.path.join(path, "vellum.store"))


def _chained(target: str, protocol: str | None, options: dict[str, Any]) -> str:
    """The store behind `vellum://@version/path::target`, as a path or as a URL of Vellum's."""
    path = target.partition("://")[2] or target
    if protocol in (None, "file", "local"):
        return path if _is_store(path) else f"file://{path}"
    if protocol not in ("s3", "s3a"):
        raise vellum.InvalidArgument(f"{protocol}://{path}: Vellum reads remotes in s3:// and in directories")
    client = options.get("client_kwargs") or {}
    endpoint = options.get("endpoint_url") or client.get("endpoint_url")
    given = {"endpoint": endpoint, "region": client.get("region_name")}
    query = "&".join(f"{name}={value}" for name, value in given.items() if value)
    return f"s3://{path}?{query}" if query and "?" not in path else f"s3://{path}"


class _Transaction(Transaction):  # type: ignore[misc]
    """All files of a `with fs.transaction` block: one commit, or none."""

    def start(self) -> None:
        """Begins it."""
        self.fs._begin()
        super().start()

    def complete(self, commit: bool = True) -> None:
        """Commits, or forgets all of it."""
        fs, done = self.fs, False
        try:
            super().complete(commit)
            done = commit
        finally:
            fs._end(done, "transaction")


class VellumFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A version of a store to read, or a branch to read and write.

    store
        A directory, or the URL of a remote, whose versions are open to read.
    version
        A snapshot or a branch. Each call sees the branch's last commit.
    create
        A first write makes the store and the branch where they are missing.
    """

    protocol = "vellum"
    root_marker = ""
    transaction_type = _Transaction

    def __init__(
        self,
        store: str = "",
        version: str = "main",
        *,
        create: bool = False,
        fo: str | None = None,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.store = store if fo is None else _chained(fo, target_protocol, target_options or {})
        self.version = version or "main"
        self._create = create
        self._lock = threading.RLock()
        self._kept: vellum.Store | None = None
        self._reader: tuple[Any, vellum.Region] | None = None
        self._writer: vellum.Region | None = None

    # ---- Names

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        name: str = os.fspath(path)
        if name.startswith(_PREFIX):
            name = _parsed(name)[2] if "@" in name else name.removeprefix(_PREFIX)
        return name.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        if not path.startswith(_PREFIX):
            return {}
        store, version, _ = _parsed(path)
        return {"store": store, "version": version} if store else {"version": version}

    def unstrip_protocol(self, name: str) -> str:
        """The whole URL of a path."""
        return name if name.startswith(_PREFIX) else f"{_PREFIX}{self.store}@{self.version}/{name.strip('/')}"

    @property
    def fsid(self) -> str:
        """What is the same for all file systems of this store and version."""
        return f"{_PREFIX}{self._opened().id}@{self.version}"

    # ---- The region

    def _opened(self) -> vellum.Store:
        if self._kept is None:
            self._kept = vellum.Store(self.store)
        return self._kept

    def _region(self) -> vellum.Region:
        """To read: the branch's last commit, or what this file system is about to commit."""
        with self._lock:
            if self._writer is not None:
                return self._writer
            if self._reader is not None and self._reader[0] is None:  # a snapshot stays as it is
                return self._reader[1]
            info = self._opened().version(self.version)
            state = (info.sequence, info.committed_at) if info.is_branch else None
            if self._reader is None or self._reader[0] != state:
                self._reader = (state, vellum.open(self.store, version=self.version))
            return self._reader[1]

    def _require_branch(self) -> None:
        """ReadOnly: it is a snapshot, or at a remote. Busy: another region has the branch open."""
        title = f"{_PREFIX}{self.store}@{self.version}"
        if "://" in self.store:
            raise vellum.ReadOnly(f"{title} is at a remote, which is open to read: clone it, and push what you write")
        if os.path.exists(self.store) and self.version in self._opened():
            if not self._opened().version(self.version).is_branch:
                raise vellum.ReadOnly(f"{title} is a snapshot, which never changes: write to a branch, such as @main")
            with self._lock:
                if self._writer is None:
                    require_free(self.store, self.version)

    def _begin(self) -> None:
        with self._lock:
            if self._writer is not None:
                raise vellum.Busy(f"{_PREFIX}{self.store}@{self.version}: a transaction is open")
            self._require_branch()
            self._writer = open_alone(self.store, self.version, create=self._create)

    def _end(self, commit: bool, message: str = "") -> None:
        """Commits, and gives the branch to other writers: nobody holds the region any more."""
        with self._lock:
            region, self._writer = self._writer, None
            if region is None or region.closed:
                return
            with closing(region):  # which drops what is not committed
                if commit:
                    region.commit(message)

    @contextmanager
    def _changing(self, message: str) -> Iterator[vellum.Region]:
        """One commit for a block, unless it is within another one or in a transaction."""
        with self._lock:
            if self._writer is not None:
                yield self._writer
                return
            self._begin()
            done = False
            try:
                assert self._writer is not None
                yield self._writer
                done = True
            finally:
                self._end(done, message)

    def snapshot(self, name: str, message: str = "") -> None:
        """Keeps the branch's last commit under a name."""
        self._opened().create_snapshot(name, self.version, message)

    def invalidate_cache(self, path: Any = None) -> None:
        """A remote is asked again which versions it has."""
        self._kept = self._reader = None
        super().invalidate_cache(path)

    # ---- Reading

    def _found(self, path: str) -> Any:
        """A group, or an array. FileNotFoundError: neither."""
        name, region = self._strip_protocol(path), self._region()
        if name == "":
            return region
        try:
            found = region[name]
        except (KeyError, ValueError):
            found = None
        if not isinstance(found, (vellum.Array, vellum.Group)):
            raise FileNotFoundError(self.unstrip_protocol(name))
        return found

    def _array(self, path: str) -> vellum.Array:
        found = self._found(path)
        if not isinstance(found, vellum.Array):
            raise IsADirectoryError(self.unstrip_protocol(self._strip_protocol(path)))
        return found

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Name, size and type."""
        return _described(self._strip_protocol(path), self._found(path))

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """What is in a directory."""
        name, found = self._strip_protocol(path), self._found(path)
        if isinstance(found, vellum.Array):
            described = [_described(name, found)]
        else:
            items = [(f"{name}/{each}" if name else each, found[each]) for each in sorted(found)]
            kinds = (vellum.Array, vellum.Group)
            described = [_described(inner, item) for inner, item in items if isinstance(item, kinds)]
        return described if detail else [each["name"] for each in described]

    def modified(self, path: str) -> Any:
        """When the version was committed."""
        import datetime

        self._found(path)
        return datetime.datetime.fromtimestamp(self._opened().version(self.version).committed_at, datetime.UTC)

    created = modified

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """The bytes of a file, or of a part of it."""
        return blobs.bytes_of(self._array(path), start, end).tobytes()

    def _open(
        self, path: str, mode: str = "rb", block_size: Any = None, autocommit: bool = True, **options: Any
    ) -> Any:
        if mode not in ("rb", "wb", "ab", "xb"):
            raise NotImplementedError(f"mode {mode!r}: files are opened to read, to write and to append")
        if mode == "rb":
            array = self._array(path)
            options.update(cache_type="none", size=array.nbytes, array=array)
        else:
            self._require_branch()  # refused now, and not when the file is closed
            if mode == "xb" and self.exists(path):
                raise FileExistsError(self.unstrip_protocol(self._strip_protocol(path)))
        size = "default" if block_size is None else block_size
        return _File(self, path, mode, size, autocommit=autocommit, **options)

    # ---- Writing

    def _put(self, path: str, content: Any, append: bool = False, create: bool = False) -> None:
        """Makes or replaces a file."""
        name = self._strip_protocol(path)
        with self._changing(f"write {name}") as region:
            if name == "" or isinstance(region.get(name), vellum.Group):
                raise IsADirectoryError(self.unstrip_protocol(name))
            if create and name in region:
                raise FileExistsError(self.unstrip_protocol(name))
            blobs.put(region, name, np.frombuffer(content, "u1"), append=append)

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **options: Any) -> None:
        """Stores bytes as a file."""
        self._put(path, value, create=mode == "create")

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Makes a directory."""
        name = self._strip_protocol(path)
        with self._changing(f"mkdir {name}") as region:
            if name == "" or name in region:
                raise FileExistsError(self.unstrip_protocol(name))
            parent = name.rpartition("/")[0]
            if not create_parents and parent and parent not in region:
                raise FileNotFoundError(self.unstrip_protocol(parent))
            region.create_group(name)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Makes a directory and those above it."""
        is_root = self._strip_protocol(path) == ""  # also of a store that is yet to be made
        if not (exist_ok and (is_root or self.isdir(path))):
            self.mkdir(path)

    def rmdir(self, path: str) -> None:
        """Removes an empty directory."""
        name = self._strip_protocol(path)
        with self._changing(f"rmdir {name}") as region:
            if len(self._found(path)) > 0:
                raise OSError(f"{self.unstrip_protocol(name)} is not empty")
            del region[name]

    def _rm(self, path: str) -> None:
        name = self._strip_protocol(path)
        with self._changing(f"remove {name}") as region:
            self._found(path)
            if name:
                del region[name]

    rm_file = _rm

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files and directories."""
        with self._changing("remove"):
            super().rm(path, recursive=recursive, maxdepth=maxdepth)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copies a file, or makes a directory like another."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
        else:
            self._put(path2, self.cat_file(path1))

    def copy(self, path1: Any, path2: Any, *arguments: Any, **options: Any) -> None:
        """Copies files: one commit."""
        with self._changing("copy"):
            super().copy(path1, path2, *arguments, **options)

    def mv(self, path1: Any, path2: Any, *arguments: Any, **options: Any) -> None:
        """Moves files: one commit."""
        with self._changing("move"):
            super().mv(path1, path2, *arguments, **options)

    def put(self, lpath: Any, rpath: Any, *arguments: Any, **options: Any) -> None:
        """Copies files from the machine: one commit."""
        with self._changing("put"):
            super().put(lpath, rpath, *arguments, **options)

    def pipe(self, path: Any, value: Any = None, **options: Any) -> None:
        """Stores bytes as files: one commit."""
        with self._changing("pipe"):
            super().pipe(path, value, **options)

    def touch(self, path: str, truncate: bool = True, **options: Any) -> None:
        """Makes an empty file."""
        if truncate or not self.exists(path):
            self._put(path, b"")


def _described(name: str, found: Any) -> dict[str, Any]:
    if isinstance(found, vellum.Array):
        return {"name": name, "size": found.nbytes, "type": "file", "dtype": str(found.dtype), "shape": found.shape}
    return {"name": name, "size": 0, "type": "directory"}


class _File(AbstractBufferedFile):  # type: ignore[misc]
    """An open file. What is written goes into the region when it is closed."""

    def __init__(self, *arguments: Any, array: vellum.Array | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._array = array  # of the version that was opened; the branch may go on
        self._is_discarded = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it. After an exception a file that was written stays as it was before."""
        if kind is not None and self.mode != "rb":
            self.discard()
            self.closed = True
        self.close()

    def _fetch_range(self, start: int, end: int) -> bytes:
        assert self._array is not None
        return blobs.bytes_of(self._array, start, end).tobytes()

    def _initiate_upload(self) -> None:
        self._content = bytearray()

    def _upload_chunk(self, final: bool = False) -> bool:
        self._content += self.buffer.getvalue()
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Puts the file into the region."""
        if self._is_discarded:  # by an exception that the program has caught within a transaction
            return
        self.fs._put(self.path, self._content, append=self.mode == "ab", create=self.mode == "xb")

    def discard(self) -> None:
        """Forgets what was written."""
        self._is_discarded, self._content = True, bytearray()
