"""The store and the version that a `StorageWriter` or a `StorageReader` is for."""

from __future__ import annotations

import os

import vellum

from ._tensors import StorePath


class NamedVersion:
    """A version of a store. `torch.distributed.checkpoint` calls its name the checkpoint's id."""

    def __init__(self, path: StorePath, name: str | None) -> None:
        self.path, self._name = os.fspath(path), name

    def reset(self, checkpoint_id: StorePath | None = None) -> None:
        """Replaces the name of the version."""
        if checkpoint_id is not None:
            self._name = os.fspath(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: StorePath) -> bool:
        """Whether it can be a version's name: the store decides."""
        return "/" not in os.fspath(checkpoint_id)

    def _named(self) -> str:
        if not self._name:
            raise vellum.InvalidArgument(f"{self.path}: name a version: checkpoint_id='step-1'")
        return self._name
