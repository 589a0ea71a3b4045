"""HDF5 files, by h5py.

Groups, arrays and numbers in attributes are HDF5's own. Strings are data sets of variable length, of text or of 8-bit
integers. Times and fixed text, which HDF5 has not, are opaque values that h5py knows again. A dict is a data set of
one JSON text. Attributes of other kinds than text and numbers are JSON text, too; the attribute `vellum.json` names
them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._arguments import file_name, is_utf8
from ..array import Array
from ..attributes import Dict
from ..errors import InvalidArgument
from ..progress import Callback
from .walk import (
    PIECE_VALUES,
    Count,
    Group,
    as_plain,
    batches_of,
    byte_count_of,
    counted,
    create_strings,
    is_group,
    is_wanted,
    items_of,
    new_file,
    parts_of,
    read_array,
)

_JSON_NAMES = "vellum.json"
_KIND = "vellum.kind"


# ---- Export


def export(group: Group, target: Any, names: Any, progress: bool | Callback | None, options: dict[str, Any]) -> None:
    """As `Group.export_hdf5`."""
    items = list(items_of(group, names))
    with _opened_to_write(target) as file, counted("export", byte_count_of(items), progress) as count:
        _write_attributes(file, group.attrs)
        for name, item in items:
            if isinstance(item, Array):
                made = _write_array(file, name, item, count, options)
            elif isinstance(item, Dict):
                made = file.create_dataset(name, data=json.dumps(dict(item)))
                made.attrs[_KIND] = "dict"
            elif is_group(item):
                made = file.require_group(name)
            else:
                made = _write_strings(file, name, item)
            _write_attributes(made, item.attrs)


@contextmanager
def _opened_to_write(target: Any) -> Iterator[Any]:
    import h5py

    if isinstance(target, h5py.Group):
        yield target
        return
    with new_file(target) as path, h5py.File(path, "x") as file:
        yield file


def _stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    import h5py

    stored: np.dtype[Any] = h5py.opaque_dtype(dtype) if dtype.kind in "mMU" else dtype
    return stored


def _write_array(file: Any, name: str, array: Array, count: Count, options: dict[str, Any]) -> Any:
    dtype = _stored_dtype(array.dtype)
    try:
        made = file.create_dataset(name, array.shape, dtype, **(options if array.ndim and array.size else {}))
    except TypeError as error:
        raise InvalidArgument(f"{name!r}: HDF5 has no values of dtype {array.dtype}: {error}") from error
    for where, part in parts_of(array, count, made.chunks):
        made[where] = np.asarray(part).view(dtype) if dtype.metadata else np.asarray(part)
    return made


def _write_strings(file: Any, name: str, strings: Any) -> Any:
    import h5py

    is_text = strings.kind == "string"
    dtype = h5py.string_dtype() if is_text else h5py.vlen_dtype(np.uint8)
    made = file.create_dataset(name, (len(strings),), dtype)
    made.attrs[_KIND] = strings.kind
    at = 0
    for values in batches_of(strings):
        if is_text and any("\0" in value for value in values):
            raise InvalidArgument(f"{name!r} has text with a zero, which ends a text in HDF5: use create_bytes()")
        batch = np.empty(len(values), object)
        batch[:] = values if is_text else [np.frombuffer(value, np.uint8) for value in values]
        made[at : at + len(values)] = batch
        at += len(values)
    return made


def _write_attributes(made: Any, attributes: Any) -> None:
    as_json = []
    for name, value in attributes.items():
        plain = isinstance(value, (bool, float)) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)
        if plain or (isinstance(value, str) and "\0" not in value and is_utf8(value)):
            made.attrs[name] = value
        else:
            made.attrs[name] = json.dumps(value)
            as_json.append(name)
    if as_json:
        made.attrs[_JSON_NAMES] = json.dumps(as_json)


# ---- Import


def import_(group: Group, source: Any, names: Any, progress: bool | Callback | None) -> None:
    """As `Group.import_hdf5`."""
    import h5py

    if isinstance(source, h5py.Group):
        _import(group, source, names, progress)
    else:
        with h5py.File(file_name(source), "r") as file:
            _import(group, file, names, progress)


def _import(group: Group, source: Any, names: Any, progress: bool | Callback | None) -> None:
    items: list[tuple[str, Any]] = []
    # Every object once, and no links to other files. A function that returns a value would end the visit.
    source.visititems(lambda name, item: items.append((name, item)) if is_wanted(name, names) else None)
    with counted("import", byte_count_of(items), progress) as count:
        _read_attributes(group, source)
        for name, item in items:
            _read_attributes(_read_item(group, name, item, count), item)


def _read_item(group: Group, name: str, item: Any, count: Count) -> Any:
    import h5py

    if isinstance(item, h5py.Group):
        return group.require_group(name)
    if not isinstance(item, h5py.Dataset) or item.shape is None:
        raise InvalidArgument(f"{name!r} has no values: choose others by `names`")
    kind = _kind_of(name, item)
    if kind == "array":
        dtype = np.dtype(item.dtype.str if item.dtype.kind in "mMU" else item.dtype)
        return read_array(group, name, item, dtype, item.chunks, count)
    if kind == "dict":
        return group.create_dict(name, json.loads(item.asstr()[()]))
    made = create_strings(group, name, kind)
    reader = item.asstr() if kind == "string" else item
    for begin in range(0, len(item), PIECE_VALUES):
        values = reader[begin : begin + PIECE_VALUES]
        made.extend(values if kind == "string" else [value.tobytes() for value in values])
    return made


def _kind_of(name: str, item: Any) -> str:
    import h5py

    text = h5py.check_string_dtype(item.dtype)
    if text is not None and text.length is None:
        if item.ndim == 0 and item.attrs.get(_KIND) == "dict":
            return "dict"
        if item.ndim == 1:
            return "string"
    if h5py.check_vlen_dtype(item.dtype) == np.uint8 and item.ndim == 1:
        return "bytes"
    if item.dtype.hasobject:
        raise InvalidArgument(f"{name!r}: values of {item.dtype} in {item.ndim} axes: choose others by `names`")
    return "array"


def _read_attributes(made: Any, item: Any) -> None:
    as_json = json.loads(item.attrs.get(_JSON_NAMES, "[]"))
    for name in item.attrs:
        if name in (_JSON_NAMES, _KIND):
            continue
        try:
            value = as_plain(item.attrs[name])
            made.attrs[name] = json.loads(value) if name in as_json else value
        except (TypeError, ValueError, OSError) as error:
            warnings.warn(f"{item.name}: its attribute {name!r} stays behind: {error}", RuntimeWarning, stacklevel=2)
