"""Tensors in the arrays of a region, and the names that all files here share."""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist

import vellum

StorePath = str | os.PathLike[str]

FORMAT = 1
_LEAST_PLANES = 4096  # elements; a smaller tensor is stored plainly
MAPPINGS = (dict, OrderedDict)

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not str(dtype).startswith(("torch.q", "torch.bits"))
}


class Place(NamedTuple):
    """Where an item of a checkpoint is: the part, and an array's name or an object's number."""

    part: str
    order: int  # of the part's snapshot; 0: the coordinator's own part, which has the record
    item: str | int


def is_distributed() -> bool:
    return bool(dist.is_available() and dist.is_initialized())


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The type of numpy, or whole numbers for one that numpy lacks (bfloat16, float8)."""
    try:
        found: np.dtype[Any] = torch.empty(0, dtype=dtype).numpy().dtype
    except (TypeError, RuntimeError):
        return np.dtype(f"u{dtype.itemsize}")
    return found


def tensor_of(array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """A tensor over an array's memory. Of a version it is read-only, which PyTorch has no word for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(np.asarray(array)).view(dtype)


def array_name(index: Any) -> str:
    """A name for a chunk of a tensor, the same in each version: then only what changed is stored."""
    offsets = ".".join(map(str, index.offset or ()))
    return f"tensors/{index.fqn.replace('%', '%25').replace('/', '%2F')}@{offsets}"


def bytes_of(tensor: Any) -> Any:
    """The bytes of each element of a contiguous tensor: a row for each element."""
    return tensor.reshape(-1).view(torch.uint8).reshape(tensor.numel(), tensor.element_size())


def store_tensor(region: vellum.Region, name: str, tensor: Any, planes: bool) -> None:
    dtype, size = tensor.dtype, tuple(tensor.shape)
    split = planes and dtype.is_floating_point and dtype.itemsize > 1 and tensor.numel() >= _LEAST_PLANES
    shape = (dtype.itemsize, tensor.numel()) if split else size
    kind = np.dtype(np.uint8) if split else numpy_dtype(dtype)
    old = region[name] if name in region else None
    if old is None or old.shape != shape or old.dtype != kind:
        if old is not None:
            del region[name]
        old = region.create_array(name, shape, kind, room=0 if shape else None)
    if split:
        tensor_of(old, torch.uint8).copy_(bytes_of(tensor.detach().contiguous().cpu()).t())
    else:
        tensor_of(old, dtype).copy_(tensor.detach())


def remove_others(region: vellum.Region, names: set[str]) -> None:
    if "tensors" in region:
        for name in list(region["tensors"]):
            if f"tensors/{name}" not in names:
                del region[f"tensors/{name}"]
