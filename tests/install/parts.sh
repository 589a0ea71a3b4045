#!/usr/bin/env bash
# Configures on machines that lack a dependency, or two of them, or with an optional part switched off: only a missing
# required dependency stops it, with an error that names it. The table names no present dependency as missing, and
# the generated build has all its files. Dependencies are hidden from CMake; the test runs on any machine.
#   VELLUM_LONG=1   all pairs, too; otherwise each dependency alone
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "parts: $*" >&2
  tail -n 40 "$work/log" >&2
  exit 1
}

# The options that hide a dependency, and its name in the table after `not found:`. `module` hides a file of
# pkg-config.
things='
cli11       -DVELLUM_CLI11_INCLUDE_DIR=                              CLI11
json        -DVELLUM_JSON_INCLUDE_DIR=                               nlohmann-json
boost       -DVELLUM_BOOST_INCLUDE_DIR=                              Boost
gtest       -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON                    Google
gmock       -DGTest_DIR=@work@/gtest-alone                           GoogleMock
lmdb        module:lmdb,-DLMDB_INCLUDE_DIR=,-DFAMS_LMDB_INCLUDE_DIR= LMDB
libcurl     module:libcurl                                           libcurl
fuse        module:fuse3                                             FUSE
png         module:libpng                                            libpng
microhttpd  module:libmicrohttpd                                     libmicrohttpd
pmem        module:libpmem                                           libpmem
sqlite      module:sqlite3,-DFAMS_SQLITE_INCLUDE_DIR=                SQLite
openmpi     module:ompi-c                                            MPI
mpich       module:mpich                                             MPI
mpirun      -DVELLUM_MPIEXEC_openmpi=,-DVELLUM_MPIEXEC_mpich=        -
metall      -DMETALL_INCLUDE_DIR=                                    Metall
llvm-16     -DVELLUM_LLVM_CONFIG_16=                                 LLVM
llvm-19     -DVELLUM_LLVM_CONFIG_19=,-DFAMS_CLANGXX=                 LLVM
clang-19    -DVELLUM_CLANG_19=                                       clang
mold-ccache -DVELLUM_MOLD=,-DVELLUM_CCACHE=                          -
no-shared   -DVELLUM_SHARED=OFF                                      -
no-CLI      -DVELLUM_CLI=OFF                                         -
no-LMDB     -DVELLUM_LMDB=OFF                                        -
no-S3       -DVELLUM_S3=OFF                                          -
no-MOUNT    -DVELLUM_MOUNT=OFF                                       -
no-PNG      -DVELLUM_PNG=OFF                                         -
no-WEB      -DVELLUM_WEB=OFF                                         -
no-PMEM     -DVELLUM_PMEM=OFF                                        -
no-METALL   -DVELLUM_METALL=OFF                                      -
no-MPI      -DVELLUM_MPI=OFF                                         -
no-CLANG    -DVELLUM_CLANG=OFF                                       -
no-TESTS    -DVELLUM_TESTS=OFF                                       -
no-EXAMPLES -DVELLUM_EXAMPLES=OFF                                    -
no-BENCH    -DVELLUM_BENCH=OFF                                       -
sanitizer   -DVELLUM_SANITIZE=undefined                              -
fmt         -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON                      required:fmt
openssl     -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON                  required:OpenSSL
zstd        module:libzstd                                           required:zstd
lz4         module:liblz4                                            required:lz4
xxhash      module:libxxhash                                         required:xxhash
pkg-config  -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON                required:pkg-config
'
names=()
declare -A hides word
while read -r name how says; do
  [[ -n $name ]] || continue
  names+=("$name")
  hides[$name]=${how//@work@/$work}
  word[$name]=$says
done <<<"$things"

# libgtest-dev without libgmock-dev.
mkdir "$work/gtest-alone"
cat >"$work/gtest-alone/GTestConfig.cmake" <<'END'
add_library(GTest::gtest INTERFACE IMPORTED)
add_library(GTest::gtest_main INTERFACE IMPORTED)
END

# Every file of pkg-config, except those of the named modules.
make_modules() {
  rm -rf "$work/modules"
  mkdir "$work/modules"
  local directory hidden
  for directory in ${pc_path//:/ }; do
    if compgen -G "$directory/*.pc" >/dev/null; then ln -sf "$directory"/*.pc "$work/modules/"; fi
  done
  for hidden in "$@"; do rm -f "$work/modules/$hidden.pc"; done
}
pc_path=$(pkg-config --variable pc_path pkg-config):${PKG_CONFIG_PATH-}

# The first run has detected the compiler.
configure() {
  rm -f "$work/build/CMakeCache.txt"
  PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=$work/modules cmake -S "$source" -B "$work/build" -G Ninja "$@" >"$work/log" 2>&1
}

# The dependencies that the table lists as not found, a line each.
not_found() { sed -n 's/^  .* no, .*not found: //p' "$work/log"; }

# without THING...
without() {
  local thing how arguments=() modules=() required='' allowed=$here_already line lines
  for thing in "$@"; do
    for how in ${hides[$thing]//,/ }; do
      if [[ $how == module:* ]]; then modules+=("${how#module:}"); else arguments+=("$how"); fi
    done
    if [[ ${word[$thing]} == required:* ]]; then required+=" ${word[$thing]#required:}"; fi
    allowed+="|${word[$thing]#required:}"
  done
  make_modules "${modules[@]}"
  if configure "${arguments[@]}"; then
    [[ -z $required ]] || fail "without $* it configures"
    for lines in all benchmarks; do
      [[ $lines == all || " $* " != *" no-BENCH "* ]] || continue
      if ninja -C "$work/build" -t targets all | grep "^$lines: phony" >/dev/null; then
        ninja -C "$work/build" -n "$lines" >"$work/log.ninja" 2>&1 || fail "without $*: $(tail -n 1 "$work/log.ninja")"
      fi
    done
  else
    [[ -n $required ]] || fail "without $* it stops"
    for line in $required; do
      tr '\n' ' ' <"$work/log" | grep -E "is not built without:[^:]*$line|without: pkg-config" >/dev/null ||
        fail "without $* it does not name $line"
    done
  fi
  not_found >"$work/blamed"
  while IFS= read -r line; do
    # Each dependency of the line is hidden, or not installed on this machine.
    while IFS= read -r thing; do
      [[ $thing =~ ^($allowed) ]] || fail "without $* the table names as missing: $thing"
    done < <(sed 's/([^)]*)//g; s/, */\n/g' <<<"$line")
  done <"$work/blamed"
}

make_modules
configure || fail "does not configure with all that is installed"
here_already=nothing
while IFS= read -r line; do here_already+="|$line"; done < <(not_found | sed 's/([^)]*)//g; s/, */\n/g; s/ *$//; s/[+*]//g')

cases=0
for i in "${!names[@]}"; do
  without "${names[i]}"
  cases=$((cases + 1))
  for j in "${!names[@]}"; do
    ((j > i)) || continue
    [[ -n ${VELLUM_LONG-} ]] || continue
    without "${names[i]}" "${names[j]}"
    cases=$((cases + 1))
  done
done

# Parts that depend on the command line are listed as lacking it, not its libraries.
make_modules
configure -DVELLUM_CLI11_INCLUDE_DIR=
for part in 'backup of a live LMDB' 'vellum mount' 'vellum heat --png' 'vellum web'; do
  grep -qE "^  $part +no, needs the command line" "$work/log" || fail "the table does not name what '$part' lacks"
done
echo "parts: ${#names[@]} things, $cases machines"
