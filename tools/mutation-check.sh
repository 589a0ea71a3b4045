#!/usr/bin/env bash
# Shows that the crash and fault tests can fail: breaks the program in one place at a time, in a copy of the tree, and
# expects a test to notice.
#
#   tools/mutation-check.sh [regular expression over mutation names]
#
# Prints a table: mutation, the test program and the first test that caught it. Exit status 1 when one survives.
# VELLUM_MUTATION_DIR: where the copy is built (default: a new temporary directory, removed at the end; a given one stays,
# and makes the next run faster). VELLUM_JOBS: compiler processes.
set -uo pipefail
cd "$(dirname "$0")/.."
pattern=${1-.}
jobs=${VELLUM_JOBS:-$(nproc)}
if [[ -n ${VELLUM_MUTATION_DIR-} ]]; then
  work=$VELLUM_MUTATION_DIR
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
tree=$work/tree
build=$work/build
original=$work/original

# mutation <name> <file> <sed program>: the sed program must change exactly the file named.
names=() files=() programs=()
mutation() {
  names+=("$1")
  files+=("$2")
  programs+=("$3")
}

mutation 'no sync after a commit frame' src/store/journal.cpp \
  '/^void JournalWriter::append_commit/,/^}/s/  j\.sync();//'
mutation 'no sync after a base frame' src/store/journal.cpp \
  '/^void JournalWriter::start_epoch/,/^}/s/  j\.sync();//'
mutation 'no sync of the pack before the base frame' src/store/pack_writer.cpp \
  '/^void PackWriter::sync()/,/^}/s/  impl_->sync_file();//'
mutation 'base frame before the sync of the pack' src/store/branch_writer.cpp \
  's/^    packs->sync();$//; s/^    journal->start_epoch(next);$/    journal->start_epoch(next); if (packs->dirty()) packs->sync();/'
mutation 'no sync of the directory of a new pack' src/store/pack_writer.cpp \
  's/store\.fs()\.sync_directory(store\.packs_directory());//'
mutation 'no sync of a sealed pack' src/store/pack_writer.cpp \
  '/^void PackWriter::Impl::seal/,/^}/s/  sync_file();//'
mutation 'no sync of a published file' src/base/publish_file.cpp \
  's/  file->sync_data();//'
mutation 'no sync of the directory of a published file' src/base/publish_file.cpp \
  's/  fs\.sync_directory(directory);//'
mutation 'no sync of the directory of a new branch' src/store/store_core.cpp \
  '/::create_branch_at/,/^}/s/  fs()\.sync_directory(branches_directory());//'
mutation 'no sync after a removed snapshot' src/store/store_core.cpp \
  '/::remove_snapshot/,/^}/s/  fs()\.sync_directory(snapshots_directory());//'
mutation 'ref published before its fold is durable' src/store/pack_writer.cpp \
  's/^  bool sync_failed = false;$/  bool sync_failed = false; bool late = false;/; /^void PackWriter::sync()/,/^}/s/  impl_->sync_file();/  impl_->late = true;/; s/^  const bool full = w\.active\.end/  if (w.late) { w.late = false; w.sync_file(); }\n&/'
mutation 'overwrites the active half' src/store/journal.cpp \
  '/^void JournalWriter::start_epoch/,/^}/s/half_start(j\.epoch + 1, j\.half_bytes)/half_start(j.epoch, j.half_bytes)/'
mutation 'frame checksum not verified' src/format/journal.cpp \
  's/if (in\.u64() != frame_checksum(bytes, h\.payload_bytes, seed)) return false;/static_cast<void>(in.u64()); static_cast<void>(seed); static_cast<void>(\&frame_checksum);/'
mutation 'record checksum not verified' src/format/record.cpp \
  's/record_checksum(record, seed) != h\.checksum) {/(false \&\& record_checksum(record, seed) != h.checksum)) {/'
mutation 'ref checksum not verified' src/format/version.cpp \
  's/if (!ends_with_checksum(bytes, checksum_seed(id))) return "checksum mismatch";//'
mutation 'record tag not compared' src/format/record.cpp \
  's/if (h\.tag() != ref\.tag) return "stale record";//'
mutation 'epoch of a frame not checked' src/store/journal_read.cpp \
  '/^void read_frames/,/^}/s/frame\.header\.epoch == state\.epoch \&\&/true \&\&/'
mutation 'sequence of a frame not checked' src/store/journal_read.cpp \
  '/^void read_frames/,/^}/s/frame\.header\.sequence == state\.head_sequence() + 1/true/'
mutation 'older epoch wins' src/store/journal_read.cpp \
  's/state\.epoch = std::max(epochs\[0\], epochs\[1\])/state.epoch = epochs[0] == 0 || epochs[1] == 0 ? std::max(epochs[0], epochs[1]) : std::min(epochs[0], epochs[1])/; s/epochs\[0\] > epochs\[1\] ? 0 : 1/epochs[0] == state.epoch ? 0 : 1/; s/newest_epoch(file, header\.half_bytes, seed) != state\.epoch/false/'
mutation 'short write taken for whole' src/base/file.cpp \
  's/    bytes = bytes\.subspan(static_cast<std::size_t>(put));/    bytes = {};/'
mutation 'interrupted call not made again' src/base/file.cpp \
  's/while (result < 0 \&\& errno == EINTR) result = call();//'
mutation 'failed sync forgotten' src/store/journal.cpp \
  's/      sync_failed = true;  \/\/ the kernel.*$//'
mutation 'failed write of a frame not wiped' src/store/journal.cpp \
  's/^        wipe_remains();$/        remains_bytes = 0;/'
mutation 'torn frames left in place at opening' src/store/journal.cpp \
  's/^  j\.fill_free_space();$//'
mutation 'current epoch not renewed at opening' src/store/journal.cpp \
  's/^  j\.renew_current_epoch();//'
mutation 'renewed epoch not synced before the other half goes' src/store/journal.cpp \
  '/::renew_current_epoch/,/^}/s/  sync();//'

# Twice: the sources may go on changing while this runs.
copy_tree() {
  mkdir -p "$tree" "$original"
  tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$tree"
  tar cf - -C "$tree" src | tar xf - -C "$original"
}

# The programs in the order in which they are asked; the quick ones that say most come first.
programs_to_run=(test_crash test_store test_format test_base)

build_tests() {
  cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DVELLUM_BENCH=OFF -DVELLUM_EXAMPLES=OFF \
    >"$work/configure.log" 2>&1 &&
    CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 \
      cmake --build "$build" --target "${programs_to_run[@]}" -- -j "$jobs" >"$work/build.log" 2>&1
}

# Prints "<program>: <first test that failed>"; fails when all pass. A mutation may well hang or crash a program.
ask_tests() {
  local program log=$work/test.log
  for program in "${programs_to_run[@]}"; do
    timeout 300 "$build/bin/$program" --gtest_fail_fast --gtest_filter='-*FullDisk*:*FaultMemory*:*Process*' \
      >"$log" 2>&1 && continue
    local status=$? test
    test=$(grep -oEm1 '^\[  FAILED  \] [^ ,]+' "$log" | cut -c14-)
    if [[ -z $test ]]; then
      test="$(grep -oE '^\[ RUN      \] .+' "$log" | tail -n1 | cut -c14-) (exit status $status)"
    fi
    echo "$program: $test"
    return 0
  done
  return 1
}

echo "copying and building in $work"
copy_tree
if ! build_tests; then
  tail -n 30 "$work/build.log"
  exit 1
fi
if found=$(ask_tests); then
  echo "the tests fail without any mutation: $found"
  exit 1
fi

survivors=0
printf '| %-52s | %s |\n' mutation 'caught by'
printf '| %-52s | %s |\n' ---- ----
for i in "${!names[@]}"; do
  [[ ${names[i]} =~ $pattern ]] || continue
  file=${files[i]}
  sed -i "${programs[i]}" "$tree/$file"
  if cmp -s "$original/$file" "$tree/$file"; then
    result='NOT APPLIED: the source has changed'
    survivors=$((survivors + 1))
  elif ! build_tests; then
    result='DOES NOT BUILD'
    survivors=$((survivors + 1))
  elif ! result=$(ask_tests); then
    result='SURVIVED'
    survivors=$((survivors + 1))
  fi
  cp "$original/$file" "$tree/$file"
  printf '| %-52s | %s |\n' "${names[i]}" "$result"
done
echo "$survivors not caught"
((survivors == 0))
