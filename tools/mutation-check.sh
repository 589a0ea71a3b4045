#!/usr/bin/env bash
# Shows that the tests can fail: breaks the program in one place at a time, in a copy of the tree, and expects a test to
# notice.
#
#   tools/mutation-check.sh [regular expression over mutation names]
#   tools/mutation-check.sh --check    only: does every mutation still change the source? (a second, builds nothing)
#
# Prints a table: mutation, the test program and the first test that caught it. Exit status 1 when one survives.
# VELLUM_MUTATION_DIR: where the copy is built (default: a new temporary directory, removed at the end; a given one stays,
# and makes the next run faster). VELLUM_JOBS: compiler processes.
set -uo pipefail
cd "$(dirname "$0")/.."
check_only=false
if [[ ${1-} == --check ]]; then
  check_only=true
  shift
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
build=$work/build
original=$work/original
# What killed tests leave stays here, and goes.
export TMPDIR=$work/tmp

# mutation <name> <file> <sed program>...: each program must change the file named.
names=() files=() programs=()
mutation() {
  names+=("$1")
  files+=("$2")
  programs+=("$(printf '%s\n' "${@:3}")")
}

mutation 'no sync after a commit frame' src/store/journal.cpp \
  '/^void JournalWriter::append_commit/,/^}/s/  j\.sync();//'
mutation 'no sync after a base frame' src/store/journal.cpp \
  '/^void JournalWriter::start_epoch/,/^}/s/  j\.sync();//'
mutation 'no sync of the pack before the base frame' src/store/pack_writer.cpp \
  '/^void PackWriter::sync()/,/^}/s/  impl_->sync_file();//'
mutation 'base frame before the sync of the pack' src/store/branch_writer.cpp \
  's/^    packs->sync();$//' \
  's/^    journal->start_epoch(next);$/    journal->start_epoch(next); if (packs->dirty()) packs->sync();/'
mutation 'no sync of the directory of a new pack' src/store/pack_writer.cpp \
  's/store\.fs()\.sync_directory(store\.packs_directory());//'
mutation 'no sync of a sealed pack' src/store/pack_writer.cpp \
  '/^void PackWriter::Impl::seal/,/^}/s/  sync_file();//'
mutation 'no sync of a published file' src/base/publish_file.cpp \
  's/  file->sync_data();//'
mutation 'no sync of the directory of a published file' src/base/publish_file.cpp \
  's/  fs\.sync_directory(directory);//'
mutation 'no sync of the directory of a new branch' src/store/store_core.cpp \
  '/::publish_branch/,/^}/s/  fs()\.sync_directory(branches_directory());//'
mutation 'no sync after a removed snapshot' src/store/store_core.cpp \
  '/::remove_snapshot/,/^}/s/  fs()\.sync_directory(snapshots_directory());//'
mutation 'ref published before its fold is durable' src/store/pack_writer.cpp \
  's/^  bool sync_failed = false;$/  bool sync_failed = false; bool late = false;/' \
  '/^void PackWriter::sync()/,/^}/s/  impl_->sync_file();/  impl_->late = true;/' \
  's/^  const bool full = w\.active\.end/  if (w.late) { w.late = false; w.sync_file(); }\n&/'
mutation 'overwrites the active half' src/store/journal.cpp \
  '/^void JournalWriter::start_epoch/,/^}/s/half_start(j\.epoch + 1, j\.half_bytes)/half_start(j.epoch, j.half_bytes)/'
mutation 'dedup: packs of a branch that is gone count whole' src/store/roots.cpp \
  's/^  if (at == reach_\.end() || pack > at->second\.active_pack) return 0;/  if (at == reach_.end()) return UINT64_MAX;\n  if (pack > at->second.active_pack) return 0;/'
mutation 'dedup: no gap behind what a crash has left' src/store/pack_writer.cpp \
  's/leave_out = true;/leave_out = false;/'
mutation 'frame checksum not verified' src/format/journal.cpp \
  's/if (in\.u64() != frame_checksum(bytes, h\.payload_bytes, seed)) return false;/static_cast<void>(in.u64()); static_cast<void>(seed); static_cast<void>(\&frame_checksum);/'
mutation 'record checksum not verified' src/format/record.cpp \
  's/record_checksum(record, seed) != h\.checksum) {/(false \&\& record_checksum(record, seed) != h.checksum)) {/'
mutation 'checksum of refs, tiers, census not verified' src/format/whole_file.cpp \
  's/if (!ends_with_checksum(bytes, checksum_seed(id))) return "checksum mismatch";//'
mutation 'a commit packs chunks that it does not hold' src/region/encoder.cpp \
  's/held(std::in_place, memory_, captured\.whole);/held;/'
mutation 'record tag not compared' src/format/record.cpp \
  's/if (h\.tag() != ref\.tag) return "stale record";//'
mutation 'epoch of a frame not checked' src/store/journal_read.cpp \
  '/^void read_frames/,/^}/s/frame\.header\.epoch == state\.epoch \&\&/true \&\&/'
mutation 'sequence of a frame not checked' src/store/journal_read.cpp \
  '/^void read_frames/,/^}/s/frame\.header\.sequence == state\.head_sequence() + 1/true/'
mutation 'older epoch wins' src/store/journal_read.cpp \
  's/state\.epoch = std::max(epochs\[0\], epochs\[1\])/state.epoch = epochs[0] == 0 || epochs[1] == 0 ? std::max(epochs[0], epochs[1]) : std::min(epochs[0], epochs[1])/' \
  's/epochs\[0\] > epochs\[1\] ? 0 : 1/epochs[0] == state.epoch ? 0 : 1/' \
  's/newest_epoch(file, header\.half_bytes, seed) != state\.epoch/false/'
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
mutation 'no mark behind a commit' src/store/journal.cpp \
  '/^void JournalWriter::append_commit/,/^}/s/  j\.write_mark();//'
mutation 'no mark written at opening' src/store/journal.cpp \
  '/^JournalWriter::JournalWriter/,/^}/s/  j\.write_mark();//'
mutation 'tail of a crashed fold left in the pack' src/store/pack_writer.cpp \
  's/^  if (size > version\.active_pack_end_bytes) active\.file->truncate.*$//'
mutation 'a failed flush of a fold does not poison' src/store/branch_writer.cpp \
  's/^    if (poison\.empty()) poison = reason;$//'
# Two that would show nothing. Packs listed after the branches: while gc reads the names nobody opens a branch for
# writing, so no pack appears. Of two base frames the later ends: what lies between the two belongs to the later frame,
# which is a version itself; the earlier end matters only when a writer takes that frame back after gc has marked.
mutation 'gc: marks of open versions ignored' src/store/roots.cpp \
  's/: marked_roots(store, out\.packs))/: std::vector<RootPlace>())/'
mutation 'gc: the base frame before the last is no version' src/store/roots.cpp \
  's/^      out\.versions\.push_back({i == 0 ? name/      if (i == 0) &/'
mutation 'gc: names not synced before anything is freed' src/store/gc.cpp \
  's/^      settle_removals();$//'
mutation 'gc: active pack punched past its settled end' src/store/pack_use.cpp \
  's/std::min(roots\.settled_bytes(pack)\.value_or(use\.file_bytes), use\.file_bytes)/use.file_bytes/'
mutation 'gc: a pack that no frame names yet counts as garbage' src/store/roots.cpp \
  's/^  if (next != next_pack_\.end() \&\& pack >= next->second) return 0;$//'
mutation 'gc: names read without holding them alone' src/store/gc.cpp \
  's/hold_names_alone(store_)/hold_names(store_)/'
mutation 'gc: who cannot mark a version does not hold the names' src/store/lease.cpp \
  's/^    return names;$/    return nullptr;/'
mutation 'gc: the copy behind the root is freed' src/store/pack_use.cpp \
  's/^    if (copy\.to != 0) out\[newest\.pack\]\.copies\.push_back(copy);$//'
mutation 'gc: index of a sealed pack is freed' src/store/pack_use.cpp \
  's/^      needed\.push_back(index);$//'
mutation 'gc: holes rounded outwards' src/store/pack_use.cpp \
  's/if (up(at) < down(to)) holes\.push_back({up(at), down(to)});/if (down(at) < up(to)) holes.push_back({down(at), up(to)});/'
mutation 'decompressed size not compared' src/base/codec.cpp \
  's/return got >= 0 \&\& static_cast<std::size_t>(got) == raw\.size();/return got >= 0;/'
mutation 'size of a zstd frame not compared' src/base/codec.cpp \
  's/ZSTD_getFrameContentSize(stored\.data(), stored\.size()) == raw_size/true/' \
  's/           ZSTD_decompressDCtx(.*$/           !ZSTD_isError(ZSTD_decompressDCtx(zstd.get(), raw.data(), raw.size(), stored.data(), stored.size()));/' \
  '/!ZSTD_isError/,/raw\.size();$/s/^               raw\.size();$//'
mutation 'bytes after the last whole unit of words lost' src/base/word_planes.cpp \
  's/^  if (whole < in\.size()) std::memcpy.*$//'
mutation 'blocks too large to be joined not refused' src/base/codec.cpp \
  's/^  if (raw\.size() > impl_->planes\.size()) return false;$//'

# Applies mutation $1 to the file $2; prints the programs that change nothing, and fails then.
apply() {
  local program status=0
  while IFS= read -r program; do
    sed "$program" "$2" >"$2.mutated"
    if cmp -s "$2" "$2.mutated"; then
      echo "$program"
      status=1
    fi
    # Not mv: the file keeps its links and its mode.
    cat "$2.mutated" >"$2"
    rm "$2.mutated"
  done <<<"${programs[$1]}"
  return $status
}

if $check_only; then
  failed=0
  for i in "${!names[@]}"; do
    cp "${files[i]}" "$work/source"
    if ! changes_nothing=$(apply "$i" "$work/source"); then
      printf '%s: %s: changes nothing: %s\n' "${names[i]}" "${files[i]}" "$changes_nothing"
      failed=1
    fi
  done
  echo "${#names[@]} mutations"
  exit $failed
fi

# Into $original, because the sources may go on changing while this runs; from there into $tree, where only what
# differs is written, so that little is built anew.
copy_tree() {
  rm -rf "$original"
  mkdir -p "$tree" "$original"
  tar cf - --exclude=./build --exclude=./.git . | tar xf - -C "$original"
  local file
  (cd "$tree" && find . -type f) | while IFS= read -r file; do
    [[ -e $original/$file ]] || rm "$tree/$file"
  done
  (cd "$original" && find . -type f) | while IFS= read -r file; do
    cmp -s "$original/$file" "$tree/$file" || install -D -m "$(stat -c %a "$original/$file")" "$original/$file" "$tree/$file"
  done
}

configure() {
  cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O2' \
    -DVELLUM_BENCH=OFF -DVELLUM_EXAMPLES=OFF >"$work/configure.log" 2>&1
}

build_program() {
  CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 cmake --build "$build" --target "$1" -- -j "$jobs" >"$work/build.log" 2>&1
}

# Programs and filters in the order in which they are asked: those of the layer first, and the quick ones that say most.
# Left out: what needs a loop device, limits memory, or must get so and so far within a time, which a busy machine may
# prevent.
order_of() {
  local crash='test_crash Crash.*-*GeneratedSequences' generated='test_crash Crash.GeneratedSequences'
  local rest='test_crash *-Crash.*:*FullDisk*:*FaultMemory*' store='test_store *-*Process*'
  case $1 in
    src/base/*) printf '%s\n' 'test_base *' "$crash" "$store" "$rest" "$generated" 'test_format *' ;;
    src/region/*) printf '%s\n' 'test_soak *' "$crash" "$store" "$rest" "$generated" ;;
    src/format/*) printf '%s\n' 'test_format *' "$crash" "$store" "$rest" "$generated" 'test_base *' ;;
    *) printf '%s\n' "$crash" 'test_store Journal*:Gc*-*Process*' "$generated" "$store" "$rest" 'test_format *' 'test_base *' ;;
  esac
}

# Runs one program; prints the first test that failed, or that crashed or hung it. Succeeds when all pass. The limit on
# processor time, not on time, tells a hang: the machine may be busy.
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

# Prints who caught what is now in the tree; fails when nobody did. $1: the file that was changed.
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
if found=$(ask_tests src/store/gc.cpp); then
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
  if ! apply "$i" "$tree/$file" >/dev/null; then
    result='CHANGES NOTHING'
    not_caught=$((not_caught + 1))
  elif ! result=$(ask_tests "$file"); then
    result=${result:-SURVIVED}
    not_caught=$((not_caught + 1))
  fi
  cp "$original/$file" "$tree/$file"
  printf '| %-52s | %s |\n' "${names[i]}" "$result"
done
echo "$not_caught not caught"
((not_caught == 0))
