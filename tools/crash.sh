#!/usr/bin/env bash
# The long run of the crash simulator: power cuts at every step of generated sequences of store operations.
#
#   tools/crash.sh [sequences] [first seed]      (default: 400 sequences, about a million distinct images)
#
# One process per core, each with its own seeds. Prints the sums; logs are in build/crash. Exit status 1 when an
# image is wrong: the log has the seed. VELLUM_JOBS: processes. VELLUM_TEST_CRASH: the test program, instead of
# building it.
set -uo pipefail
cd "$(dirname "$0")/.."
sequences=${1-400}
first=${2-0}
jobs=${VELLUM_JOBS:-$(nproc)}
logs=build/crash
program=${VELLUM_TEST_CRASH-build/release/bin/test_crash}
mkdir -p "$logs"
rm -f "$logs"/*.log

if [[ -z ${VELLUM_TEST_CRASH-} ]]; then
  cmake --preset release >"$logs/configure.txt" && cmake --build --preset release --target test_crash || exit 1
fi

start=$SECONDS
pids=()
for ((job = 0; job < jobs; ++job)); do
  share=$(((sequences * (job + 1)) / jobs - (sequences * job) / jobs))
  VELLUM_CRASH_LONG=1 VELLUM_CRASH_VERBOSE=1 VELLUM_CRASH_SEQUENCES=$share \
    VELLUM_CRASH_FIRST=$((first + (sequences * job) / jobs)) \
    "$program" --gtest_filter='Crash.GeneratedSequences' >"$logs/$job.log" 2>&1 &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
  wait "$pid" || status=1
done

# generated: 200 sequences, 4321 recoveries, 98765 crash points, 1234567 images built, 567890 distinct, 0
# violations
grep -h '^generated:' "$logs"/*.log | awk '
  { sequences += $2; recoveries += $4; points += $6; built += $9; distinct += $12; violations += $14 }
  END { printf "%d sequences, %d recoveries, %d crash points, %d images built, %d distinct, %d violations\n",
               sequences, recoveries, points, built, distinct, violations }'
echo "$((SECONDS - start)) s on $jobs processes"
if ((status != 0)); then
  grep -h -A12 'Failure' "$logs"/*.log | sed -n 1,60p
fi
exit "$status"
