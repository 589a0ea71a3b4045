"""The examples run, and print what they mean to."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "examples/python"


@pytest.mark.parametrize(
    ("name", "printed"),
    [("undo_training", "back at epoch 4"), ("dataset_versions", "day 3: 50 rows, ")],
)
def test_example(name, printed, path):
    ended = subprocess.run([sys.executable, FOLDER / f"{name}.py", str(path)], capture_output=True, text=True)
    assert ended.returncode == 0 and ended.stderr == "", ended.stderr
    assert printed in ended.stdout
