"""The scripts of docs/guides/xarray.md print what it says, in their order."""

import pathlib
import re
import subprocess
import sys

import pytest

GUIDE = pathlib.Path(__file__).parents[3] / "docs/guides/xarray.md"
SCRIPTS = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", GUIDE.read_text(), re.S)


@pytest.mark.parametrize(("program", "printed"), SCRIPTS, ids=["xarray", "zarr", "fsspec"])
def test_a_script_prints_what_it_says(program, printed, tmp_path):
    for module in ("fsspec", "pandas", "pyarrow", "xarray", "zarr"):
        if module in program:
            pytest.importorskip(module)
    assert len(program.splitlines()) <= 30
    program = program.replace("/data/", f"{tmp_path}/")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == (printed, "")
