"""Groups: names of arrays, strings, dicts and other groups, as in h5py and zarr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import strings
from ._arguments import Path, number
from ._mapping import Mapping
from .array import Array, array_of, refuse_mask
from .attributes import Attributes, Dict
from .catalog import Entry, byte_count, checked_name, describe_dtype, dtype_from
from .errors import InvalidArgument, NotFound, ReadOnly
from .progress import Callback
from .reference import VersionReference, reference_to
from .space import PAGE, Extent, round_up
from .strings import Strings

_LEAST_ROOM_BYTES = 1 << 20


class Group(MutableMapping[str, Any]):
    """A mapping of names. "a/b" names b in the group a; groups on the way are made by themselves."""

    def __init__(self, mapping: Mapping, name: str = "") -> None:
        self._mapping = mapping
        self._name = name

    # ---- What is here

    def _full(self, name: str) -> str:
        if not isinstance(name, str):
            raise InvalidArgument(f"{name!r} is no name")
        return f"{self._name}/{name}" if self._name else name

    def _used(self) -> Mapping:
        """The mapping, for each use."""
        self._mapping.require_open()
        return self._mapping

    def _to_change(self) -> Mapping:
        mapping = self._used()
        if mapping.version is not None:
            raise ReadOnly(f"{mapping.title} is open read-only: open a branch to change it")
        return mapping

    @property
    def name(self) -> str:
        """The name of the group; "" for all of the region."""
        return self._name

    @property
    def attrs(self) -> Attributes:
        """The attributes: JSON values by name."""
        return Attributes(self._used(), self._name)

    def __getitem__(self, name: str) -> Any:
        full = self._full(name)
        entry = self._used().catalog.find(full)
        kind = entry["kind"]
        if kind == "array":
            return array_of(self._used(), entry)
        if kind == "group":
            return Group(self._used(), full)
        return Dict(self._used(), full) if kind == "dict" else Strings(self._used(), full)

    def __iter__(self) -> Iterator[str]:
        prefix = f"{self._name}/" if self._name else ""
        here = [n[len(prefix) :] for n in self._used().catalog.entries if n.startswith(prefix) and n != ""]
        return iter([name for name in here if "/" not in name])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name != "" and self._full(name) in self._used().catalog.entries

    def __reduce__(self) -> Any:
        """A dict of the values; for a worker process a reference, where the version is read-only."""
        reference = reference_to(self._used())
        return (dict, (dict(self),)) if reference is None else (_restore_group, (reference, self._name))

    def visit(self) -> Iterator[tuple[str, Any]]:
        """Everything below, by name: arrays, strings and dicts, and those of groups inside."""
        for name in self:
            item = self[name]
            if isinstance(item, Group):
                yield from ((f"{name}/{inner}", each) for inner, each in item.visit())
            else:
                yield name, item

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        """A group is no array: pandas and numpy would take the names for its values."""
        raise TypeError(
            f"{self!r} is a mapping of names: use dict(group), as in pandas.DataFrame(dict(group)), or to_arrow()"
        )

    def __repr__(self) -> str:
        return f"<Group {self._name!r}: {', '.join(self) or 'empty'}>"

    # ---- New things

    def create_array(
        self,
        name: str,
        shape: int | tuple[int, ...] | None = None,
        dtype: DTypeLike | None = None,
        *,
        data: ArrayLike | None = None,
        chunks: None = None,
        room: int | None = None,
    ) -> Array:
        """Makes an array of zeros, or of `data`.

        `room` is the number of rows for which `resize()` keeps space behind the array; by default three times
        as many as it has, and at least 1 MiB, but less where the region's capacity is short. Unused room takes
        neither memory nor disk. `chunks` is None: an array is one piece of memory, whatever its size.

        What fails makes nothing.
        """
        if chunks is not None:
            raise InvalidArgument("arrays are plain memory and have no chunks: leave `chunks` out")
        mapping = self._to_change()
        given = None if data is None else _values(name, data, dtype)
        if given is not None and shape is None:
            shape = given.shape
        if shape is None:
            raise InvalidArgument("create_array() needs a shape, or data")
        kind = _dtype(dtype) if given is None else given.dtype
        lengths = _shape(shape)
        full = checked_name(self._full(name))
        entry: Entry = {"kind": "array", "dtype": describe_dtype(kind), "shape": lengths, "attrs": {}}
        space = _space(lengths, kind, room)
        with mapping.catalog.creating(full, entry):
            entry["extent"] = mapping.catalog.space.allocate(*space)
            mapping.catalog.add(full, entry)
            array = array_of(mapping, entry)
            if given is not None:
                array[...] = given
        return array

    def create_strings(self, name: str, values: Iterable[str] = ()) -> Strings:
        """Makes a sequence of `str` of any length."""
        return strings.create(self._to_change(), checked_name(self._full(name)), "string", values)

    def create_bytes(self, name: str, values: Iterable[bytes] = ()) -> Strings:
        """Makes a sequence of `bytes` of any length."""
        return strings.create(self._to_change(), checked_name(self._full(name)), "bytes", values)

    def create_dict(self, name: str, values: Any = ()) -> Dict:
        """Makes a dict of small objects: JSON values by name."""
        full, catalog = self._full(name), self._to_change().catalog
        entry: Entry = {"kind": "dict", "items": {}}
        with catalog.creating(full, entry):
            catalog.add(full, entry)
            made = Dict(self._used(), full)
            made.update(values)
        return made

    def create_group(self, name: str) -> Group:
        """Makes a group."""
        full, catalog = self._full(name), self._to_change().catalog
        entry: Entry = {"kind": "group"}
        with catalog.creating(full, entry):
            catalog.add(full, entry)
        return Group(self._used(), full)

    def require_group(self, name: str) -> Group:
        """The group of that name, which is made if it is missing."""
        if name in self and isinstance(found := self[name], Group):
            return found
        return self.create_group(name)

    # ---- Changes

    def __setitem__(self, name: str, value: Any) -> None:
        """A new array, or new values of one that has the same shape and dtype."""
        full = self._full(name)
        entry = self._used().catalog.entries.get(full)
        if entry is None:
            self.create_array(name, data=value)
            return
        array, given = self._given(full, value)
        if given.__array_interface__["data"] != array.__array_interface__["data"] or given.strides != array.strides:
            array[...] = given

    def _given(self, full: str, value: Any) -> tuple[Array, np.ndarray[Any, Any]]:
        """An array, and values that it can take."""
        mapping = self._to_change()
        entry = mapping.catalog.find(full)
        if entry["kind"] != "array":
            raise InvalidArgument(f"{full!r} is no array, but of kind {entry['kind']}: remove it first")
        array, given = array_of(mapping, entry), _values(full, value, None)
        if given.shape != array.shape or given.dtype != array.dtype:
            raise InvalidArgument(
                f"{full!r} has shape {array.shape} and dtype {array.dtype}, not {given.shape} and "
                f"{given.dtype}: resize() it, or remove it first"
            )
        return array, given

    def update(self, values: Any = (), /, **more: Any) -> None:
        """Stores each of the values under its name: all of them, or none where one is refused."""
        items, catalog = dict(values, **more), self._to_change().catalog
        old = {name: self._given(self._full(name), items.pop(name))[1] for name in list(items) if name in self}
        with catalog.all_or_nothing():
            for name, value in items.items():
                self[name] = value
        for name, value in old.items():
            self[name] = value

    def __delitem__(self, name: str) -> None:
        """Removes the entry. Its arrays that are in use keep their memory, but lose their name."""
        full = self._full(name)
        if full == "":
            raise NotFound("the region itself cannot be removed")
        self._to_change().catalog.remove(full)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """What has the name; if nothing has, `default` is stored there first."""
        if name not in self:
            self[name] = default
        return self[name]

    def resize(self, name: str, rows: int | tuple[int, ...]) -> Array:
        """Changes an array's length along the first axis, and returns the array.

        A shape is taken, too, as long as only its first length differs from the array's.

        New rows are zero. The array stays in its place while its room lasts; then it moves, which copies it
        and is a BufferError while arrays of it are in use, because these would be left behind.
        """
        mapping = self._to_change()
        full = self._full(name)
        entry = mapping.catalog.find(full)
        if entry["kind"] != "array" or not entry["shape"]:
            raise InvalidArgument(f"{full!r} is no array with a first axis")
        old, extent = tuple(entry["shape"]), tuple(entry["extent"])
        new = _shape(rows)
        new = (*new, *old[1:]) if isinstance(rows, (int, np.integer)) else new
        if new[1:] != old[1:] or len(new) != len(old):
            raise InvalidArgument(
                f"resize() changes the number of rows: {full!r} has shape {old}, and {new} differs in another axis"
            )
        dtype = dtype_from(entry["dtype"])
        old_bytes, new_bytes = byte_count(old, dtype), byte_count(new, dtype)
        if new_bytes > extent[1]:
            _move(mapping, full, entry, _space(new, dtype, None))
        elif new_bytes != old_bytes:  # also of new rows: a view from before a shorter length may have written there
            least, most = sorted([old_bytes, new_bytes])
            mapping.core.zero(extent[0] + least, most - least)
        entry["shape"] = new
        mapping.catalog.dirty = True
        return array_of(mapping, entry)

    # ---- Import and export
    #
    # An export writes everything below, or only `names`, to a new file: AlreadyExists where there
    # is one. An import makes new arrays: AlreadyExists where there are some; one that fails leaves none. Both go
    # through in pieces. Pages of a version leave memory behind an export; `memory_limit_bytes` of `open()` bounds the
    # memory of an import. `progress` is as in `Store.verify`, in bytes.

    def export_npz(
        self,
        target: Path,
        *,
        names: Iterable[str] | None = None,
        compress: bool = False,
        progress: bool | Callback | None = None,
    ) -> None:
        """Writes a file as `numpy.savez` does, for `numpy.load`."""
        from .exchange import npz

        self._used()
        npz.export(self, target, _listed(names), compress, progress)

    def import_npz(
        self,
        source: Path,
        *,
        names: Iterable[str] | None = None,
        progress: bool | Callback | None = None,
    ) -> None:
        """Imports a file that `export_npz` or `numpy.savez` has written."""
        from .exchange import npz

        with self._to_change().catalog.all_or_nothing():
            npz.import_(self, source, _listed(names), progress)

    def export_hdf5(
        self,
        target: Any,
        *,
        names: Iterable[str] | None = None,
        progress: bool | Callback | None = None,
        **options: Any,
    ) -> None:
        """Writes an HDF5 file, or into an `h5py.Group`. `options` are those of `h5py.Group.create_dataset`."""
        from .exchange import hdf5

        self._used()
        hdf5.export(self, target, _listed(names), progress, options)

    def import_hdf5(
        self, source: Any, *, names: Iterable[str] | None = None, progress: bool | Callback | None = None
    ) -> None:
        """Imports an HDF5 file or an `h5py.Group`. Links to other files are not followed.

        Attributes that are no JSON values, such as references, stay behind with a RuntimeWarning.
        """
        from .exchange import hdf5

        with self._to_change().catalog.all_or_nothing():
            hdf5.import_(self, source, _listed(names), progress)

    def export_zarr(
        self,
        target: Any,
        *,
        names: Iterable[str] | None = None,
        progress: bool | Callback | None = None,
        **options: Any,
    ) -> None:
        """Writes a zarr group at a path or in a store of zarr's. `options` are those of `zarr.Group.create_array`."""
        from .exchange import zarr

        self._used()
        zarr.export(self, target, _listed(names), progress, options)

    def import_zarr(
        self, source: Any, *, names: Iterable[str] | None = None, progress: bool | Callback | None = None
    ) -> None:
        """Imports a zarr group: a path, a store of zarr's, or a `zarr.Group`."""
        from .exchange import zarr

        with self._to_change().catalog.all_or_nothing():
            zarr.import_(self, source, _listed(names), progress)

    def to_arrow(self, names: Iterable[str] | None = None) -> Any:
        """A `pyarrow.Table`: a column for each array of one axis, and for strings.

        Numbers and times are views of the memory, and those of a branch change with it. What Arrow stores differently
        is copied: truth values, days, text of a fixed length, another byte order; and the strings of a branch.
        """
        from .exchange import arrow

        self._used()
        return arrow.table_of(self, _listed(names))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For consumers of Arrow tables: `polars.DataFrame(group)`, `pandas.DataFrame.from_arrow(group)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _restore_group(version: VersionReference, name: str) -> Group:
    return Group(version.open_kept(), name)


def _listed(names: Iterable[str] | None) -> list[str] | None:
    if isinstance(names, str):
        raise InvalidArgument(f"names is a list: [{names!r}]")
    return None if names is None else list(names)


def _values(name: str, data: ArrayLike, dtype: DTypeLike | None) -> np.ndarray[Any, Any]:
    """The values of a new array. What an array cannot store in addition to its values is refused, not dropped."""
    refuse_mask(data, f"{name!r}: ")
    return np.asarray(data, dtype=None if dtype is None else _dtype(dtype))


def _dtype(dtype: DTypeLike | None) -> np.dtype[Any]:
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise InvalidArgument(f"{dtype!r} is no dtype: {error}") from error


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    lengths = shape if isinstance(shape, Iterable) and not isinstance(shape, (str, bytes)) else (shape,)
    return tuple(number(length, "length of an array") for length in lengths)


def _space(shape: tuple[int, ...], dtype: np.dtype[Any], room: int | None) -> tuple[int, int, int]:
    """Length and alignment of an array's extent, and the room that is good to have behind it."""
    used = max(byte_count(shape, dtype), 1)
    if room is not None:
        used += byte_count((number(room, "number of rows"), *shape[1:]), dtype) if shape else 0
        return round_up(used, PAGE), PAGE, 0
    if not shape:
        return round_up(used, 64), 64, 0
    used = round_up(used, PAGE)
    return used, PAGE, max(3 * used, _LEAST_ROOM_BYTES - used)


def _move(mapping: Mapping, name: str, entry: Entry, space: tuple[int, int, int]) -> None:
    old: Extent = tuple(entry["extent"])
    if mapping.has_views(old):
        raise BufferError(
            f"{name!r} has no room to grow, and an array of it is in use, which would be left behind: "
            "drop all references to it before resize(), or make it with create_array(room=...)"
        )
    new = mapping.catalog.space.allocate(*space)
    dtype = dtype_from(entry["dtype"])
    shape = tuple(entry["shape"])
    mapping.view(new, shape, dtype, Array)[...] = mapping.view(old, shape, dtype, Array)
    mapping.catalog.move(name, "extent", new)
