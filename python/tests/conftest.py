"""Fixtures. pytest itself switches faulthandler on: handlers of SIGSEGV and SIGBUS that are not ours."""

import numpy as np
import pytest

import vellum


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def region(path):
    with vellum.open(path, create=True) as r:
        yield r


@pytest.fixture
def numbers(path):
    """The path of a store with a snapshot "first" of an array "x", a million numbers that do not compress."""
    with vellum.open(path, create=True) as r:
        r["x"] = np.random.default_rng(1).integers(1, 1 << 62, 1_000_000)
        r.snapshot("first")
    return path


@pytest.fixture
def values():
    """What "x" of `numbers` is."""
    return np.random.default_rng(1).integers(1, 1 << 62, 1_000_000)
