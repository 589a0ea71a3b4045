"""zarr groups, by zarr 3.

Groups, arrays, text and bytes of variable length, and attributes are zarr's own. A dict is a group with the attribute
`vellum.dict`. zarr gives numbers in the machine's byte order, whichever they are stored in.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._arguments import file_name
from ..array import Array
from ..attributes import Dict
from ..errors import InvalidArgument
from ..progress import Callback
from .walk import (
    PIECE_VALUES,
    Count,
    Group,
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

_DICT = "vellum.dict"
_AXES = "_ARRAY_DIMENSIONS"  # xarray's


def is_path(given: Any) -> bool:
    """Whether it is a path, and neither a URL nor a store of zarr's."""
    return isinstance(given, (str, bytes, os.PathLike)) and "://" not in os.fsdecode(given)


# ---- Export


def export(group: Group, target: Any, names: Any, progress: bool | Callback | None, options: dict[str, Any]) -> None:
    """As `Group.export_zarr`."""
    import zarr

    if isinstance(target, zarr.Group):
        _export(group, target, names, progress, options)
    elif is_path(target):
        with new_file(target) as path:
            _export(group, zarr.create_group(path), names, progress, options)
    else:
        _export(group, zarr.create_group(target), names, progress, options)


def _export(group: Group, made: Any, names: Any, progress: bool | Callback | None, options: dict[str, Any]) -> None:
    items = list(items_of(group, names))
    made.attrs.update(dict(group.attrs))
    with counted("export", byte_count_of(items), progress) as count:
        for name, item in items:
            if isinstance(item, Array):
                _write_array(made, name, item, count, options)
            elif isinstance(item, Dict):
                made.create_group(name, attributes={**item.attrs, _DICT: dict(item)})
            elif is_group(item):
                made.require_group(name).attrs.update(dict(item.attrs))
            else:
                _write_strings(made, name, item)


def _write_array(target: Any, name: str, array: Array, count: Count, options: dict[str, Any]) -> None:
    named = _with_dimensions(target, name, dict(array.attrs), array.ndim)
    try:
        made = target.create_array(name, shape=array.shape, dtype=array.dtype, **{**named, **options})
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{name!r}, of dtype {array.dtype}, as an array of zarr: {error}") from error
    for where, part in parts_of(array, count, made.shards or made.chunks):
        made[(*where, ...)] = np.asarray(part)


def _with_dimensions(target: Any, name: str, attributes: dict[str, Any], count: int) -> dict[str, Any]:
    """Attributes and names of the axes, where xarray looks for them: in format 2 they are an attribute."""
    given = attributes.get(_AXES)
    is_good = isinstance(given, list) and len(given) == count and all(isinstance(each, str) for each in given)
    names = given if is_good else _own_dimensions(name, count)
    if target.metadata.zarr_format == 2:
        return {"attributes": {**attributes, _AXES: names}}
    return {"attributes": attributes, "dimension_names": names}


def _own_dimensions(name: str, count: int) -> list[str]:
    """Names that no other array of the group has: two axes of one name have one length."""
    own = name.rpartition("/")[2]
    return [f"{own}_{axis}" for axis in range(count)]


def _write_strings(target: Any, name: str, strings: Any) -> None:
    from zarr.dtype import VariableLengthBytes, VariableLengthUTF8

    kind = VariableLengthUTF8() if strings.kind == "string" else VariableLengthBytes()
    named = _with_dimensions(target, name, dict(strings.attrs), 1)
    made = target.create_array(name, shape=(len(strings),), dtype=kind, chunks=(PIECE_VALUES,), **named)
    at = 0
    for values in batches_of(strings):
        batch = np.empty(len(values), object)
        batch[:] = values
        made[at : at + len(values)] = batch.astype(made.dtype)
        at += len(values)


# ---- Import


def import_(group: Group, source: Any, names: Any, progress: bool | Callback | None) -> None:
    """As `Group.import_zarr`."""
    import zarr

    opened = source
    if not isinstance(source, zarr.Group):
        opened = zarr.open_group(file_name(source) if is_path(source) else source, mode="r")
    items = sorted((n, item) for n, item in opened.members(max_depth=None) if is_wanted(n, names))
    group.attrs.update(dict(opened.attrs))
    with counted("import", byte_count_of(items), progress) as count:
        for name, item in items:
            _read_item(group, name, item, count)


def _read_item(group: Group, name: str, item: Any, count: Count) -> None:
    import zarr

    attributes = dict(item.attrs)
    made: Any
    if not isinstance(item, zarr.Array):
        values = attributes.pop(_DICT, None)
        made = group.require_group(name) if values is None else group.create_dict(name, values)
        made.attrs.update(attributes)
        return
    if attributes.get(_AXES) == _own_dimensions(name, item.ndim):
        del attributes[_AXES]
    if (kind := _kind_of(name, item)) == "array":
        made = read_array(group, name, item, item.dtype, item.shards or item.chunks, count)
    else:
        made = create_strings(group, name, kind)
        step = (item.shards or item.chunks)[0]
        for begin in range(0, item.shape[0], step):
            made.extend(np.asarray(item[begin : begin + step]).tolist())
    made.attrs.update(attributes)


def _kind_of(name: str, item: Any) -> str:
    from zarr.dtype import VariableLengthBytes, VariableLengthUTF8

    stored = getattr(item.metadata, "data_type", None) or item.metadata.dtype
    for kind, one in (("string", VariableLengthUTF8), ("bytes", VariableLengthBytes)):
        if isinstance(stored, one):
            if item.ndim == 1:
                return kind
            raise InvalidArgument(f"{name!r}: values of {stored} in {item.ndim} axes: choose others by `names`")
    return "array"
