"""An https endpoint is believed where its certificate authority is known, and nowhere else."""

import shutil
import subprocess

import numpy as np
import pytest
from conftest import KEYS, Server

import vellum


def signed(folder):
    """The paths of a private authority's certificate, and of a server's certificate by it, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no program openssl here")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "address").write_text("subjectAltName=IP:127.0.0.1")
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority")
    openssl("req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server")
    by_authority = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "address"]
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", *by_authority)
    return folder / "ca.pem", (folder / "server.pem", folder / "server.key")


@pytest.fixture
def authority_and_url(tmp_path, monkeypatch):
    pytest.importorskip("moto")
    authority, certificate = signed(tmp_path)
    # What the server's own clients trust, to make its bucket: the authority, not the certificate itself.
    server = Server(certificate, trusted=authority)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    yield authority, server.url("s")
    server.end()


def test_a_private_authority(numbers, authority_and_url, values, monkeypatch):
    authority, url = authority_and_url
    store = vellum.Store(numbers)
    with pytest.raises(OSError, match="certificate"):
        store.add_remote("origin", url, one_writer=True)
    with pytest.raises(OSError, match="certificate"):
        vellum.open(url, version="first")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))
    store.add_remote("origin", url, one_writer=True)
    store.push()
    np.testing.assert_array_equal(vellum.open(url, version="first")["x"], values)
    # The certificate is of an address, and not of this name.
    with pytest.raises(OSError, match=r"certificate|localhost"):
        vellum.open(url.replace("127.0.0.1", "localhost"), version="first")
