"""The notebooks of the documents run, with the recorded output.

VELLUM_WRITE_NOTEBOOKS=1 writes the current output, plots included, into the documents.
"""

import os
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "docs/notebooks"


def printed(cell):
    """The printed output of a cell, and its number of plots."""
    text = "".join(output.get("text", "") for output in cell.outputs)
    return text, sum("image/png" in output.get("data", {}) for output in cell.outputs)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    if path.stem.startswith("s3-"):
        pytest.importorskip("moto")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    kept = nbformat.read(path, 4)
    notebook = nbformat.read(path, 4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    if os.environ.get("VELLUM_WRITE_NOTEBOOKS"):
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path)
        return
    for old, new in zip(kept.cells, notebook.cells, strict=True):
        if new.cell_type == "code":
            assert printed(new) == printed(old), new.source
    assert any(printed(cell)[1] for cell in notebook.cells if cell.cell_type == "code"), "a notebook has plots"
