"""An https endpoint is believed where its certificate authority is known, and nowhere else."""

import pathlib
import shutil
import subprocess
import sys

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
    for name in ("AWS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
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


BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
PROGRAM = """
import sys, vellum
try:
    vellum.open(sys.argv[1], version="first")
except FileNotFoundError:
    print("believed")  # the server has answered: there is nothing
"""


def with_bundle(authority):
    """The words before a command which then finds the private authority in the machine's bundle."""
    bundle = next((path for path in BUNDLES if pathlib.Path(path).is_file()), None)
    if bundle is None:
        pytest.skip("this machine has no bundle of authorities")
    if shutil.which("unshare") is None or subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode != 0:
        pytest.skip("a process gets no mounts of its own here")
    return [*OWN_MOUNTS, 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", authority, bundle]


def test_authorities_of_openssl_and_of_the_machine(authority_and_url):
    authority, url = authority_and_url
    words = {"SSL_CERT_FILE": ["env", f"SSL_CERT_FILE={authority}"], "machine": with_bundle(authority), "none": []}
    believed = [
        way
        for way, before in words.items()
        if "believed"
        in subprocess.run([*before, sys.executable, "-c", PROGRAM, url], capture_output=True, text=True).stdout
    ]
    assert believed == ["SSL_CERT_FILE", "machine"]
