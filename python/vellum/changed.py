"""Which bytes of an array differ from those of another version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import _core
from ._mapping import Mapping
from .catalog import dtype_from

_PIECE_BYTES = 16 << 20
Ranges = np.ndarray[Any, np.dtype[np.int64]]  # a row for each: begin and end


def no_ranges() -> Ranges:
    """None."""
    return np.empty((0, 2), dtype=np.int64)


def changed_ranges(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Ranges:
    """Where two arrays of bytes of one length differ: begin and end."""
    found = []
    for at in range(0, len(a), _PIECE_BYTES):
        differs = a[at : at + _PIECE_BYTES] != b[at : at + _PIECE_BYTES]
        edges = np.flatnonzero(np.diff(differs.view(np.int8), prepend=0, append=0))
        found.append(edges.reshape(-1, 2) + at)
    return np.concatenate(found) if found else no_ranges()


def nbytes_changed(mapping: Mapping, name: str, array: np.ndarray[Any, Any]) -> int:
    """How many bytes of a view of an array differ from the version before."""
    if mapping.version is None:
        before = mapping.name
    else:
        before = mapping.version.parent
        if before == "" or not mapping.store.contains(before):
            return array.nbytes
    core = mapping.store.open_version(before, _core.OpenOptions())
    old = Mapping(mapping.store, core, mapping.store.version(before))
    found = old.catalog.entries.get(name)
    if found is None or found["kind"] != "array":
        return array.nbytes
    then = old.view(tuple(found["extent"]), tuple(found["shape"]), dtype_from(found["dtype"]), np.ndarray)
    entry = mapping.catalog.entries[name]
    if then.dtype != array.dtype or then.nbytes == 0:
        return array.nbytes
    # The same place in the older array, as far as it reaches.
    offset = array.__array_interface__["data"][0] - mapping.core.address - entry["extent"][0]
    last = sum((length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True))
    if array.nbytes == 0:
        return 0
    if any(stride < 0 for stride in array.strides) or offset + last + array.itemsize > then.nbytes:
        return _changed_of_rows(array, then)
    base = then.reshape(-1).view(np.uint8)
    same_place = np.ndarray(array.shape, array.dtype, buffer=base, offset=offset, strides=array.strides)
    return _count_changed(array, same_place)


def _count_changed(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> int:
    if a.flags.c_contiguous and b.flags.c_contiguous:
        ranges = changed_ranges(_bytes_of(a), _bytes_of(b))
        return int((ranges[:, 1] - ranges[:, 0]).sum())
    if a.ndim == 0:
        return _count_changed(np.array(a), np.array(b))
    return sum(_count_changed(x, y) for x, y in _pieces(a, b))


def _pieces(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Copies of a bounded size, so that views with strides compare as bytes."""
    row_bytes = max(a.nbytes // max(len(a), 1), 1)
    step = max((16 << 20) // row_bytes, 1)
    for at in range(0, len(a), step):
        yield np.ascontiguousarray(a[at : at + step]), np.ascontiguousarray(b[at : at + step])


def _bytes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    flat: np.ndarray[Any, Any] = np.asarray(array).reshape(-1).view(np.uint8)
    return flat


def _changed_of_rows(array: np.ndarray[Any, Any], then: np.ndarray[Any, Any]) -> int:
    """For a whole array that was resized: rows that only one has are changed."""
    if array.shape[1:] != then.shape[1:]:
        return array.nbytes
    common = min(len(array), len(then))
    return _count_changed(array[:common], then[:common]) + array[common:].nbytes
