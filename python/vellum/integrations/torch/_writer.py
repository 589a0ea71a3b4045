"""`StorageWriter`: checkpoints of `torch.distributed.checkpoint` into a store."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.planner import WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

import vellum

from ._named import NamedVersion
from ._record import MESSAGE, RECORD, is_part, part_message, record_of
from ._rest import rest_of
from ._tensors import MAPPINGS, Place, StorePath, array_name, is_distributed, remove_others, store_tensor


class StorageWriter(NamedVersion, dcp.StorageWriter):  # type: ignore[misc]
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
        super().__init__(path, name)
        self.planes = planes
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
            rank = dist.get_rank() if is_distributed() else 0
            self._region = vellum.open(self.path, f"rank-{rank}" if rank else "main", create=True)
        return self._region

    @property
    def store(self) -> vellum.Store:
        """The store."""
        return self._open().store

    # ---- What dcp.save() calls, in this order, after reset()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Called on each rank. PyTorch passes options only to a parameter that is named `kwargs`."""
        if not kwargs.get("use_collectives", True):
            raise vellum.InvalidArgument("use_collectives=False would leave a checkpoint without its commit point")
        self._is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: Any) -> Any:
        """Refuses a name that is taken, or whose part's name is."""
        region, target = self._open(), self._named()
        part = f"{target}.{region.branch}"
        if target in region.store:
            raise vellum.AlreadyExists(f"{self.path}: there is a version {target!r}: remove() it first")
        if not self._is_coordinator and part in region.store and not is_part(region.store.version(part), target):
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
                name = array_name(item.index)
                store_tensor(region, name, data, self.planes)
                items.append((item.index, data.nbytes, name))
        self._copied.set()
        remove_others(region, {name for _, _, name in items if isinstance(name, str)})
        _replace(region, "objects", lambda: region.create_bytes("objects", objects))
        part, order = self._keep_part(region)
        results = torch.futures.Future()
        results.set_result([WriteResult(index, size, Place(part, order, item)) for index, size, item in items])
        return results

    def _keep_part(self, region: vellum.Region) -> tuple[str, int]:
        if self._is_coordinator:
            return self._named(), 0
        if RECORD in region:  # this rank was the coordinator
            del region[RECORD]
        part = f"{self._named()}.{region.branch}"
        if part in region.store:  # the rest of a checkpoint that was never complete
            region.store.remove_snapshot(part)
        region.snapshot(part, part_message(self._named()))
        return part, region.store.version(part).order

    def finish(self, metadata: Any, results: list[list[Any]]) -> None:
        """Called on the coordinator when all parts are durable: the commit point."""
        places = {result.index: result.storage_data for each in results for result in each}
        text = json.dumps(record_of(metadata, places))
        region = self._open()
        _replace(region, RECORD, lambda: region.create_strings(RECORD, [text]))
        region.snapshot(self._named(), MESSAGE)

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
            keep = storages_of(optimizer)
        staged = staged_copy({key: state_of(value) for key, value in state.items()}, keep)
        if options.setdefault("no_dist", not is_distributed()):
            staged |= rest_of(staged)
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


def state_of(value: Any) -> Any:
    return value.state_dict() if hasattr(value, "state_dict") else value


def _storage(tensor: Any) -> int:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return int(local.untyped_storage().data_ptr())


def storages_of(optimizer: Any) -> set[int]:
    parameters = (each for group in optimizer.param_groups for each in group["params"])
    states = (each for state in optimizer.state.values() for each in state.values())
    return {_storage(each) for each in (*parameters, *states) if isinstance(each, torch.Tensor)}


def staged_copy(value: Any, keep: set[int]) -> Any:
    """A copy that the training does not change, but for the tensors of `keep`."""
    if isinstance(value, torch.Tensor):
        return value if _storage(value) in keep else value.detach().clone()
    if type(value) in MAPPINGS:
        return type(value)((key, staged_copy(each, keep)) for key, each in value.items())
    if type(value) in (list, tuple):
        return type(value)(staged_copy(each, keep) for each in value)
    return copy.deepcopy(value)
