"""An index of faiss in a region: vectors are durable at the cost of their bytes, and old versions answer, too.

An example::

    with vellum.open("/data/s", create=True) as r:
        kept = vellum.integrations.faiss.Index(r, "words", faiss.index_factory(128, "IVF4096,Flat"))
        kept.add(vectors)
        r.commit()
        distances, ids = kept.index.search(queries, 10)

The guide is docs/guides/vector-indexes.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._vectors import Bytes, VectorIndex, Write

try:
    import faiss as _faiss
except ImportError as error:
    raise ImportError("vellum.integrations.faiss needs faiss: pip install vellum[faiss]") from error

faiss: Any = _faiss  # its stubs lack the classes of readers and writers

__all__ = ["Index"]

_PIECE = 64 << 10  # what is longer is a part of its own


class Index(VectorIndex):
    """Any index that `faiss.write_index` takes, trained where it needs training."""

    _kind = "faiss"

    def _described(self, index: Any) -> dict[str, Any]:
        return {}

    def _serialize(self, index: Any, write: Write) -> None:
        part, inside = 0, False  # a vector of faiss's that is larger than a piece

        def take(piece: bytes) -> int:
            nonlocal part, inside
            if len(piece) == _PIECE and not inside:
                part, inside = part + 1, True
            write(part, piece)
            if len(piece) < _PIECE and inside:
                part, inside = part + 1, False
            return len(piece)

        faiss.write_index(index, faiss.PyCallbackIOWriter(take, _PIECE))

    def _deserialize(self, parts: list[Bytes], rows: int) -> Any:
        number = place = 0

        def give(length: int) -> bytes:
            nonlocal number, place
            while number < len(parts) and place == len(parts[number]):
                number, place = number + 1, 0
            piece = parts[number][place : place + length].tobytes() if number < len(parts) else b""
            place += len(piece)
            return piece

        return faiss.read_index(faiss.PyCallbackIOReader(give, _PIECE))

    def _add(self, index: Any, vectors: NDArray[Any], keys: NDArray[np.uint64]) -> None:
        follow = np.arange(index.ntotal, index.ntotal + len(vectors), dtype=np.uint64)
        if hasattr(index, "id_map") or not np.array_equal(keys, follow):
            index.add_with_ids(vectors, keys.astype(np.int64))
        else:
            index.add(vectors)

    def _keys_end(self, index: Any) -> int:
        ids = _ids(index)
        return index.ntotal if ids is None else max((int(some.max()) + 1 for some in ids if len(some)), default=0)

    def _next_key(self, index: Any) -> int:
        return int(index.ntotal) if _ids(index) is None else super()._next_key(index)

    def _remove(self, index: Any, keys: NDArray[np.uint64]) -> None:
        index.remove_ids(keys.astype(np.int64))


def _ids(index: Any) -> Iterator[NDArray[np.int64]] | None:
    """The ids that an index stores. None: they are positions, and those behind a removed one change."""
    if hasattr(index, "id_map"):
        return iter([faiss.vector_to_array(index.id_map)])
    inverted = faiss.try_extract_index_ivf(index)
    if inverted is None:
        return None
    lists = inverted.invlists
    return (faiss.rev_swig_ptr(lists.get_ids(n), lists.list_size(n)) for n in range(lists.nlist))
