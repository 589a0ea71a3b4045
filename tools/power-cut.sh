#!/usr/bin/env bash
# The long run of power cuts on real file systems: ext4 in each data mode, XFS and btrfs, all at once, at the
# lowest priority. Needs root, FUSE and loop devices.
#
#   tools/power-cut.sh [images] [first seed]      (default: 10000 images of Vellum's files on each file system)
#
# Rounds with other seeds follow until each file system has its images; SQLite and LMDB, the controls, each get a
# fifth of the images of Vellum's workloads. Regularly prints a line for each file system; logs are in build/power.
# Exit status 1 when an image is wrong: the log has the seed. Mounts and loop devices end with the processes, also
# when those are killed.
#
# VELLUM_POWER_LOGS: another directory for the logs, for several runs at once (with other seeds).
# VELLUM_POWER_SYSTEMS: some of "ext4_ordered ext4_journal ext4_writeback xfs btrfs". VELLUM_TEST_POWER: the test
# program, instead of building it.
set -uo pipefail
cd "$(dirname "$0")/.."
wanted=${1-10000}
first=${2-0}
logs=${VELLUM_POWER_LOGS-build/power}
program=${VELLUM_TEST_POWER-build/release/bin/test_power}
read -ra systems <<<"${VELLUM_POWER_SYSTEMS-ext4_ordered ext4_journal ext4_writeback xfs btrfs}"
images=500 # of each workload in a round
mkdir -p "$logs"
rm -f "$logs"/*.log

if ((EUID != 0)); then
  echo "power-cut.sh: mounting takes root" >&2
  exit 2
fi
if [[ -z ${VELLUM_TEST_POWER-} ]]; then
  cmake --preset release >"$logs/configure.txt" && cmake --build --preset release --target test_power vellum_cli ||
    exit 1
fi

# power: store on xfs: 94 writes, 82 flushes, 15 images, 0 unmounted, 0 violations
# count SYSTEM controls|vellum FIELD
count() {
  awk -v system_name="$1" -v group="$2" -v field="$3" '
    /^power: .* violations$/ {
      sub(/^power: /, "")
      is_control = /^(SQLite|LMDB) /
      if (is_control != (group == "controls") || !index($0, " on " system_name ": ")) next
      n = split($0, words, " ")
      for (i = 2; i <= n; ++i) if (words[i] ~ "^" field) sum += words[i - 1]
    }
    END { print sum + 0 }' "$logs/$1.log"
}

# run_tests SYSTEM IMAGES SEED FILTER
run_tests() {
  VELLUM_POWER_IMAGES=$2 VELLUM_POWER_SEED=$3 "$program" --gtest_brief=1 --gtest_filter="$4" \
    > >(tee -a "$logs/$1.log" | grep --line-buffered '^power: ') 2> >(tee -a "$logs/$1.log" >&2) &
  child=$!
  wait "$child"
}

# Runs one file system until it has its images.
run_system() {
  local system=$1 seed=$first status=0 child=
  trap 'kill "$child" 2>/dev/null; exit 1' TERM
  : >"$logs/$system.log"
  while (($(count "$system" vellum images) < wanted)); do
    run_tests "$system" "$images" "$seed" "On/PowerCut.*/$system:-*Control*" || status=1
    run_tests "$system" $((images / 5)) "$seed" "On/PowerCut.Control*/$system" || status=1
    # In a round without an image the tests were skipped: the log has the reason.
    (($(count "$system" vellum images) > 0)) || return 1
    seed=$((seed + 1))
  done
  return "$status"
}

start=$SECONDS
renice -n 19 -p $$ >/dev/null
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; exit 1' INT TERM
for system in "${systems[@]}"; do
  run_system "$system" &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
  wait "$pid" || status=1
done

for system in "${systems[@]}"; do
  printf '%-15s %6d images, %d that did not mount, %d violations; %d writes, %d flushes; controls: %d images, %d violations\n' \
    "$system" "$(count "$system" vellum images)" "$(count "$system" vellum unmounted)" \
    "$(count "$system" vellum violations)" \
    "$(count "$system" vellum writes)" "$(count "$system" vellum flushes)" \
    "$(count "$system" controls images)" "$(count "$system" controls violations)"
done
echo "$((SECONDS - start)) s"
if ((status != 0)); then
  grep -h -A8 -E 'Failure|Skipped' "$logs"/*.log | sed -n 1,60p
fi
exit "$status"
