"""The `TrainerCallback` of Transformers, and the way back to one of its steps."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ._plain import load, remove
from ._tensors import StorePath
from ._writer import StorageWriter


@cache
def trainer_callback() -> Any:
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
