#!/usr/bin/env bash
# Fuzzes the decoders and whole hostile stores with libFuzzer (clang 19, address + undefined behaviour
# sanitizers).
#   tools/fuzz.sh [<seconds>s | <executions>] [target...]
# The budget is for each target: "2s" (the default), or a number of executions. Without targets all run.
# Starts from the committed seeds and the finds of earlier runs (build/fuzz/corpus). An input that breaks a
# property is kept in build/fuzz/crashes; add it to fuzz/regressions/<target> with the fix.
# Prints the executions of each target; the last line sums them up.
set -uo pipefail
cd "$(dirname "$0")/.."

budget=${1:-2s}
shift $(($# > 0 ? 1 : 0))
case $budget in
  *s) limit=(-max_total_time="${budget%s}") ;;
  *) limit=(-runs="$budget") ;;
esac

mkdir -p build
if ! { cmake --preset asan && cmake --build --preset asan -- -j "${VELLUM_JOBS:-$(nproc)}" \
  fuzz_decoders $(test -f fuzz/store_targets.cpp && echo fuzz_store); } >build/fuzz-build.log 2>&1; then
  tail -n 30 build/fuzz-build.log
  exit 1
fi

bin=build/asan/bin
crashes=build/fuzz/crashes
mkdir -p "$crashes"
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=0:allocator_may_return_null=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}

# The targets of a program: it lists them when none is named.
targets_of() {
  "$bin/$1" 2>/dev/null
}

# The limits of an input's length, of memory, and of a single allocation.
options_of() {
  case $1 in
    store | store_gc | store_sealed | store_write) echo "-max_len=400 -rss_limit_mb=1024 -malloc_limit_mb=300 -timeout=10" ;;
    decompress | compress) echo "-max_len=2048 -rss_limit_mb=512 -malloc_limit_mb=2 -timeout=5" ;;
    delta_batch) echo "-max_len=600 -rss_limit_mb=512 -malloc_limit_mb=2 -timeout=5" ;;
    *) echo "-max_len=1024 -rss_limit_mb=512 -malloc_limit_mb=2 -timeout=5" ;;
  esac
}

total=0
bad=0
run_target() {
  local program=$1 target=$2 corpus=build/fuzz/corpus/$2 log=build/fuzz/$2.log folders=()
  mkdir -p "$corpus"
  for folder in fuzz/seeds/$target fuzz/regressions/$target; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  local status=0
  # shellcheck disable=SC2046
  "$bin/$program" --target="$target" "${limit[@]}" $(options_of "$target") -dict=fuzz/vellum.dict \
    -artifact_prefix="$crashes/$target-" -print_final_stats=1 -verbosity=1 \
    "$corpus" ${folders[@]+"${folders[@]}"} >"$log" 2>&1 || status=$?
  local runs
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  printf '%-16s %12s executions  %s\n' "$target" "${runs:-?}" "$( ((status == 0)) && echo ok || echo FAILED)"
  total=$((total + ${runs:-0}))
  if ((status != 0)); then
    bad=$((bad + 1))
    grep -E 'SUMMARY|fuzz: does not hold|Assertion|Test unit written|out-of-memory|timeout' "$log"
  fi
}

for program in fuzz_decoders fuzz_store; do
  [[ -x $bin/$program ]] || continue
  for target in $(targets_of "$program"); do
    if (($# == 0)) || [[ " $* " == *" $target "* ]]; then
      run_target "$program" "$target"
    fi
  done
done
echo "fuzz: $total executions, $bad targets failed"
((bad == 0))
