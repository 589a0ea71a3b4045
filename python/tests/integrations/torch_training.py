"""A training for the tests."""

import hashlib

import torch


class Training:
    """A small model with AdamW; the batch of a step depends on its number alone."""

    def __init__(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.step = 0
        layers = [torch.nn.Linear(64, 256), torch.nn.BatchNorm1d(256), torch.nn.ReLU(), torch.nn.Linear(256, 16)]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def advance(self):
        batch = torch.randn(32, 64, generator=torch.Generator().manual_seed(self.step))
        self.optimizer.zero_grad()
        self.model(batch).square().mean().backward()
        self.optimizer.step()
        self.step += 1

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}

    def restore(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]


def digest(value):
    """A hash of a state: all its values, with their names and types."""
    if isinstance(value, torch.Tensor):
        content = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return hashlib.sha256(content + str((value.dtype, value.shape)).encode()).hexdigest()
    if isinstance(value, dict):
        value = sorted((str(type(key)), str(key), digest(each)) for key, each in value.items())
    elif isinstance(value, (list, tuple)):
        value = [digest(each) for each in value]
    return hashlib.sha256(repr(value).encode()).hexdigest()
