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

from typing import Any

try:
    import torch.distributed.checkpoint  # noqa: F401
except ImportError as error:
    raise ImportError("vellum.integrations.torch needs PyTorch: pip install vellum[torch]") from error

from ._plain import SafeTensors, load, names, remove, save
from ._reader import StorageReader
from ._transformers import checkpoint_of
from ._writer import StorageWriter

__all__ = [
    "CheckpointIO",
    "SafeTensors",
    "StorageReader",
    "StorageWriter",
    "TrainerCallback",
    "checkpoint_of",
    "load",
    "names",
    "remove",
    "save",
]


def __getattr__(name: str) -> Any:
    """The classes for Lightning and Transformers are made when they are asked for: each needs its library."""
    if name == "CheckpointIO":
        from ._lightning import checkpoint_io

        return checkpoint_io()
    if name == "TrainerCallback":
        from ._transformers import trainer_callback

        return trainer_callback()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
