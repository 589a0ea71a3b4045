"""A `diskcache.Disk` that keeps large values in a store, where they share their content.

An example::

    cache = diskcache.Cache("/data/cache", disk=vellum.integrations.diskcache.VellumDisk)
    cache["x"] = numpy.arange(1_000_000)

The guide is docs/guides/caches.md.
"""

from __future__ import annotations

import io
import pickle
import secrets
from typing import Any

from ._values import Values

try:
    from diskcache import UNKNOWN, Disk
    from diskcache.core import MODE_BINARY, MODE_PICKLE, MODE_TEXT
except ImportError as error:
    raise ImportError("vellum.integrations.diskcache needs diskcache: pip install vellum[diskcache]") from error

__all__ = ["VellumDisk"]


class VellumDisk(Disk):  # type: ignore[misc]
    """Values of `disk_min_file_size` bytes and more are in a store, `DIRECTORY.vellum`; others in the database.

    Arrays are stored as they are, so two that have pages in common share them. diskcache's `check()` takes the values
    for missing files: leave it out.
    """

    def __init__(self, directory: str, **options: Any) -> None:
        super().__init__(directory, **options)
        self._values = Values(f"{directory}.vellum")

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> tuple[int, int, str | None, Any]:
        """As `diskcache.Disk.store`."""
        if read:
            value = value.read()
        if isinstance(value, (int, float)) or (isinstance(value, (str, bytes)) and len(value) < self.min_file_size):
            found: tuple[int, int, str | None, Any] = super().store(value, False, key)
            return found
        buffers: list[Any] = []
        if type(value) is bytes:
            mode, head = MODE_BINARY, value
        elif type(value) is str:
            mode, head = MODE_TEXT, value.encode("utf-8")
        else:
            mode, head = MODE_PICKLE, pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        raw = [each.raw() for each in buffers]
        if mode == MODE_PICKLE and len(head) + sum(len(each) for each in raw) < self.min_file_size:
            found = super().store(value, False, key)
            return found
        name = secrets.token_hex(16)
        return self._values.put(name, head, raw), mode, name, None

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        """As `diskcache.Disk.fetch`."""
        if filename is None:
            return super().fetch(mode, filename, value, read)
        found = self._values.get(filename)
        if found is None:
            raise FileNotFoundError(f"{self._values.path} has no value {filename}")
        head = found.head.tobytes()
        if mode == MODE_PICKLE:
            return pickle.loads(head, buffers=[bytearray(each) for each in found.buffers])
        if mode == MODE_TEXT:
            return head.decode("utf-8")
        return io.BytesIO(head) if read else head

    def remove(self, file_path: str) -> None:
        """As `diskcache.Disk.remove`."""
        self._values.remove(file_path)
