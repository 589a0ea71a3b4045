"""Files of `numpy.savez`: a zip file with a member for each array.

Attributes, groups and dicts are in a member `vellum.json`, which `numpy.load` gives as bytes: an object of entries by
name, with `kind`, `attrs` and `items`. Strings "s" are the members "s/offsets" and "s/data", as in `Strings`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from .._arguments import Path, file_name
from ..array import Array
from ..attributes import Dict
from ..errors import InvalidArgument
from ..progress import Callback
from .walk import (
    PIECE_VALUES,
    Count,
    Group,
    byte_count_of,
    counted,
    create_strings,
    is_group,
    is_wanted,
    items_of,
    new_file,
    part_of,
    parts_of,
    pieces,
)

_ENTRIES = "vellum.json"
_MOST_ENTRIES_BYTES = 1 << 30
_format: Any = np.lib.format


# ---- Export


def export(group: Group, target: Path, names: Any, compress: bool, progress: bool | Callback | None) -> None:
    """As `Group.export_npz`."""
    items = list(items_of(group, names))
    entries: dict[str, Any] = {"": {"kind": "group", "attrs": dict(group.attrs)}}
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with (
        new_file(target) as path,
        zipfile.ZipFile(path, "x", method) as file,
        counted("export", byte_count_of(items), progress) as count,
    ):
        for name, item in items:
            entries[name] = {"attrs": dict(item.attrs)}
            if isinstance(item, Array):
                entries[name]["kind"] = "array"
                _write_array(file, name, item, count)
            elif isinstance(item, Dict):
                entries[name].update(kind="dict", items=dict(item))
            elif is_group(item):
                entries[name]["kind"] = "group"
            else:
                entries[name]["kind"] = item.kind
                _write_array(file, f"{name}/offsets", item.offsets, count)
                _write_array(file, f"{name}/data", item.data, count)
        file.writestr(_ENTRIES, json.dumps(entries))


def _write_array(file: zipfile.ZipFile, name: str, array: Array, count: Count) -> None:
    described = _format.header_data_from_array_1_0(np.asarray(array))
    with file.open(f"{name}.npy", "w", force_zip64=True) as out:
        try:
            _format.write_array_header_1_0(out, described)
        except ValueError:  # too many fields
            _format.write_array_header_2_0(out, described)
        for _, part in parts_of(array, count):
            out.write(part.tobytes())


# ---- Import


def import_(group: Group, source: Path, names: Any, progress: bool | Callback | None) -> None:
    """As `Group.import_npz`."""
    with zipfile.ZipFile(_opened_or_named(source)) as file:
        members = {i.filename[: -len(".npy")]: i for i in file.infolist() if i.filename.endswith(".npy")}
        entries = _entries(file, members)
        wanted = [name for name in entries if name == "" or is_wanted(name, names)]
        total = sum(member.file_size for member in members.values())
        with counted("import", total, progress) as count:
            for name in wanted:
                _read_item(group, file, name, entries[name], count)


def _opened_or_named(source: Any) -> Any:
    return source if hasattr(source, "read") else file_name(source)


def _entries(file: zipfile.ZipFile, members: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Those of the member of that name. Members that it does not know are arrays: numpy has written the file."""
    found: Any = {}
    if _ENTRIES in file.namelist():
        if file.getinfo(_ENTRIES).file_size > _MOST_ENTRIES_BYTES:
            raise InvalidArgument(f"{file.filename}: {_ENTRIES} is larger than 1 GiB")
        found = json.loads(file.read(_ENTRIES))
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise InvalidArgument(f"{file.filename}: {_ENTRIES} has no entries by name")
    strings = [name for name, entry in found.items() if entry.get("kind") in ("string", "bytes")]
    kept = {f"{name}/{part}" for name in strings for part in ("offsets", "data")}
    return found | {name: {"kind": "array"} for name in members if name not in found and name not in kept}


def _read_item(group: Group, file: zipfile.ZipFile, name: str, entry: dict[str, Any], count: Count) -> None:
    kind = entry.get("kind")
    made: Any = group
    if kind == "array":
        made = _read_array(group, file, name, count)
    elif kind in ("string", "bytes"):
        made = create_strings(group, name, kind)
        for values in _read_values(file, name, kind == "string", count):
            made.extend(values)
    elif kind == "dict":
        made = group.create_dict(name, entry.get("items", {}))
    elif kind == "group":
        made = group.require_group(name) if name else group
    else:
        raise InvalidArgument(f"{file.filename}: {name!r} is of kind {kind!r}")
    made.attrs.update(entry.get("attrs", {}))


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = _format.read_magic(member)
    readers = {(1, 0): _format.read_array_header_1_0, (2, 0): _format.read_array_header_2_0}
    if version not in readers:
        raise InvalidArgument(f"an array in version {version[0]}.{version[1]} of the format: use numpy.load()")
    shape, fortran, dtype = readers[version](member)
    if dtype.hasobject:
        raise InvalidArgument("an array of Python objects, which would be pickles: numpy.load() may read it")
    return shape, fortran, dtype


def _opened(file: zipfile.ZipFile, name: str) -> tuple[IO[bytes], tuple[tuple[int, ...], bool, np.dtype[Any]]]:
    try:
        member = file.open(f"{name}.npy")
        return member, _read_header(member)
    except (InvalidArgument, KeyError, ValueError) as error:
        raise InvalidArgument(f"{file.filename}: {name!r}: {error}") from error


def _read_array(group: Group, file: zipfile.ZipFile, name: str, count: Count) -> Array:
    member, (shape, fortran, dtype) = _opened(file, name)
    with member:
        array: Array = group.create_array(name, shape, dtype)
        # Fortran's order is C's of the axes in reverse.
        target: Any = np.asarray(array).T if fortran else np.asarray(array)
        for where in pieces(target.shape, dtype.itemsize):
            part = part_of(target, where)
            values = np.frombuffer(_read_exactly(member, part.nbytes), dtype) if part.nbytes else np.empty(0, dtype)
            part[...] = values.reshape(part.shape)
            count(part.nbytes)
    return array


def _read_exactly(member: IO[bytes], length: int) -> bytes:
    content = member.read(length)
    if len(content) != length:
        raise InvalidArgument(f"{member.name}: it ends {length - len(content)} bytes early")
    return content


def _read_values(file: zipfile.ZipFile, name: str, is_text: bool, count: Count) -> Iterator[list[Any]]:
    """The values of strings, so many at once."""
    offsets, ((length, *_), _, kind) = _opened(file, f"{name}/offsets")
    data, ((end, *_), _, _) = _opened(file, f"{name}/data")
    with offsets, data:
        at = 0
        if kind != np.dtype("<i8") or length == 0 or _read_exactly(offsets, 8) != bytes(8):
            raise InvalidArgument(f"{file.filename}: the offsets of {name!r} are wrong")
        for begin in range(1, length, PIECE_VALUES):
            bounds = np.frombuffer(_read_exactly(offsets, 8 * min(PIECE_VALUES, length - begin)), "<i8").tolist()
            values = []
            for bound in bounds:
                if not at <= bound <= end:
                    raise InvalidArgument(f"{file.filename}: the offsets of {name!r} are wrong")
                content = _read_exactly(data, bound - at)
                values.append(content.decode("utf-8") if is_text else content)
                at = bound
            count(sum(map(len, values)))
            yield values
