#!/usr/bin/env bash
# Lines and branches of src/format and src/store that tests reach: clang's source-based coverage of
# test_format, test_store, test_corruption and a short test_crash (preset `coverage`, in build/coverage).
#
#   tools/coverage.sh [folder of src]...       (format and store, unless others are named)
#
# Prints a line for each file and the sums; build/coverage/source.txt has the sources, each line and branch with its
# count. Code that only runs in killed children does not count. VELLUM_JOBS: compiler processes.
set -euo pipefail
cd "$(dirname "$0")/.."
folders=("${@:-format}")
(($# > 0)) || folders+=(store)
programs=(test_format test_store test_corruption test_crash)
build=build/coverage
for tool in clang++-19 llvm-profdata-19 llvm-cov-19; do
  if ! command -v "$tool" >/dev/null; then
    echo "coverage: $tool is missing; tools/install-deps.sh installs it" >&2
    exit 1
  fi
done

mkdir -p build
if ! { cmake --preset coverage && cmake --build --preset coverage --target "${programs[@]}" -- \
  -j "${VELLUM_JOBS:-$(nproc)}"; } >build/coverage.log 2>&1; then
  tail -n 30 build/coverage.log
  exit 1
fi

rm -rf "$build/profiles"
mkdir -p "$build/profiles"
for program in "${programs[@]}"; do
  # Left out: tests that need a loop device, or limit memory. %4m: processes share four files a program.
  if ! LLVM_PROFILE_FILE=$PWD/$build/profiles/$program-%4m.profraw \
    "$build/bin/$program" --gtest_brief=1 --gtest_filter='-*FullDisk*:*FaultMemory*' >"$build/$program.log" 2>&1; then
    tail -n 30 "$build/$program.log"
    exit 1
  fi
done
llvm-profdata-19 merge -sparse "$build"/profiles/*.profraw -o "$build/merged.profdata"

what=("$build/bin/${programs[0]}")
for program in "${programs[@]:1}"; do what+=(-object "$build/bin/$program"); done
what+=(-instr-profile="$build/merged.profdata")
for folder in "${folders[@]}"; do what+=("src/$folder"); done
llvm-cov-19 show "${what[@]}" -show-branches=count -show-expansions=false -show-instantiations=false >"$build/source.txt"
llvm-cov-19 export "${what[@]}" -summary-only |
  python3 -c '
import json, os, sys

def print_row(name, lines, branches):
    share = lambda c: f"{c[0]:5} of {c[1]:5}  {100 * c[0] / c[1] if c[1] else 100:5.1f} %"
    print(f"{name:34}  {share(lines)}   {share(branches)}")

sums = {}
print(f"{str():34}  {str():>6}lines{str():14}branches")
for file in json.load(sys.stdin)["data"][0]["files"]:
    name = os.path.relpath(file["filename"])
    counts = [(file["summary"][k]["covered"], file["summary"][k]["count"]) for k in ("lines", "branches")]
    print_row(name, *counts)
    sums.setdefault(os.path.dirname(name), []).append(counts)
for folder, rows in sums.items():
    print_row(f"all of {folder}", *([sum(r[i][j] for r in rows) for j in (0, 1)] for i in (0, 1)))
'
