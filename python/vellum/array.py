"""`Array`: a `numpy.ndarray` whose memory is a region's.

It is numpy's own class with a few properties more, and indexing is numpy's own, but masked values are refused.
Slices and views are Arrays, too; results of arithmetic are plain `numpy.ndarray`s. `numpy.asarray(x)` is a plain one
over the same memory: for many small operations, where a subclass costs a microsecond each.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, _mapping
from ._arguments import text
from .attributes import Attributes
from .catalog import Entry, dtype_from
from .changed import nbytes_changed
from .errors import InvalidArgument
from .reference import VersionReference, goes_by_reference

_set = np.ndarray.__setitem__
# The functions that store into an array; ufuncs do with `out`, and compute with masked values as with any.
_STORES = {np.copyto, np.put, np.place, np.putmask, np.put_along_axis}
_NUMPY_1 = np.__version__.startswith("1.")
# numpy 2 has moved it.
_byte_bounds: Any = getattr(np.lib, "array_utils", np).byte_bounds


class Array(np.ndarray[Any, np.dtype[Any]]):
    """An array of a region, or a view of one."""

    __slots__ = ()

    def _place(self) -> tuple[_mapping.Mapping, str, int] | None:
        """The mapping, the array's name, and this view's offset in it in bytes. None: plain memory."""
        low, high = _byte_bounds(self)
        mapping = _mapping.find(low, max(high - low, 1))
        if mapping is None:
            return None
        name = mapping.catalog.name_at(low - mapping.core.address)
        if name is None:
            return None
        begin = mapping.catalog.entries[name]["extent"][0]
        return mapping, name, self.__array_interface__["data"][0] - mapping.core.address - begin

    def _pages(self) -> tuple[_mapping.Mapping, int, int] | None:
        """The mapping, and offset and length of the pages from the first element to the last."""
        low, high = _byte_bounds(self)
        mapping = _mapping.find(low, high - low) if high > low else None
        if mapping is None:
            return None
        offset = low - mapping.core.address
        return mapping, offset // 4096 * 4096, _mapping.round_to_pages(offset, high - low)

    def _entry(self) -> tuple[_mapping.Mapping, str, Entry]:
        place = self._place()
        if place is None:
            raise InvalidArgument("this array is in no region: it was computed, removed or rolled back")
        return place[0], place[1], place[0].catalog.entries[place[1]]

    @property
    def name(self) -> str:
        """The name in the region, such as "group/x"."""
        return self._entry()[1]

    @property
    def attrs(self) -> Attributes:
        """The attributes: JSON values by name."""
        mapping, name, _ = self._entry()
        return Attributes(mapping, name)

    @property
    def nbytes_changed(self) -> int:
        """How many bytes of this array or view differ from the last commit.

        For an array of an old version: from the version before it. Compares the content, so it reads both.
        """
        mapping, name, _ = self._entry()
        return nbytes_changed(mapping, name, self)

    def prefetch(self, rows: Any = None) -> None:
        """Brings all of it into memory now, or some rows. A page that cannot be read is `Corrupted`.

        rows
            What can index the first axis: numbers, a mask, a slice. What they need of a version at a remote comes all
            at once.
        """
        pages = self._pages()
        if rows is not None:
            numbers = np.unique(np.arange(len(self))[rows])
            if pages is not None and len(numbers) != 0:
                pages[0].core.prefetch_ranges(self._ranges_of(numbers, pages[0].core.address))
        elif pages is not None:
            pages[0].core.prefetch(*pages[1:])

    def _ranges_of(self, rows: np.ndarray[Any, Any], base: int) -> list[tuple[int, int]]:
        """Offset and length of the bytes of rows; neighbours are joined. REQUIRES: there are some."""
        low, high = _byte_bounds(self[:1])
        begins = np.sort(low - base + rows * self.strides[0])
        is_first = np.append(True, np.diff(begins) > high - low)
        lasts = begins[np.append(np.flatnonzero(is_first)[1:] - 1, len(begins) - 1)]
        firsts = begins[is_first]
        return list(zip(firsts.tolist(), (lasts - firsts + (high - low)).tolist(), strict=True))

    def advise(self, advice: str) -> None:
        """Announces the access pattern: "sequential", "random", "normal", "will_need", "dont_need"."""
        pages = self._pages()
        if pages is not None:
            pages[0].core.advise(*pages[1:], text(advice, "advice"))

    def _leave_memory(self) -> None:
        """Frees memory of a read-only version: its pages are loaded again when they are touched."""
        pages = self._pages()
        if pages is not None and pages[0].version is not None:
            pages[0].core.advise(*pages[1:], "dont_need")

    # ---- Stores: numpy drops the mask of what it copies into plain memory

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ma.MaskedArray):
            refuse_mask(value)
        _set(self, key, value)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function of numpy. Those that store refuse masked values."""
        if func in _STORES:
            for value in (*args, *kwargs.values()):
                refuse_mask(value)
        return super().__array_function__(func, types, args, kwargs)

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:  # noqa: D102
        refuse_mask(values)
        super().put(indices, values, mode)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results are plain arrays, unless they were written into this one."""
        if array is self:
            return array
        # numpy 1 does not say whether the caller wants a scalar: it does where there are no axes.
        return array[()] if return_scalar or (array.ndim == 0 and _NUMPY_1) else np.asarray(array)

    # ---- What leaves the process, or enters the kernel

    def _open_to_kernel(self) -> None:
        pages = self._pages()
        if pages is not None and not pages[0].core.serves_system_calls:
            pages[0].core.open_to_system_calls(*pages[1:])

    if sys.version_info >= (3, 12):  # before: prefetch_before_buffers(), below

        def __buffer__(self, flags: int, /) -> memoryview:
            """A buffer may go to a system call: where the kernel cannot serve its faults, all pages load first."""
            self._open_to_kernel()
            return super().__buffer__(flags)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:  # noqa: D102
        self._open_to_kernel()
        super().tofile(fid, sep, format)

    def _reference(self) -> tuple[Any, ...] | None:
        """For pickle. None: it is of no version."""
        place = self._place()
        if place is None or place[0].version is None:
            return None
        mapping, name, offset = place
        same = dtype_from(mapping.catalog.entries[name]["dtype"]) == self.dtype
        strides = None if self.flags.c_contiguous else self.strides
        version = VersionReference.of(mapping)
        return _restore_array, (version, name, offset, self.shape, strides, None if same else self.dtype)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The values; for a worker process a reference, where the version is read-only."""
        reduced = self._reference() if goes_by_reference() else None
        return np.asarray(self).__reduce_ex__(protocol) if reduced is None else reduced

    def __reduce__(self) -> Any:
        """As `__reduce_ex__`."""
        return self.__reduce_ex__(2)

    def __dask_tokenize__(self) -> Any:
        """A name for dask that costs no reading."""
        reduced = self._reference()
        if reduced is not None:
            return reduced[1]
        from dask.base import normalize_token

        return normalize_token(np.asarray(self))


def refuse_mask(data: Any, where: str = "") -> None:
    """Masked values are refused, not dropped. A mask that hides nothing is no loss."""
    if isinstance(data, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(data)):
        raise InvalidArgument(
            f"{where}arrays have no masks: store data.filled(...), or the values data.data and the mask data.mask "
            "as two arrays"
        )


def _refusing_masks(name: str) -> Callable[[Array, Any], Any]:
    operation = getattr(np.ndarray, name)

    @functools.wraps(operation)
    def in_place(self: Array, other: Any) -> Any:
        refuse_mask(other)
        return operation(self, other)

    return in_place


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Array, f"__i{_name}__", _refusing_masks(f"__i{_name}__"))


def array_of(mapping: _mapping.Mapping, entry: Entry) -> Array:
    """The array of an entry."""
    array: Array = mapping.view(tuple(entry["extent"]), tuple(entry["shape"]), dtype_from(entry["dtype"]), Array)
    return array


def _restore_array(
    version: VersionReference,
    name: str,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[Any] | None,
) -> Array:
    mapping = version.open()
    whole = array_of(mapping, mapping.catalog.entries[name])
    flat = whole.reshape(-1).view(np.uint8) if whole.nbytes else np.empty(0, np.uint8)
    array: Array = np.ndarray.__new__(
        Array, shape, whole.dtype if dtype is None else dtype, buffer=flat, offset=offset, strides=strides
    )
    return array


if sys.version_info < (3, 12):
    _core.prefetch_before_buffers(Array)
