"""Ranks of test_torch.py: processes that save, load, or fail to save as FAILURES says.

The state is a tensor that is split by rows, a tensor that all ranks have, and a number.
"""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from vellum.integrations.torch import StorageReader, StorageWriter


def state(is_empty):
    rows = torch.arange(30_000, dtype=torch.float32).reshape(3000, 10)
    same = torch.arange(7).to(torch.bfloat16)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    rows, same, step = (torch.zeros_like(rows), torch.zeros_like(same), 0) if is_empty else (rows, same, 17)
    return {"rows": distribute_tensor(rows, mesh, [Shard(0)]), "same": same, "step": step}


FAILURES = {"broken": "no space on rank 0", "refused": "'step-1.rank-1', no part of 'step-1'"}


class Broken(StorageWriter):
    """Fails on the coordinator before its commit."""

    def write_data(self, plan, planner):
        done = super().write_data(plan, planner)
        if self._is_coordinator:
            raise OSError("no space on rank 0")
        return done


def rank(number, path, size, action, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=number, world_size=size)
    if action == "load":
        found = state(is_empty=True)
        dcp.load(found, storage_reader=StorageReader(path, "step-1"))
        wanted = state(is_empty=False)
        assert torch.equal(found["rows"].to_local(), wanted["rows"].to_local())
        assert torch.equal(found["same"], wanted["same"]) and found["step"] == 17
    else:
        with (Broken if action == "broken" else StorageWriter)(path) as writer:
            try:
                dcp.save(state(is_empty=False), checkpoint_id="step-1", storage_writer=writer)
                assert action == "save"
            except dcp.api.CheckpointException as error:
                assert FAILURES[action] in str(error)
    dist.barrier()
    dist.destroy_process_group()
