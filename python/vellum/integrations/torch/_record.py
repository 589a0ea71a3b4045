"""The record of a checkpoint: the entry that makes a version one, and says where each item is."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

import vellum

from ._tensors import DTYPES, FORMAT, Place, StorePath, bytes_of, numpy_dtype, tensor_of

MESSAGE = "a checkpoint of PyTorch"
RECORD = "checkpoint"


def part_message(name: str) -> str:
    return f"a part of {name}"


def is_part(version: Any, name: str) -> bool:
    return not version.is_branch and version.message == part_message(name)


def record_of(metadata: Any, places: Mapping[Any, Place]) -> dict[str, Any]:
    tensors, objects = {}, {}
    for fqn, each in metadata.state_dict_metadata.items():
        if isinstance(each, BytesStorageMetadata):
            objects[fqn] = places[MetadataIndex(fqn)]
            continue
        chunks = [(list(c.offsets), list(c.sizes), places[MetadataIndex(fqn, c.offsets)]) for c in each.chunks]
        dtype = str(each.properties.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise vellum.InvalidArgument(f"{fqn}: tensors of {each.properties.dtype} are not plain numbers")
        tensors[fqn] = {"dtype": dtype, "size": list(each.size), "chunks": chunks}
    paths = metadata.planner_data
    return {"format": FORMAT, "tensors": tensors, "objects": objects, "paths": paths}


class Checkpoint:
    """A checkpoint that is open to read. What its record says is checked."""

    def __init__(self, path: StorePath, name: str) -> None:
        self.path, self.name = os.fspath(path), name
        self._parts: dict[str, vellum.Region] = {name: vellum.open(path, version=name)}
        try:
            text = self._parts[name][RECORD][0]
        except vellum.NotFound as error:
            raise vellum.NotFound(f"{self.path}: version {name!r} is no checkpoint of PyTorch") from error
        with self._checking():
            record = json.loads(text)
            if record["format"] != FORMAT:
                raise vellum.NewerFormat(f"{self.path}, {name}: a checkpoint of format {record['format']}")
            self.places: dict[Any, Place] = {}
            self.metadata = self._read(record)

    def _checking(self) -> Checking:
        return Checking(f"{self.path}, version {self.name}: its record is no checkpoint of PyTorch")

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
            properties = TensorProperties(dtype=DTYPES[each["dtype"]])
            found[fqn] = TensorStorageMetadata(properties, torch.Size(each["size"]), chunks)
        paths = record["paths"]
        paths = None if paths is None else {fqn: tuple(path) for fqn, path in paths.items()}
        return Metadata(found, planner_data=paths, storage_data=self.places, version="1.0.0")

    def close(self) -> None:
        while self._parts:
            self._parts.popitem()[1].close()

    def _part(self, place: Place) -> vellum.Region:
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
            if array.shape == sizes and array.dtype == numpy_dtype(dtype):
                array = array[(*within, ...)]
                if load:
                    array.prefetch()
                return tensor_of(array, dtype)
            if array.dtype != np.uint8 or array.shape != (dtype.itemsize, math.prod(sizes)):
                raise ValueError(f"{place.item} has shape {array.shape} and dtype {array.dtype}")
            array.prefetch()
            joined = torch.empty(sizes, dtype=dtype)
            bytes_of(joined).copy_(tensor_of(array, torch.uint8).t())
            return joined[(*within, ...)]

    def tensor(self, fqn: str, *, load: bool = True) -> Any:
        """A whole tensor: one of a single chunk is over the version's memory."""
        data = self.metadata.state_dict_metadata[fqn]
        if len(data.chunks) == 1 and data.chunks[0].sizes == data.size:
            return self.chunk(fqn, data.chunks[0].offsets, load=load)
        whole = torch.empty(data.size, dtype=data.properties.dtype)
        for each in data.chunks:
            ranges = ranges_of(each.offsets, each.sizes)
            whole[ranges].copy_(self.chunk(fqn, each.offsets))
        return whole


def ranges_of(offsets: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


class Checking:
    """Turns what a malformed record leads to into one error."""

    def __init__(self, title: str) -> None:
        self._title = title

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (KeyError, TypeError, ValueError, AttributeError, RuntimeError)):
            if not isinstance(error, vellum.Error):
                raise vellum.InvalidArgument(f"{self._title}: {error}") from error


def _place(given: Any, kind: type) -> Place:
    place = Place(*given)
    is_back = isinstance(place.item, int) and place.item < 0  # a number from the end
    if [type(each) for each in place] != [str, int, kind] or is_back:
        raise ValueError(f"{given!r} is no place")
    return place
