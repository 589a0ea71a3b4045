#!/usr/bin/env bash
# Checks that the tests can fail: breaks the program in one place at a time, in a copy of the tree, and expects a
# test to fail.
#
#   tools/mutation-check.sh [--ask PROGRAM FILTER] [regular expression over mutation names]
#   tools/mutation-check.sh --check    only checks that every mutation still applies (a few seconds, without a
#                                      build)
#
# --ask runs only these tests, for all mutations: 'test_store DedupRules.*'. With the regular expression, that is
# the quick way to write a mutation.
#
# Prints a table: mutation, the test program and the first test that caught it. Exit status 1 when one
# survives. VELLUM_MUTATION_DIR: the directory of the copy (default: a new temporary directory, removed at the
# end; a given one stays, and makes the next run faster). VELLUM_JOBS: compiler processes.
set -uo pipefail
cd "$(dirname "$0")/.."
check_only=false asked=
case ${1-} in
  --check)
    check_only=true
    shift
    ;;
  --ask)
    asked="$2 $3"
    shift 3
    ;;
esac
if [[ ${1-} == -* ]]; then
  sed -n '5,9s/^# \{0,1\}//p' "$0"
  [[ $1 == --help ]]
  exit
fi
pattern=${1-.}
jobs=${VELLUM_JOBS:-$(nproc)}
if [[ -n ${VELLUM_MUTATION_DIR-} ]] && ! $check_only; then
  work=$VELLUM_MUTATION_DIR
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
tree=$work/tree
build=$tree/build/release  # the usual path: ccache then has the unchanged objects
original=$work/original
# The leftovers of killed tests are here, and are removed.
export TMPDIR=$work/tmp

# Mutations are patches of one hunk or more against one file, in tests/mutations/<room of src>.patches; a line
# "Mutation: NAME" is in front of each.
names=() files=() patches=()
for list in tests/mutations/*.patches; do
  while IFS= read -r name; do
    names+=("$name")
    patches+=("$(awk -v "wanted=Mutation: $name" '/^Mutation: /{on = $0 == wanted; next} on' "$list")")
    files+=("$(sed -nE 's,^\+\+\+ b/,,p' <<<"${patches[-1]}")")
  done < <(sed -n 's/^Mutation: //p' "$list")
done

# apply I [option of git apply]: applies mutation I to the tree in the current directory. Without a repository above it:
# in one of another project, git would skip the files.
apply() {
  GIT_CEILING_DIRECTORIES=${PWD%/*} git apply --recount --whitespace=nowarn "${@:2}" - <<<"${patches[$1]}"
}

if $check_only; then
  failed=0
  for i in "${!names[@]}"; do
    apply "$i" --check || {
      echo "${names[i]}: ${files[i]}: does not apply"
      failed=1
    }
  done
  echo "${#names[@]} mutations"
  exit $failed
fi

# Code that a mutation leaves unused is not an error.
allow_unused() {
  local what
  for what in variable but-set-variable parameter function value result; do
    echo "#pragma GCC diagnostic ignored \"-Wunused-$what\""
  done | cat - "$1" >"$1.allowed"
  cat "$1.allowed" >"$1"
  rm "$1.allowed"
}

# Into $original, because the sources may change while this runs; from there into $tree, where only the
# differences are written, to rebuild little.
copy_tree() {
  rm -rf "$original"
  mkdir -p "$tree" "$original"
  tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$original"
  local file
  (cd "$tree" && find . -path ./build -prune -o -type f -print) | while IFS= read -r file; do
    [[ -e $original/$file ]] || rm "$tree/$file"
  done
  (cd "$original" && find . -type f) | while IFS= read -r file; do
    cmp -s "$original/$file" "$tree/$file" || install -D -m "$(stat -c %a "$original/$file")" "$original/$file" "$tree/$file"
  done
}

configure() {
  (cd "$tree" && cmake --preset release -DVELLUM_BENCH=OFF -DVELLUM_EXAMPLES=OFF) >"$work/configure.log" 2>&1
}

build_program() {
  CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 cmake --build "$build" --target "$1" -- -j "$jobs" >"$work/build.log" 2>&1
}

# Programs and filters in the order of their runs: those of the layer first, and the quick ones that catch most.
# Left out: tests that need a loop device, limit memory, or must make progress within a time, which a busy machine
# may prevent.
order_of() {
  if [[ -n $asked ]]; then
    echo "$asked"
    return
  fi
  local crash='test_crash Crash.*-*GeneratedSequences' generated='test_crash Crash.GeneratedSequences'
  local rest='test_crash *-Crash.*:*FullDisk*:*FaultMemory*' store='test_store *-*Process*'
  local region='test_region *NameRace*:*HalfState*:*CloseRace*:*SpaceBack*:*FullDisk.ACommitCollects*'
  case $1 in
    src/base/*) printf '%s\n' 'test_base *' "$crash" "$store" "$rest" "$generated" 'test_format *' ;;
    src/store/packs/pack_set.cpp) printf '%s\n' 'test_store Pack*' 'test_region *ManyPacks*' "$store" ;;
    src/store/packs/pack_file.cpp | src/store/gc/reach/pack_heat.cpp) printf '%s\n' 'test_store Pack*:Scale*' "$store" ;;
    src/base/fail.hpp) printf '%s\n' 'test_region NoDescriptors*' "$store" ;;
    src/interfaces/metall/*) printf '%s\n' 'test_interfaces_metall *' ;;
    src/group/versions/* | src/group/remote/* | src/group/job_push.cpp) printf '%s\n' 'test_group_remote *' 'test_group *' ;;
    src/group/*) printf '%s\n' 'test_group *' 'test_group_remote *' 'test_group_mpi GroupTest*' ;;
    src/interfaces/atomic_file/*) printf '%s\n' 'test_interfaces_atomic_file *' ;;
    src/remote/*) printf '%s\n' 'test_remote *' 'test_remote_model *' ;;
    src/interfaces/mapped_io/*) printf '%s\n' 'test_interfaces_mapped_io *' ;;
    src/memory/* | src/region/*) printf '%s\n' "$region" 'test_memory *' 'test_soak *' "$crash" "$store" "$rest" "$generated" ;;
    src/mount/*) printf '%s\n' 'test_mount WritableFileTest.*' ;;
    src/run/* | src/cli/run/*) printf '%s\n' 'test_run *-*Lmdb*' 'test_cli *' ;;
    src/cli/*) printf '%s\n' 'test_cli *' 'test_run *-*Lmdb*' ;;
    src/format/*) printf '%s\n' 'test_format *' "$crash" "$store" "$rest" "$generated" 'test_base *' ;;
    *) printf '%s\n' "$crash" 'test_store Journal*:Gc*-*Process*' "$generated" "$store" "$rest" "$region" 'test_format *' 'test_base *' ;;
  esac
}

# Runs one program; prints the first test that failed, or that crashed or hung it. Succeeds when all pass. The
# limit of processor time, not of time, detects a hang: the machine may be busy.
ask() {
  local program=$1 filter=$2 log=$work/test.log status test
  mkdir -p "$TMPDIR"
  (
    ulimit -t 240 -c 0
    exec timeout 1200 "$build/bin/$program" --gtest_fail_fast --gtest_filter="$filter"
  ) >"$log" 2>&1
  status=$?
  rm -rf "$TMPDIR"
  ((status == 0)) && return 0
  test=$(grep -oEm1 '^\[  FAILED  \] [^ ,]+' "$log" | cut -c14-)
  if [[ -z $test ]]; then
    test="$(grep -oE '^\[ RUN      \] .+' "$log" | tail -n1 | cut -c14-) (exit status $status)"
  fi
  echo "\`$program\`: $test"
  return 1
}

# Prints the test that caught the mutation in the tree; fails when none did. $1: the file that was changed.
ask_tests() {
  local program filter built=
  while read -r program filter; do
    if [[ $built != *" $program "* ]]; then
      if ! build_program "$program"; then
        echo 'DOES NOT BUILD'
        return 2
      fi
      built+=" $program "
    fi
    ask "$program" "$filter" || return 0
  done < <(order_of "$1")
  return 1
}

echo "copying and building in $work"
copy_tree
if ! configure; then
  tail -n 30 "$work/configure.log"
  exit 1
fi
if found=$(ask_tests src/store/gc/gc.cpp); then
  echo "the tests fail without any mutation: $found"
  exit 1
elif [[ -n $found ]]; then
  tail -n 30 "$work/build.log"
  exit 1
fi

not_caught=0
printf '| %-52s | %s |\n' mutation 'caught by'
printf '| %-52s | %s |\n' --- ---
for i in "${!names[@]}"; do
  [[ ${names[i]} =~ $pattern ]] || continue
  file=${files[i]}
  if ! (cd "$tree" && apply "$i"); then
    result='DOES NOT APPLY'
    not_caught=$((not_caught + 1))
  elif allow_unused "$tree/$file" && ! result=$(ask_tests "$file"); then
    result=${result:-SURVIVED}
    not_caught=$((not_caught + 1))
  fi
  cp "$original/$file" "$tree/$file"
  printf '| %-52s | %s |\n' "${names[i]}" "$result"
done
echo "$not_caught not caught"
((not_caught == 0))
