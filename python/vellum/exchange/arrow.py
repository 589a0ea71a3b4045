"""Arrow, by pyarrow: tables and arrays over a region's memory, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array
from ..errors import InvalidArgument
from ..group import Group
from ..strings import Strings


def table_of(group: Group, names: Any) -> Any:
    """As `Group.to_arrow`."""
    import pyarrow as pa

    if names is None:
        names = [name for name in group if isinstance(group[name], (Array, Strings))]
    columns = {name: _column(name, group[name]) for name in names}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument(f"the columns of a table have one length, and these differ: {lengths}")
    return pa.table(columns)


def _column(name: str, item: Any) -> Any:
    if isinstance(item, Strings):
        return strings_of(item)
    if isinstance(item, Array) and item.ndim == 1:
        return array_of(name, item)
    raise InvalidArgument(f"{name!r} is no column: one axis of numbers or times, strings, or bytes")


def array_of(name: str, array: Array) -> Any:
    """An array of one axis."""
    import pyarrow as pa

    if not array.dtype.isnative or array.dtype.kind not in "iufmM" or not array.flags.c_contiguous:
        raise InvalidArgument(f"{name!r}, of dtype {array.dtype}, is no column that Arrow has without a copy")
    try:
        kind = pa.from_numpy_dtype(array.dtype)
    except (pa.ArrowNotImplementedError, ValueError) as error:
        raise InvalidArgument(f"{name!r}, of dtype {array.dtype}, is no column that Arrow has: {error}") from error
    # A buffer of the times themselves is what Python has no format for.
    plain = array.view(np.int64) if array.dtype.kind in "mM" else array
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(plain)])


def strings_of(strings: Strings) -> Any:
    """Text or bytes of any length. Corrupted: offsets at which Arrow would read other memory."""
    import pyarrow as pa

    strings.check_offsets()
    kind = pa.large_string() if strings.kind == "string" else pa.large_binary()
    buffers = [None, pa.py_buffer(strings.offsets), pa.py_buffer(strings.data)]
    return pa.Array.from_buffers(kind, len(strings), buffers)
