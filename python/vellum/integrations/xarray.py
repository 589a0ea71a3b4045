"""xarray over a region: `xr.open_dataset("/data/s", engine="vellum", version="day-1")`, and `to_vellum`.

A variable is an array of the region, or strings; its attribute `_ARRAY_DIMENSIONS` names the axes, as in zarr. So
arrays that were made without xarray open, too. Values are read when they are used, a piece at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

import vellum
from vellum.region import open_alone

try:
    import xarray as xr
    from xarray import conventions
    from xarray.backends import BackendArray, BackendEntrypoint
    from xarray.backends.common import ArrayWriter, WritableCFDataStore
    from xarray.backends.store import StoreBackendEntrypoint
    from xarray.coding.strings import EncodedStringCoder, create_vlen_dtype
    from xarray.core import indexing
except ImportError as error:
    raise ImportError("vellum.integrations.xarray needs xarray: pip install vellum[xarray]") from error

__all__ = ["VellumBackendEntrypoint", "VellumDataStore", "to_vellum"]

_AXES = "_ARRAY_DIMENSIONS"
_SHAPE = "_ARRAY_SHAPE"  # of strings in other than one axis
_OWN = (_AXES, _SHAPE)
# What `decode_cf=False` switches off.
_DECODERS = ("mask_and_scale", "decode_times", "decode_timedelta", "concat_characters", "use_cftime", "decode_coords")
_FILLS = ("_FillValue", "missing_value")  # of the type of the values, which JSON does not keep


# ---- Reading


class _Lazy(BackendArray):  # type: ignore[misc]
    """Values that are read when they are used."""

    shape: tuple[int, ...]

    def __getitem__(self, key: Any) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    async def async_getitem(self, key: Any) -> Any:
        """In a thread: others go on while pages are loaded."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> Any:
        raise NotImplementedError


class _LazyArray(_Lazy):
    """An array of a region. A read copies what it selects, and nothing else is loaded."""

    def __init__(self, array: vellum.Array) -> None:
        self.memory = array
        self.shape, self.dtype = array.shape, array.dtype

    def _read(self, key: tuple[Any, ...]) -> Any:
        if self.memory.nbytes and isinstance(self.memory, vellum.Array):  # not values that a pickle has brought
            self._load(key)
        whole = indexing.NumpyIndexingAdapter(np.asarray(self.memory))
        return np.array(whole.oindex[indexing.OuterIndexer(key)])

    def _load(self, key: tuple[Any, ...]) -> None:
        """Brings what is selected into memory. Corrupted: a page cannot be read. A remote sends all of it at once."""
        if self.memory.ndim == 0:
            self.memory.prefetch()
            return
        if not any(isinstance(each, np.ndarray) for each in key):
            part: Any = self.memory[tuple(_as_slice(each) for each in key)]
            span = sum((n - 1) * abs(stride) for n, stride in zip(part.shape, part.strides, strict=True))
            if span <= max(2 * part.nbytes, 1 << 20):
                part.prefetch()
                return
        if self.memory.ndim == 1:
            self.memory.prefetch(key[0])
            return
        partial = [axis for axis, each in enumerate(key) if isinstance(each, np.ndarray) or each != slice(None)]
        count = min(max(partial, default=0) + 1, self.memory.ndim - 1)  # axes behind them are read whole
        lengths = self.shape[:count]
        axes = [np.atleast_1d(np.arange(length)[each]) for length, each in zip(lengths, key, strict=False)]
        rows = np.ravel_multi_index(np.ix_(*axes), lengths).ravel()
        flat: Any = self.memory.reshape(int(np.prod(lengths)), -1)
        flat.prefetch(rows)


def _as_slice(index: Any) -> slice:
    """An axis of one element for a number, so that the part is a view."""
    return index if isinstance(index, slice) else slice(index, index + 1 if index != -1 else None)


class _LazyStrings(_Lazy):
    """Strings of a region."""

    def __init__(self, strings: vellum.Strings, shape: tuple[int, ...]) -> None:
        self.strings, self.shape = strings, shape
        self.dtype = create_vlen_dtype(str if strings.kind == "string" else bytes)

    def _read(self, key: tuple[Any, ...]) -> Any:
        whole: Any = np.empty(len(self.strings), self.dtype)
        whole[:] = list(self.strings)
        whole = whole.reshape(self.shape)
        return indexing.NumpyIndexingAdapter(whole).oindex[indexing.OuterIndexer(key)]


class VellumDataStore(WritableCFDataStore):  # type: ignore[misc]
    """The variables and attributes of a group of a region."""

    def __init__(self, group: vellum.Group, region: vellum.Region | None = None) -> None:
        self.group = group
        self._region = region  # which `close` closes

    def _items(self) -> Iterator[tuple[str, Any]]:
        for name in self.group:
            item = self.group[name]
            if isinstance(item, (vellum.Array, vellum.Strings)):
                yield name, item

    def get_variables(self) -> dict[str, Any]:
        """The variables, lazily."""
        return {name: _variable(name, item) for name, item in self._items()}

    def get_attrs(self) -> dict[str, Any]:
        """The attributes of the dataset."""
        return dict(self.group.attrs)

    def get_dimensions(self) -> dict[str, int]:
        """The lengths of the axes, by name."""
        sizes: dict[str, int] = {}
        for name, item in self._items():
            sizes.update(zip(_axes(name, item), _shape(item), strict=True))
        return sizes

    def close(self) -> None:
        """Closes the version that was opened for it."""
        if self._region is not None:
            self._region.close()

    # ---- Writing

    def encode_variable(self, v: Any, name: Any = None) -> Any:
        """Text as its variable asks for: characters, or bytes in an encoding."""
        return EncodedStringCoder(allows_unicode=True).encode(v, name=name)

    def set_dimensions(self, variables: Any, unlimited_dims: Any = None) -> None:
        """ValueError: a variable that stays has another length."""
        sizes = {dim: length for each in variables.values() for dim, length in each.sizes.items()}
        for name, item in self._items():
            for dim, length in zip(_axes(name, item), _shape(item), strict=True):
                if name not in variables and sizes.get(dim, length) != length:
                    raise ValueError(f"{name!r} has {length} along {dim!r}, and what is written has {sizes[dim]}")

    def set_attribute(self, key: str, value: Any) -> None:
        """An attribute of the dataset."""
        self.group.attrs[key] = _plain(value)

    def prepare_variable(
        self, name: str, variable: Any, check_encoding: bool = False, *rest: Any, **more: Any
    ) -> Any:
        """What takes the values of a variable, and the values."""
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is no name of a variable: that is a str, and this is a {type(name).__name__}")
        if name == "" or "/" in name:
            raise ValueError(f"{name!r} is no name of a variable: that is a str without '/', which is not empty")
        unknown = set(variable.encoding) - {"dtype", "_FillValue", "coordinates", "grid_mapping"}
        if check_encoding and unknown:
            raise ValueError(f"{name!r}: unexpected encoding {sorted(unknown)}: a region has no chunks or codecs")
        attributes = {key: _plain(value) for key, value in variable.attrs.items()}
        attributes[_AXES] = list(variable.dims)
        if variable.dtype.kind in "OT":
            target: Any = _StringsTarget(self.group, name, variable)
            if variable.ndim != 1:
                attributes[_SHAPE] = list(variable.shape)
        else:
            target = _ArrayTarget(self._array_for(name, variable))
        kept = self.group[name].attrs
        if dict(kept) != attributes:
            kept.clear()
            kept.update(attributes)
        return target, variable.data

    def _array_for(self, name: str, variable: Any) -> vellum.Array:
        """An array of the same type and shape is overwritten: a commit then costs what differs."""
        found = self.group[name] if name in self.group else None
        if isinstance(found, vellum.Array) and found.dtype == variable.dtype and found.shape == variable.shape:
            return found
        if found is not None:
            del self.group[name]
        return self.group.create_array(name, variable.shape, variable.dtype)

    def sync(self) -> None:
        """Nothing: values are in memory, and the region's commit makes them durable."""


class _ArrayTarget:
    """An array that xarray and Dask write to. It goes to no other process: what is written there would be lost."""

    def __init__(self, array: vellum.Array) -> None:
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = value

    def __reduce__(self) -> Any:
        raise TypeError("a branch has one writer: write a Dask dataset with the threads of this process, not workers")


class _StringsTarget:
    """Strings that are written as a whole."""

    def __init__(self, group: vellum.Group, name: str, variable: Any) -> None:
        kind = (variable.dtype.metadata or {}).get("element_type", str)
        self.shape, self.dtype = variable.shape, variable.dtype
        found = group[name] if name in group else None
        wanted = "bytes" if kind is bytes else "string"
        if found is not None and not (isinstance(found, vellum.Strings) and found.kind == wanted):
            del group[name]
            found = None
        create = group.create_bytes if wanted == "bytes" else group.create_strings
        self.strings = create(name) if found is None else found

    def __setitem__(self, key: Any, value: Any) -> None:
        values = np.asarray(value, dtype=object)
        if values.shape != self.shape:
            if len(self.strings) != np.prod(self.shape):
                self.strings[:] = [b"" if self.strings.kind == "bytes" else ""] * int(np.prod(self.shape))
            whole = self.strings.to_numpy().reshape(self.shape)
            whole[key] = values
            values = whole
        missing = b"" if self.strings.kind == "bytes" else ""
        new = [missing if each is None or each != each else each for each in values.ravel().tolist()]
        if list(self.strings) != new:
            self.strings[:] = new

    __reduce__ = _ArrayTarget.__reduce__


def _shape(item: Any) -> tuple[int, ...]:
    if isinstance(item, vellum.Array):
        return tuple(item.shape)
    shape = tuple(item.attrs.get(_SHAPE, (len(item),)))
    if not all(type(length) is int and length >= 0 for length in shape) or int(np.prod(shape)) != len(item):
        raise vellum.Corrupted(f"strings of shape {shape}, and {len(item)} values")
    return shape


def _axes(name: str, item: Any) -> list[str]:
    """The names of the axes, as `Group.export_zarr` has them."""
    given, count = item.attrs.get(_AXES), len(_shape(item))
    if isinstance(given, list) and len(given) == count and all(isinstance(each, str) for each in given):
        return list(given)
    return [f"{name}_{axis}" for axis in range(count)]


def _variable(name: str, item: Any) -> Any:
    attributes = {key: value for key, value in item.attrs.items() if key not in _OWN}
    lazy: Any = _LazyArray(item) if isinstance(item, vellum.Array) else _LazyStrings(item, _shape(item))
    for key in _FILLS:
        if key in attributes:
            attributes[key] = _fill(attributes[key], lazy.dtype)
    encoding = {"dtype": item.dtype} if isinstance(item, vellum.Array) else {}
    return xr.Variable(_axes(name, item), indexing.LazilyIndexedArray(lazy), attributes, encoding)


def _fill(value: Any, dtype: np.dtype[Any]) -> Any:
    metadata: Any = dtype.metadata or {}
    is_bytes = dtype.kind == "S" or metadata.get("element_type") is bytes
    if is_bytes and isinstance(value, str):
        return value.encode("latin-1")
    return dtype.type(value) if dtype.kind in "biuf" else value


def _plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, np.generic):
        return _plain(value.item())
    return [_plain(each) for each in value.tolist()] if isinstance(value, np.ndarray) and value.ndim else value


# ---- The two calls


class VellumBackendEntrypoint(BackendEntrypoint):  # type: ignore[misc]
    """`engine="vellum"`: a version of a store, or an open region."""

    description = "Open versions of Vellum stores"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "version", "group", *_DECODERS)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: Any = None,
        version: str = "main",
        group: str = "",
        **decoders: Any,
    ) -> Any:
        """The dataset of a group.

        version
            A snapshot, or a branch for its last commit.
        group
            The group of the region; "" is all of it.
        """
        if isinstance(filename_or_obj, vellum.Group):
            opened, region = filename_or_obj, None
        else:
            opened = region = vellum.open(filename_or_obj, version=version)
        try:
            found = opened[group] if group.strip("/") else opened
            if not isinstance(found, vellum.Group):
                raise vellum.NotFound(f"{group!r} of {filename_or_obj} is no group")
            store = VellumDataStore(found, region)
            return StoreBackendEntrypoint().open_dataset(store, drop_variables=drop_variables, **decoders)
        except BaseException:
            if region is not None:
                region.close()
            raise

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is the directory of a store."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        return os.path.isfile(os.path.join(os.fspath(filename_or_obj), "vellum.store"))


def to_vellum(
    dataset: Any,
    store: Any,
    *,
    snapshot: str | None = None,
    group: str = "",
    mode: str = "w",
    encoding: dict[str, dict[str, Any]] | None = None,
) -> None:
    """Writes a dataset: all of it is one commit, or none is.

    store
        A directory, whose branch main takes it, and which is made if it is missing: `vellum.Busy` where this process
        has that branch open. Or the open `vellum.Region`, whose caller commits.
    snapshot
        A name that keeps the version.
    group
        The group of the region; "" is all of it.
    mode
        "w": the group is the dataset afterwards. "a": its other variables stay.
    encoding
        As in `Dataset.to_netcdf`: types, scales, fill values and units by variable.
    """
    if mode not in ("w", "a"):
        raise vellum.InvalidArgument(f'mode is "w" or "a", not {mode!r}')
    if isinstance(store, vellum.Region):
        _write(dataset, store, group, mode, encoding or {})
        if snapshot is not None:
            store.snapshot(snapshot)
        return
    with closing(open_alone(store, create=True)) as region:  # which drops what is not committed
        _write(dataset, region, group, mode, encoding or {})
        if snapshot is None:
            region.commit()
        else:
            region.snapshot(snapshot)


def _write(dataset: Any, region: vellum.Region, group: str, mode: str, encoding: dict[str, dict[str, Any]]) -> None:
    target = region.require_group(group) if group.strip("/") else region
    store = VellumDataStore(target)
    if mode == "w":
        for name in [name for name, _ in store._items() if name not in dataset.variables]:
            del target[name]
        target.attrs.clear()
    variables, attributes = conventions.encode_dataset_coordinates(dataset)
    for name, given in encoding.items():
        variables[name].encoding = given
    writer = ArrayWriter()
    store.store(variables, attributes, set(encoding), writer)
    writer.sync()
