#!/usr/bin/env python3
"""Undo a bad training step: a model whose parameters have versions.

python3 undo_training.py [STORE]
"""

import sys
import tempfile

import numpy as np

import vellum


def loss(weights, x, y):
    """The mean square of the error."""
    return float(np.mean((x @ weights - y) ** 2))


def step(weights, x, y, rate):
    """One step of gradient descent, in place."""
    weights -= rate * 2 / len(x) * (x.T @ (x @ weights - y))


def main(path):
    """Trains, spoils the model with a rate that is too large, goes back, and trains on."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 8))
    y = x @ np.arange(8.0)
    with vellum.open(path, create=True) as r:
        weights = r.create_array("model/weights", shape=8)
        for epoch in range(5):
            with r.transaction(f"epoch {epoch}"):
                for _ in range(20):
                    step(weights, x, y, rate=0.01)
                r["model"].attrs["loss"] = loss(weights, x, y)
            r.snapshot(f"epoch-{epoch}")
        good = r["model"].attrs["loss"]

        step(weights, x, y, rate=50)  # far too large
        r.commit("a bad step")
        print(f"loss {good:.3f}, after the bad step {loss(weights, x, y):.3g}")

        r.rollback("epoch-4")
        assert loss(weights, x, y) == good  # the same array shows the old content
        print(f"back at epoch 4: {loss(weights, x, y):.3f}")

    for name in vellum.Store(path).snapshots:
        print(name, vellum.open(path, version=name)["model"].attrs["loss"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/store")
