"""The door to PyTorch without PyTorch."""

import subprocess
import sys

import pytest

HIDE = "import sys; sys.modules[{!r}] = None; import vellum; "


def run(hidden, text):
    return subprocess.run([sys.executable, "-c", HIDE.format(hidden) + text], capture_output=True, text=True)


def test_the_package_does_not_import_torch():
    ended = run("nothing", "sys.exit(any(name.split('.')[0] == 'torch' for name in sys.modules))")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_error_says_what_to_install():
    ended = run("torch", "import vellum.integrations.torch")
    assert ended.returncode == 1
    assert ended.stderr.endswith("ImportError: vellum.integrations.torch needs PyTorch: pip install vellum[torch]\n")


@pytest.mark.parametrize(("library", "name"), [("lightning", "CheckpointIO"), ("transformers", "TrainerCallback")])
def test_a_class_says_what_to_install(library, name):
    pytest.importorskip("torch")
    ended = run(library, f"from vellum.integrations.torch import {name}")
    assert ended.returncode == 1
    assert f"pip install vellum[{library}]" in ended.stderr.splitlines()[-1]
