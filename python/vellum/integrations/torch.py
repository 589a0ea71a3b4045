"""Checkpoints of PyTorch as versions: every step of a training, if one wants.

- `StorageWriter` and `StorageReader` are those of `torch.distributed.checkpoint`; a checkpoint's id is a version's
  name. `StorageWriter.save_async` copies beside the next forward and backward pass.
- `load`, `names`, `remove` and `SafeTensors` need no process group.
- `CheckpointIO` is Lightning's, `TrainerCallback` that of Transformers.

All ranks write to one store, each to a branch of its own. A rank other than the coordinator keeps its part as a
snapshot; then the coordinator's snapshot names all parts. It is the commit point: a checkpoint whose snapshot is
missing does not exist, and one that is there is whole. The guide is docs/guides/torch.md.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import itertools
import json
import math
import os
import random
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import vellum

try:
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.metadata import (
        BytesStorageMetadata,
        ChunkStorageMetadata,
        Metadata,
        MetadataIndex,
        TensorProperties,
        TensorStorageMetadata,
    )
    from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType
    from torch.distributed.checkpoint.storage import WriteResult
except ImportError as error:
    raise ImportError("vellum.integrations.torch needs PyTorch: pip install vellum[torch]") from error

StorePath = str | os.PathLike[str]

_FORMAT = 1
_MESSAGE = "a checkpoint of PyTorch"
_RECORD = "checkpoint"  # the entry that makes a version a checkpoint
_LEAST_PLANES = 4096  # elements; a smaller tensor is stored plainly
_MAPPINGS = (dict, OrderedDict)
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not str(dtype).startswith(("torch.q", "torch.bits"))
}


class _Place(NamedTuple):
    """Where an item of a checkpoint is: the part, and an array's name or an object's number."""

    part: str
    order: int  # of the part's snapshot; 0: the coordinator's own part, which has the record
    item: str | int


# ---- Tensors in a region


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The type of numpy, or whole numbers for one that numpy lacks (bfloat16, float8)."""
    try:
        found: np.dtype[Any] = torch.empty(0, dtype=dtype).numpy().dtype
    except (TypeError, RuntimeError):
        return np.dtype(f"u{dtype.itemsize}")
    return found


def _tensor_of(array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """A tensor over an array's memory. Of a version it is read-only, which PyTorch has no word for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(np.asarray(array)).view(dtype)


def _array_name(index: Any) -> str:
    """A name for a chunk of a tensor, the same in each version: then only what changed is stored."""
    offsets = ".".join(map(str, index.offset or ()))
    return f"tensors/{index.fqn.replace('%', '%25').replace('/', '%2F')}@{offsets}"


def _bytes_of(tensor: Any) -> Any:
    """The bytes of each element of a contiguous tensor: a row for each element."""
    return tensor.reshape(-1).view(torch.uint8).reshape(tensor.numel(), tensor.element_size())


def _store_tensor(region: vellum.Region, name: str, tensor: Any, planes: bool) -> None:
    dtype, size = tensor.dtype, tuple(tensor.shape)
    split = planes and dtype.is_floating_point and dtype.itemsize > 1 and tensor.numel() >= _LEAST_PLANES
    shape = (dtype.itemsize, tensor.numel()) if split else size
    kind = np.dtype(np.uint8) if split else _numpy_dtype(dtype)
    old = region[name] if name in region else None
    if old is None or old.shape != shape or old.dtype != kind:
        if old is not None:
            del region[name]
        old = region.create_array(name, shape, kind, room=0 if shape else None)
    if split:
        _tensor_of(old, torch.uint8).copy_(_bytes_of(tensor.detach().contiguous().cpu()).t())
    else:
        _tensor_of(old, dtype).copy_(tensor.detach())


def _remove_others(region: vellum.Region, names: set[str]) -> None:
    if "tensors" in region:
        for name in list(region["tensors"]):
            if f"tensors/{name}" not in names:
                del region[f"tensors/{name}"]


# ---- Writing


class StorageWriter(dcp.StorageWriter):  # type: ignore[misc]
    """Writes checkpoints of `torch.distributed.checkpoint` into a store.

    path
        The store, which is made where it is missing. All ranks reach it.
    name
        The name of the version; `checkpoint_id` of `dcp.save` replaces it.
    planes
        Stores the first bytes of all numbers of a tensor together, then the second ones, and so on: a version takes
        fewer bytes, but its tensors are copied when they are read.

    It keeps its branch open, and this rank's tensors in memory once more, until `close()`.
    """

    def __init__(self, path: StorePath, name: str | None = None, *, planes: bool = False) -> None:
        self.path, self.planes = os.fspath(path), planes
        self._name = name
        self._region: vellum.Region | None = None
        self._is_coordinator = True
        self._copied = threading.Event()
        self._copied.set()
        self._saving: Future[Any] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._optimizers: list[Any] = []

    def __enter__(self) -> StorageWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """A process of its own would need the branch that this one has open."""
        raise TypeError("a StorageWriter stays in its process: use AsyncCheckpointerType.THREAD, or save_async()")

    def close(self) -> None:
        """Waits for `save_async()`, and closes the branch."""
        try:
            self.wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
            if self._region is not None:
                self._region.close()
                self._region = None

    def _open(self) -> vellum.Region:
        if self._region is None:
            rank = dist.get_rank() if _is_distributed() else 0
            self._region = vellum.open(self.path, f"rank-{rank}" if rank else "main", create=True)
        return self._region

    def _target(self) -> str:
        if not self._name:
            raise vellum.InvalidArgument(f"{self.path}: name a version: dcp.save(..., checkpoint_id='step-1')")
        return self._name

    @property
    def store(self) -> vellum.Store:
        """The store."""
        return self._open().store

    # ---- What dcp.save() calls, in this order

    def reset(self, checkpoint_id: StorePath | None = None) -> None:
        """The name of the version to write."""
        if checkpoint_id is not None:
            self._name = os.fspath(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: StorePath) -> bool:
        """Whether it can be a version's name: the store decides."""
        return "/" not in os.fspath(checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **options: Any) -> None:
        """Called on each rank."""
        if not options.get("use_collectives", True):
            raise vellum.InvalidArgument("use_collectives=False would leave a checkpoint without its commit point")
        self._is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: Any) -> Any:
        """Refuses a name that is taken, or whose part's name is."""
        region, target = self._open(), self._target()
        part = f"{target}.{region.branch}"
        if target in region.store:
            raise vellum.AlreadyExists(f"{self.path}: there is a version {target!r}: remove() it first")
        if not self._is_coordinator and part in region.store and not _is_part(region.store.version(part), target):
            raise vellum.AlreadyExists(f"{self.path}: there is a version {part!r}, no part of {target!r}")
        region.rollback()  # what a save has left that failed
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """Nothing to decide."""
        return plans

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Copies this rank's items into its region. A part is durable when this returns."""
        region, objects, items = self._open(), list[bytes](), list[tuple[Any, int, str | int]]()
        for item in plan.items:
            data = planner.resolve_data(item)
            if item.type == WriteItemType.BYTE_IO:
                items.append((item.index, len(data.getbuffer()), len(objects)))
                objects.append(data.getvalue())
            else:
                name = _array_name(item.index)
                _store_tensor(region, name, data, self.planes)
                items.append((item.index, data.nbytes, name))
        self._copied.set()
        _remove_others(region, {name for _, _, name in items if isinstance(name, str)})
        _replace(region, "objects", lambda: region.create_bytes("objects", objects))
        part, order = self._keep_part(region)
        results = torch.futures.Future()
        results.set_result([WriteResult(index, size, _Place(part, order, item)) for index, size, item in items])
        return results

    def _keep_part(self, region: vellum.Region) -> tuple[str, int]:
        if self._is_coordinator:
            return self._target(), 0
        if _RECORD in region:  # this rank was the coordinator
            del region[_RECORD]
        part = f"{self._target()}.{region.branch}"
        if part in region.store:  # the rest of a checkpoint that was never complete
            region.store.remove_snapshot(part)
        region.snapshot(part, _part_message(self._target()))
        return part, region.store.version(part).order

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        """Called on the coordinator when all parts are durable: the commit point."""
        places = {result.index: result.storage_data for each in results for result in each}
        text = json.dumps(_record_of(metadata, places))
        region = self._open()
        _replace(region, _RECORD, lambda: region.create_strings(_RECORD, [text]))
        region.snapshot(self._target(), _MESSAGE)

    # ---- Beside the training

    def save_async(self, state: Mapping[str, Any], name: str, *, optimizer: Any = None, **options: Any) -> Any:
        """Saves in a thread, beside the next forward and backward pass.

        optimizer
            Its parameters and its state change in `optimizer.step()` alone, which waits until they are copied. All
            other tensors are copied before this returns.
        options
            Those of `dcp.save`.

        It waits for the checkpoint before, and raises what has failed there. The result is a `Future`.
        """
        self.wait()
        keep: set[int] = set()
        if optimizer is not None:
            self._hold_steps(optimizer)
            keep = _storages_of(optimizer)
        staged = _staged({key: _state_of(value) for key, value in state.items()}, keep)
        if options.setdefault("no_dist", not _is_distributed()):
            staged |= _rest_of(staged)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "vellum-checkpoint")
        self._open()  # in the caller's thread, which may open it again
        self._copied.clear()
        self._saving = self._pool.submit(dcp.save, staged, checkpoint_id=name, storage_writer=self, **options)
        self._saving.add_done_callback(lambda _: self._copied.set())
        return self._saving

    def wait(self) -> None:
        """Waits until the checkpoint of `save_async()` is durable; raises what has failed."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()

    def wait_copied(self) -> None:
        """Waits until the tensors of `save_async()` are copied, and may change. Optimizers given there call it."""
        self._copied.wait()

    def _hold_steps(self, optimizer: Any) -> None:
        if not any(each is optimizer for each in self._optimizers):
            self._optimizers.append(optimizer)
            optimizer.register_step_pre_hook(lambda *_: self.wait_copied())


def _replace(region: vellum.Region, name: str, create: Callable[[], Any]) -> None:
    if name in region:
        del region[name]
    create()


def _part_message(name: str) -> str:
    return f"a part of {name}"


def _is_part(version: Any, name: str) -> bool:
    return not version.is_branch and version.message == _part_message(name)


def _is_distributed() -> bool:
    return bool(dist.is_available() and dist.is_initialized())


def _state_of(value: Any) -> Any:
    return value.state_dict() if hasattr(value, "state_dict") else value


def _storage(tensor: Any) -> int:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return int(local.untyped_storage().data_ptr())


def _storages_of(optimizer: Any) -> set[int]:
    parameters = (each for group in optimizer.param_groups for each in group["params"])
    states = (each for state in optimizer.state.values() for each in state.values())
    return {_storage(each) for each in (*parameters, *states) if isinstance(each, torch.Tensor)}


def _staged(value: Any, keep: set[int]) -> Any:
    """A copy that the training does not change, but for the tensors of `keep`."""
    if isinstance(value, torch.Tensor):
        return value if _storage(value) in keep else value.detach().clone()
    if type(value) in _MAPPINGS:
        return type(value)((key, _staged(each, keep)) for key, each in value.items())
    if type(value) in (list, tuple):
        return type(value)(_staged(each, keep) for each in value)
    return copy.deepcopy(value)


def _record_of(metadata: Any, places: Mapping[Any, _Place]) -> dict[str, Any]:
    tensors, objects = {}, {}
    for fqn, each in metadata.state_dict_metadata.items():
        if isinstance(each, BytesStorageMetadata):
            objects[fqn] = places[MetadataIndex(fqn)]
            continue
        chunks = [(list(c.offsets), list(c.sizes), places[MetadataIndex(fqn, c.offsets)]) for c in each.chunks]
        dtype = str(each.properties.dtype).removeprefix("torch.")
        if dtype not in _DTYPES:
            raise vellum.InvalidArgument(f"{fqn}: tensors of {each.properties.dtype} are not plain numbers")
        tensors[fqn] = {"dtype": dtype, "size": list(each.size), "chunks": chunks}
    paths = metadata.planner_data
    return {"format": _FORMAT, "tensors": tensors, "objects": objects, "paths": paths}


# ---- Reading


class _Checkpoint:
    """A checkpoint that is open to read. What its record says is checked."""

    def __init__(self, path: StorePath, name: str) -> None:
        self.path, self.name = os.fspath(path), name
        self._parts: dict[str, vellum.Region] = {name: vellum.open(path, version=name)}
        try:
            text = self._parts[name][_RECORD][0]
        except vellum.NotFound as error:
            raise vellum.NotFound(f"{self.path}: version {name!r} is no checkpoint of PyTorch") from error
        with self._checking():
            record = json.loads(text)
            if record["format"] != _FORMAT:
                raise vellum.NewerFormat(f"{self.path}, {name}: a checkpoint of format {record['format']}")
            self.places: dict[Any, _Place] = {}
            self.metadata = self._read(record)

    def _checking(self) -> _Checking:
        return _Checking(f"{self.path}, version {self.name}: its record is no checkpoint of PyTorch")

    def _read(self, record: Any) -> Any:
        found: dict[str, Any] = {}
        for fqn, place in record["objects"].items():
            found[fqn] = BytesStorageMetadata()
            self.places[MetadataIndex(fqn)] = _place(place, int)
        for fqn, each in record["tensors"].items():
            chunks = []
            for offsets, sizes, place in each["chunks"]:
                chunk = ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))
                chunks.append(chunk)
                self.places[MetadataIndex(fqn, chunk.offsets)] = _place(place, str)
            properties = TensorProperties(dtype=_DTYPES[each["dtype"]])
            found[fqn] = TensorStorageMetadata(properties, torch.Size(each["size"]), chunks)
        paths = record["paths"]
        paths = None if paths is None else {fqn: tuple(path) for fqn, path in paths.items()}
        return Metadata(found, planner_data=paths, storage_data=self.places, version="1.0.0")

    def close(self) -> None:
        while self._parts:
            self._parts.popitem()[1].close()

    def _part(self, place: _Place) -> vellum.Region:
        region = self._parts.get(place.part)
        if region is None:
            region = self._parts[place.part] = vellum.open(self.path, version=place.part)
            if region.store.version(place.part).order != place.order:
                raise vellum.NotFound(f"{self.path}: {place.part!r} is another snapshot than that of {self.name!r}")
        return region

    def object(self, fqn: str) -> bytes:
        place = self.places[MetadataIndex(fqn)]
        found: bytes = self._part(place)["objects"][place.item]
        return found

    def chunk(self, fqn: str, offsets: Sequence[int], within: Sequence[slice] = (), *, load: bool = True) -> Any:
        """A part of a chunk of a tensor: over the version's memory, or copied where it is stored in planes.

        `load` brings its pages into memory: a damaged one is `Corrupted` here, and a SIGBUS where it is touched.
        """
        data, place = self.metadata.state_dict_metadata[fqn], self.places[MetadataIndex(fqn, offsets)]
        sizes = next(tuple(each.sizes) for each in data.chunks if each.offsets == torch.Size(offsets))
        dtype, array = data.properties.dtype, self._part(place)[str(place.item)]
        with self._checking():
            if array.shape == sizes and array.dtype == _numpy_dtype(dtype):
                array = array[(*within, ...)]
                if load:
                    array.prefetch()
                return _tensor_of(array, dtype)
            if array.dtype != np.uint8 or array.shape != (dtype.itemsize, math.prod(sizes)):
                raise ValueError(f"{place.item} has shape {array.shape} and dtype {array.dtype}")
            array.prefetch()
            joined = torch.empty(sizes, dtype=dtype)
            _bytes_of(joined).copy_(_tensor_of(array, torch.uint8).t())
            return joined[(*within, ...)]

    def tensor(self, fqn: str, *, load: bool = True) -> Any:
        """A whole tensor: one of a single chunk is over the version's memory."""
        data = self.metadata.state_dict_metadata[fqn]
        if len(data.chunks) == 1 and data.chunks[0].sizes == data.size:
            return self.chunk(fqn, data.chunks[0].offsets, load=load)
        whole = torch.empty(data.size, dtype=data.properties.dtype)
        for each in data.chunks:
            ranges = _ranges(each.offsets, each.sizes)
            whole[ranges].copy_(self.chunk(fqn, each.offsets))
        return whole


def _ranges(offsets: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


class _Checking:
    """Turns what a malformed record leads to into one error."""

    def __init__(self, title: str) -> None:
        self._title = title

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (KeyError, TypeError, ValueError, AttributeError, RuntimeError)):
            if not isinstance(error, vellum.Error):
                raise vellum.InvalidArgument(f"{self._title}: {error}") from error


def _place(given: Any, kind: type) -> _Place:
    place = _Place(*given)
    is_back = isinstance(place.item, int) and place.item < 0  # a number from the end
    if [type(each) for each in place] != [str, int, kind] or is_back:
        raise ValueError(f"{given!r} is no place")
    return place


class StorageReader(dcp.StorageReader):  # type: ignore[misc]
    """Reads checkpoints for `torch.distributed.checkpoint`: what a rank needs, from whichever rank has written it.

    PyTorch's planner loads objects other than tensors with `weights_only=False`. They can run code: use it only with
    a store that you trust. `load()` refuses such objects.
    """

    def __init__(self, path: StorePath, name: str | None = None) -> None:
        self.path, self._name = os.fspath(path), name
        self._open: _Checkpoint | None = None

    def reset(self, checkpoint_id: StorePath | None = None) -> None:
        """The name of the version to read."""
        if checkpoint_id is not None:
            self._name = os.fspath(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: StorePath) -> bool:
        """Whether it can be a version's name: the store decides."""
        return "/" not in os.fspath(checkpoint_id)

    def read_metadata(self, *args: Any, **options: Any) -> Any:
        """Called on each rank, first."""
        if not self._name:
            raise vellum.InvalidArgument(f"{self.path}: name a version: dcp.load(..., checkpoint_id='step-1')")
        self._open = _Checkpoint(self.path, self._name)
        return self._open.metadata

    def set_up_storage_reader(self, metadata: Any, is_coordinator: bool, *args: Any, **options: Any) -> None:
        """Nothing to prepare."""

    def prepare_local_plan(self, plan: Any) -> Any:
        """Nothing to decide."""
        return plan

    def prepare_global_plan(self, plans: list[Any]) -> list[Any]:
        """Nothing to decide."""
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        """Copies into the tensors of the plan. Other pages of the version are not read."""
        checkpoint, self._open = self._open, None
        assert checkpoint is not None, "read_metadata() comes first"
        try:
            for item in plan.items:
                fqn = item.storage_index.fqn
                if item.type == LoadItemType.BYTE_IO:
                    planner.load_bytes(item, io.BytesIO(checkpoint.object(fqn)))
                    continue
                ranges = _ranges(item.storage_offsets, item.lengths)
                target = planner.resolve_tensor(item).detach()
                target.copy_(checkpoint.chunk(fqn, item.storage_index.offset, ranges))
                planner.commit_tensor(item, target)
        finally:
            checkpoint.close()
        done = torch.futures.Future()
        done.set_result(None)
        return done


# ---- Without a process group

_TENSOR, _REST = "vellum.tensor", "vellum.rest"


def save(path: StorePath | StorageWriter, name: str, state: Mapping[str, Any], *, planes: bool = False) -> None:
    """Saves what `torch.save` takes: a dict of nested dicts, lists and tuples of tensors and other objects.

    With a writer instead of a path, its branch stays open.
    """
    if isinstance(path, StorageWriter):
        dcp.save({**state, **_rest_of(state)}, checkpoint_id=name, storage_writer=path, no_dist=True)
        return
    with StorageWriter(path, planes=planes) as writer:
        save(writer, name, state)


def load(path: StorePath, name: str, *, weights_only: bool = True, map_location: Any = None) -> Any:
    """All of a checkpoint, in tensors of its own.

    After `dcp.save()` keys of dicts are text, as PyTorch flattens them. `save()`, and `save_async()` of one process,
    keep all keys and types.

    weights_only
        As in `torch.load`. False also loads objects that can run code: only from a store that you trust.
    """
    checkpoint = _Checkpoint(path, name)
    options = {"weights_only": weights_only, "map_location": map_location}
    try:
        data = checkpoint.metadata.state_dict_metadata
        if _REST in data:
            rest = checkpoint.tensor(_REST).numpy().tobytes()
            return _put_together(torch.load(io.BytesIO(rest), **options), checkpoint, map_location)
        whole: dict[str, Any] = {}
        for fqn, each in data.items():
            if isinstance(each, BytesStorageMetadata):
                value = torch.load(io.BytesIO(checkpoint.object(fqn)), **options)
            else:
                value = _own(checkpoint.tensor(fqn), map_location)
            _set(whole, (checkpoint.metadata.planner_data or {}).get(fqn, (fqn,)), value)
        return _lists(whole)
    finally:
        checkpoint.close()


def _own(tensor: Any, map_location: Any) -> Any:
    return tensor.clone() if map_location is None else tensor.to(map_location, copy=True)


def _rest_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state without its tensors, as bytes in a tensor: `dcp.save` keeps neither the types of keys nor tuples."""

    def take(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, torch.Tensor):
            return {_TENSOR: ".".join(path)}  # its name in dcp.save
        if type(value) in _MAPPINGS:
            return type(value)((key, take(each, (*path, str(key)))) for key, each in value.items())
        if type(value) is list:
            return [take(each, (*path, str(i))) for i, each in enumerate(value)]
        return value  # a tuple, too: for dcp.save it is one object

    rest = io.BytesIO()
    torch.save(take(dict(state), ()), rest)
    return {_REST: torch.frombuffer(bytearray(rest.getbuffer()), dtype=torch.uint8)}


def _put_together(value: Any, checkpoint: _Checkpoint, map_location: Any) -> Any:
    if type(value) in _MAPPINGS:
        if list(value) == [_TENSOR]:
            return _own(checkpoint.tensor(value[_TENSOR]), map_location)
        return type(value)((key, _put_together(each, checkpoint, map_location)) for key, each in value.items())
    if type(value) is list:
        return [_put_together(each, checkpoint, map_location) for each in value]
    return value


class _Items(dict[int, Any]):
    """A list whose elements come in any order."""


def _set(whole: dict[str, Any], path: Sequence[str | int], value: Any) -> None:
    at: Any = whole
    for key, following in zip(path, path[1:], strict=False):
        at = at.setdefault(key, _Items() if isinstance(following, int) else {})
    at[path[-1]] = value


def _lists(value: Any) -> Any:
    if isinstance(value, _Items) and sorted(value) == list(range(len(value))):
        return [_lists(value[i]) for i in range(len(value))]
    return {key: _lists(each) for key, each in value.items()} if type(value) in (dict, _Items) else value


def names(path: StorePath) -> list[str]:
    """The names of the complete checkpoints, oldest first."""
    found = vellum.Store(path).versions()
    return [each.name for each in found if not each.is_branch and each.message == _MESSAGE]


def remove(path: StorePath, name: str) -> None:
    """Removes a checkpoint: from its first step on it does not exist. `Store.gc()` gives the space back.

    Of a save that has failed it removes the parts. A version that is no checkpoint stays: `NotFound`.
    """
    store = vellum.Store(path)
    parts = [each.name for each in store.versions() if _is_part(each, name)]
    if name in store or not parts:
        if store.version(name).message != _MESSAGE:
            raise vellum.NotFound(f"{store.path}: version {name!r} is no checkpoint of PyTorch")
        store.remove_snapshot(name)
    for part in parts:
        store.remove_snapshot(part)


class SafeTensors:
    """A checkpoint as `safetensors.safe_open` shows a file: tensors by name, over the version's memory, not copied.

    Pages are loaded when they are touched. The tensors are read-only, which PyTorch cannot express: a write to one
    crashes the process. One that ranks have written in parts, or that is stored in planes, is a copy.
    """

    def __init__(self, path: StorePath, name: str) -> None:
        self._checkpoint = _Checkpoint(path, name)
        data = self._checkpoint.metadata.state_dict_metadata
        self._names = [fqn for fqn, each in data.items() if isinstance(each, TensorStorageMetadata) and fqn != _REST]

    def __enter__(self) -> SafeTensors:
        return self

    def __exit__(self, *raised: object) -> None:
        self._checkpoint.close()

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return list(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def metadata(self) -> dict[str, str]:
        """Where it is from."""
        return {"format": "pt", "vellum.store": self._checkpoint.path, "vellum.version": self._checkpoint.name}

    def get_tensor(self, name: str) -> Any:
        """A tensor."""
        return self._checkpoint.tensor(name, load=False)

    def get_slice(self, name: str) -> Any:
        """A tensor to take a part of: `get_slice(name)[:10]` loads that part alone."""
        return self.get_tensor(name)

    def save(self, file: StorePath) -> None:
        """Writes a file of safetensors. A damaged page is `Corrupted`."""
        from safetensors.torch import save_file

        save_file({name: self._checkpoint.tensor(name) for name in self._names}, file, {"format": "pt"})


# ---- Lightning and Transformers. Their classes are made when they are asked for, as each needs its library.

_LINK = "vellum checkpoint"


def __getattr__(name: str) -> Any:
    if name == "CheckpointIO":
        return _checkpoint_io()
    if name == "TrainerCallback":
        return _trainer_callback()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _checkpoint_io() -> Any:
    try:
        from lightning.pytorch.plugins.io import CheckpointIO as Base
    except ImportError as error:
        raise ImportError("CheckpointIO needs Lightning: pip install vellum[lightning]") from error

    class CheckpointIO(Base):  # type: ignore[misc]
        """Lightning's checkpoints as versions: `Trainer(plugins=[CheckpointIO("/data/run")])`.

        Where Lightning expects a file, there is a small one that names store and version. It is written after the
        version is durable, in one step: what Lightning finds is whole.
        """

        def __init__(self, path: StorePath, *, planes: bool = False) -> None:
            self._writer = StorageWriter(os.path.abspath(path), planes=planes)

        def save_checkpoint(self, checkpoint: dict[str, Any], path: StorePath, storage_options: Any = None) -> None:
            """Saves a version, and the file that names it. One that has the name is replaced."""
            if storage_options is not None:
                raise TypeError("storage_options are not supported")
            file = Path(path)
            old = self._own(file) if file.exists() else None
            name = _free_name(self._writer.path, file.name.removesuffix(".ckpt"))
            save(self._writer, name, checkpoint)
            _write_link(file, self._writer.path, name)
            if old is not None:
                remove(*old)

        def load_checkpoint(self, path: StorePath, map_location: Any = None, weights_only: bool | None = None) -> Any:
            """Loads the version that a file names."""
            store, name = _linked(Path(path))
            only = True if weights_only is None else weights_only
            return load(store, name, weights_only=only, map_location=_location(map_location))

        def remove_checkpoint(self, path: StorePath) -> None:
            """Removes the file, and then the version."""
            file = Path(path)
            if file.exists():
                store, name = self._own(file)
                file.unlink()
                remove(store, name)

        def _own(self, file: Path) -> tuple[str, str]:
            store, name = _linked(file)
            if store != self._writer.path:
                raise vellum.InvalidArgument(f"{file} names a version of {store}, not of {self._writer.path}")
            return store, name

        def teardown(self) -> None:
            """Closes the branch."""
            self._writer.close()

    return CheckpointIO


def _location(given: Any) -> Any:
    """Lightning passes a function that leaves tensors where they are, too."""
    return given if isinstance(given, (str, torch.device)) else None


def _free_name(path: str, stem: str) -> str:
    """A version's name like a file's: "epoch=0" is "epoch-0"."""
    plain = "".join(c if c.isalnum() or c in "._+-" else "-" for c in stem).lstrip(".-") or "checkpoint"
    try:
        store = vellum.Store(path)
    except vellum.StoreNotFound:
        return plain
    tries = (f"{plain}-v{i}" if i else plain for i in itertools.count())
    return next(each for each in tries if each not in store)


def _write_link(file: Path, store: str, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    with new.open("w") as out:
        json.dump({_LINK: _FORMAT, "store": store, "version": name}, out)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)


def _linked(file: Path) -> tuple[str, str]:
    with file.open("rb") as opened:
        text = opened.read(65536)
    with _Checking(f"{file} names no checkpoint of a store"):
        link = json.loads(text)
        if link[_LINK] != _FORMAT or not isinstance(link["store"], str) or not isinstance(link["version"], str):
            raise ValueError("its fields are other ones")
        return link["store"], link["version"]


@cache
def _trainer_callback() -> Any:
    try:
        from transformers import TrainerCallback as Base
    except ImportError as error:
        raise ImportError("TrainerCallback needs Transformers: pip install vellum[transformers]") from error

    class TrainerCallback(Base):  # type: ignore[misc]
        """A version of the training of Transformers' `Trainer` after each step, or each `every` steps.

        Model, optimizer, schedule, the trainer's state and the state of random numbers. It saves beside the next
        forward and backward pass. The versions are "step-1", "step-2"; `checkpoint_of()` goes back to one.
        """

        def __init__(self, path: StorePath, *, every: int = 1, planes: bool = False) -> None:
            self._writer, self._every = StorageWriter(path, planes=planes), every

        def on_step_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
            """Starts to save a version."""
            if state.global_step % self._every == 0 and state.is_world_process_zero:
                optimizer = parts["optimizer"]
                whole = {
                    "model": parts["model"],
                    "optimizer": optimizer,
                    "scheduler": parts["lr_scheduler"],
                    "trainer": json.dumps(dataclasses.asdict(state)),
                    "random": _random_state(),
                }
                bare = getattr(optimizer, "optimizer", optimizer)  # in accelerate's own
                name = f"step-{state.global_step}"
                if name in self._writer.store:  # an earlier run went further than where this one began
                    remove(self._writer.path, name)
                self._writer.save_async(whole, name, optimizer=bare, no_dist=True)

        def on_train_end(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
            """Waits until the last version is durable."""
            self._writer.close()

    return TrainerCallback


def _random_state() -> dict[str, Any]:
    kind, keys, *rest = np.random.get_state(legacy=True)
    numpy_state = json.dumps([kind, np.asarray(keys).tolist(), *rest])
    return {"python": json.dumps(random.getstate()), "numpy": numpy_state, "cpu": torch.get_rng_state()}


def _write_random_state(state: Mapping[str, Any], file: Path) -> None:
    """As Transformers writes and reads it."""
    version, words, gauss = json.loads(state["python"])
    kind, keys, *rest = json.loads(state["numpy"])
    numpy_state = (kind, np.array(keys, np.uint32), *rest)
    torch.save({"python": (version, tuple(words), gauss), "numpy": numpy_state, "cpu": state["cpu"]}, file)


def checkpoint_of(path: StorePath, name: str, directory: StorePath) -> str:
    """Writes a version of `TrainerCallback` as files: `trainer.train(resume_from_checkpoint=checkpoint_of(...))`."""
    from safetensors.torch import save_file

    whole, folder = load(path, name), Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    model = {key: each.contiguous() for key, each in whole["model"].items()}
    save_file(model, folder / "model.safetensors", {"format": "pt"})
    torch.save(whole["optimizer"], folder / "optimizer.pt")
    torch.save(whole["scheduler"], folder / "scheduler.pt")
    (folder / "trainer_state.json").write_text(whole["trainer"])
    _write_random_state(whole["random"], folder / "rng_state.pth")
    return str(folder)
