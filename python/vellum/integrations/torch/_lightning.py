"""Lightning's `CheckpointIO`."""

from __future__ import annotations

import itertools
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import torch

import vellum

from ._plain import load, remove, save
from ._record import Checking
from ._tensors import FORMAT, StorePath
from ._writer import StorageWriter

_LINK = "vellum checkpoint"


@cache
def checkpoint_io() -> Any:
    try:
        from lightning.pytorch.plugins.io import CheckpointIO as Base
    except ImportError as error:
        raise ImportError("CheckpointIO needs Lightning: pip install vellum[lightning]") from error

    class CheckpointIO(Base):  # type: ignore[misc]
        """Lightning's checkpoints as versions: `Trainer(plugins=[CheckpointIO("/data/run")])`.

        Where Lightning expects a file, there is a small one that names store and version. It is written after the
        version is durable, in one step: what Lightning finds is whole.
        """

        def __init__(self, path: StorePath, *, planes: bool = False) -> None:
            self._writer = StorageWriter(os.path.abspath(path), planes=planes)

        def save_checkpoint(self, checkpoint: dict[str, Any], path: StorePath, storage_options: Any = None) -> None:
            """Saves a version, and the file that names it. One that has the name is replaced."""
            if storage_options is not None:
                raise TypeError("storage_options are not supported")
            file = Path(path)
            old = self._own(file) if file.exists() else None
            name = _free_name(self._writer.path, file.name.removesuffix(".ckpt"))
            save(self._writer, name, checkpoint)
            _write_link(file, self._writer.path, name)
            if old is not None:
                remove(*old)

        def load_checkpoint(self, path: StorePath, map_location: Any = None, weights_only: bool | None = None) -> Any:
            """Loads the version that a file names."""
            store, name = _linked(Path(path))
            only = True if weights_only is None else weights_only
            return load(store, name, weights_only=only, map_location=_location(map_location))

        def remove_checkpoint(self, path: StorePath) -> None:
            """Removes the file, and then the version."""
            file = Path(path)
            if file.exists():
                store, name = self._own(file)
                file.unlink()
                remove(store, name)

        def _own(self, file: Path) -> tuple[str, str]:
            store, name = _linked(file)
            if store != self._writer.path:
                raise vellum.InvalidArgument(f"{file} names a version of {store}, not of {self._writer.path}")
            return store, name

        def teardown(self) -> None:
            """Closes the branch."""
            self._writer.close()

    return CheckpointIO


def _location(given: Any) -> Any:
    """Lightning passes a function that leaves tensors where they are, too."""
    return given if isinstance(given, (str, torch.device)) else None


def _free_name(path: str, stem: str) -> str:
    """A version's name like a file's: "epoch=0" is "epoch-0"."""
    plain = "".join(c if c.isalnum() or c in "._+-" else "-" for c in stem).lstrip(".-") or "checkpoint"
    try:
        store = vellum.Store(path)
    except vellum.StoreNotFound:
        return plain
    tries = (f"{plain}-v{i}" if i else plain for i in itertools.count())
    return next(each for each in tries if each not in store)


def _write_link(file: Path, store: str, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    with new.open("w") as out:
        json.dump({_LINK: FORMAT, "store": store, "version": name}, out)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)


def _linked(file: Path) -> tuple[str, str]:
    with file.open("rb") as opened:
        text = opened.read(65536)
    with Checking(f"{file} names no checkpoint of a store"):
        link = json.loads(text)
        if link[_LINK] != FORMAT or not isinstance(link["store"], str) or not isinstance(link["version"], str):
            raise ValueError("its fields are other ones")
        return link["store"], link["version"]
