#!/usr/bin/env python3
"""A version of a training after each step, by Vellum and by PyTorch's own ways, in one run and one table.

    bench/python/training.py [--width 512] [--layers 6] [--steps 12] [--tokens 512] [--rate 3e-4] [--dir DIR]
                             [--json FILE] [--way NAME]...

A transformer of bytes with AdamW learns the text of Python's standard library. Each way runs in a child,
from the same seed, and saves model and optimizer after each step. A stall is the time for which a save holds the
training: its call, and the wait before the next change. Bytes are disk blocks that a step adds, without the first.
The middle step is restored, and compared with what it was. "zstd" is `torch.save` compressed with level 3 in memory.
Files of the other ways are removed when they are counted, but for the middle step's.
"""

import argparse
import io
import multiprocessing
import os
import pathlib
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time

import torch
import torch.distributed.checkpoint as dcp
import zstandard

from vellum.integrations import torch as door

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{TOP}/bench")
from table_lib import print_rows, write_json  # noqa: E402


class Model(torch.nn.Module):
    """A transformer."""

    def __init__(self, width, layers, context=128):
        super().__init__()
        self.embedding = torch.nn.Embedding(256, width)
        self.places = torch.nn.Parameter(torch.randn(context, width) * 0.02)
        layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 256)
        self.mask = torch.nn.Transformer.generate_square_subsequent_mask(context)

    def forward(self, rows):
        return self.head(self.layers(self.embedding(rows) + self.places, mask=self.mask, is_causal=True))


def text():
    """A few MB of the standard library."""
    files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8)


class Training:
    """Its steps depend on the seed alone."""

    def __init__(self, size):
        torch.manual_seed(1)
        self.model = Model(size.width, size.layers)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=size.rate)
        self.text, self.rows, self.step = text(), size.tokens // 128, 0

    def advance(self):
        chance = torch.Generator().manual_seed(self.step)
        begins = torch.randint(len(self.text) - 129, (self.rows,), generator=chance)
        rows = torch.stack([self.text[begin : begin + 129] for begin in begins]).long()
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        self.step += 1

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}


def disk_bytes(folder):
    return sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for at, _, names in os.walk(folder) for name in names)


class Way:
    """Nothing is saved."""

    name = "nothing"

    def __init__(self, folder, middle):
        self.folder, self.middle, self.added = folder, middle, []

    def save(self, training):
        pass

    def end(self):
        pass

    def file(self, step):
        return f"{self.folder}/step-{step}"

    def count(self, step):
        """The bytes of a step that is durable; its files go."""
        self.added.append(disk_bytes(self.file(step)) if os.path.isdir(self.file(step)) else self.stored(step))
        if step != self.middle:
            shutil.rmtree(self.file(step)) if os.path.isdir(self.file(step)) else os.unlink(self.file(step))

    def stored(self, step):
        return os.lstat(self.file(step)).st_blocks * 512

    def restore(self, training):
        return None


class TorchSave(Way):
    """A file a step, synced."""

    name = "torch.save"

    def save(self, training):
        with open(self.file(training.step), "wb") as out:
            torch.save(training.state(), out)
            out.flush()
            os.fsync(out.fileno())
        self.count(training.step)

    def restore(self, training):
        return torch.load(self.file(self.middle))


class Zstd(Way):
    """The bytes of a compressed copy; its time is that of one core."""

    name = "torch.save, zstd 3"

    def save(self, training):
        out = io.BytesIO()
        torch.save(training.state(), out)
        with open(self.file(training.step), "wb") as file:
            file.write(zstandard.ZstdCompressor(3).compress(out.getbuffer()))
            os.fsync(file.fileno())
        self.count(training.step)


class Files(Way):
    """DCP's files."""

    name = "DCP files"

    def save(self, training):
        dcp.save(training.state(), storage_writer=dcp.FileSystemWriter(self.file(training.step)), no_dist=True)
        self.count(training.step)

    def restore(self, training):
        state = training.state()
        dcp.load(state, storage_reader=dcp.FileSystemReader(self.file(self.middle)), no_dist=True)
        return state


class FilesBeside(Files):
    """DCP's files, by async_save with one stager."""

    name = "DCP files, async"
    future = None

    def save(self, training):
        self.end()
        writer = dcp.FileSystemWriter(self.file(training.step))
        self.future = dcp.async_save(training.state(), storage_writer=writer, no_dist=True)
        self.step = training.step

    def end(self):
        if self.future is not None:
            self.future.result()
            self.count(self.step)
            self.future = None


class Vellum(Way):
    """Versions, beside the training."""

    name = "vellum, async"
    planes = False

    def __init__(self, folder, middle):
        super().__init__(folder, middle)
        self.writer = door.StorageWriter(f"{folder}/store", planes=self.planes)
        self.before = 0

    def save(self, training):
        self.writer.wait()
        self.counted()
        self.writer.save_async(training.state(), f"step-{training.step}", optimizer=training.optimizer)

    def counted(self):
        now = disk_bytes(self.folder)
        self.added.append(now - self.before)
        self.before = now

    def end(self):
        self.writer.close()
        self.counted()
        del self.added[0]

    def restore(self, training):
        return door.load(f"{self.folder}/store", f"step-{self.middle}")


class VellumPlanes(Vellum):
    """Versions in planes, beside the training."""

    name = "vellum, planes, async"
    planes = True


WAYS = [Way, TorchSave, Zstd, Files, FilesBeside, Vellum, VellumPlanes]


def timed(call, *arguments):
    begin = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - begin, result


def copied(state):
    if isinstance(state, dict):
        return {key: copied(each) for key, each in state.items()}
    return state.clone() if isinstance(state, torch.Tensor) else state


def equal(a, b):
    if isinstance(a, dict):
        return all(equal(each, b[key]) for key, each in a.items())
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def measure(way_class, size, folder, pipe):
    training, stalls, steps = Training(size), [], []
    way = way_class(folder, size.steps // 2)
    held = [0.0]
    if isinstance(way, Vellum):  # before the writer's own hook, so the wait is counted
        hook = lambda *_: held.__setitem__(0, held[0] + timed(way.writer.wait_copied)[0])  # noqa: E731
        training.optimizer.register_step_pre_hook(hook)
    begin = time.perf_counter()
    for _ in range(size.steps):
        held[0] = 0.0
        seconds, _ = timed(training.advance)
        steps.append(seconds - held[0])
        if stalls:
            stalls[-1] += held[0]
        stalls.append(timed(way.save, training)[0])
        if training.step == way.middle:
            wanted = copied(training.state())
    way.end()
    total = time.perf_counter() - begin
    seconds, found = timed(way.restore, training)
    numbers = sum(each.numel() * each.element_size() for each in training.model.parameters()) * 3
    pipe.send(
        {"name": way.name, "state": numbers, "steps": steps, "stalls": stalls, "bytes": way.added[1:], "total": total,
         "restore": seconds, "is_equal": None if found is None else equal(wanted, found)}
    )  # fmt: skip


def row(result):
    median = statistics.median
    mib = f"{statistics.mean(result['bytes']) / 2**20:,.1f}" if result["bytes"] else "-"
    restored = (
        "-" if result["is_equal"] is None else f"{result['restore']:.2f}" + ("" if result["is_equal"] else " WRONG")
    )
    stalls = result["stalls"][1:-1]
    return [result["name"], f"{median(result['steps']):.2f}", f"{median(stalls):.3f}", f"{max(stalls):.3f}", mib,
            restored, f"{result['total']:.0f}"]  # fmt: skip


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("width", 512), ("layers", 6), ("steps", 12), ("tokens", 512), ("rate", 3e-4)):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--dir")
    parser.add_argument("--json")
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS])
    return parser.parse_args()


def main():
    size = parsed_arguments()
    context, results = multiprocessing.get_context("fork"), []
    for way in WAYS:
        if way.name not in (size.way or [way.name]):
            continue
        with tempfile.TemporaryDirectory(prefix="bench-training-", dir=size.dir) as folder:
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=measure, args=(way, size, folder, there))
            process.start()
            there.close()
            results.append(here.recv())
            process.join()
        print(f"{way.name}: done", file=sys.stderr)
    print(f"{results[0]['state'] / 2**20:,.0f} MiB of model and AdamW, {size.steps} steps; seconds, MiB")
    print_rows([["way", "a step", "stall", "worst", "MiB a step", "restore", "all"], *map(row, results)])
    found = {result["name"]: result for result in results}
    if {"DCP files, async", "vellum, async"} <= found.keys():
        ratio = statistics.median(found["vellum, async"]["stalls"]) / statistics.median(
            found["DCP files, async"]["stalls"]
        )
        print(f"stall / DCP async's: {ratio:.3f}; target 0.1")
    if {"torch.save, zstd 3", "vellum, planes, async"} <= found.keys():
        least = min(statistics.mean(each["bytes"]) for name, each in found.items() if name.startswith("vellum"))
        print(f"bytes / zstd's: {least / statistics.mean(found['torch.save, zstd 3']['bytes']):.3f}; target 0.8")
    if size.json:
        write_json(size.json, "training", {"results": results})


if __name__ == "__main__":
    main()
