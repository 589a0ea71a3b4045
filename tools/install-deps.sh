#!/usr/bin/env bash
# Installs the missing dependencies for building and testing Vellum, from the packages of Debian 12 or 13.
# It is idempotent. It checks for items, never for packages: another package, or one's own build, that provides
# the same item will do. Where nothing is missing, it needs neither a network nor Debian.
# Programs given as arguments are required too; each is in the package of its name.
# --for GROUP[,GROUP...], first, requires exactly the items of these groups; --list prints the table.
set -euo pipefail

# PACKAGE GROUP,... ITEM..., where an item is program:NAME, module:NAME (of pkg-config), header:NAME (which
# the compiler finds), library:FILE (which ld.so finds), llvm:VERSION, sanitizers:VERSION (of clang),
# python:MODULE, or python-header:FILE. PACKAGE|PACKAGE is the first of these that the system offers, and
# ITEM|ITEM any of these items. A package with `?` is skipped with a message when it is not available: its
# dependents are not built, or skipped.
# The groups: `make build` and `make demo`; tests; benchmarks; lint and clang-tidy; the sanitizers;
# vellum-clang; MPI; tests of power cuts and of allocators; the documentation, packages, the Python package, a fresh
# Debian. Without --for all but the last four are required.
table='
g++                      build,demo,test       program:c++ program:cc header:stdio.h
make                     build,demo,test       program:make
cmake                    build,demo,test       program:cmake program:ctest
ninja-build              build,demo,test       program:ninja
pkgconf                  build,demo,test       program:pkg-config
ccache?                  more                  program:ccache
mold?                    more                  program:mold
python3                  test,lint,docs,python program:python3
clang-19                 sanitizers,clang      program:clang-19 program:clang++-19
clang-tidy-19            tidy                  program:clang-tidy-19
clang-format-19?         lint                  program:clang-format-19
clang-tools-19           tidy                  program:clang-scan-deps-19
libclang-rt-19-dev       sanitizers            sanitizers:19
llvm-19                  sanitizers            program:llvm-config-19 program:llvm-symbolizer-19 program:llvm-cov-19
llvm-19-dev?             clang                 llvm:19
clang-16?                clang                 program:clang-16
llvm-16-dev?             clang                 llvm:16
libzstd-dev              build,demo,test       module:libzstd
liblz4-dev               build,demo,test       module:liblz4
libxxhash-dev            build,demo,test       module:libxxhash
libssl-dev               build,demo,test       module:libcrypto
libfmt-dev               build,demo,test       module:fmt
libpmem-dev?             build,test            module:libpmem
liblmdb-dev?             build,test            module:lmdb
libcurl4-openssl-dev?    build,test            module:libcurl
libcli11-dev?            build,test            header:CLI/CLI.hpp
nlohmann-json3-dev       build,test,bench      header:nlohmann/json.hpp
libboost-dev             demo,test,bench       header:boost/version.hpp
libgtest-dev             test                  module:gtest
libgmock-dev             test                  module:gmock
libopenmpi-dev?          mpi                   module:ompi-c
openmpi-bin?             mpi                   program:mpirun.openmpi
libmpich-dev?            mpi                   module:mpich
mpich?                   mpi                   program:mpirun.mpich
lmdb-utils?              test                  program:mdb_stat
age?                     test                  program:age-keygen
libfuse3-dev?            build,test            module:fuse3
fuse3?                   test                  program:fusermount3
libsqlite3-dev?          power                 module:sqlite3
libpng-dev?              build,test            module:libpng
libmicrohttpd-dev?       build,test            module:libmicrohttpd
e2fsprogs?               power                 program:mkfs.ext4
xfsprogs?                power                 program:mkfs.xfs
btrfs-progs?             power                 program:mkfs.btrfs
openssl                  test                  program:openssl
libargon2-1?             build,test            library:libargon2.so.1|library:libsodium.so.23
libjemalloc2?            allocators            library:libjemalloc.so.2
libtcmalloc-minimal4|libtcmalloc-minimal4t64? allocators library:libtcmalloc_minimal.so.4
libgoogle-perftools4|libgoogle-perftools4t64? allocators library:libtcmalloc.so.4
libmimalloc2.0|libmimalloc3? allocators       library:libmimalloc.so.2|library:libmimalloc.so.3
python3-venv             docs,python           python:ensurepip
python3-dev              python                python-header:Python.h
mandoc                   docs                  program:mandoc
nodejs                   docs                  program:node
dpkg-dev                 packages,python       program:dpkg-shlibdeps program:dpkg-gensymbols
file                     packages              program:file
debootstrap?             fresh                 program:debootstrap
'
sbin=${VELLUM_SBIN-/usr/sbin:/sbin} # the folder of mkfs.*, on the PATH of root only
wanted=build,demo,test,more,bench,lint,tidy,sanitizers,clang,mpi,power,allocators
if [[ ${1-} == --list ]]; then
  printf '%s' "${table#?}"
  exit 0
fi
if [[ ${1-} == --for ]]; then
  wanted=${2:?--for takes names of groups}
  shift 2
fi
for group in ${wanted//,/ }; do
  if [[ ! $table =~ [\ ,]"$group"[\ ,] ]]; then
    echo "install-deps: no group '$group'" >&2
    exit 2
  fi
done
for program in "$@"; do
  table+="$program ${wanted%%,*} program:$program"$'\n'
done

# is_wanted GROUP,...
is_wanted() {
  local group
  for group in ${1//,/ }; do
    [[ ,$wanted, == *",$group,"* ]] && return
  done
  return 1
}

has_header() { printf '#include <%s>\n' "$1" | c++ -x c++ -E - -o /dev/null 2>/dev/null; }

has() {
  local name=${1#*:} directory
  case $1 in
    program:*) PATH=$PATH:$sbin command -v "$name" >/dev/null ;;
    module:*) pkg-config --exists "$name" 2>/dev/null ;;
    header:*) has_header "$name" ;;
    python:*) python3 -c "import $name" 2>/dev/null ;;
    python-header:*)
      directory=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null) &&
        [[ -e $directory/$name ]]
      ;;
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

# Whether one of ITEM|ITEM is present.
has_any() {
  local one
  for one in ${1//|/ }; do
    has "$one" && return
  done
  return 1
}

# `PACKAGE|PACKAGE` or, for optional ones, `PACKAGE|PACKAGE?`
required=() optional=() lacking=()
while read -r packages groups things; do
  is_wanted "${groups:-none}" || continue
  for thing in $things; do
    has_any "$thing" && continue
    lacking+=("$thing")
    case " ${required[*]} ${optional[*]} " in
      *" ${packages%\?} "*) ;;
      *) if [[ $packages == *\? ]]; then optional+=("${packages%\?}"); else required+=("$packages"); fi ;;
    esac
  done
done <<<"$table"
if ((${#lacking[@]} == 0)); then
  exit 0
fi
missing="${required[*]} ${optional[*]}"

if ! command -v apt-get >/dev/null; then
  echo "install-deps: not a Debian system; install by hand: ${lacking[*]} (Debian: $missing)" >&2
  ((${#required[@]} == 0)) # without the optional ones a part is not built, or a test skipped
  exit
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: missing: ${lacking[*]} (packages: $missing)" >&2
    echo "install-deps: installing them takes root; run as root or install sudo" >&2
    ((${#required[@]} == 0))
    exit
  fi
  as_root=(sudo)
fi

# Queries apt once for all of them.
declare -A offered
look_up() {
  local all name
  read -ra all <<<"$(tr '|\n' '  ' <<<"${required[*]} ${optional[*]}")"
  offered=()
  while read -r name; do offered[$name]=1; done < <(
    LC_ALL=C apt-cache policy "${all[@]}" 2>/dev/null |
      sed -nE '/^[^ ]+:$/ { s/:$//; h }; /^ +Candidate: [^(]/ { g; p }'
  )
}
is_offered() { [[ -n ${offered[$1]-} ]]; }

# Sets `chosen` to the first of PACKAGE|PACKAGE that the system offers; fails when it offers none.
choose() {
  for chosen in ${1//|/ }; do
    is_offered "$chosen" && return
  done
  return 1
}

# Fills `wanted_packages`, and `left_out` with the packages that the system does not offer. Required packages stay
# wanted: apt-get then prints why one is not available.
choose_all() {
  look_up
  wanted_packages=() left_out=()
  local packages
  for packages in "${required[@]}"; do
    choose "$packages" || chosen=${packages%%|*}
    wanted_packages+=("$chosen")
  done
  for packages in "${optional[@]}"; do
    if choose "$packages"; then wanted_packages+=("$chosen"); else left_out+=("$packages"); fi
  done
}

install() {
  (($# == 0)) || "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "$@"
}

# Package by package: one that fails to install does not stop the others.
install_each() {
  local packages failed=0
  for packages in "${required[@]}"; do
    choose "$packages" || chosen=${packages%%|*}
    install "$chosen" || failed=1
  done
  for packages in "${optional[@]}"; do
    choose "$packages" || continue
    install "$chosen" || left_out+=("$packages")
  done
  return "$failed"
}

# The package lists may be absent or too old to download from: one refresh fixes both.
refresh() { "${as_root[@]}" apt-get update -q; }

choose_all
if ((${#left_out[@]} > 0)) || ! is_offered "${wanted_packages[0]}"; then
  refresh || true
  choose_all
fi
((${#wanted_packages[@]} == 0)) || echo "install-deps: installing ${wanted_packages[*]}"
if ! install "${wanted_packages[@]}"; then
  refresh || true
  install "${wanted_packages[@]}" || install_each || {
    echo "install-deps: could not install ${required[*]}; missing: ${lacking[*]}" >&2
    exit 1
  }
fi
if ((${#left_out[@]} > 0)); then
  echo "install-deps: left out, as this system does not offer them: ${left_out[*]}"
fi
