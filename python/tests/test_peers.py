"""With other libraries, each where it is installed: tools/python.sh --optional installs them."""

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


def test_torch(x, values, numbers):
    torch = pytest.importorskip("torch")
    with vellum.open(numbers) as r:
        tensor = torch.from_numpy(np.asarray(r["x"]))
        tensor += 1
        assert np.array_equal(r["x"], values + 1)

    class Rows(torch.utils.data.Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return 1000

        def __getitem__(self, i):
            return torch.tensor(self.rows[i * 1000 : (i + 1) * 1000].sum())

    for method in ("fork", "spawn"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"batch_size": 100, "num_workers": 2, "multiprocessing_context": method}
            loader = torch.utils.data.DataLoader(Rows(x), **options)
            assert np.array([int(batch.sum()) for batch in loader]).sum() == values.sum()


def test_dlpack(numbers, values):
    with vellum.open(numbers) as r:
        np.testing.assert_array_equal(np.from_dlpack(r["x"]), values)
        assert np.shares_memory(np.from_dlpack(r["x"]), r["x"])


def test_pyarrow(x, values, path, tmp_path):
    pa = pytest.importorskip("pyarrow")
    array = pa.Array.from_buffers(pa.int64(), len(x), [None, pa.py_buffer(x)])
    assert array.buffers()[1].address == x.__array_interface__["data"][0], "no copy"
    assert array[999_999].as_py() == values[-1]
    with vellum.open(tmp_path / "strings", create=True) as r:
        s = r.create_strings("s", ["a", "", "ä", "日本"])
        strings = pa.LargeStringArray.from_buffers(len(s), pa.py_buffer(s.offsets), pa.py_buffer(s.data))
        assert strings.to_pylist() == ["a", "", "ä", "日本"]


def test_pandas(x, values):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": x}, copy=False)
    assert np.shares_memory(frame["x"].to_numpy(), x)
    assert int(frame["x"].sum()) == int(values.sum())


def test_polars(x, values):
    pl = pytest.importorskip("polars")
    assert int(pl.Series("x", np.asarray(x)).sum()) == int(values.sum())


def test_zarr(x, values, numbers, tmp_path):
    zarr = pytest.importorskip("zarr")
    z = zarr.open_array(str(tmp_path / "z"), mode="w", shape=x.shape, dtype=x.dtype, chunks=(100_000,))
    z[:] = x
    with vellum.open(numbers) as r:
        np.testing.assert_array_equal(r.create_array("back", data=z[:]), values)


def test_h5py(x, values, numbers, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "f.h5", "w") as file, vellum.open(numbers) as r:
        file["x"] = x
        target = r.create_array("back", x.shape, x.dtype)
        file["x"].read_direct(target)
        np.testing.assert_array_equal(target, values)
