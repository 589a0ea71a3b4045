"""Arrow, by pyarrow: tables and arrays over a region's memory, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array
from ..errors import InvalidArgument
from .walk import Group, Strings


def table_of(group: Group, names: Any) -> Any:
    """As `Group.to_arrow`."""
    import pyarrow as pa

    if names is None:
        names = [name for name in group if isinstance(group[name], Array) or _is_strings(group[name])]
    columns = {name: _column(name, group[name]) for name in names}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument(f"the columns of a table have one length, and these differ: {lengths}")
    return pa.table(columns)


def _is_strings(item: Any) -> bool:
    return hasattr(item, "offsets")


def _column(name: str, item: Any) -> Any:
    if _is_strings(item):
        return strings_of(item)
    if isinstance(item, Array) and item.ndim == 1:
        return array_of(name, item)
    raise InvalidArgument(f"{name!r} is no column: one axis of numbers or times, strings, or bytes")


def array_of(name: str, array: Array) -> Any:
    """An array of one axis."""
    import pyarrow as pa

    shared = array.dtype.isnative and array.flags.c_contiguous and array.dtype.kind in "iufmM"
    try:
        kind = pa.from_numpy_dtype(array.dtype)
        # A time that is none is a number of its own in numpy, and missing in Arrow.
        if not shared or kind.bit_width != 8 * array.itemsize or (array.dtype.kind in "mM" and np.isnat(array).any()):
            return pa.array(np.array(array, dtype=array.dtype.newbyteorder("=")))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidArgument(
            f"{name!r}, of dtype {array.dtype}, is no column that Arrow has: choose others by `names`: {error}"
        ) from error
    # A buffer of the times themselves is what Python has no format for.
    plain = array.view(np.int64) if array.dtype.kind in "mM" else array
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(plain)])


def strings_of(strings: Strings) -> Any:
    """Text or bytes of any length. Corrupted: offsets at which Arrow would read other memory.

    Those of a branch are copied. Arrow trusts that the offsets fit the bytes, and both change with the branch.
    """
    import pyarrow as pa

    strings.check_offsets()
    kind = pa.large_string() if strings.kind == "string" else pa.large_binary()
    parts = [np.array(part) if strings.is_live else part for part in (strings.offsets, strings.data)]
    buffers = [None, *map(pa.py_buffer, parts)]
    return pa.Array.from_buffers(kind, len(strings), buffers)
