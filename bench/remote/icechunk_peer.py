"""An array of integers in an Icechunk repository over S3: one commit, or one read, per process.

    icechunk_peer.py make|commit|read ENDPOINT BUCKET FILE     "commit SECONDS" or "read SECONDS"

Credentials are those of AWS_*. The array has a chunk per MiB, FILE its first content. A commit changes 1 % of random
elements; a read opens the repository and gets 5 % of the chunks, at random, in one call.
"""

import os
import sys
import time

import icechunk
import numpy as np
import zarr

ROW = (1 << 20) // 8  # elements


def storage(endpoint, bucket):
    return icechunk.s3_storage(
        bucket=bucket, prefix="icechunk", endpoint_url=endpoint, allow_http=True, force_path_style=True,
        region="us-east-1", access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"])


def make(where, file):
    session = icechunk.Repository.create(where).writable_session("main")
    values = np.fromfile(file, "u8").reshape(-1, ROW)
    array = zarr.create_array(session.store, name="x", shape=values.shape, chunks=(1, ROW), dtype="u8")
    array[:] = values
    session.commit("base")


def commit(where, file):
    values = np.fromfile(file, "u8")
    rng = np.random.default_rng(8)
    values[rng.integers(0, len(values), len(values) // 100)] = rng.integers(0, 1 << 22, len(values) // 100)
    values = values.reshape(-1, ROW)
    start = time.perf_counter()
    session = icechunk.Repository.open(where).writable_session("main")
    zarr.open_array(session.store, path="x")[:] = values
    session.commit("elements")
    print("commit", time.perf_counter() - start)


def read(where, _):
    start = time.perf_counter()
    session = icechunk.Repository.open(where).readonly_session("main")
    array = zarr.open_array(session.store, path="x", mode="r")
    rows = array.shape[0]
    picked = np.sort(np.random.default_rng(11).choice(rows, max(1, rows * 5 // 100), replace=False))
    array.oindex[picked, :].sum()
    print("read", time.perf_counter() - start)


{"make": make, "commit": commit, "read": read}[sys.argv[1]](storage(sys.argv[2], sys.argv[3]), sys.argv[4])
