#!/usr/bin/env bash
# Builds the Python package and tests it in a new virtual environment, in build/python: sdist, a self-contained wheel
# from it (checked by auditwheel), tests. PYTHON names the interpreter, 3.11 or later: python3.
#   tools/python.sh [--optional] [--linked] [--also PYTHON]... [ARGUMENTS OF pytest]
#   --optional     tests with large peers (python/requirements-optional.txt), too; otherwise they are skipped
#   --linked       a wheel that links build/release's library and the system's libraries, without the second build of
#                  the library's sources that a real wheel needs
#   --also PYTHON  the tests in another interpreter, too, with the same wheel. The wheel of 3.12 is for all later
#                  ones (stable ABI): PYTHON=python3.12 tools/python.sh --also python3.13
# A free-threaded interpreter (PYTHON=python3.13t) gets its own wheel, and tests with the libraries that have wheels
# for it. The last line is pytest's. Exit status 77: the requirements are not available here (no package index).
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
others=()
while [[ ${1-} == --also ]]; do
  others+=("${2?--also: name an interpreter}")
  shift 2
done

say() { echo "python: $*"; }

# Shows the steps of a long build, and all of its output if it fails.
shown() {
  local log=$work/build.log
  if "$@" 2>&1 | tee "$log" | sed -unE 's/^ *(\[[0-9]+\/[0-9]+\] .*)/\1/p'; then return; fi
  cat "$log" >&2
  return 1
}

# The folder of an interpreter: cp311, or cp313t for a free-threaded one.
tag_of() {
  "$1" -c 'import sys; print("cp%d%d%s" % (*sys.version_info[:2], sys.abiflags))'
}

# Ends after a failed installation: it is an error if the package index answers.
no_index() {
  local download=(download --quiet --disable-pip-version-check --no-deps --dest "$work" wheel)
  if "$1/bin/pip" "${download[@]}" >/dev/null 2>&1; then exit 1; fi
  exit 77
}

# A new environment VENV of an interpreter, with the tests' requirements.
make_environment() {
  local python=$1 venv=$2 requirements=test
  case $(tag_of "$python") in *t) requirements=free-threaded ;; esac
  say "an environment with what the tests need: $venv"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "python/requirements-$requirements.txt" ||
    no_index "$venv"
  if [[ -n $optional ]]; then
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r python/requirements-optional.txt
  fi
}

install_wheel() {
  say "the tests, with $1"
  "$1/bin/pip" install --quiet --disable-pip-version-check --no-deps "$work"/wheels/*.whl
}

# Not from the sources' folder: the tests use the installed package.
run_tests() {
  local venv=$PWD/$1
  shift
  (cd "$work" && "$venv/bin/python" -P -m pytest --rootdir ../../../python/tests -p no:cacheprovider -q "$@" \
    ../../../python/tests)
}

python=${PYTHON-python3}
for each in "$python" "${others[@]}"; do
  if ! "$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "python.sh: $each is not Python 3.11 or later: set PYTHON" >&2
    exit 2
  fi
done
tools/install-deps.sh --for build,python
work=build/python/$(tag_of "$python")
venv=$work/venv
rm -rf "$work/wheels"
mkdir -p "$work/wheels"
make_environment "$python" "$venv"
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
  say "the wheel, linked to build/release's library"
  shown "$venv/bin/pip" wheel --verbose --disable-pip-version-check --no-build-isolation --no-deps -w "$work/wheels" \
    --config-settings "build-dir=$work/linked" --config-settings "cmake.define.VELLUM_LIBRARY=$PWD/build/release/lib/libvellum.a" .
else
  # At the same path each time, for ccache.
  source=build/python/source
  rm -rf "$work/dist" "$source" "$work/whole"
  say "the source distribution"
  "$venv/bin/python" -m build --no-isolation --sdist --outdir "$work/dist" .
  say "a libcurl to link in"
  tools/build-libcurl.sh
  mkdir "$source"
  tar -xf "$work"/dist/vellum-*.tar.gz -C "$source" --strip-components 1
  say "the wheel, with all of the library's sources"
  shown "$venv/bin/pip" wheel --verbose --disable-pip-version-check --no-build-isolation --no-deps -w "$work/dist" \
    --config-settings "build-dir=$PWD/$work/whole" --config-settings "cmake.define.VELLUM_LIBCURL=$PWD/build/libcurl" "./$source"
  "$venv/bin/auditwheel" show "$work"/dist/*.whl
  PATH=$PWD/$venv/bin:$PATH "$venv/bin/auditwheel" repair --wheel-dir "$work/wheels" "$work"/dist/*.whl
  # Repairing would have copied libraries that are not linked in.
  if "$venv/bin/python" -m zipfile -l "$work"/wheels/*.whl | grep -F 'vellum.libs/' >/dev/null; then
    echo "python.sh: the wheel needs libraries that are not linked in" >&2
    exit 1
  fi
  ls -l "$work"/wheels
fi
install_wheel "$venv"
if [[ -x $venv/bin/mypy ]]; then
  (cd "$work" && venv/bin/mypy --no-error-summary --config-file ../../../pyproject.toml -p vellum)
fi
run_tests "$venv" "$@"
for each in "${others[@]}"; do
  venv=$work/also-$(tag_of "$each")
  make_environment "$each" "$venv"
  install_wheel "$venv"
  run_tests "$venv" "$@"
done
