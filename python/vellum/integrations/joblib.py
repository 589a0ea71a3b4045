"""A store for `joblib.Memory` whose entries share their content.

An example::

    vellum.integrations.joblib.register()
    memory = joblib.Memory("/data/cache", backend="vellum", verbose=0)

The guide is docs/guides/caches.md.
"""

from __future__ import annotations

import datetime
import io
import os
import pickle
import warnings
from typing import Any

from ._values import Found, Values

try:
    from joblib import register_store_backend
    from joblib._store_backends import CacheItemInfo, CacheWarning, StoreBackendBase, StoreBackendMixin
except ImportError as error:
    raise ImportError("vellum.integrations.joblib needs joblib: pip install vellum[joblib]") from error

__all__ = ["VellumStoreBackend", "register"]

_RESULT = "output.pkl"


class VellumStoreBackend(StoreBackendBase, StoreBackendMixin):  # type: ignore[misc]
    """Results, code and metadata of functions, as values in a store.

    With `mmap_mode="r"` the arrays of a result are read-only views of the store, else they are copies.
    """

    def configure(self, location: str, verbose: int = 0, backend_options: dict[str, Any] | None = None) -> None:
        """Takes the store's path. There is no compression to choose: the store compresses."""
        options = backend_options or {}
        self.location = os.fspath(location)
        self.verbose = verbose
        self.compress = False
        self.mmap_mode = options.get("mmap_mode")
        if self.mmap_mode not in (None, "r"):
            raise ValueError(f"mmap_mode={self.mmap_mode!r}: the store's content does not change: None or 'r'")
        self._values = Values(self.location)

    def _name(self, location: Any) -> str:
        name = os.path.relpath(os.fspath(location), self.location)
        return "" if name == "." else name

    # ---- Results

    def load_item(
        self, call_id: list[str], verbose: int = 1, timestamp: float | None = None, metadata: Any = None
    ) -> Any:
        """The result of a call. KeyError: there is none."""
        found = self._values.get("/".join([*call_id, _RESULT]), fixed=self.mmap_mode == "r")
        if found is None:
            raise KeyError(f"{self.location} has no {'/'.join(call_id)}")
        buffers = found.buffers if self.mmap_mode == "r" else [bytearray(each) for each in found.buffers]
        return pickle.loads(found.head.tobytes(), buffers=buffers)

    def dump_item(self, call_id: list[str], item: Any, verbose: int = 1) -> None:
        """Stores the result of a call."""
        buffers: list[pickle.PickleBuffer] = []
        try:
            head = pickle.dumps(item, protocol=5, buffer_callback=buffers.append)
            self._values.put("/".join([*call_id, _RESULT]), head, [each.raw() for each in buffers])
        except Exception as error:
            warnings.warn(f"Unable to cache in {self.location}: {error!r}", CacheWarning, stacklevel=2)

    def get_items(self) -> list[Any]:
        """All results, for `Memory.reduce_size`; the time of an access is that of the result."""
        return [
            CacheItemInfo(os.path.join(self.location, name.rpartition("/")[0]), size, _time(at))
            for name, size, at in self._values.items()
            if name.endswith("/" + _RESULT)
        ]

    # ---- Files: the code of functions, and metadata

    def _open_item(self, location: Any, mode: str) -> Any:
        name = self._name(location)
        if "w" in mode:
            return _Written(self._values, name)
        found: Found | None = self._values.get(name)
        if found is None:
            raise FileNotFoundError(location)
        return io.BytesIO(found.head.tobytes())

    def _concurrency_safe_write(self, to_write: Any, filename: str, write_func: Any) -> None:
        write_func(to_write, filename)  # a commit is all or nothing

    def _move_item(self, src: str, dst: str) -> None:
        raise NotImplementedError("a value is stored under its name at once")

    def _item_exists(self, location: Any) -> bool:
        return self._values.has(self._name(location))

    def create_location(self, location: str) -> None:
        """Groups are made with what is in them."""

    def clear_location(self, location: str) -> None:
        """Removes what is there."""
        self._values.remove(self._name(location))


class _Written(io.BytesIO):
    """A file that is stored when it is closed."""

    def __init__(self, values: Values, name: str) -> None:
        super().__init__()
        self._values, self._name = values, name

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._values.put(self._name, self.getvalue(), [])
        super().__exit__(kind, error, trace)


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds)


def register() -> None:
    """Makes `joblib.Memory(backend="vellum")` known; joblib accepts it more than once."""
    register_store_backend("vellum", VellumStoreBackend)
