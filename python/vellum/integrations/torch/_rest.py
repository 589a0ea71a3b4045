"""What a state is beside its tensors. `dcp.save` keeps neither the types of keys nor tuples."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ._record import Checkpoint
from ._tensors import MAPPINGS

TENSOR, REST = "vellum.tensor", "vellum.rest"


def rest_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state without its tensors, as bytes in a tensor: `dcp.save` keeps neither the types of keys nor tuples."""

    def take(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, torch.Tensor):
            return {TENSOR: ".".join(path)}  # its name in dcp.save
        if type(value) in MAPPINGS:
            return type(value)((key, take(each, (*path, str(key)))) for key, each in value.items())
        if type(value) is list:
            return [take(each, (*path, str(i))) for i, each in enumerate(value)]
        return value  # a tuple, too: for dcp.save it is one object

    rest = io.BytesIO()
    torch.save(take(dict(state), ()), rest)
    return {REST: torch.frombuffer(bytearray(rest.getbuffer()), dtype=torch.uint8)}


def own_copy(tensor: Any, map_location: Any) -> Any:
    return tensor.clone() if map_location is None else tensor.to(map_location, copy=True)


def put_together(value: Any, checkpoint: Checkpoint, map_location: Any) -> Any:
    if type(value) in MAPPINGS:
        if list(value) == [TENSOR]:
            return own_copy(checkpoint.tensor(value[TENSOR]), map_location)
        return type(value)((key, put_together(each, checkpoint, map_location)) for key, each in value.items())
    if type(value) is list:
        return [put_together(each, checkpoint, map_location) for each in value]
    return value


class _Items(dict[int, Any]):
    """A list whose elements come in any order."""


def set_at(whole: dict[str, Any], path: Sequence[str | int], value: Any) -> None:
    at: Any = whole
    for key, following in zip(path, path[1:], strict=False):
        at = at.setdefault(key, _Items() if isinstance(following, int) else {})
    at[path[-1]] = value


def in_lists(value: Any) -> Any:
    if isinstance(value, _Items) and sorted(value) == list(range(len(value))):
        return [in_lists(value[i]) for i in range(len(value))]
    return {key: in_lists(each) for key, each in value.items()} if type(value) in (dict, _Items) else value
