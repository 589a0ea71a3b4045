"""In the workers of other libraries, each where it is installed: tools/python.sh --optional installs them."""

import warnings

import numpy as np
import pytest

import vellum


@pytest.fixture
def x(numbers):
    return vellum.open(numbers, version="first")["x"]


def total(part):
    return int(part.sum())


def of_region(part):
    return type(part).__name__, part.name


def test_joblib(x, values):
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(total)(part) for part in np.array_split(x, 8))
    assert np.array(found).sum() == values.sum()
    assert joblib.Parallel(n_jobs=2)([joblib.delayed(of_region)(x)]) == [("Array", "x")]


def test_dask(x, values):
    da = pytest.importorskip("dask.array")
    whole = da.from_array(x, chunks=100_000)
    assert int(whole.sum().compute(scheduler="threads")) == int(values.sum())
    assert int(whole[5:700_000:3].sum().compute(scheduler="processes")) == int(values[5:700_000:3].sum())
    assert da.from_array(x, chunks=100_000).name == whole.name, "the name comes from the version"


def test_dask_distributed(x, values):
    distributed = pytest.importorskip("distributed")
    da = pytest.importorskip("dask.array")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        assert int(da.from_array(x, chunks=100_000).sum().compute()) == int(values.sum())


class Rows:
    """A data set for a DataLoader."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return 1000

    def __getitem__(self, i):
        return int(self.rows[i * 1000 : (i + 1) * 1000].sum())


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_torch_data_loader(x, values, method):
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"batch_size": 100, "num_workers": 2, "multiprocessing_context": method}
        loader = torch.utils.data.DataLoader(Rows(x), **options)
        assert np.array([int(batch.sum()) for batch in loader]).sum() == values.sum()


def test_torch_shares_memory(numbers, values):
    torch = pytest.importorskip("torch")
    with vellum.open(numbers) as r:
        tensor = torch.from_numpy(np.asarray(r["x"]))
        tensor += 1
        assert np.array_equal(r["x"], values + 1)
