#!/usr/bin/env bash
# Shows that the Debian packages are good: lintian finds no error, the symbols are those of
# packaging/debian/libvellum1.symbols, and in a Debian 12 tree that has nothing else of ours the program of
# README.md is compiled by pkg-config, by CMake and without the shared library, and runs.
#   tools/check-packages.sh [TREE]    TREE: made by debootstrap if it is not there, and kept; needs root
# Not part of `make test`: it builds the project once more, and downloads a compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
if ((EUID != 0)); then
  echo "check-packages: chroot(8) and debootstrap(8) take root" >&2
  exit 1
fi
tree=${1-}
tools/install-deps.sh --for packages debootstrap lintian
tools/packages.sh
packages=$PWD/build/package/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "=== lintian"
lintian --fail-on error "$packages"/*.deb | tee "$work/lintian"
echo "lintian: $(grep -c '^E:' "$work/lintian" || true) errors, $(grep -c '^W:' "$work/lintian" || true) warnings"

echo "=== symbols"
dpkg-deb -x "$packages"/libvellum1_*.deb "$work/tree"
mkdir -p "$work/debian"
version=$(dpkg-deb -f "$packages"/libvellum1_*.deb Version)
printf 'Source: vellum\n\nPackage: libvellum1\nArchitecture: any\n' >"$work/debian/control"
(cd "$work" && dpkg-gensymbols -plibvellum1 -v"$version" -c4 -P"$work/tree" \
  -I"$OLDPWD/packaging/debian/libvellum1.symbols" -O"$work/symbols")
echo "symbols: $(grep -c '@VELLUM_' "$work/symbols")"

echo "=== a clean Debian 12"
if [[ -z $tree ]]; then
  tree=$work/chroot
fi
[[ -e $tree/etc/debian_version ]] || debootstrap --variant=minbase bookworm "$tree" >"$work/debootstrap.log"
mkdir -p "$tree/root/packages"
cp "$packages"/lib*.deb "$packages"/vellum_*.deb "$tree/root/packages/"
# The program is the first block of README.md that begins with an #include.
awk '/^```/ { inside = $0 == "```cpp"; next } inside' README.md >"$tree/root/counter.cpp"
cat >"$tree/root/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(Counter LANGUAGES CXX)
find_package(Vellum REQUIRED)
add_executable(counter counter.cpp)
target_link_libraries(counter Vellum::vellum)
END
cat >"$tree/root/check.sh" <<'END'
set -eu
cd /root
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >apt.log
apt-get install -y -q --no-install-recommends ./packages/*.deb g++ cmake make pkgconf >>apt.log
mkdir -p /tmp/run
twice() {
  rm -rf /tmp/run/*
  (cd /tmp/run && "$1" && "$1") | tee counter.out
  grep -q '^2 now, 1 then$' counter.out
}
echo "pkg-config"
c++ -std=c++17 -o with-pkg-config counter.cpp $(pkg-config --cflags --libs vellum)
ldd with-pkg-config | grep -o 'libvellum.so.1 => .* '
twice /root/with-pkg-config
echo "CMake"
cmake -S . -B built >cmake.log
cmake --build built >>cmake.log
twice /root/built/counter
echo "the static library"
apt-get install -y -q --no-install-recommends libzstd-dev liblz4-dev libxxhash-dev libssl-dev libfmt-dev \
  libpmem-dev >>apt.log
c++ -std=c++17 -o with-archive counter.cpp $(pkg-config --static --cflags --libs vellum | sed 's/-lvellum/-l:libvellum.a/')
! ldd with-archive | grep libvellum
twice /root/with-archive
echo "the command line"
vellum --version
vellum log /tmp/run/counter.store
test -e /usr/share/man/man1/vellum.1.gz
VELLUM_STORE=/tmp/run/programs.store vellum run --help >/dev/null
END
mount -t proc proc "$tree/proc" 2>/dev/null || true
status=0
chroot "$tree" /bin/sh /root/check.sh || status=$?
umount "$tree/proc" 2>/dev/null || true
((status == 0)) || { tail -n 20 "$tree/root/apt.log" >&2; exit 1; }
echo "check-packages: good"
