"""Checkpoints without a process group: `save`, `load`, `names`, `remove`, and `SafeTensors`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, TensorStorageMetadata

import vellum

from ._record import MESSAGE, Checkpoint, is_part
from ._rest import REST, in_lists, own_copy, put_together, rest_of, set_at
from ._tensors import StorePath
from ._writer import StorageWriter


def save(path: StorePath | StorageWriter, name: str, state: Mapping[str, Any], *, planes: bool = False) -> None:
    """Saves what `torch.save` takes: a dict of nested dicts, lists and tuples of tensors and other objects.

    With a writer instead of a path, its branch stays open.
    """
    if isinstance(path, StorageWriter):
        dcp.save({**state, **rest_of(state)}, checkpoint_id=name, storage_writer=path, no_dist=True)
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
    checkpoint = Checkpoint(path, name)
    options = {"weights_only": weights_only, "map_location": map_location}
    try:
        data = checkpoint.metadata.state_dict_metadata
        if REST in data:
            rest = checkpoint.tensor(REST).numpy().tobytes()
            return put_together(torch.load(io.BytesIO(rest), **options), checkpoint, map_location)
        whole: dict[str, Any] = {}
        for fqn, each in data.items():
            if isinstance(each, BytesStorageMetadata):
                value = torch.load(io.BytesIO(checkpoint.object(fqn)), **options)
            else:
                value = own_copy(checkpoint.tensor(fqn), map_location)
            set_at(whole, (checkpoint.metadata.planner_data or {}).get(fqn, (fqn,)), value)
        return in_lists(whole)
    finally:
        checkpoint.close()


def names(path: StorePath) -> list[str]:
    """The names of the complete checkpoints, oldest first."""
    found = vellum.Store(path).versions()
    return [each.name for each in found if not each.is_branch and each.message == MESSAGE]


def remove(path: StorePath, name: str) -> None:
    """Removes a checkpoint: from its first step on it does not exist. `Store.gc()` gives the space back.

    Of a save that has failed it removes the parts. A version that is no checkpoint stays: `NotFound`.
    """
    store = vellum.Store(path)
    parts = [each.name for each in store.versions() if is_part(each, name)]
    if name in store or not parts:
        if store.version(name).message != MESSAGE:
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
        self._checkpoint = Checkpoint(path, name)
        data = self._checkpoint.metadata.state_dict_metadata
        self._names = [fqn for fqn, each in data.items() if isinstance(each, TensorStorageMetadata) and fqn != REST]

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
