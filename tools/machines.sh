#!/usr/bin/env bash
# Runs machine-dependent tests as on other machines:
#   tools/machines.sh [--short] [BUILD]      # build/release
#   linux-6.6, linux-6.1, linux-5.15, docker, no-userfaultfd, no-userfaultfd-in-kernel, no-threads
#               a filter of system calls emulates another kernel (tests/support/other_machine.c)
#   user        an ordinary user
#   shm         a /dev/shm of 64 MiB
#   cgroup      a memory cgroup of 2 GiB
#   read-only   a read-only root, except /tmp
# Environments that this machine does not permit are skipped, with the reason. --short: few tests, in some minutes.
# Ends "N passed, N failed, N skipped", counting tests.
set -euo pipefail
cd "$(dirname "$0")/.."

short=false
if [[ ${1-} == --short ]]; then
  short=true
  shift
fi
bin=$(realpath "${1:-build/release}/bin")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/vellum-machines.XXXXXX")
chmod 777 "$scratch"
passed=0 failed=0 skipped=0
trap 'rm -rf "$scratch"' EXIT

# Tests that depend on a kernel, its limits and its user. Of the program's tests, those that run the library.
declare -A filters=(
  [test_base]='*'
  [test_memory]='*'
  [test_region]='*'
  [test_store]='*'
  [test_cli]='Output*:Top*:Limits*:Run*:Space*:Web*'
)
if $short; then
  filters=(
    [test_base]='ProcessMemory*:Reservation*'
    [test_memory]='Dirty.*:Pinned*:Sparse*:FileMapping*:FaultAccess*:KernelSupport*:MemfdBacking*'
    [test_region]='Limits*:PageSize*:SparseRegion*:SpaceBack.VersionsOpenToReaders*:*Errors.MissingAddressSpace*:SystemCall*'
    [test_cli]='Output*:Top*:Limits*:RunManyFiles*'
  )
fi

# run MACHINE COMMAND...: each test program, prefixed by the command.
run() {
  local machine=$1 program output
  shift
  for program in "${!filters[@]}"; do
    [[ -x $bin/$program ]] || continue
    output=$scratch/$machine-$program.txt
    # A test that hangs has failed.
    timeout 3000 "$@" "$bin/$program" --gtest_brief=1 "--gtest_filter=${filters[$program]}" \
      >"$output" 2>&1 </dev/null || true
    count "$machine" "$program" "$output"
  done
}

count() {
  local machine=$1 program=$2 output=$3 good bad off name
  good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$output")
  off=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$output")
  bad=$(sed -n 's/^\[  FAILED  \] \([A-Za-z][^ ,]*\).*/\1/p' "$output" | sort -u)
  passed=$((passed + ${good:-0}))
  skipped=$((skipped + ${off:-0}))
  if [[ -z $good ]]; then
    failed=$((failed + 1))
    echo "FAILED: $machine: $program ended early"
    tail -n 20 "$output"
  fi
  for name in $bad; do
    failed=$((failed + 1))
    echo "FAILED: $machine: $program $name"
    grep -A 12 -F "Failure" "$output" | sed -n '1,12p' || true
  done
  echo "$machine: $program: ${good:-0} passed, ${off:-0} skipped"
}

skip() { echo "skipped: $1: $2"; }

for profile in linux-6.6 linux-6.1 linux-5.15 docker no-userfaultfd no-userfaultfd-in-kernel; do
  run "$profile" "$bin/other_machine" "$profile"
done

# The tests start their own threads; the program's are sufficient.
declare -A all=()
for program in "${!filters[@]}"; do all[$program]=${filters[$program]}; done
filters=([test_cli]='Limits*:Commands*')
run no-threads "$bin/other_machine" no-threads
filters=()
for program in "${!all[@]}"; do filters[$program]=${all[$program]}; done

if ((EUID != 0)); then
  skip "user, shm, cgroup, read-only" "they need root"
else
  # Where a user has no access to the build, as under /root, the programs are copied.
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups env "HOME=$scratch")
  if "${user[@]}" test -x "$bin/test_memory"; then
    run user "${user[@]}"
  else
    skip user "a user cannot reach $bin"
  fi
  if unshare -m true 2>/dev/null; then
    run shm unshare -m sh -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"' sh
    run read-only unshare -m sh -c 'mount -t tmpfs tmpfs /tmp && mount -o remount,bind,ro / && exec "$@"' sh
  else
    skip "shm, read-only" "mount namespaces are not permitted"
  fi
  group=/sys/fs/cgroup/memory
  [[ -d $group ]] || group=/sys/fs/cgroup
  if mkdir "$group/vellum-machines.$$" 2>/dev/null; then
    group=$group/vellum-machines.$$
    limit=$group/memory.max
    [[ -e $limit ]] || limit=$group/memory.limit_in_bytes
    if echo $((2 << 30)) 2>/dev/null >"$limit"; then
      run cgroup sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group"
    else
      skip cgroup "the limit cannot be set"
    fi
    rmdir "$group" || true
  else
    skip cgroup "no cgroup can be created"
  fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
