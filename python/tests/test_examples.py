"""The examples run and print the intended output."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples/python"


@pytest.mark.parametrize(
    ("name", "printed"),
    [("undo_training", "back at epoch 4"), ("dataset_versions", "day 3: 50 rows, ")],
)
def test_example(name, printed, path):
    ended = subprocess.run([sys.executable, FOLDER / f"{name}.py", str(path)], capture_output=True, text=True)
    assert ended.returncode == 0 and ended.stderr == "", ended.stderr
    assert printed in ended.stdout


def test_the_readme_prints_what_it_says(tmp_path):
    text = (ROOT / "python/README.md").read_text()
    program = text.split("```python\n")[1].split("```")[0].replace("/data/s", str(tmp_path / "s"))
    wanted = text.split("```text\n")[1].split("```")[0]
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == (wanted, "")
