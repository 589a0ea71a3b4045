"""An https endpoint is trusted only where its certificate authority is known."""

import os
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
    # The server's own clients, which create its bucket, trust the authority, not the certificate
    # itself.
    server = Server(certificate, trusted=authority)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
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
    # The certificate is for an address, not for this name.
    with pytest.raises(OSError, match=r"certificate|localhost"):
        vellum.open(url.replace("127.0.0.1", "localhost"), version="first")


# The paths of distributions.
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
OWN_MOUNTS = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")
# Runs a command on a machine that has the authorities of the file $1 at $2, and no others.
MACHINE = """
etc=$(mktemp -d -p "$3")
find /etc -maxdepth 1 -type f -readable -exec cp -t "$etc" {} +
[ -z "$2" ] || install -D "$1" "$etc/${2#/etc/}"
mount --bind "$etc" /etc
shift 3
exec "$@"
"""
PROGRAM = """
import sys, vellum
try:
    vellum.open(sys.argv[1], version="first")
except FileNotFoundError:
    print("believed")  # the server has answered: there is nothing
except Exception as error:
    print(error)
if "/libcurl" in open("/proc/self/maps").read():
    print("the machine's libcurl")
"""


def open_on_machine(authority, url, bundle="", **variables):
    """The output of PROGRAM when only the file `bundle` has the private authority."""
    if shutil.which("unshare") is None or subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode != 0:
        pytest.skip("a process gets no mounts of its own here")
    machine = [*OWN_MOUNTS, MACHINE, "sh", authority, bundle, authority.parent]
    program = [sys.executable, "-c", PROGRAM, url]
    ran = subprocess.run([*machine, *program], env=os.environ | variables, capture_output=True, text=True, check=True)
    return ran.stdout


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_authorities_that_the_environment_names(authority_and_url, variable):
    authority, url = authority_and_url
    assert "believed" in open_on_machine(authority, url, **{variable: str(authority)})
    absent = open_on_machine(authority, url, **{variable: "/no/such/file"})
    assert "believed" not in absent
    assert "/no/such/file" in absent


def test_authorities_of_the_machine(authority_and_url):
    authority, url = authority_and_url
    nothing = open_on_machine(authority, url)
    assert "believed" not in nothing
    if "the machine's libcurl" in nothing:
        # It knows the path of its distribution.
        assert any("believed" in open_on_machine(authority, url, bundle) for bundle in BUNDLES)
        return
    assert "this machine has no certificate authorities at" in nothing
    for bundle in BUNDLES:
        assert bundle in nothing
        assert "believed" in open_on_machine(authority, url, bundle), bundle
