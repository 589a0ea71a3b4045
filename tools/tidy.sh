#!/usr/bin/env bash
# clang-tidy over src (and through it the headers), with the compile commands of the clang preset.
# Arguments restrict it to files whose path matches the given regular expressions.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build
cmake --preset clang >build/tidy-configure.log 2>&1 || { cat build/tidy-configure.log; exit 1; }
patterns=("$@")
if ((${#patterns[@]} == 0)); then
  patterns=("^$PWD/src/")
fi
run-clang-tidy-19 -quiet -p build/clang -j "${VELLUM_JOBS:-$(nproc)}" "${patterns[@]}" \
  >build/tidy.log 2>build/tidy-errors.log && exit 0
grep -vE '^\[|warnings? (treated|generated)|Suppressed' build/tidy.log || true
grep -E 'error:' build/tidy-errors.log || true
exit 1
