#!/usr/bin/env bash
# Checks, builds and tests. Without arguments all stages but clang and tidy; with arguments those that
# are named, `all` for every one:
#   lint     clang-format over all sources
#   release  gcc, optimised: build and all tests
#   asan     clang, address + undefined behaviour sanitizers: build of all but benchmarks, and tests
#   tsan     clang, thread sanitizer: build and tests
#   fuzz     clang, libFuzzer: every target for a short while (tools/fuzz.sh)
#   clang    clang, optimised: build, tests of the two lowest layers
#   tidy     clang-tidy over src and include
# A sanitizer slows tests down and is in the way of a few: tests whose name contains NoSanitizer or
# whose label is `slow` or `install` run under release only; NoTsan and NoAsan leave out one. What has no
# threads of its own (labels format, corruption, fuzz; the crash simulator) is not for tsan.
# The last line is "N passed, N failed", summed over all stages; a stage that does not build, format or
# lint counts as one failure.
set -uo pipefail
cd "$(dirname "$0")/.."

all_stages=(lint release asan tsan fuzz clang tidy)
default_stages=(lint release asan tsan fuzz)
jobs=${VELLUM_JOBS:-$(nproc)}
passed=0
failed=0
skipped=0
summary=()

stage_lint() { tools/lint.sh; }

build() {
  cmake --preset "$1" && cmake --build --preset "$1" -- -j "$jobs"
}

# The value of one attribute of the <testsuite> element of a JUnit file.
junit_count() {
  grep -om1 "$2=\"[0-9]*\"" "$1" | tr -dc 0-9
}

# run_tests <preset> <ctest arguments>: adds to the counts; fails when a test did.
run_tests() {
  local preset=$1 report total bad skip
  shift
  report=$PWD/build/$preset/junit.xml
  rm -f "$report"
  ctest --test-dir "build/$preset" -j2 --output-on-failure --timeout 600 --no-tests=error \
    --output-junit "$report" "$@"
  local status=$?
  if [[ ! -s $report ]]; then
    failed=$((failed + 1))
    return 1
  fi
  total=$(junit_count "$report" tests)
  bad=$(junit_count "$report" failures)
  skip=$(($(junit_count "$report" skipped) + $(junit_count "$report" disabled)))
  passed=$((passed + total - bad - skip))
  failed=$((failed + bad))
  skipped=$((skipped + skip))
  if ((status != 0 && bad == 0)); then
    failed=$((failed + 1))
  fi
  return "$status"
}

# Counts a stage without tests as one failure when it fails.
counted() {
  "$@" && return 0
  failed=$((failed + 1))
  return 1
}

run_stage() {
  case $1 in
    lint) counted stage_lint ;;
    release) counted build release && run_tests release ;;
    clang) counted build clang && run_tests clang -L '^(base|format)$' ;;
    asan) counted build asan && run_tests asan -LE '^(install|slow)$' -E 'NoSanitizer|NoAsan' ;;
    tsan) counted build tsan && run_tests tsan -LE '^(install|slow)$' \
      -E 'NoSanitizer|NoTsan|^Crash\.|CrashTest|ImageCrash|TierCrash' ;;
    fuzz) counted tools/fuzz.sh 2s ;;
    tidy) counted tools/tidy.sh ;;
  esac
}

stages=("$@")
if ((${#stages[@]} == 0)); then
  stages=("${default_stages[@]}")
elif [[ ${stages[*]} == all ]]; then
  stages=("${all_stages[@]}")
fi
for stage in "${stages[@]}"; do
  if [[ " ${all_stages[*]} " != *" $stage "* ]]; then
    echo "test.sh: no stage '$stage'; there are: ${all_stages[*]}" >&2
    exit 2
  fi
done

if ! tools/install-deps.sh; then
  echo "0 passed, 1 failed"
  exit 1
fi

export ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=0:allow_user_segv_handler=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1:second_deadlock_stack=1}

for stage in "${stages[@]}"; do
  printf '\n=== %s ===\n' "$stage"
  start=$SECONDS
  result=ok
  run_stage "$stage" || result=FAILED
  summary+=("$(printf '%-8s %-6s %4d s' "$stage" "$result" $((SECONDS - start)))")
  printf '=== %s: %s in %d s ===\n' "$stage" "$result" $((SECONDS - start))
done

printf '\n=== summary ===\n'
printf '%s\n' "${summary[@]}"
if ((skipped > 0)); then
  echo "$skipped skipped (this machine cannot run them; see the log above)"
fi
echo "$passed passed, $failed failed"
((failed == 0))
