"""The S3 server of a benchmark, and how programs find it."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
from dataclasses import dataclass, field

START_S = 20


@dataclass
class Server:
    """`environment`: the variables for signing requests. `description`: the name of the server."""

    host: str
    port: int
    description: str
    environment: dict = field(default_factory=dict)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_for(process, port):
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise RuntimeError("versitygw has not started")


@contextlib.contextmanager
def own_gateway(program, directory):
    port, secret = free_port(), {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
    os.makedirs(directory)
    command = (program, "--access", "bench", "--secret", "bench-secret", "--port", f"127.0.0.1:{port}",
               "--keep-alive", "--quiet", "posix", directory)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(process, port)
            yield Server("127.0.0.1", port, "versitygw on its posix engine, kept connections", secret)
        finally:
            process.kill()


@contextlib.contextmanager
def s3_server(directory):
    """That of VELLUM_TEST_S3_URL (http://HOST:PORT, credentials in AWS_*), or else its own versitygw."""
    if given := os.environ.get("VELLUM_TEST_S3_URL"):
        url = urllib.parse.urlsplit(given)
        if url.scheme != "http" or not url.hostname:
            raise RuntimeError(f"VELLUM_TEST_S3_URL={given}: http://HOST:PORT, so that the proxy can count requests")
        yield Server(url.hostname, url.port or 80, given)
        return
    program = os.environ.get("VELLUM_VERSITYGW") or shutil.which("versitygw")
    if not program:
        raise RuntimeError("no S3 server: set VELLUM_TEST_S3_URL, or VELLUM_VERSITYGW to the program "
                           "(go install github.com/versity/versitygw/cmd/versitygw@latest)")
    with own_gateway(program, directory) as server:
        yield server
