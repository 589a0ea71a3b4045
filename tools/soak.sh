#!/usr/bin/env bash
# Mixed load for hours, with every page checked: threads that store, commits, snapshots, rollbacks, reopenings, old
# versions, removals and concurrent gc, on a region of four times its memory limit.
#
#   tools/soak.sh [hours]             (default: 1; 0.1 is six minutes)
#   tools/soak.sh --stores [hours]    random steps of stores that exchange versions (tests/remote_model), at a directory
#                                     and at an S3 server if there is one (tools/with-s3.sh versitygw)
#
# One process per engine, all at once, at the lowest priority. Prints a line a minute for each; logs are in
# build/soak. Exit status 1 when a store was lost, or when memory, mappings, descriptors, threads or the store have
# grown from the second quarter of the time to the last.
#
# VELLUM_SOAK_ENGINES: some of "uffd sigsegv mapped". VELLUM_SOAK_MIB: size of the region (default 64).
# VELLUM_SOAK_DIR: the directory of the stores (default: build/soak). VELLUM_SOAK_PRINT: seconds between two lines.
# VELLUM_TEST_SOAK: the test program, instead of building it. VELLUM_MODEL_SEED: that of --stores; it prints it.
set -uo pipefail
cd "$(dirname "$0")/.."
with_stores=false
if [[ ${1-} == --stores ]]; then
  with_stores=true
  shift
fi
hours=${1-1}
logs=build/soak
program=${VELLUM_TEST_SOAK-build/release/bin/test_soak}
read -ra engines <<<"${VELLUM_SOAK_ENGINES-uffd sigsegv mapped}"
mkdir -p "$logs"
rm -f "$logs"/*.log

if ! VELLUM_SOAK_SECONDS=$(awk -v hours="$hours" 'BEGIN { print hours * 3600; exit !(hours > 0) }'); then
  echo "usage: tools/soak.sh [--stores] [hours]" >&2
  exit 2
fi

soak_stores() {
  local program=build/release/bin/test_remote_model status=0 at_server=0
  cmake --preset release >"$logs/configure.txt" && cmake --build --preset release --target test_remote_model || exit 1
  export VELLUM_MODEL_SECONDS=$VELLUM_SOAK_SECONDS VELLUM_MODEL_STEPS=300 VELLUM_MODEL_SEED=${VELLUM_MODEL_SEED-$RANDOM}
  echo "seed $VELLUM_MODEL_SEED"
  set -- nice -n 19 "$program" --gtest_brief=1 --gtest_filter='*StoresModel*/0'
  tools/with-s3.sh versitygw "$@" >"$logs/server.log" 2>&1 &
  env -u VELLUM_TEST_S3_URL "$@" >"$logs/directory.log" 2>&1 || status=1
  wait $! || at_server=$?
  ((at_server == 0 || at_server == 77)) || status=1
  cat "$logs/directory.log" "$logs/server.log"
  exit "$status"
}
$with_stores && soak_stores
export VELLUM_SOAK_SECONDS
export VELLUM_SOAK_MIB=${VELLUM_SOAK_MIB-64}
export VELLUM_SOAK_DIR=${VELLUM_SOAK_DIR-$PWD/$logs}

if [[ -z ${VELLUM_TEST_SOAK-} ]]; then
  cmake --preset release >"$logs/configure.txt" && cmake --build --preset release --target test_soak || exit 1
fi

pids=()
for engine in "${engines[@]}"; do
  nice -n 19 "$program" --gtest_brief=1 --gtest_filter="*/$engine" > >(tee "$logs/$engine.log") 2>&1 &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
  wait "$pid" || status=1
done
if ((status == 0)); then
  echo "no store lost, nothing grown"
else
  echo "FAILED: see $logs"
fi
exit "$status"
