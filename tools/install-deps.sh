#!/usr/bin/env bash
# Installs what building and testing Vellum needs and this machine lacks, from the packages of Debian 12.
# Running it again changes nothing. It looks for things, never for packages: another package, or one's own
# build, that brings the same will do, and where nothing is lacking neither a network nor Debian is needed.
# Programs given as arguments are wanted too; each is the package of its name.
# --docs, first, wants what making the documentation needs, and nothing else. --list prints the table.
set -euo pipefail

# PACKAGE THING..., where a thing is program:NAME, module:NAME (of pkg-config), header:NAME (which the
# compiler finds), library:FILE (which ld.so finds), llvm:VERSION, sanitizers:VERSION (of clang), or
# python:MODULE.
table='
build-essential      program:c++ program:cc program:make header:stdio.h
cmake                program:cmake program:ctest
ninja-build          program:ninja
pkgconf              program:pkg-config
ccache               program:ccache
mold                 program:mold
git                  program:git
python3              program:python3
clang-19             program:clang-19 program:clang++-19
clang-tidy-19        program:clang-tidy-19
clang-format-19      program:clang-format-19
clang-tools-19       program:clang-scan-deps-19
libclang-rt-19-dev   sanitizers:19
llvm-19              program:llvm-config-19 program:llvm-symbolizer-19 program:llvm-cov-19
llvm-19-dev          llvm:19
clang-16             program:clang-16
llvm-16-dev          llvm:16
libzstd-dev          module:libzstd
liblz4-dev           module:liblz4
libxxhash-dev        module:libxxhash
libpmem-dev          module:libpmem
libssl-dev           module:libcrypto
libfmt-dev           module:fmt
liblmdb-dev          module:lmdb
libcli11-dev         header:CLI/CLI.hpp
nlohmann-json3-dev   header:nlohmann/json.hpp
libboost-dev         header:boost/version.hpp
libgtest-dev         module:gtest
libgmock-dev         module:gmock
libbenchmark-dev     module:benchmark
lmdb-utils           program:mdb_stat
libjemalloc2         library:libjemalloc.so.2
libtcmalloc-minimal4 library:libtcmalloc_minimal.so.4
libgoogle-perftools4 library:libtcmalloc.so.4
libmimalloc2.0       library:libmimalloc.so.2
'
if [[ ${1-} == --docs ]]; then
  shift
  table='
python3              program:python3
python3-venv         python:ensurepip
mandoc               program:mandoc
'
fi
for program in "$@"; do
  [[ $program == --* ]] || table+="$program program:$program"$'\n'
done

has_header() { printf '#include <%s>\n' "$1" | c++ -x c++ -E - -o /dev/null 2>/dev/null; }

has() {
  local name=${1#*:} directory
  case $1 in
    program:*) command -v "$name" >/dev/null ;;
    module:*) pkg-config --exists "$name" 2>/dev/null ;;
    header:*) has_header "$name" ;;
    python:*) python3 -c "import $name" 2>/dev/null ;;
    library:*) { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -F "$name " >/dev/null ;;
    llvm:*)
      directory=$("llvm-config-$name" --includedir 2>/dev/null) &&
        [[ -e $directory/llvm/Passes/PassPlugin.h ]]
      ;;
    sanitizers:*)
      directory=$("clang-$name" -print-resource-dir 2>/dev/null) &&
        compgen -G "$directory/lib/*/libclang_rt.asan*" >/dev/null
      ;;
    *)
      echo "install-deps: the table has an unknown kind of thing: $1" >&2
      exit 2
      ;;
  esac
}

if [[ ${1-} == --list ]]; then
  printf '%s' "$table"
  exit 0
fi

missing=() lacking=()
while read -r package things; do
  for thing in $things; do
    has "$thing" && continue
    [[ " ${missing[*]} " == *" $package "* ]] || missing+=("$package")
    lacking+=("$thing")
  done
done <<<"$table"
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "install-deps: not a Debian system; install by hand: ${lacking[*]} (Debian: ${missing[*]})" >&2
  exit 1
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: lacking: ${lacking[*]} (packages: ${missing[*]})" >&2
    echo "install-deps: installing them takes root; run as root or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

install_missing() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

echo "install-deps: installing ${missing[*]}"
# The package lists may be absent or too old to download from: one refresh cures both.
install_missing || { "${as_root[@]}" apt-get update -q && install_missing; }
