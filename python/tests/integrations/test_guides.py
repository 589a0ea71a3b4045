"""The scripts of the guides print what is said there."""

import pathlib
import subprocess
import sys

import pytest

GUIDES = pathlib.Path(__file__).parents[3] / "docs/guides"
CASES = [("vector-indexes", n, name) for n, name in enumerate(["hnswlib", "faiss", "usearch"])]
CASES += [("caches", n, name) for n, name in enumerate(["joblib", "diskcache"])]


@pytest.mark.parametrize(("guide", "number", "library"), CASES)
def test_guide(guide, number, library, tmp_path):
    pytest.importorskip(library)
    text = (GUIDES / f"{guide}.md").read_text()
    program = text.split("```python\n")[number + 1].split("```")[0]
    assert program.count("\n") <= 30
    file = tmp_path / "script.py"
    file.write_text(program.replace("/data/", f"{tmp_path}/"))
    ended = subprocess.run([sys.executable, file], capture_output=True, text=True)
    wanted = text.split("```text\n")[number + 1].split("```")[0]
    assert (ended.returncode, ended.stdout) == (0, wanted), ended.stderr
