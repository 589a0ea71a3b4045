"""Checkpoints of PyTorch, with the real libraries: python/requirements-optional.txt."""

import collections
import functools
import json
import os
import pathlib
import pickle
import subprocess
import sys
import time
import uuid

import numpy as np
import pytest
from processes import PROCESSES

import vellum

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")

import torch_ranks  # noqa: E402
from torch_training import Training, digest  # noqa: E402

from vellum.integrations import torch as door  # noqa: E402
from vellum.integrations.torch import _writer  # noqa: E402

ROOT = pathlib.Path(__file__).parents[3]

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")


@pytest.fixture
def training():
    training = Training()
    for _ in range(3):
        training.advance()
    return training


def same(a, b):
    return digest(a) == digest(b)


# ---- torch.distributed.checkpoint


@pytest.mark.parametrize("planes", [False, True])
def test_a_round_trip(path, training, planes):
    wanted = digest(training.state())
    with door.StorageWriter(path, planes=planes) as writer:
        dcp.save(training.state(), checkpoint_id="step-3", storage_writer=writer)
        training.advance()
        dcp.save(training.state(), checkpoint_id="step-4", storage_writer=writer)
    other = Training()
    other.advance()  # an optimizer has its state from its first step on
    found = other.state()
    dcp.load(found, checkpoint_id="step-3", storage_reader=door.StorageReader(path))
    assert digest(found) == wanted
    assert door.names(path) == ["step-3", "step-4"]
    assert vellum.Store(path).verify().damages == []


def test_load_needs_no_state(path, training):
    dcp.save(training.state(), storage_writer=door.StorageWriter(path, "a"))
    found = door.load(path, "a")
    assert same(found["model"], dict(training.state()["model"])) and found["step"] == 3
    assert found["optimizer"]["param_groups"] == training.state()["optimizer"]["param_groups"]


def test_save_keeps_all_types(path):
    state = {
        "lists": [torch.arange(5), (torch.tensor(1.5), [], {}), {3: torch.ones(2, 0), "4": "text"}],
        "types": [
            torch.arange(6).to(dtype) for dtype in (torch.bfloat16, torch.float16, torch.int8, torch.complex64)
        ],
        "eighths": torch.arange(6, dtype=torch.float32).to(torch.float8_e4m3fn).view(torch.uint8),
        "eight": torch.arange(6, dtype=torch.float32).to(torch.float8_e4m3fn),
        "views": torch.arange(12).reshape(3, 4).t()[1:],
        "ordered": collections.OrderedDict(b=1, a=None),
        "large": torch.randn(100_000, dtype=torch.float64).bfloat16(),
        "100% / name": torch.zeros(3),
    }
    for planes in (False, True):
        name = f"planes-{planes}"
        door.save(path, name, state, planes=planes)
        found = door.load(path, name)
        assert torch.equal(found.pop("eight").float(), state["eight"].float())
        found["eight"] = None
        assert same(
            {**found},
            {**{key: each.contiguous() if key == "views" else each for key, each in state.items()}, "eight": None},
        )
        assert (
            list(found) == [*[key for key in state if key != "eight"], "eight"]
            and type(found["ordered"]) is collections.OrderedDict
        )
        assert type(found["lists"][1]) is tuple and found["lists"][2].keys() == {3, "4"}


def run_ranks(path, size, action):
    meeting = path.with_name(f"meeting-{uuid.uuid4()}")
    ranks = [
        PROCESSES.Process(target=torch_ranks.rank, args=(number, path, size, action, meeting))
        for number in range(size)
    ]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    assert [each.exitcode for each in ranks] == [0] * size


def test_two_ranks_then_one_then_two(path):
    ranks = functools.partial(run_ranks, path)
    ranks(2, "broken")
    assert door.names(path) == [] and "step-1.rank-1" in vellum.Store(path), "a part alone is no checkpoint"
    with pytest.raises(vellum.NotFound):
        door.load(path, "step-1")
    with pytest.raises(vellum.NotFound, match="no checkpoint of PyTorch"):
        door.load(path, "step-1.rank-1")
    ranks(2, "save")
    assert door.names(path) == ["step-1"]
    whole = door.load(path, "step-1")
    assert torch.equal(whole["rows"], torch.arange(30_000, dtype=torch.float32).reshape(3000, 10))
    found = {"rows": torch.zeros(3000, 10), "same": torch.zeros(7, dtype=torch.bfloat16), "step": 0}
    dcp.load(found, storage_reader=door.StorageReader(path, "step-1"))
    assert torch.equal(found["rows"], whole["rows"]) and found["step"] == 17
    ranks(2, "load")
    ranks(3, "load")
    door.remove(path, "step-1")
    assert vellum.Store(path).snapshots == []
    dcp.save(whole, storage_writer=door.StorageWriter(path, "step-1"))
    ranks(2, "load")


def test_another_snapshot_in_the_place_of_a_part(path):
    run_ranks(path, 2, "save")
    store = vellum.Store(path)
    store.remove_snapshot("step-1.rank-1")
    store.create_snapshot("step-1.rank-1", "rank-1")
    with pytest.raises(vellum.NotFound, match=r"'step-1\.rank-1' is another snapshot"):
        door.load(path, "step-1")


def test_a_checkpoint_with_the_name_of_a_part(path):
    mine = {"x": torch.arange(9)}
    door.save(path, "step-1.rank-1", mine)
    run_ranks(path, 2, "refused")
    assert door.names(path) == ["step-1.rank-1"] and same(door.load(path, "step-1.rank-1"), mine)


def test_remove_leaves_other_versions(path):
    state = {"x": torch.arange(9)}
    with door.StorageWriter(path) as writer:
        for name in ("exp", "exp.rank-16", "exp.rank-b"):
            door.save(writer, name, state)
        writer.store.create_snapshot("exp.rank-1", "main", "mine")
    door.remove(path, "exp")
    assert vellum.Store(path).snapshots == ["exp.rank-16", "exp.rank-b", "exp.rank-1"]
    for name in ("exp", "exp.rank-1"):
        with pytest.raises(vellum.NotFound):
            door.remove(path, name)
    assert door.names(path) == ["exp.rank-16", "exp.rank-b"] and same(door.load(path, "exp.rank-16"), state)


def test_the_parts_of_a_failed_save_can_be_removed(path):
    run_ranks(path, 2, "broken")
    assert vellum.Store(path).snapshots == ["step-1.rank-1"]
    with pytest.raises(vellum.NotFound):
        door.remove(path, "step-1.rank-1")
    door.remove(path, "step-1")
    assert vellum.Store(path).snapshots == []
    with pytest.raises(vellum.NotFound):
        door.remove(path, "step-1")


ran = []


def run_code():
    ran.append(True)


class RunsCode:
    """An object that runs code when it is unpickled."""

    def __reduce__(self):
        return run_code, ()


def test_an_object_that_runs_code(path):
    """The guide says so: dcp.load() runs it, load() does not."""
    with door.StorageWriter(path, "a") as writer:
        dcp.save({"object": RunsCode()}, storage_writer=writer)
    with pytest.raises(pickle.UnpicklingError):
        door.load(path, "a")
    assert ran == []
    dcp.load({"object": None}, storage_reader=door.StorageReader(path, "a"))
    assert ran == [True]


def test_async_save(path, training):
    wanted = digest(training.state())
    with door.StorageWriter(path) as writer:
        future = dcp.async_save(training.state(), checkpoint_id="step-3", storage_writer=writer)
        training.advance()
        future.result()
        dcp.async_save(training.state(), checkpoint_id="step-4", storage_writer=writer).result()
    found = training.state()
    dcp.load(found, storage_reader=door.StorageReader(path, "step-3"))
    assert digest(found) == wanted


def test_a_version_a_step_beside_the_training(path, training):
    shadow = {}
    with door.StorageWriter(path, planes=True) as writer:
        for _ in range(20):
            training.advance()
            shadow[f"step-{training.step}"] = digest(training.state())
            writer.save_async(training.state(), f"step-{training.step}", optimizer=training.optimizer)
    assert door.names(path) == list(shadow)
    for name, wanted in shadow.items():
        assert digest(door.load(path, name)) == wanted, name


def test_the_step_waits_for_the_copy(path, training, monkeypatch):
    store, order = _writer.store_tensor, []

    def slowly(*arguments):
        time.sleep(0.01)
        store(*arguments)
        order.append("copied")

    monkeypatch.setattr(_writer, "store_tensor", slowly)
    with door.StorageWriter(path) as writer:
        writer.save_async(training.state(), "a", optimizer=training.optimizer)
        training.advance()
        order.append("stepped")
    assert order.index("stepped") == len(order) - 1 > 10


def test_a_failed_save(path, training):
    with door.StorageWriter(path) as writer:
        writer.save_async(training.state(), "a", optimizer=training.optimizer)
        writer.save_async(training.state(), "a", optimizer=training.optimizer)
        training.advance()  # is not held by a save that has failed
        with pytest.raises(dcp.api.CheckpointException, match="there is a version 'a'"):
            writer.wait()
        writer.save_async(training.state(), "b")
    assert door.names(path) == ["a", "b"]
    assert same(door.load(path, "b"), training.state())


def test_ranks_that_do_not_meet_are_refused(path):
    with door.StorageWriter(path, "a") as writer, pytest.raises(vellum.InvalidArgument, match="use_collectives"):
        dcp.save({"x": torch.ones(9)}, storage_writer=writer, use_collectives=False)
    assert not path.exists()


def test_a_name_is_needed(path):
    with door.StorageWriter(path) as writer, pytest.raises(dcp.api.CheckpointException, match="name a version"):
        dcp.save({"x": torch.ones(9)}, storage_writer=writer)
    assert door.names(path) == []
    with pytest.raises(dcp.api.CheckpointException, match="name a version"):
        dcp.load({"x": torch.ones(9)}, storage_reader=door.StorageReader(path))


def test_a_writer_stays_in_its_process(path):
    with pytest.raises(TypeError, match=r"AsyncCheckpointerType\.THREAD"):
        pickle.dumps(door.StorageWriter(path))


def test_a_tensor_that_changes_its_shape_or_goes(path):
    with door.StorageWriter(path) as writer:
        for name, state in (("a", {"x": torch.ones(9), "y": torch.ones(2)}), ("b", {"x": torch.ones(3, 3).half()})):
            door.save(writer, name, state)
    assert door.SafeTensors(path, "b").keys() == ["x"] and door.load(path, "b")["x"].shape == (3, 3)
    assert same(door.load(path, "a"), {"x": torch.ones(9), "y": torch.ones(2)})
    with vellum.open(path) as region:
        assert len(region["tensors"]) == 2


# ---- What is wrong


def test_damage_is_named(path):
    door.save(path, "step-1", {"x": torch.randn(1_000_000)})
    with open(max((path / "packs").rglob("*"), key=lambda file: file.stat().st_size), "r+b") as file:
        file.seek(2_000_000)
        file.write(b"damage" * 100)
    damages = vellum.Store(path).verify().damages
    assert damages and "snapshot 'step-1'" in damages[0].versions
    with pytest.raises(vellum.Corrupted, match="step-1"):
        door.load(path, "step-1")
    with pytest.raises(dcp.api.CheckpointException, match="Corrupted: snapshot 'step-1'"):
        dcp.load({"x": torch.zeros(1_000_000)}, storage_reader=door.StorageReader(path, "step-1"), no_dist=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: "no JSON",
        lambda record: json.dumps([]),
        lambda record: json.dumps({**record, "tensors": {"x": 1}}),
        lambda record: json.dumps({**record, "paths": 1}),
        lambda record: json.dumps(record).replace("float32", "float64"),
        lambda record: json.dumps(record).replace("float32", "Tensor"),
        lambda record: json.dumps(record).replace("[9]", "[8]"),
        lambda record: json.dumps(record).replace("tensors/x@0", "objects"),
        lambda record: json.dumps(record).replace('"tensors/x@0"', "0"),
        lambda record: json.dumps(record).replace("tensors/x@0", "tensors/y@0"),
    ],
)
def test_a_bad_record(path, change):
    with door.StorageWriter(path) as writer:
        dcp.save({"x": torch.ones(9)}, checkpoint_id="a", storage_writer=writer)
    with vellum.open(path) as region:
        record = json.loads(region["checkpoint"][0])
        del region["checkpoint"]
        region.create_strings("checkpoint", [change(record)])
        region.snapshot("bad")
    with pytest.raises((vellum.InvalidArgument, vellum.NotFound)):
        door.load(path, "bad")


def test_a_version_without_a_record(region, path):
    region.snapshot("plain")
    with pytest.raises(vellum.NotFound, match="version 'plain' is no checkpoint of PyTorch"):
        door.load(path, "plain")


# ---- Views


def test_safetensors(path, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    state = {"w": torch.randn(300, 100), "half": torch.randn(10).bfloat16(), "scalar": torch.tensor(2.0), "n": 3}
    door.save(path, "a", state)
    region = vellum.open(path, version="a")
    with door.SafeTensors(path, "a") as file:
        assert sorted(file.keys()) == ["half", "scalar", "w"] and file.metadata()["vellum.version"] == "a"
        for name in file.keys():
            assert torch.equal(file.get_tensor(name), state[name])
        w = file.get_tensor("w")
        assert w.data_ptr() == file.get_slice("w")[:].data_ptr(), "no copy"
        assert torch.equal(file.get_slice("w")[5:9, 2], state["w"][5:9, 2])
        file.save(tmp_path / "a.safetensors")
    assert torch.equal(w, state["w"]), "a tensor keeps its memory"
    assert np.array_equal(region["tensors/w@0.0"], state["w"].numpy()), "an array of the version"
    with safetensors.safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert all(torch.equal(file.get_tensor(name), state[name]) for name in ("w", "half", "scalar"))


# ---- Lightning and Transformers


def lightning_trainer(folder, steps, plugins):
    lightning = pytest.importorskip("lightning")
    from lightning.pytorch.callbacks import ModelCheckpoint

    saving = ModelCheckpoint(folder, save_top_k=2, monitor="step", mode="max", every_n_train_steps=2, save_last=True)
    return lightning.Trainer(
        max_steps=steps, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, callbacks=[saving],
        enable_model_summary=False, plugins=plugins, default_root_dir=folder,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_lightning(path, tmp_path):
    lightning = pytest.importorskip("lightning")

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.layer = torch.nn.Linear(8, 2)

        def training_step(self, batch, _):
            loss = self.layer(batch).square().mean()
            self.log("step", float(self.global_step))
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.1)

    batches = torch.utils.data.DataLoader(torch.randn(96, 8, generator=torch.Generator().manual_seed(2)), 4)
    folder = tmp_path / "checkpoints"
    last = str(folder / "last.ckpt")

    def plugins():
        return [door.CheckpointIO(path)]

    first, second = Model(), Model()
    lightning_trainer(folder, 6, plugins()).fit(first, batches)
    assert len(door.names(path)) == len(list(folder.glob("*.ckpt"))) == 3, "two and the last one"
    lightning_trainer(folder, 12, plugins()).fit(second, batches, ckpt_path="last")
    by_files, others = Model(), tmp_path / "files"  # Lightning itself begins the epoch's batches again
    lightning_trainer(others, 6, []).fit(Model(), batches)
    lightning_trainer(others, 12, []).fit(by_files, batches, ckpt_path=str(others / "last.ckpt"))
    assert same(second.state_dict(), by_files.state_dict()) and not same(first.state_dict(), second.state_dict())
    (folder / "last.ckpt").write_text("{}")
    with pytest.raises(vellum.InvalidArgument, match=r"last\.ckpt names no checkpoint"):
        lightning_trainer(folder, 12, plugins()).fit(second, batches, ckpt_path=last)


def transformers_trainer(folder, callbacks):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=2)
    torch.manual_seed(3)
    rows = torch.randint(0, 50, (64, 16), generator=torch.Generator().manual_seed(4))
    arguments = transformers.TrainingArguments(
        folder, max_steps=8, per_device_train_batch_size=4, save_strategy="no", report_to=[], disable_tqdm=True,
        use_cpu=True, logging_strategy="no",
    )  # fmt: skip
    return transformers.Trainer(
        transformers.GPT2LMHeadModel(config), arguments, callbacks=callbacks,
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_transformers(path, tmp_path):
    trainer = transformers_trainer(
        tmp_path / "first", [pytest.importorskip("transformers") and door.TrainerCallback(path)]
    )
    trainer.train()
    assert door.names(path) == [f"step-{n}" for n in range(1, 9)]
    wanted = trainer.model.state_dict()
    assert same(door.load(path, "step-8")["model"], wanted)
    again = transformers_trainer(tmp_path / "again", [door.TrainerCallback(path)])
    again.train(resume_from_checkpoint=door.checkpoint_of(path, "step-5", tmp_path / "step-5"))
    assert again.state.global_step == 8 and same(again.model.state_dict(), wanted)
    assert sorted(door.names(path)) == [f"step-{n}" for n in range(1, 9)]


# ---- For a long time


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_of_many_saves(path):
    state = {"x": torch.randn(1 << 20), "n": 0}
    sizes = []
    with door.StorageWriter(path) as writer:
        for i in range(150):
            state["x"][:1000] += 1
            state["n"] = i
            door.save(writer, f"step-{i}", state)
            assert door.load(path, f"step-{i}")["n"] == i
            if i in (50, 149):
                sizes.append((resident(), len(os.listdir("/proc/self/fd"))))
    assert sizes[1][0] < sizes[0][0] + (64 << 20) and sizes[1][1] <= sizes[0][1] + 2, sizes


def test_the_guide(tmp_path):
    text = (ROOT / "docs/guides/torch.md").read_text()
    program = text.split("```python\n")[1].split("```")[0]
    assert len(program.splitlines()) <= 30
    program = program.replace("/data/run", str(tmp_path / "run"))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == text.split("```text\n")[1].split("```")[0]
