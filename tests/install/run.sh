#!/usr/bin/env bash
# Installs the build tree in the first argument and builds a small program against the result with the compiler
# in the second: through find_package, through pkg-config, and after the installed tree has moved. The programs
# of README.md and of the first guide are built and run unchanged.
set -euo pipefail

build=$1
compiler=$2
consumer=$(cd "$(dirname "$0")/consumer" && pwd)
work=$build/install-test
rm -rf "$work"
mkdir -p "$work"

cmake --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"

echo "find_package"
cmake -S "$consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" >"$work/configure.log"
cmake --build "$work/consumer"
"$work/consumer/consumer"
"$work/consumer/privateer" "$work/base-1"
shared=$(find "$work/prefix" -name libvellum.so.1)
if [[ -n $shared ]]; then
  ldd "$work/consumer/consumer" | grep libvellum.so.1
  echo "the static library"
  cmake -S "$consumer" -B "$work/static" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_CXX_COMPILER="$compiler" -DVellum_USE_STATIC_LIBS=ON >"$work/configure.log"
  cmake --build "$work/static"
  if ldd "$work/static/consumer" | grep libvellum; then exit 1; fi
  "$work/static/consumer"
  "$work/static/privateer" "$work/base-static"
fi

echo "pkg-config"
pc=$(find "$work/prefix" -name vellum.pc -printf '%h\n')
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs vellum)
libdir=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir vellum)
# shellcheck disable=SC2086 # a list of flags
"$compiler" -std=c++17 -o "$work/with-pkg-config" "$consumer/main.cpp" $flags
LD_LIBRARY_PATH=$libdir "$work/with-pkg-config"
if [[ -n $shared ]]; then
  flags=$(PKG_CONFIG_PATH=$pc pkg-config --static --cflags --libs vellum)
  # shellcheck disable=SC2086 # a list of flags
  "$compiler" -std=c++17 -o "$work/static-with-pkg-config" "$consumer/main.cpp" ${flags/-lvellum/-l:libvellum.a}
  "$work/static-with-pkg-config"
fi
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs vellum-privateer)
# shellcheck disable=SC2086 # a list of flags
"$compiler" -std=c++17 -o "$work/privateer-with-pkg-config" "$consumer/privateer.cpp" $flags
LD_LIBRARY_PATH=$libdir "$work/privateer-with-pkg-config" "$work/base-2"

echo "programs of the documents"
root=$(cd "$(dirname "$0")/../.." && pwd)
# Whole programs are the code blocks that begin with an #include: document-1.cpp, document-2.cpp, ...
awk -v work="$work" '
  /^```/ { inside = $0 == "```cpp" && !inside; begun = 0; next }
  inside && !begun { begun = 1; to = /^#include/ ? work "/document-" ++programs ".cpp" : "/dev/null" }
  inside { print >to }' "$root/README.md" "$root/docs/guides/first-program.md"
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs vellum)
built=0
for source in "$work"/document-*.cpp; do
  program=${source%.cpp}
  # shellcheck disable=SC2086 # a list of flags
  "$compiler" -std=c++17 -o "$program" "$source" $flags
  mkdir "$program-run"
  for expected in "1 now, 1 .*then|1 now, 1 on monday|1 on the shelf, 1 by" \
    "2 now, 1 .*then|2 now, 1 on monday|2 on the shelf, 1 by"; do
    (cd "$program-run" && LD_LIBRARY_PATH=$libdir "$program") | tee "$program.out"
    grep -qE "$expected" "$program.out"
  done
  built=$((built + 1))
done
((built == 4))

# The guide's commands for another prefix, and its lines for CMake, in the directory of its counter.
echo "another prefix"
guide=$root/docs/guides/first-program.md
home=$work/home
mkdir -p "$home/app"
ln -s "$work/prefix" "$home/vellum"
awk '/^```cpp/ { inside = 1; next } /^```/ { if (inside) exit } inside' "$guide" >"$home/app/counter.cpp"
{
  printf 'cmake_minimum_required(VERSION 3.18)\nproject(app CXX)\nadd_executable(app counter.cpp)\n'
  awk '/^```cmake/ { inside = 1; next } /^```/ { inside = 0 } inside' "$guide"
} >"$home/app/CMakeLists.txt"
awk '/^Installed under another prefix/ { found = 1 } found && /^```sh/ { inside = 1; next }
  /^```/ { if (inside) exit } inside' "$guide" >"$home/commands"
[[ $(wc -l <"$home/commands") -ge 4 ]]
ln -s "$pc" "$home/pkgconfig"
[[ $pc == "$work/prefix/lib/pkgconfig" ]] ||
  sed -i "s,vellum/lib/pkgconfig,pkgconfig,; s,/vellum/lib ,/vellum/${libdir#"$work/prefix/"} ," "$home/commands"
mkdir "$home/bin"
ln -s "$(command -v "$compiler")" "$home/bin/c++"
(
  cd "$home/app"
  unset LD_LIBRARY_PATH PKG_CONFIG_PATH
  HOME=$home PATH=$home/bin:$PATH bash -euxo pipefail "$home/commands" >"$work/commands.log" 2>&1
  ./counter | grep '^1 now, 1 then$'
  cmake --build build >>"$work/commands.log"
  build/app | grep '^2 now, 1 then$'
)

# The suppressions that docs/guides/regions.md names.
echo "a program under ThreadSanitizer"
suppressions=$work/prefix/share/vellum/tsan.supp
grep -q '^race:vellum::' "$suppressions"
flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs vellum)
# shellcheck disable=SC2086 # a list of flags
if echo 'int main() {}' | "$compiler" -fsanitize=thread -x c++ -o "$work/no-threads" - 2>"$work/threads.log" &&
  "$work/no-threads" 2>>"$work/threads.log"; then
  "$compiler" -std=c++17 -g -fsanitize=thread -o "$work/threads" "$consumer/threads.cpp" $flags
  for engine in '' sigsegv; do
    env LD_LIBRARY_PATH="$libdir" TSAN_OPTIONS="suppressions=$suppressions:halt_on_error=1" \
      ${engine:+VELLUM_ENGINE=$engine} "$work/threads" "$work/threads-$engine.store"
  done
else
  tail -n 3 "$work/threads.log" # no ThreadSanitizer, or a kernel on which it does not start
fi

# A group of one rank, with each installed library, and with the first one's CMake target.
if compgen -G "$work/prefix/lib*/libvellum_mpi_*.a" >/dev/null || compgen -G "$work/prefix/lib*/*/libvellum_mpi_*.a" >/dev/null; then
  echo "groups over MPI"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  for file in "$pc"/vellum-mpi-*.pc; do
    name=$(basename "$file" .pc)
    flags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs "$name")
    # shellcheck disable=SC2086 # a list of flags
    "$compiler" -std=c++17 -o "$work/$name" "$consumer/mpi.cpp" $flags
    mkdir "$work/$name-run"
    for expected in 1 2; do [[ $("$work/$name" "$work/$name-run") == "$expected" ]]; done
  done
  mkdir "$work/mpi-run"
  [[ $("$work/consumer/mpi" "$work/mpi-run") == 1 ]]
fi

if [[ -e $build/bin/vellum ]]; then
  echo "installed program"
  test -x "$work/prefix/bin/vellum"
  grep -q '^ExecStart=/.*/bin/vellum replicate ' "$work/prefix/lib/systemd/system/vellum-replicate@.service"
fi

if [[ -e $build/bin/vellum-clang ]]; then
  echo "compiler that marks stores"
  printf 'int main(void) { return 0; }\n' >"$work/marked.c"
  "$work/prefix/bin/vellum-clang" "$work/marked.c" -o "$work/marked"
  "$work/marked"
fi
