#!/usr/bin/env bash
# Builds for arm64 on a machine with another processor, and runs the tests that a user-mode emulator can run (it has
# no userfaultfd: engine sigsegv replaces uffd):
#   tools/aarch64.sh [DIRECTORY]    # build/aarch64
# Needs g++-aarch64-linux-gnu and qemu-user-static; exit status 77: one is missing. The arm64 packages of the
# libraries are unpacked into DIRECTORY/root; nothing is installed. Ends "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/.."

directory=$(realpath -m "${1:-build/aarch64}")
for program in aarch64-linux-gnu-g++ qemu-aarch64-static apt-get dpkg; do
  command -v "$program" >/dev/null || {
    echo "aarch64.sh: skipped: $program is missing (g++-aarch64-linux-gnu, qemu-user-static)" >&2
    exit 77
  }
done

packages=(libzstd-dev liblz4-dev libxxhash-dev libssl-dev libfmt-dev libgtest-dev libgmock-dev
  libboost1.74-dev libcli11-dev nlohmann-json3-dev liblmdb-dev libpng-dev libfuse3-dev
  libmicrohttpd-dev libcurl4-openssl-dev)

# apt's own state, for one architecture: the machine's state is unchanged.
unpack_packages() {
  local apt=$directory/apt root=$directory/root
  [[ -e $root/complete ]] && return
  mkdir -p "$apt"/state/lists/partial "$apt"/cache/archives/partial "$root"
  : >"$apt/status"
  local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64
    -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
    -o Debug::NoLocking=1 -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --no-install-recommends --download-only "${packages[@]}"
  local package
  for package in "$apt"/cache/archives/*.deb; do
    case ${package##*/} in
    libc6* | linux-libc-dev* | libgcc-* | libstdc++* | gcc-*) ;;  # the compiler has its own
      *) dpkg -x "$package" "$root" ;;
    esac
  done
  : >"$root/complete"
}

run() {
  local program=$1 filter=$2 output=$directory/$1.txt
  qemu-aarch64-static -L /usr/aarch64-linux-gnu \
    -E "LD_LIBRARY_PATH=$directory/root/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib" \
    "$directory/bin/$program" --gtest_brief=1 "--gtest_filter=$filter" >"$output" 2>&1 || true
  local good bad
  good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$output")
  bad=$(sed -n 's/^\[  FAILED  \] \([A-Za-z].*\)$/\1/p' "$output" | sort -u)
  passed=$((passed + ${good:-0}))
  if [[ -z $good ]]; then
    failed=$((failed + 1))
    echo "FAILED: $program ended early; see $output"
  fi
  [[ -z $bad ]] || while read -r name; do
    failed=$((failed + 1))
    echo "FAILED: $program $name"
  done <<<"$bad"
}

unpack_packages
cmake -B "$directory" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake \
  "-DVELLUM_AARCH64_ROOT=$directory/root" -DVELLUM_WERROR=ON -DVELLUM_PCH=tests \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1" >"$directory/configure.txt"
cmake --build "$directory" --target vellum vellum_cli test_base test_format test_store test_memory test_golden

passed=0 failed=0
# The emulator itself answers queries about memory; tests that query the kernel are left out.
run test_base '*'
run test_format '*'
run test_store '*'
run test_golden '*'
run test_memory '*sigsegv*'
echo "$passed passed, $failed failed"
((failed == 0))
