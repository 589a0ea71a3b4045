#!/usr/bin/env bash
# README.md's commands for new users, on empty machines: a minimal Debian with `make` and `ca-certificates`, created
# by debootstrap for this run. Prints a line for each step: system, user, sources, step, seconds, MB of packages.
#   tools/fresh.sh [--long] [SUITE...]     SUITE: bookworm (Debian 12), trixie (13); all
# Short: `make demo`, as root from a tarball. --long: also as a user with sudo from a git clone, with `make test`,
# `make python`, the installation, README's program by pkg-config and CMake, and the packages in another new one.
# VELLUM_FRESH_STEPS selects the steps (demo test python install package).
# VELLUM_FRESH_KEEP=DIR keeps the clean machines there, and uses existing ones.
# Exit status 77: such a machine cannot be created here, with the reason (tools/debian-tree.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

ways=("root tarball")
steps=(demo)
if [[ ${1-} == --long ]]; then
  shift
  ways+=("user clone")
  steps=(demo test python install package)
fi
if [[ -n ${VELLUM_FRESH_STEPS-} ]]; then read -ra steps <<<"$VELLUM_FRESH_STEPS"; fi
suites=("$@")
if ((${#suites[@]} == 0)); then suites=(bookworm trixie); fi
work=$(mktemp -d "${TMPDIR:-/var/tmp}/vellum-fresh.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
failed=0

# run_as WHO COMMAND: in the checkout on the new machine, by a login shell.
run_as() {
  local start=(bash -c)
  if [[ $1 == user ]]; then start=(setpriv --reuid newcomer --regid newcomer --init-groups --reset-env bash -c); fi
  tools/debian-tree.sh --enter "$tree" "${start[@]}" "cd /home/newcomer/vellum && $2"
}

put_sources() {
  local home=$tree/home/newcomer
  if [[ $1 == clone ]]; then
    git clone -q --no-local . "$home/vellum"
  else
    mkdir -p "$home/vellum"
    tools/sources.sh '*' | tar --null -T - -c | tar -C "$home/vellum" -x --no-same-owner
  fi
  if [[ $2 == user ]]; then
    tools/debian-tree.sh --enter "$tree" chown -R newcomer:newcomer /home/newcomer
  fi
}

megabytes_of_packages() {
  find "$tree/var/cache/apt/archives" -name '*.deb' -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum / 1e6 }'
}

# The commands of one step.
command_of() {
  local sudo=
  if [[ $1 == user ]]; then sudo=sudo; fi
  case $2 in
    demo | test | python | package) echo "make $2" ;;
    install)
      cat <<END
make build
$sudo cmake --install build/release
$sudo ldconfig
rm -rf build/newcomer
mkdir build/newcomer
# The first program of README.md.
awk '/^\`\`\`/ { inside = \$0 == "\`\`\`cpp" && !done; done = done || inside; next } inside' README.md >build/newcomer/counter.cpp
cd build/newcomer
c++ -std=c++17 counter.cpp \$(pkg-config --cflags --libs vellum) -o counter
./counter
./counter | grep '^2 now, 1 then\$'
printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(Counter CXX)' 'find_package(Vellum REQUIRED)' \
  'add_executable(app counter.cpp)' 'target_link_libraries(app Vellum::vellum)' >CMakeLists.txt
cmake -S . -B built
cmake --build built
./built/app | grep '^3 now, 1 then\$'
END
      ;;
  esac
}

# step SUITE WHO SOURCES NAME
step() {
  local log start seconds before tests result=ok
  log=$work/log
  before=$(megabytes_of_packages)
  start=$SECONDS
  run_as "$2" "set -e; $(command_of "$2" "$4")" >"$log" 2>&1 </dev/null || result=FAILED
  seconds=$((SECONDS - start))
  tests=$(grep -E '^[0-9]+ (passed|skipped)' "$log" | tail -n 2 | tr '\n' ' ') || true
  printf 'fresh: %-8s %-4s %-7s %-7s %-6s %5d s %4d MB  %s\n' "$1" "$2" "$3" "$4" "$result" "$seconds" \
    $(($(megabytes_of_packages) - before)) "$tests"
  if [[ $result == FAILED ]]; then
    failed=1
    tail -n 60 "$log"
  fi
  if [[ $4 == package && $result == ok ]]; then
    tools/check-packages.sh --packages "$tree/home/newcomer/vellum/build/package/packages" "$clean" || failed=1
  fi
}

for suite in "${suites[@]}"; do
  start=$SECONDS
  clean=${VELLUM_FRESH_KEEP:-$work}/$suite
  [[ -e $clean ]] || tools/debian-tree.sh "$suite" "$clean" make ca-certificates
  echo "fresh: $suite: the machine took $((SECONDS - start)) s"
  for way in "${ways[@]}"; do
    read -r who sources <<<"$way"
    tree=$work/$who
    cp -a "$clean" "$tree"
    tools/debian-tree.sh --enter "$tree" useradd --create-home --shell /bin/bash newcomer
    if [[ $who == user ]]; then
      tools/debian-tree.sh --enter "$tree" apt-get install -y -q sudo >"$work/log"
      echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$tree/etc/sudoers.d/newcomer"
    fi
    put_sources "$sources" "$who"
    for name in "${steps[@]}"; do step "$suite" "$who" "$sources" "$name"; done
    rm -rf --one-file-system "$tree"
  done
  rm -rf --one-file-system "${work:?}/$suite"
done
exit "$failed"
