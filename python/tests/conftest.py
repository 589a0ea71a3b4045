"""Fixtures. pytest itself switches faulthandler on: SIGSEGV and SIGBUS have handlers other than Vellum's."""

import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

import vellum


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def region(path):
    with vellum.open(path, create=True) as r:
        yield r


@pytest.fixture
def numbers(path):
    """The path of a store with a snapshot "first" of an array "x", a million incompressible numbers."""
    with vellum.open(path, create=True) as r:
        r["x"] = np.random.default_rng(1).integers(1, 1 << 62, 1_000_000)
        r.snapshot("first")
    return path


@pytest.fixture
def values():
    """The values of "x" in `numbers`."""
    return np.random.default_rng(1).integers(1, 1 << 62, 1_000_000)


BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


class Server:
    """An S3 server of another kind (moto) in a separate process, with an empty bucket.

    `certificate`: the paths of a certificate and its key, for https; `trusted`: of the authority behind it.
    """

    def __init__(self, certificate=None, trusted=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        program = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        if certificate:
            program += ["-c", str(certificate[0]), "-k", str(certificate[1])]
        self.trusted = ssl.create_default_context(cafile=trusted) if certificate else None
        self.process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.endpoint = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        self.make_bucket()

    def make_bucket(self):
        while True:
            assert self.process.poll() is None, "the server has ended"
            try:
                request = urllib.request.Request(f"{self.endpoint}/{BUCKET}", method="PUT")
                return urllib.request.urlopen(request, timeout=60, context=self.trusted).close()
            except OSError:
                time.sleep(0.05)

    def end(self):
        self.process.kill()
        self.process.wait()

    def url(self, prefix):
        return f"s3://{BUCKET}/{prefix}?endpoint={self.endpoint}&region=us-east-1&addressing=path"


@pytest.fixture(scope="session")
def server():
    """An S3 server in a separate process, where moto is installed."""
    pytest.importorskip("moto")
    made = Server()
    yield made
    made.end()


S3_URL = os.environ.get("VELLUM_TEST_S3_URL")  # of a real server's bucket: tools/with-s3.sh


@pytest.fixture(params=["directory", "s3"])
def url(request, tmp_path, monkeypatch):
    """The URL of an empty remote, of either kind."""
    if request.param == "directory":
        return f"file://{tmp_path}/remote"
    if S3_URL:
        bucket, _, options = S3_URL.partition("?")
        return f"{bucket}/python-{time.time_ns()}-{tmp_path.name}?{options}"
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return request.getfixturevalue("server").url(tmp_path.name)
