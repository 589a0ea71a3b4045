#!/usr/bin/env bash
# Checks, builds and tests. Without arguments it runs the stages for interactive use, lint and release; with
# arguments it runs the named stages, or `all` of them:
#   lint     clang-format over all sources, layers, links between documents, versions in packaging/
#   release  gcc, optimised: builds all but the benchmarks and runs the tests that catch the most defects
#   more     the other tests of that build, with a label <folder>_more (tests/CMakeLists.txt): MPI, clang's plugins,
#            power cuts on real file systems, further engines, seeds and allocators
#   asan     clang, address and undefined behaviour sanitizers: the tests of the layers that hold memory
#   tsan     clang, thread sanitizer: the tests of the layers that have threads
#   fuzz     clang, libFuzzer: every target for a short while (tools/fuzz.sh)
#   bench    gcc, optimised: builds the benchmarks and runs none
#   clang    clang, optimised: builds all, and runs the tests of the two lowest layers
#   tidy     clang-tidy over src and include
#   python   the Python package over the release build's library: lint, types, tests (tools/python.sh --linked)
#   rust     the Rust crates over the release build's library: format, clippy, tests (tools/rust.sh)
#   s3       the release build's tests that need a real S3 server, with each installed one (tools/with-s3.sh)
#   fresh    README.md's commands on a new, empty Debian (tools/fresh.sh): the demo on Debian 12; with VELLUM_LONG
#            all of them, on 12 and 13. Needs root
# Before its first stage it installs the missing dependencies of the stages.
# A sanitizer slows tests down and breaks a few. Tests whose name contains NoSanitizer, and those labelled `install`,
# run under release only; NoTsan and NoAsan in a name exclude one sanitizer.
# While a stage's tests run, the next stage is already built at the lowest priority, as tests wait for the disk.
# VELLUM_NEXT_STAGE names the stage that the caller runs after the last one of this call.
# Each stage prints its time and its slowest tests. The summary is last: how each stage ended, the failed tests with
# the reasons, and "N passed, N failed", summed over all stages. A stage that does not build, format or lint counts
# as one failure.
set -uo pipefail
cd "$(dirname "$0")/.."

all_stages=(lint release more asan tsan fuzz bench clang tidy python rust s3 fresh)
default_stages=(lint release)
# Each sanitizer builds and runs these: the layers that hold memory, and those that have threads. The other tests
# use the same layers; VELLUM_LONG=1, which `make check` sets, runs them under sanitizers, too, and makes the tests
# of corruption flip every bit. The compiler's plugin loads into a plain compiler only.
asan_tests=(base format store memory region interfaces_c interfaces_atomic_file corruption group group_remote remote)
tsan_tests=(base store memory region interfaces_c interfaces_atomic_file remote)
# Tests of region run once for each engine. The parts that engines do not share are tested in memory, with all of
# them. Simulated power cuts and most seeds of the model test the store rather than its memory, as do permissions and
# a shortage of descriptors. Large sizes (UnpacksTo, AThousandVersions, AHuge, SpaceOfOneSize) access memory in the
# same ways as small ones. A fault at each call in turn, each bit flipped, a full disk, commits that fail, a race of
# processes, a file that one thread reads or writes, and a full table do not test threads.
without_of_region='/sigsegv|/mapped'
without_of_all='PowerCutTest|CrashTest|ImageCrash|TierCrash|RecompressCrash|RemoteCrash|EveryVersionReadsBack/[12][0-9]|ReadOnly\.Reading|FewDescriptors|UnpacksTo|AThousandVersions|AHugeFailed|SpaceOfOneSize'
# The fuzz stage reads hostile journals under the same sanitizer, and release flips every bit.
asan_without_of_all='EveryBitOfAnOpenJournal|RandomHistoriesAreCollected'
# Many repetitions of what other tests do once: searches of all bytes, hundreds of pushes, a kill at each deletion.
repetitions='^Attacker\.|ManySmallPiecesAreMerged|ManySmallPushes|AreSentOnce|AnyNumberOfVersions|ADeletedHeadNever|BitFlip\.Large'
repetitions+='|^TierFaults|PacksThatOnlyARootNames'
asan_without_of_all+="|$repetitions"
tsan_without_of_all='FailingCalls|AnyCallThat|EachCallMayFail|EveryFailed|FlippedBits|RandomHistories|FullDisk|AnyByteOf|ItsTableHas|^FailedCommit|AFailedCommitKeepsPagesThat|TwoProcesses|^Mapped\.The|MappedSize|^ImageContent|ModelWithCommits'
tsan_without_of_all+='|^JournalDamage|^DamageTest|^ExportImport|^ManyPacks|ARouteBeyond'
tsan_without_of_all+="|$repetitions"
# What one thread of the program does, where another test of the same parts has threads or does more at once.
of_one_thread='^Paging\..*262144|^Model\..*_2\b|^PagingPages\.(RandomWords|APin)|^WideReading\.(Few|EveryV|AdviceR|ABulkLoadS)'
of_one_thread+='|^WorkingSets\.(Untouched|ABranch|ACorrupted|Evicted|TheLast|ZeroP|Without)|^OwnAdvices\.(Dirty|PagesP|DontN)'
asan_without_of_all+="|$of_one_thread"
tsan_without_of_all+="|$of_one_thread|^OwnAdvices\.Scans|^Advices\.(NoAdvice|ACommit|Zeroed)|^Branches\.Diff|^HeapTest|^HeapClasses"
tsan_without_of_all+='|^SpaceBack\.(ARegion|ManyShort|SpaceOf|VersionsO)|^WorkingSets\.(ARead|AVersionL|PagesAreL)'
if [[ -n ${VELLUM_LONG-} ]]; then
  without_of_region=
  without_of_all='nothing' asan_without_of_all='nothing' tsan_without_of_all='nothing'
  export VELLUM_KILLS=${VELLUM_KILLS-300} VELLUM_MODEL_STEPS=${VELLUM_MODEL_STEPS-400}
  asan_tests+=(interfaces_metall crash interfaces_privateer soak cli run)
  tsan_tests+=(interfaces_metall soak)
fi
jobs=${VELLUM_JOBS:-$(nproc)}
next_stage=  # the stage after the current one
around=()    # the command that runs ctest as its argument
ahead=       # the process that builds for it
passed=0
failed=0
skipped=0
reasons=()  # a line with the reason for each skipped test
summary=()
failures=()  # for each stage with failed tests: their names and messages

stage_lint() { tools/lint.sh; }

# build <preset> [target...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" ${1+--target "$@"} -- -j "$jobs"
}

# The targets that a stage builds before its tests run; tools/fuzz.sh builds its own.
build_of() {
  case $1 in
    release | more) build release ;;
    clang) build clang all benchmarks ;;
    asan) build asan "${asan_tests[@]/#/test_}" ;;
    tsan) build tsan "${tsan_tests[@]/#/test_}" ;;
    bench) build release benchmarks ;;
    rust) build release vellum vellum_shared ;;
    s3) build release test_cli test_run test_mount test_remote vellum_cli test_group_remote test_group_mpi ;;
  esac
}

# Starts the build of the next stage, unless it builds the programs that run now. Its errors appear when the stage
# builds again.
build_ahead() {
  case $next_stage in
    asan | tsan | clang | bench) ;;
    *) return 0 ;;
  esac
  (
    renice -n 19 -p "$BASHPID" >/dev/null
    build_of "$next_stage"
  ) >"build/$next_stage-ahead.log" 2>&1 &
  ahead=$!
}

wait_for_build_ahead() {
  [[ -z $ahead ]] || wait "$ahead" || true
  ahead=
}

# The ten tests of a JUnit file that took the longest.
print_slowest() {
  echo "the slowest tests, in seconds:"
  sed -nE 's/.*<testcase name="([^"]*)".* time="([0-9.]+)".*/\2 \1/p' "$1" | sort -rn |
    awk 'NR <= 10 { printf "  %7.1f  %s\n", $1, $2 }'
}

# note_failures <JUnit file>: records the failed tests and their reasons for the summary.
note_failures() {
  local report=$1 text
  text=$(tools/failed-tests.py "$report" 2>&1)
  [[ -z $text ]] || failures+=("$text")
}

# note_skipped <JUnit file>
note_skipped() { mapfile -t -O "${#reasons[@]}" reasons < <(tools/failed-tests.py --skipped "$1"); }

# The value of one attribute of the <testsuite> element of a JUnit file.
junit_count() {
  grep -om1 "$2=\"[0-9]*\"" "$1" | tr -dc 0-9
}

# run_tests <preset> <ctest arguments>: adds to the counts; fails when a test did. Tests wait for the disk half of
# the time: two run per core.
run_tests() {
  local preset=$1 report total bad skip
  shift
  [[ -n $ahead ]] || build_ahead
  report=$PWD/build/$preset/junit.xml
  rm -f "$report"
  "${around[@]}" ctest --test-dir "build/$preset" -j "$((jobs * 2))" --output-on-failure --timeout 600 --no-tests=error \
    --output-junit "$report" "$@"
  local status=$?
  if [[ ! -s $report ]]; then
    failed=$((failed + 1))
    return 1
  fi
  total=$(junit_count "$report" tests)
  bad=$(junit_count "$report" failures)
  skip=$(($(junit_count "$report" skipped) + $(junit_count "$report" disabled)))
  print_slowest "$report"
  passed=$((passed + total - bad - skip))
  failed=$((failed + bad))
  skipped=$((skipped + skip))
  note_skipped "$report"
  note_failures "$report"
  if ((status != 0 && bad == 0)); then
    failed=$((failed + 1))
  fi
  return "$status"
}

# skip_stage WHY: counts a stage, or a part of it, that this machine cannot run as one skipped test.
skip_stage() {
  echo "test.sh: skipped: $1"
  skipped=$((skipped + 1))
  reasons+=("$1")
}

# Each step on a new machine is a test.
stage_fresh() {
  local log=build/fresh.log status good bad
  mkdir -p build
  tools/fresh.sh $([[ -n ${VELLUM_LONG-} ]] && echo --long || echo bookworm) 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  if ((status == 77)); then
    skip_stage "fresh: $(sed -n 's/^debian-tree: //p' "$log")"
    return 0
  fi
  good=$(grep -cE '^fresh: .* ok ' "$log")
  bad=$(grep -cE '^fresh: .* FAILED ' "$log")
  if ((status != 0 && bad == 0)); then bad=1; fi
  passed=$((passed + good))
  failed=$((failed + bad))
  return "$status"
}

# Adds pytest's counts; a build that fails counts as one failure. Without a package index all of it counts as one
# skipped test.
stage_python() {
  local report=$PWD/build/python/junit.xml bad skip
  rm -f "$report"
  tools/python.sh --linked --junit-xml="$report"
  local status=$?
  if ((status == 77)); then
    skip_stage "python: its requirements cannot be installed here"
    return 0
  fi
  if [[ ! -s $report ]]; then
    failed=$((failed + 1))
    return 1
  fi
  bad=$(($(junit_count "$report" failures) + $(junit_count "$report" errors)))
  skip=$(junit_count "$report" skipped)
  print_slowest "$report"
  passed=$((passed + $(junit_count "$report" tests) - bad - skip))
  failed=$((failed + bad))
  skipped=$((skipped + skip))
  note_skipped "$report"
  note_failures "$report"
  return "$status"
}

# Adds the counts of each test program. Without cargo all of it counts as one skipped test.
stage_rust() {
  local log=build/rust.log status good bad
  tools/rust.sh 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  if ((status == 77)); then
    skip_stage "rust: no cargo here"
    return 0
  fi
  good=$(awk '/^test result:/ { n += $4 } END { print n + 0 }' "$log")
  bad=$(awk '/^test result:/ { n += $6 } END { print n + 0 }' "$log")
  if ((status != 0 && bad == 0)); then bad=1; fi
  passed=$((passed + good))
  failed=$((failed + bad))
  return "$status"
}

# A server that is not installed counts as one skipped test.
stage_s3() {
  local server status result=0
  for server in versitygw ceph; do
    tools/with-s3.sh "$server" true
    status=$?
    if ((status == 77)); then
      skip_stage "s3: no $server here"
      continue
    fi
    around=(tools/with-s3.sh "$server")
    run_tests release -R '(RemoteKill|Replicate|LazyClone).*/Server|GroupOnS3|GroupS3Test|LockedServerTest' || result=1
    around=()
  done
  return "$result"
}

# Counts a stage without tests as one failure when it fails.
counted() {
  "$@" && return 0
  failed=$((failed + 1))
  return 1
}

# sanitized <preset> <names of excluded tests> <folder of tests>...
# REQUIRES: their programs are built.
sanitized() {
  local preset=$1 without=$2
  shift 2
  local folder others=nothing
  for folder in "$@"; do
    if [[ $folder != region && $folder != interfaces_c ]]; then others+="|$folder"; fi
  done
  local more=${VELLUM_LONG:+(_more)?}
  run_tests "$preset" -L "^($others)$more\$" -E "$without"
  local status=$?
  run_tests "$preset" -L "^(region|interfaces_c)$more\$" -E "$without${without_of_region:+|$without_of_region}" && return "$status"
}

run_stage() {
  wait_for_build_ahead
  counted build_of "$1" || return 1
  case $1 in
    lint) counted stage_lint ;;
    release) run_tests release -LE '_more$' ;;
    more) run_tests release -L '_more$' ;;
    clang) run_tests clang -L '^(base|format)$' ;;
    asan) sanitized asan "NoSanitizer|NoAsan|$without_of_all|$asan_without_of_all" "${asan_tests[@]}" ;;
    tsan) sanitized tsan "NoSanitizer|NoTsan|$without_of_all|$tsan_without_of_all" "${tsan_tests[@]}" ;;
    fuzz) counted tools/fuzz.sh 2s ;;
    tidy) counted tools/tidy.sh ;;
    python) stage_python ;;
    rust) stage_rust ;;
    s3) stage_s3 ;;
    fresh) stage_fresh ;;
  esac
}

# The groups of tools/install-deps.sh that a stage needs; tools/python.sh requests its own.
needs_of() {
  case $1 in
    lint) echo lint ;;
    release | s3) echo build,test ;;
    more) echo build,test,more,mpi,clang,power,allocators ;;
    asan | tsan | fuzz) echo build,test,sanitizers ;;
    bench) echo build,test,bench ;;
    clang) echo build,test,bench,sanitizers ;;
    tidy) echo build,test,bench,tidy ;;
    python | rust) echo build ;;
    fresh) echo build,fresh ;;
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

needs=
for stage in "${stages[@]}"; do needs+=,$(needs_of "$stage"); done
if ! tools/install-deps.sh --for "${needs#,}"; then
  echo "0 passed, 1 failed"
  exit 1
fi

export ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=0:allow_user_segv_handler=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1:second_deadlock_stack=1}

for i in "${!stages[@]}"; do
  stage=${stages[i]}
  next_stage=${stages[i + 1]-${VELLUM_NEXT_STAGE-}}
  printf '\n=== %s ===\n' "$stage"
  start=$SECONDS
  result=ok
  run_stage "$stage" || result=FAILED
  summary+=("$(printf '%-8s %-6s %4d s' "$stage" "$result" $((SECONDS - start)))")
  printf '=== %s: %s in %d s ===\n' "$stage" "$result" $((SECONDS - start))
done

wait_for_build_ahead

printf '\n=== summary ===\n'
printf '%s\n' "${summary[@]}" "${failures[@]}"
if [[ " ${stages[*]} " =~ \ (release|more)\  ]]; then
  sed -nE 's/ {2,}no, / is not built: /p' build/release/parts.txt
fi
if ((skipped > 0)); then
  printf '%s\n' "${reasons[@]}" | sort | uniq -c | sort -rn |
    awk -v all="$skipped" '{ n = $1; sub(/^ *[0-9]+ /, ""); list = list sep n " " $0; sep = ", " }
                           END { print all " skipped: " list }'
fi
echo "$passed passed, $failed failed"
((failed == 0))
