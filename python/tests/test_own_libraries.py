"""The wheel's linked libraries are its own: settings for the machine's libraries do not affect them."""

import os
import pathlib
import subprocess
import sys

import pytest

import vellum

# With one provider named, OpenSSL loads no other, and `base` has no hashes.
NO_HASHES = """
openssl_conf = start
[start]
providers = providers
[providers]
base = base
[base]
activate = 1
"""
PUSH = """
import sys, vellum
store = vellum.Store(sys.argv[1])
store.add_remote("origin", sys.argv[2])
store.push()
"""


def test_openssl_reads_no_configuration(numbers, tmp_path):
    if b"libcrypto.so" in pathlib.Path(vellum._core.__file__).read_bytes():
        pytest.skip("this build has the machine's OpenSSL")
    configuration = tmp_path / "openssl.cnf"
    configuration.write_text(NO_HASHES)
    words = [sys.executable, "-c", PUSH, str(numbers), f"file://{tmp_path}/remote"]
    subprocess.run(words, env=os.environ | {"OPENSSL_CONF": str(configuration)}, check=True)
