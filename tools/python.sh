#!/usr/bin/env bash
# Builds the Python package and tests it in a fresh virtual environment, in build/python.
#   tools/python.sh           sdist, a wheel from it with all that it needs linked in (auditwheel says so), tests
#   tools/python.sh --linked  a wheel that links build/release's library, and the system's: tests, without the
#                             second build of the library's sources that a real wheel takes
# PYTHON names the interpreter, 3.11 or later: python3. With --optional, first, the tests with large peers
# (python/requirements-optional.txt) run, too; otherwise they are skipped. Arguments after these go to pytest.
# The last line of the tests is pytest's. Exit status 77: the requirements cannot be had here (no package index).
set -euo pipefail
cd "$(dirname "$0")/.."

optional=
if [[ ${1-} == --optional ]]; then
  optional=1
  shift
fi
linked=
if [[ ${1-} == --linked ]]; then
  linked=1
  shift
fi
python=${PYTHON-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "python.sh: $python is older than Python 3.11: set PYTHON" >&2
  exit 2
fi
tools/install-deps.sh --for build,python
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
work=build/python/$tag
venv=$work/venv
rm -rf "$venv" "$work/wheels"
mkdir -p "$work/wheels"
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r python/requirements-test.txt || exit 77
if [[ -n $optional ]]; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r python/requirements-optional.txt
fi
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
fi
export CMAKE_BUILD_PARALLEL_LEVEL=${VELLUM_JOBS:-$(nproc)}

"$venv/bin/ruff" check --quiet .
"$venv/bin/ruff" format --quiet --check python bench/python examples/python
if [[ -n $linked ]]; then
  [[ -e build/release/build.ninja ]] || cmake --preset release
  cmake --build --preset release --target vellum
  "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work/wheels" \
    --config-settings "build-dir=$work/linked" --config-settings "cmake.define.VELLUM_LIBRARY=$PWD/build/release/lib/libvellum.a" .
else
  rm -rf "$work/dist" "$work/source" "$work/whole"
  "$venv/bin/python" -m build --no-isolation --sdist --outdir "$work/dist" .
  # At the same place each time, for ccache.
  mkdir "$work/source"
  tar -xf "$work"/dist/vellum-*.tar.gz -C "$work/source" --strip-components 1
  "$venv/bin/pip" wheel --disable-pip-version-check --no-build-isolation --no-deps -w "$work/dist" \
    --config-settings "build-dir=$PWD/$work/whole" "$work/source"
  "$venv/bin/auditwheel" show "$work"/dist/*.whl
  PATH=$PWD/$venv/bin:$PATH "$venv/bin/auditwheel" repair --wheel-dir "$work/wheels" "$work"/dist/*.whl
  # Repairing would have copied the libraries that are not linked in.
  if "$venv/bin/python" -m zipfile -l "$work"/wheels/*.whl | grep -F 'vellum.libs/' >/dev/null; then
    echo "python.sh: the wheel needs libraries that are not linked in" >&2
    exit 1
  fi
  ls -l "$work"/wheels
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$work"/wheels/*.whl
(cd "$work" && venv/bin/mypy --no-error-summary --config-file ../../../pyproject.toml -p vellum)
# Not from the sources' folder: the installed package is what is tested.
cd "$work"
exec venv/bin/python -P -m pytest --rootdir ../../../python/tests -p no:cacheprovider -q "$@" ../../../python/tests
