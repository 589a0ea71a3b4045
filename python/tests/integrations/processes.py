"""The processes of these tests: forks of one that has imported the doors."""

import multiprocessing
import os

DOORS = ("diskcache", "faiss", "fsspec", "hnswlib", "joblib", "jupyter", "torch", "usearch", "xarray", "zarr")

os.environ.setdefault("OMP_NUM_THREADS", "1")  # waiting threads of a loaded machine spin
PROCESSES = multiprocessing.get_context("forkserver")
# Once for all tests, as another list would replace it; a library that is missing is skipped.
PROCESSES.set_forkserver_preload(
    ["pytest", "torch.distributed.tensor", *(f"vellum.integrations.{name}" for name in DOORS)]
)
