"""`StorageReader`: checkpoints of a store for `torch.distributed.checkpoint`."""

from __future__ import annotations

import io
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.planner import LoadItemType

from ._named import NamedVersion
from ._record import Checkpoint, ranges_of
from ._tensors import StorePath


class StorageReader(NamedVersion, dcp.StorageReader):  # type: ignore[misc]
    """Reads checkpoints for `torch.distributed.checkpoint`: what a rank needs, from whichever rank has written it.

    PyTorch's planner loads objects other than tensors with `weights_only=False`. They can run code: use it only with
    a store that you trust. `load()` refuses such objects.
    """

    def __init__(self, path: StorePath, name: str | None = None) -> None:
        super().__init__(path, name)
        self._open: Checkpoint | None = None

    def read_metadata(self, *args: Any, **options: Any) -> Any:
        """Called on each rank, first."""
        self._open = Checkpoint(self.path, self._named())
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
                ranges = ranges_of(item.storage_offsets, item.lengths)
                target = planner.resolve_tensor(item).detach()
                target.copy_(checkpoint.chunk(fqn, item.storage_index.offset, ranges))
                planner.commit_tensor(item, target)
        finally:
            checkpoint.close()
        done = torch.futures.Future()
        done.set_result(None)
        return done
