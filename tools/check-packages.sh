#!/usr/bin/env bash
# Tests the Debian packages: lintian finds no error, the symbols are those of packaging/debian/libvellum1.symbols,
# and in a Debian 12 tree without any other part of Vellum, README.md's program compiles by pkg-config, by CMake and
# without the shared library, and runs. The command line, `vellum run`, the manual pages, the completions and
# vellum-clang work there. Removing the packages leaves nothing behind.
#   tools/check-packages.sh [--packages DIR] [TREE]
#     --packages DIR   these packages, instead of building them here (tools/packages.sh)
#     TREE             a clean Debian 12, created by tools/debian-tree.sh if it does not exist, and kept; packages
#     are
#                      installed in a copy. Needs root.
# Not part of `make test`: it builds the project once more, and downloads two compilers.
set -euo pipefail
cd "$(dirname "$0")/.."
if ((EUID != 0)); then
  echo "check-packages: chroot(8) and debootstrap(8) take root" >&2
  exit 1
fi
packages=
if [[ ${1-} == --packages ]]; then
  packages=${2?--packages: name a directory}
  shift 2
fi
clean_tree=${1-}
tools/install-deps.sh --for packages debootstrap lintian
if [[ -z $packages ]]; then
  tools/packages.sh
  packages=$PWD/build/package/packages
fi
work=$(mktemp -d)
tree=$work/copy
trap 'rm -rf --one-file-system "$work"' EXIT

echo "=== lintian"
lintian --fail-on error --tag-display-limit 0 "$packages"/*.deb | tee "$work/lintian"
echo "lintian: $(grep -c '^E:' "$work/lintian" || true) errors, $(grep -c '^W:' "$work/lintian" || true) warnings"

echo "=== symbols"
dpkg-deb -x "$packages"/libvellum1_*.deb "$work/tree"
mkdir -p "$work/debian"
version=$(dpkg-deb -f "$packages"/libvellum1_*.deb Version)
printf 'Source: vellum\n\nPackage: libvellum1\nArchitecture: any\n' >"$work/debian/control"
(cd "$work" && dpkg-gensymbols -plibvellum1 -v"$version" -c4 -P"$work/tree" \
  -I"$OLDPWD/packaging/debian/libvellum1.symbols" -O"$work/symbols")
echo "symbols: $(grep -c '@VELLUM_' "$work/symbols")"

clean_tree=${clean_tree:-$work/clean}
[[ -e $clean_tree/etc/debian_version ]] || tools/debian-tree.sh bookworm "$clean_tree"
echo "=== a clean Debian $(cat "$clean_tree/etc/debian_version")"
cp -a "$clean_tree" "$tree"
mkdir -p "$tree/root/packages"
cp "$packages"/*.deb "$tree/root/packages/"
cp -r tests/install/consumer "$tree/root/consumer"
# The program is the first block of README.md that begins with an #include.
awk '/^```/ { inside = $0 == "```cpp"; next } inside' README.md >"$tree/root/counter.cpp"
cat >"$tree/root/CMakeLists.txt" <<'END_CMAKE'
cmake_minimum_required(VERSION 3.25)
project(Counter LANGUAGES CXX)
find_package(Vellum REQUIRED)
add_executable(counter counter.cpp)
target_link_libraries(counter Vellum::vellum)
END_CMAKE
cat >"$tree/root/check.sh" <<'END_CHECK'
set -eu
cd /root
exec 3>log
export DEBIAN_FRONTEND=noninteractive
install() { apt-get -o Dpkg::Use-Pty=0 install -y -q --no-install-recommends "$@" >&3 2>&1; }
remove() { apt-get -o Dpkg::Use-Pty=0 purge -y -q "$@" >&3 2>&1; }
fail() {
  echo "check-packages: $*" >&2
  exit 1
}
# twice PROGRAM: README.md's program counts its runs.
twice() {
  rm -rf /tmp/run
  mkdir /tmp/run
  (cd /tmp/run && "$1" && "$1") | tee counter.out
  grep -q '^2 now, 1 then$' counter.out || fail "$1 does not count its runs"
}
apt-get update -q >&3

echo "--- pkg-config"
install ./packages/libvellum*.deb g++ cmake make pkgconf
c++ -std=c++17 -o with-pkg-config counter.cpp $(pkg-config --cflags --libs vellum)
ldd with-pkg-config | grep -o 'libvellum.so.1 => .* ' || fail "the program does not use libvellum.so.1"
twice /root/with-pkg-config

echo "--- CMake"
cmake -S . -B built >&3
cmake --build built >&3
ldd built/counter | grep -o 'libvellum.so.1 => .* ' || fail "the program does not use libvellum.so.1"
twice /root/built/counter

echo "--- the static library, Privateer's interface"
install libzstd-dev liblz4-dev libxxhash-dev libssl-dev libfmt-dev libpmem-dev
c++ -std=c++17 -o with-archive counter.cpp $(pkg-config --static --cflags --libs vellum | sed 's/-lvellum/-l:libvellum.a/')
if ldd with-archive | grep libvellum; then fail "the program uses libvellum.so"; fi
twice /root/with-archive
cmake -S consumer -B consumer-built >&3
cmake --build consumer-built >&3
consumer-built/consumer
consumer-built/privateer /tmp/run/base
c++ -std=c++17 -o privateer consumer/privateer.cpp $(pkg-config --cflags --libs vellum-privateer)
./privateer /tmp/run/base-2

echo "--- the command line, without the library's packages"
remove libvellum1 libvellum-dev
install ./packages/vellum_*.deb
vellum --version
vellum log /tmp/run/counter.store
vellum run --store /tmp/run/notes.store --file /tmp/run/notes -- sh -c 'echo kept | dd of=/tmp/run/notes conv=fsync status=none'
[ "$(vellum cat /tmp/run/notes.store main)" = kept ] || fail "vellum run keeps nothing"

echo "--- manual pages and completions"
install man-db bash-completion zsh
for page in vellum vellum-run vellum-tag; do
  man "$page" 2>&3 | grep -i "^$page(1)\|^vellum-snapshot(1)" || fail "no manual page $page"
done
bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader vellum; complete -p vellum'
zsh -fc 'autoload -Uz compinit && compinit -u -D && print "compdef $_comps[vellum] vellum"' | grep 'compdef _vellum vellum'

echo "--- vellum-clang"
install ./packages/vellum-clang_*.deb
printf 'int main(void) { return 0; }\n' >marked.c
VELLUM_CARDS_STATS=1 vellum-clang marked.c -o marked
./marked
ldd marked | grep -o 'libvellum-cards.so => .* ' || fail "the program does not use the runtime"
man vellum-clang++ 2>&3 | grep -i '^vellum-clang(1)' || fail "no manual page vellum-clang++"

echo "--- removed"
install ./packages/libvellum*.deb
dpkg -L libvellum1 libvellum-dev vellum vellum-clang | sort -u >files
remove libvellum1 libvellum-dev vellum vellum-clang
while read -r file; do
  if { [ -e "$file" ] || [ -L "$file" ]; } && ! dpkg -S "$file" >/dev/null 2>&1; then echo "$file"; fi
done <files >left
find /etc /opt /srv /usr /var -iname '*vellum*' -not -path '/var/cache/*' >>left
ldconfig -p | grep vellum >>left || true
if [ -s left ]; then fail "left behind: $(cat left)"; fi
echo "$(wc -l <files) files and folders, none left"
END_CHECK
tools/debian-tree.sh --enter "$tree" /bin/sh /root/check.sh || {
  tail -n 20 "$tree/root/log" >&2
  exit 1
}
echo "check-packages: good"
