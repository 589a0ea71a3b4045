"""`%load_ext vellum`, in IPython and in a notebook that nbclient runs."""

import pathlib
import sys

import numpy as np
import pytest

import vellum

pytest.importorskip("IPython")
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def run(path):
    """Runs a cell and returns the notebook's variables."""
    main = sys.modules["__main__"]  # a shell puts its own module there, which no worker process can start with
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "vellum")

    def run(cell):
        with capture_output() as captured:
            result = shell.run_cell(cell)
        result.raise_error()
        assert "Error in callback" not in captured.stdout, captured.stdout
        return shell.user_ns

    run(f"import numpy as np\n%vellum open {path}")
    yield run
    shell.run_line_magic("unload_ext", "vellum")
    shell.user_ns.clear()
    sys.modules["__main__"] = main
    vellum.close_all()


def test_undo_and_redo(run):
    x = run("x = region.create_array('x', data=np.arange(5))")["x"]
    run("x[1] = 10")
    run("x[2] = 20")
    run("%undo")
    assert x.tolist() == [0, 10, 2, 3, 4]
    run("%undo")
    assert x.tolist() == [0, 1, 2, 3, 4]
    run("%redo 2")
    assert x.tolist() == [0, 10, 20, 3, 4]
    run("%undo 2")
    run("x[3] = 30")
    assert x.tolist() == [0, 1, 2, 30, 4]
    with pytest.raises(UsageError, match="0 cells are undone"):
        run("%redo")
    run("%undo 2")
    assert "x" not in run("")["region"] and "x" not in run("")
    with pytest.raises(UsageError, match="0 cells have changed"):
        run("%undo")
    for wrong in ("%undo x", "%undo -1", "%vellum", "%vellum open", "%vellum keep nothing"):
        with pytest.raises(UsageError):
            run(wrong)


def test_a_cell_that_only_reads_is_no_version(run):
    ns = run("region['x'] = np.arange(5)")
    before = ns["region"].snapshots
    run("y = region['x'].sum()")
    assert ns["region"].snapshots == before


def test_a_cell_that_fails_or_commits_is_undone(run):
    ns = run("region['x'] = np.zeros(3)")
    with pytest.raises(ZeroDivisionError):
        run("region['x'][0] = 1\n1 / 0")
    run("region['x'][1] = 1\nregion.commit()\nregion['x'][2] = 1")
    run("%undo")
    assert ns["region"]["x"].tolist() == [1, 0, 0]
    run("%undo")
    assert ns["region"]["x"].tolist() == [0, 0, 0]


def test_a_resized_array_has_its_old_length(run):
    run("x = region.create_array('x', data=np.arange(5))")
    ns = run("x = region.resize('x', 9)")
    run("%undo")
    assert ns["x"].tolist() == [0, 1, 2, 3, 4]
    run("%redo")
    assert len(ns["x"]) == 9


def test_frames_and_tables(run):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    run("import pandas as pd, pyarrow as pa")
    run("f = pd.DataFrame({'n': np.arange(3), 's': list('abc')}); t = pa.table({'k': [1, 2]})\n%vellum keep f t")
    ns = run("region['f/n'][0] = 7; region['t/k'][1] = 8; region['f/new'] = np.ones(3)")
    assert ns["f"]["n"].tolist() == [7, 1, 2] and ns["t"]["k"].to_pylist() == [1, 8]
    run("%undo")
    assert ns["f"].to_dict("list") == {"n": [0, 1, 2], "s": ["a", "b", "c"]}
    assert ns["t"]["k"].to_pylist() == [1, 2]
    run("%redo")
    assert list(ns["f"]) == ["n", "s", "new"]


REFUSED = {
    "index": "pd.DataFrame({'n': [1, 2]}, index=['a', 'b'])",
    "an index": "pd.DataFrame({'n': [1, 2, 3]})[1:]",
    "has an index": "pd.DataFrame({'n': [1, 2]}).rename_axis('k')",
    "column 7": "pd.DataFrame({7: [1, 2]})",
    r"column \('a', 1\)": "pd.DataFrame({('a', 1): [1, 2]})",
    "column 'a/b'": "pd.DataFrame({'a/b': [1, 2]})",
    "one name": "pd.DataFrame([[1, 2]], columns=['n', 'n'])",
    r"f\['o'\] has values that are no text": "pd.DataFrame({'n': [1, 2], 'o': ['a', 3]})",
    r"f\['m'\] has values that are no text": "pd.DataFrame({'m': ['a', None]})",
    r"f\['i'\] is not as numpy": "pd.DataFrame({'i': pd.array([1, None], 'Int64')})",
    r"f\['z'\] has values": "pd.DataFrame({'z': pd.date_range('2020', periods=2, tz='UTC')})",
    r"f\['c'\] is not as numpy": "pd.DataFrame({'c': pd.Categorical(['a', 'b'])})",
    r"f\['w'\] is not as numpy": "pd.DataFrame({'w': pd.array([1, 2], 'Int64')})",
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_frame_that_would_change_is_refused(run, words):
    pytest.importorskip("pandas")
    ns = run(f"import pandas as pd\nf = {REFUSED[words]}")
    before = ns["f"]
    with pytest.raises(UsageError, match=words):
        run("%vellum keep f")
    assert ns["f"] is before and "f" not in ns["region"]


def test_a_kept_frame_is_equal(run):
    pytest.importorskip("pandas")
    run("import pandas as pd")
    run("f = pd.DataFrame({'n': [1, 2], 'x': [.5, np.nan], 's': ['a', 'b'], 't': pd.date_range('2020', periods=2)})")
    before = run("g = pd.DataFrame({'o': np.array(['a', 'b'], object)}).iloc[:0]; f0 = f.copy()")["f0"]
    ns = run("%vellum keep f g")
    assert ns["f"].dtypes.equals(before.dtypes) and ns["f"].equals(before)
    assert len(ns["g"]) == 0 and list(ns["g"]) == ["o"]


def test_a_table_that_would_change_is_refused(run):
    pytest.importorskip("pyarrow")
    run("import pyarrow as pa\nt = pa.table({'k': [1, None]}); u = pa.table({'s': ['a', None]})")
    run("v = pa.table({'k': pa.array([1], pa.timestamp('s', 'UTC'))})")
    run("w = pa.table({'k': pa.array(['a']).dictionary_encode()})")
    for name in "tuvw":
        with pytest.raises(UsageError, match="fill what is missing"):
            run(f"%vellum keep {name}")
    ns = run("t = pa.table({'k': [1, 2], 'd': pa.array([1, 2], pa.date32()), 's': ['a', 'b'], 'b': [True, False]})")
    before = ns["t"]
    run("%vellum keep t")
    assert ns["t"].to_pydict() == before.to_pydict()


def test_branches(run):
    ns = run("x = region.create_array('x', data=np.zeros(3))")
    run("%branch trial")
    assert ns["region"].branch == "trial"
    run("x[:] = 1")
    run("%undo")
    run("%branch main")
    assert ns["x"].tolist() == [0, 0, 0]
    run("x[:] = 5")
    run("%branch trial")
    assert ns["x"].tolist() == [0, 0, 0]
    run("%redo")  # what was undone on a branch stays so
    assert ns["x"].tolist() == [1, 1, 1]


def test_another_kernel_goes_on(path, run):
    run("x = region.create_array('x', data=np.zeros(3))")
    run("x[:] = 1")
    ns = run("x[:] = 2")
    run("%undo")
    run("%vellum close")
    ns.pop("x")
    ns = run(f"%vellum open {path}")
    run("%undo")
    assert ns["region"]["x"].tolist() == [0, 0, 0]
    run("%redo 2")
    assert ns["region"]["x"].tolist() == [2, 2, 2]


def test_what_was_committed_without_a_cell_is_undone_alone(path, run):
    """By another program, or by a kernel that ended between a cell's commit and its version."""
    run("x = region.create_array('x', data=np.zeros(3))")
    run("x[0] = 1")
    run("x[1] = 2")
    run("%undo")
    ns = run("%vellum close")
    ns.pop("x")
    with vellum.open(path) as region:
        region["x"][2] = 3
    ns = run(f"%vellum open {path}")
    with pytest.raises(UsageError, match="0 cells are undone"):
        run("%redo")
    run("%undo")
    assert ns["region"]["x"].tolist() == [1, 0, 0]
    run("%redo")
    assert ns["region"]["x"].tolist() == [1, 0, 3]
    run("%undo 2")
    assert ns["region"]["x"].tolist() == [0, 0, 0]


def test_an_undo_is_one_commit(run):
    run("x = region.create_array('x', data=np.zeros(3))")
    ns = run("x[:] = 1")
    before = ns["region"].commit().sequence
    run("%undo")
    assert ns["region"].commit().sequence == before + 1


def test_a_real_notebook(tmp_path):
    """The guide's notebook in a kernel, by nbclient."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    text = (ROOT / "docs/guides/jupyter.md").read_text().replace("/data/s", str(tmp_path / "s"))
    cells = [part.split("```")[0].strip() for part in text.split("```python\n")[1:]]
    wanted = [part.split("```")[0].strip() for part in text.split("```text\n")[1:]]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]
    printed = [part.strip() for part in printed if part.strip()]
    assert printed == wanted
    last = vellum.open(tmp_path / "s", version="main")["price"]
    assert np.asarray(last).tolist() == [9.0, 20.0, 30.0]
