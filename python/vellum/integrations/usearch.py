"""An index of USearch in a region: vectors are durable at the cost of their bytes, and old versions answer, too.

An example::

    with vellum.open("/data/s", create=True) as r:
        kept = vellum.integrations.usearch.Index(r, "words", usearch.index.Index(ndim=128))
        kept.add(vectors, keys)
        r.commit()
        matches = kept.index.search(query, 10)

The guide is docs/guides/vector-indexes.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import vellum

from ._vectors import Bytes, VectorIndex, Write

try:
    from usearch.index import Index as _Index
    from usearch.index import ScalarKind
except ImportError as error:
    raise ImportError("vellum.integrations.usearch needs usearch: pip install vellum[usearch]") from error

__all__ = ["Index"]

# USearch's serialized form: the number of rows and the bytes of one, the vectors, headers of 64 and 40 bytes, 2 bytes
# for the level of each node, and the nodes.
_HEADERS_BYTES = 64 + 40
_OPTIONS = ("connectivity", "expansion_add", "expansion_search")


class Index(VectorIndex):
    """A `usearch.index.Index` of a metric that has a name."""

    _kind = "usearch"

    def _described(self, index: Any) -> dict[str, Any]:
        options: dict[str, Any] = {name: int(getattr(index, name)) for name in _OPTIONS}
        return {"options": {**options, "multi": bool(index.multi)}}

    def _serialize(self, index: Any, write: Write) -> None:
        form = memoryview(index.save())
        rows, columns = np.frombuffer(form[:8], np.uint32).tolist()
        vectors_end = min(8 + rows * columns, len(form))
        levels_end = min(vectors_end + _HEADERS_BYTES + 2 * rows, len(form))
        write(0, form[:vectors_end])
        write(1, form[vectors_end:levels_end])
        write(2, form[levels_end:])

    def _deserialize(self, parts: list[Bytes], rows: int) -> Any:
        form = np.concatenate(parts)
        index = _Index.restore(form.data, **self._group.attrs["options"])
        if index is None:
            raise vellum.Corrupted(f"{self._name!r} of {self._region!r} is no serialized index of USearch")
        return index

    def _taken(self, index: Any, vectors: NDArray[Any]) -> NDArray[Any]:
        if vectors.dtype.kind != "f":
            return np.ascontiguousarray(vectors)  # whole numbers are scaled differently, where it takes them
        return np.ascontiguousarray(vectors, np.float64 if index.dtype == ScalarKind.F64 else np.float32)

    def _add(self, index: Any, vectors: NDArray[Any], keys: NDArray[np.uint64]) -> None:
        index.add(keys, vectors)

    def _keys_end(self, index: Any) -> int:
        return int(np.max(np.asarray(index.keys))) + 1 if len(index) else 0

    def _remove(self, index: Any, keys: NDArray[np.uint64]) -> None:
        index.remove(keys)
