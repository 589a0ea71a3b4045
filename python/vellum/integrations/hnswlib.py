"""An index of hnswlib in a region: vectors are durable at the cost of their bytes, and old versions answer, too.

An example::

    new = hnswlib.Index("l2", 128)
    new.init_index(10_000)
    with vellum.open("/data/s", create=True) as r:
        kept = vellum.integrations.hnswlib.Index(r, "words", new)
        kept.add(vectors)
        r.commit()
        labels, distances = kept.index.knn_query(queries, 10)

The guide is docs/guides/vector-indexes.md.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._vectors import Bytes, VectorIndex, Write

try:
    import hnswlib
except ImportError as error:
    raise ImportError("vellum.integrations.hnswlib needs hnswlib: pip install vellum[hnswlib]") from error

__all__ = ["Index"]

# The file of hnswlib: a header of 96 bytes, a block for each vector, and the links of upper levels. The number of
# blocks and the length of one are the header's third and fourth numbers.
_HEADER_BYTES = 96


class Index(VectorIndex):
    """A `hnswlib.Index`; it grows by itself. `remove` is `mark_deleted`."""

    _kind = "hnswlib"

    def _described(self, index: Any) -> dict[str, Any]:
        return {"space": index.space, "dim": index.dim, "ef": index.ef, "most": index.get_max_elements()}

    def _serialize(self, index: Any, write: Write) -> None:
        # hnswlib writes by name only, and holds the interpreter's lock: a file in memory, of the index's size.
        with _MemoryFile() as file:
            index.save_index(file.path)
            length = os.fstat(file.fd).st_size
            with mmap.mmap(file.fd, length, prot=mmap.PROT_READ) as content, memoryview(content) as view:
                _, _, count, size = np.frombuffer(content[:32], np.uint64).tolist()
                end = min(_HEADER_BYTES + count * size, length)
                write(0, view[:end])
                write(1, view[end:])

    def _deserialize(self, parts: list[Bytes], rows: int) -> Any:
        attrs = self._group.attrs
        index = hnswlib.Index(attrs["space"], attrs["dim"])
        with _MemoryFile() as file:
            for part in parts:
                file.append(part)
            index.load_index(file.path, max_elements=attrs["most"])
        index.set_ef(attrs["ef"])
        return index

    def _add(self, index: Any, vectors: NDArray[Any], keys: NDArray[np.uint64]) -> None:
        end, most = index.get_current_count() + len(vectors), index.get_max_elements()
        if end > most:
            index.resize_index(max(2 * most, end))
        index.add_items(vectors, keys)

    def _keys_end(self, index: Any) -> int:
        return max(index.get_ids_list(), default=-1) + 1

    def _remove(self, index: Any, keys: NDArray[np.uint64]) -> None:
        for key in keys.tolist():
            index.mark_deleted(key)


class _MemoryFile:
    """A file without a name, which has a path while it is open."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("hnswlib", os.MFD_CLOEXEC)
        self.path = f"/proc/self/fd/{self.fd}"

    def append(self, content: Any) -> None:
        view = memoryview(content)
        while view:
            view = view[os.write(self.fd, view[: 1 << 24]) :]

    def __enter__(self) -> _MemoryFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
