#!/usr/bin/env bash
# Checks that the tests can fail: breaks the program in one place at a time, in a copy of the tree, and expects a
# test to fail.
#
#   tools/mutation-check.sh [--ask PROGRAM FILTER] [regular expression over mutation names]
#   tools/mutation-check.sh --check    only checks that every mutation still changes the source (a second,
#                                      without a build)
#
# --ask runs only these tests, for all mutations: 'test_store DedupRules.*'. With the regular expression, that is
# the quick way to write a mutation.
#
# Prints a table: mutation, the test program and the first test that caught it. Exit status 1 when one
# survives. VELLUM_MUTATION_DIR: the directory of the copy (default: a new temporary directory, removed at the
# end; a given one stays, and makes the next run faster). VELLUM_JOBS: compiler processes.
set -uo pipefail
cd "$(dirname "$0")/.."
check_only=false
if [[ ${1-} == --check ]]; then
  check_only=true
  shift
fi
asked=
if [[ ${1-} == --ask ]]; then
  asked="$2 $3"
  shift 3
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

# mutation <name> <file> <sed program>...: each program must change the file named.
names=() files=() programs=()
mutation() {
  names+=("$1")
  files+=("$2")
  programs+=("$(printf '%s\n' "${@:3}")")
}

mutation 'no sync after a commit frame' src/store/journal/journal_writer.cpp \
  '/^void JournalWriter::sync_commit/,/^}/s/  j\.sync();//'
mutation 'no sync after a base frame' src/store/journal/journal_writer.cpp \
  '/^void JournalWriter::start_epoch/,/^}/s/  j\.sync();//'
mutation 'no sync of the pack before the base frame' src/store/packs/record/pack_writer.cpp \
  '/^void PackWriter::sync()/,/^}/s/  impl_->sync_file();//'
mutation 'base frame before the sync of the pack' src/store/branch/branch_writer.cpp \
  's/^    packs->sync();$//' \
  's/^      journal->start_epoch(next);$/      journal->start_epoch(next); if (packs->dirty()) packs->sync();/'
mutation 'a background checkpoint is published without its base pages' src/store/branch/background.cpp \
  's/ && packs->bases_whole())/)/'
mutation 'a background checkpoint is published while gc is at work' src/store/branch/background.cpp \
  's/^  if (background->gc_lock.has_value() \&\& packs/  if (packs/'
mutation 'records are based on pages that gc has removed' src/store/packs/record/pack_writer.cpp \
  's/^    if (is_whole(ref)) continue;/    continue;/'
mutation 'records are based on pages of the previous pack' src/store/packs/record/pack_writer.cpp \
  's/ && trial\.pack() == active\.pack && / \&\& /'
mutation 'gc forgets base pages' src/store/gc/reach/live_set.cpp \
  's/^  note_bases();$//'
mutation 'base pages are not sent to a remote' src/remote/pieces/version_records.cpp \
  's/^  live_set\.follow_remote();$//'
mutation 'base pages may follow their record' src/format/records/based_pages.cpp \
  's/ || b\.offset_bytes >= offset_bytes) return 0;/) return 0;/'
mutation 'a base page that gc freed is read' src/store/packs/record/record_cache.cpp \
  's/ || format::any_dropped(base_frame->dropped, b\.slot, 1)) {/) {/'
mutation 'a concurrent thread omits pages that the memfd has' src/memory/copies/memfd_backing.cpp \
  's/^  const int error = write_file(first + added .*$/  const int error = added == 0 ? write_file(first, bytes) : 0;/'
mutation 'grown blocks share too few frames' src/store/packs/record/record_cache.cpp \
  's/^    make(grown\[i\], kMaxGrown + 1 - i, .*$/    make(grown[i], 0, {largest, 0, 0});/'
mutation 'a background checkpoint forgets the commits since' src/store/branch/commit.cpp \
  's/^    if (w\.background != nullptr) w\.background->commits\.back() = std::move(frame);$//'
mutation 'a background checkpoint claims a newer commit' src/store/branch/background.cpp \
  's/^    background->pieces = epoch\.size();$/    background->pieces = epoch.size() - 1;/'
mutation 'a failed sync in the background does not poison' src/store/branch/background.cpp \
  's/^  if (packs->sync_failed()) {$/  if (false) {/'
mutation 'an abandoned commit discards the background checkpoint' src/store/branch/branch_writer.cpp \
  's/^  if (background != nullptr) {$/  if (false) {/'
mutation 'a composed chain lacks the newest changes' src/store/branch/checkpoint/checkpoint.cpp \
  '/^void Checkpointer::compose(/,/^}/s/^    apply_items(.*$//'
mutation 'a record has frames in one set only' src/store/packs/record/record_frames.hpp \
  's/fingerprint \/ sets % sets/fingerprint % sets/'
mutation 'deltas of a page are applied newest first' src/store/page_map/page_source_read.cpp \
  's/for (std::size_t l = plan\.links_used; l-- > 0;) {/for (std::size_t l = 0; l < plan.links_used; ++l) {/'
mutation 'a base frame with commits may miscount them' src/format/journal.cpp \
  's/ \&\& h\.sequence - base\.sequence == count;/;/'
mutation 'a rebased delta lacks the newest changes' src/store/branch/checkpoint/checkpoint.cpp \
  's/^    changed\.touch(pieces_.*$//'
mutation 'a page is stored whole although few of its bytes differ' src/store/branch/checkpoint/checkpoint.cpp \
  '/^bool Checkpointer::add_known_difference/,/^}/s/  return false;$/  return true;/' \
  '/^bool Checkpointer::add_known_difference/,/^}/s/  out\.pop_back();$//'
mutation 'a partially known chain counts as known' src/store/branch/checkpoint/changed_spans.cpp \
  's/^  return deltas == 0;$/  return true;/'
mutation 'the base of an older chain is used as the base' src/store/branch/checkpoint/changed_spans.cpp \
  's/    if (--deltas == 0 \&\& !batch->bases\.empty()) {/    --deltas;\n    if (!batch->bases.empty()) {/'
mutation 'memory for spans is not bounded' src/store/branch/checkpoint/changed_spans.cpp \
  's/  while (bytes_ > max_bytes_ || /  while (/'
mutation 'a failed checkpoint is trusted' src/store/branch/checkpoint/changed_spans.cpp \
  '/^void ChangedSpans::clear/,/^}/s/^  .*$//'
mutation 'a delta against a base is not remembered' src/store/branch/checkpoint/checkpoint.cpp \
  's/^  chains_\.changed\.add(std::move(rebased_).*$//'
mutation 'a page that changes too much becomes a base' src/store/branch/checkpoint/checkpoint.cpp \
  's/^  if (how == Rebased::whole) return false;$//'
mutation 'no sync of the directory of a new pack' src/store/packs/record/pack_writer.cpp \
  's/store\.fs()\.sync_directory(store\.packs_directory());//'
mutation 'no sync of a sealed pack' src/store/packs/record/pack_writer.cpp \
  '/^void PackWriter::Impl::seal/,/^}/s/  sync_file();//'
mutation 'no sync of a published file' src/base/files/publish_file.cpp \
  's/  file\.sync_data();//'
mutation 'no sync of the directory of a published file' src/base/files/publish_file.cpp \
  's/  fs\.sync_directory(directory);//'
mutation 'no sync of the directory of a new branch' src/store/catalog/store_names.cpp \
  '/::publish_journal/,/^}/s/  fs()\.sync_directory(branches_directory());//'
mutation 'no sync after a removed snapshot' src/store/catalog/store_names.cpp \
  '/::remove_ref/,/^}/s/  fs()\.sync_directory(snapshots_directory());//'
mutation 'a name is not locked while it is created' src/store/catalog/lock/name_lock.cpp \
  's/return whole ? file->try_lock_exclusive() : file->try_lock_byte(byte);/return true;/'
mutation 'a name is checked only before it is locked' src/store/catalog/store_names.cpp \
  '/^  NameLock lock = lock_name/,/^}/s/  store\.require_free_name(name);//'
mutation 'convert_to_branch removes the ref first' src/store/catalog/store_names.cpp \
  '/::convert_to_branch/,/^}/{s/^  if (!has_branch(\*this, name)) publish_branch/  remove_ref(name);\n&/;s/^  remove_ref(name);$//}'
mutation 'a half-created branch is not repaired at opening' src/store/branch/recovery.cpp \
  's/  store\.settle_name(branch);//'
mutation 'the lock of a branch is not compared with its name' src/store/catalog/names.cpp \
  's/if (!file->replaced()) return/return/'
mutation 'a child of fork() keeps the locks' src/base/threads/forked_locks.cpp \
  's/::syscall(SYS_dup3, own, fd, O_CLOEXEC);//'
mutation 'readers do not wait for the lock of gc' src/store/catalog/lock/version_pin.cpp \
  's/!file->byte_locked(kTurnByte) && //'
mutation 'incomplete files are not locked' src/base/files/publish_file.cpp \
  's/return file\.try_lock_byte(kMakingByte) && !file\.replaced();/return true;/'
mutation 'the staging branch is removed before the snapshot has its name' src/store/branch/checkpointed_head.cpp \
  's/^  version_\.sequence = from\.head_sequence.*/&\n  staging_.reset();/'
mutation 'a map block that its root does not describe is used' src/store/page_map/run_reader.cpp \
  's/^  if (format::is_described(view\.entries(), run\.root\.blocks\[block\])) return true;/  return true;/'
mutation 'the staging branch is not locked until then' src/store/branch/staging_branch.cpp \
  's/^  while (writer_ == nullptr) create(version, encoding);/&\n  writer_.reset();/'
mutation 'an import does not check for a truncated file' src/store/stream/import.cpp \
  's/^  content_\.check();//'
mutation 'an import keeps pages that the content lacks' src/store/stream/import.cpp \
  's/^  submit_zeros(at_, piece\.first);//'
mutation 'deltas of a stream wait for the end of its commit' src/store/branch/commit.cpp \
  's/if (c\.early && c\.held_bytes > kMaxHeldBytes) c\.write_held();//'
mutation 'an import names its branch and forgets its packs' src/store/catalog/store_names.cpp \
  '/::publish_staging_branch/,/^}/s/publish_journal(claim\.name(), head, encoding, 0)/publish_branch(claim.name(), head, "", encoding)/'
mutation 'commits do not check the path of the store' src/store/branch/branch_writer.cpp \
  's/if (!journal->file()\.replaced()) return;/return;/'
mutation 'names are looked up in any store at the path' src/store/packs/record/pack_store.cpp \
  's/if (impl_->superblock_file->replaced()) {/if (false) {/'
mutation 'an archive belongs to a path' src/format/tiers.hpp \
  's/return home == other\.home \&\& inode == other\.inode \&\& same_birth;/return home == other.home || same_birth;/'
mutation 'ref published before its checkpoint is durable' src/store/packs/record/pack_writer.cpp \
  's/^  bool sync_failed = false;$/  bool sync_failed = false; bool late = false;/' \
  '/^void PackWriter::sync()/,/^}/s/  impl_->sync_file();/  impl_->late = true;/' \
  's/^  if (active\.pack == 0 .. (is_full()/  if (late) { late = false; sync_file(); }\n&/'
mutation 'overwrites the active half' src/store/journal/journal_writer.cpp \
  '/^void JournalWriter::start_epoch/,/^}/s/half_start(j\.epoch + 1, j\.half_bytes)/half_start(j.epoch, j.half_bytes)/'
mutation 'dedup: packs of a removed branch count as a whole' src/store/gc/reach/roots.cpp \
  's/^  if (at == writer_ends_\.end() || pack > at->second\.active_pack) return 0;/  if (at == writer_ends_.end()) return UINT64_MAX;\n  if (pack > at->second.active_pack) return 0;/'
mutation 'dedup: no gap after the leftovers of a crash' src/store/packs/record/pack_writer.cpp \
  's/leave_out = true;/leave_out = false;/'
mutation 'frame checksum not verified' src/format/journal.cpp \
  's/if (in\.u64() != frame_checksum(bytes, h\.payload_bytes, seed)) return false;/static_cast<void>(in.u64()); static_cast<void>(seed); static_cast<void>(\&frame_checksum);/'
mutation 'a branch that is ahead of the record is kept' src/group/pins.cpp \
  's/    if (stands_on(head, pin\.version)) return;/    if (stands_on(head, pin.version) || true) return;/'
mutation 'older pins are removed before the record' src/group/job.cpp \
  's/^  JobReport report = publish(commits);$/  for (const Partition\& p : partitions_) { if (!kept_.contains(before.pin)) p.store->remove_snapshot(pin_name(group_.id, p.number, before.pin)); }\n  JobReport report = publish(commits);/'
mutation 'a job uses a number that others have passed' src/group/record_directory.cpp \
  's/  if (last == record\.number) return;/  if (last != 0) return;/'
mutation 'the digest of a pin is not compared' src/group/pins.cpp \
  's/digest_of(recorded, store_id) != partition\.digest/digest_of(recorded, store_id) != digest_of(recorded, store_id)/'
mutation 'pins of versions with names are released' src/group/job.cpp \
  's/^    kept_\.insert(commits\.pin);$//'
mutation 'a version that is being pushed loses its pins' src/group/job.cpp \
  's/ \&\& !is_pushing(before\.pin);/;/'
mutation 'a version is published although a rank has not pushed' src/group/job_push.cpp \
  's/^      require_all(gathered);$//'
mutation 'a superseded job publishes at the remote' src/group/versions/remote_records.cpp \
  's/^    if (read(number, group)\.epoch <= epoch) continue;$/    if (read(number, group).epoch <= epoch || is_new) continue;/'
mutation 'the record of a superseded job stays at the remote' src/group/versions/remote_records.cpp \
  's/^    if (is_new) objects_\.remove(key);$//'
mutation 'a corrupted record at a remote is skipped' src/group/versions/remote_records.cpp \
  's/ \&\& !version\.empty() \&\& !is_numbered) continue;/) continue;/'
mutation 'a corrupted record at a remote hides the others' src/group/versions/remote_records.cpp \
  's/^    if (outcome\.code == Errc::corrupted .*continue;$//'
mutation 'a partition at a remote is not checked' src/group/versions/group_version.cpp \
  's/^    checked_copy(core, pin, partition);$/    static_cast<void>(partition);/'
mutation 'older records are removed from the remote before the new one exists' src/group/remote/object_versions.cpp \
  's/^  records\.claim(group);$/  records.claim(group);\n  for (const std::uint64_t number : records.numbers()) { if (number < record.number) records.remove(number); }/'
mutation 'a remote forgets versions with names' src/group/remote/object_versions.cpp \
  's/^    if (!known\.is_named \&\& number < record\.number) {$/    if (number < record.number) {/'
mutation 'a remote forgets the pins of its newest version' src/group/remote/object_versions.cpp \
  's/^      keep\.insert(known\.pin);$/      if (known.is_named) keep.insert(known.pin);/'
mutation 'a pull omits a pack that only a root names' src/remote/pull.cpp \
  's/^    create_empty_packs(store_, name\.ref\.version);$//'
mutation 'a lazy clone lacks a pack that only a root names' src/remote/pull.cpp \
  's/^    for (const RemoteVersion\* name : to_do) create_empty_packs(store_, name->ref\.version);$//'
mutation 'a working set at a remote lacks its own pieces' src/remote/push.cpp \
  's/^    if (rest\.empty() || records_bytes(in_use) < kMinBytesInUse) return/    return/'
mutation 'ranges are fetched one after the other' src/remote/lazy/lazy_packs.cpp \
  's/^  early->fetch(refs,$/  if (refs.empty()) early->fetch(refs,/'
mutation 'opening a remote fetches no working set' src/remote/lazy/head_packs.cpp \
  's/^    if (bytes > kMaxInUseFetched) break;$/    break;/'
mutation 'a pull replaces a working set that was recorded here' src/remote/pull.cpp \
  's/^    if (!store::read_working_set(store_, wanted, owner)\.empty()) return;$//'
mutation 'a list may name pieces of a working set twice' src/remote/objects/piece_list.cpp \
  's/ || seen\[static_cast<std::size_t>(piece)\]) return false;/) return false;/'
mutation 'a gc of a remote removes the bases of lists' src/remote/upkeep.cpp \
  's/: {list\.base, list\.own}) {/: {list.own}) {/'
mutation 'a list is applied to another base' src/remote/objects/list_on_base.cpp \
  '/return "is based on another list";/d'
mutation 'a list takes more pieces than its base has' src/remote/objects/list_on_base.cpp \
  's/ || taken > left - passed / /'
mutation 'a list takes pieces of its base with other spans' src/remote/objects/list_on_base.cpp \
  's/if (!std::ranges::equal(spans_\[at->second\], spans)) return/if (spans.empty()) return/'
mutation 'a restore uses an epoch that pins have' src/group/remote/restore.cpp \
  's/^    record\.epoch = largest_epoch + 1;$/    record.epoch = record_.epoch + 1;/'
mutation 'record checksum not verified' src/format/records/record.cpp \
  's/record_checksum(record, seed) != h\.checksum) {/(false \&\& record_checksum(record, seed) != h.checksum)) {/'
mutation 'checksum of refs, tiers, live_set not verified' src/format/wire/whole_file.cpp \
  's/if (!ends_with_checksum(bytes, checksum_seed(id))) return FrameProblem::checksum_mismatch;//'
mutation 'a commit packs chunks that it does not hold' src/region/encode/encoder_pack.cpp \
  's/held(std::in_place, memory_, captured\.whole);/held;/'
mutation 'record tag not compared' src/format/records/record.cpp \
  's/if (h\.tag() != ref\.tag) return "stale record";//'
mutation 'epoch of a frame not checked' src/store/journal/read_journal.cpp \
  '/^void read_frames/,/^}/s/frame\.header\.epoch == state\.epoch \&\&/true \&\&/'
mutation 'sequence of a frame not checked' src/store/journal/read_journal.cpp \
  '/^void read_frames/,/^}/s/frame\.header\.sequence == state\.head_sequence() + 1/true/'
mutation 'older epoch wins' src/store/journal/read_journal.cpp \
  's/state\.epoch = std::max(epochs\[0\], epochs\[1\])/state.epoch = epochs[0] == 0 || epochs[1] == 0 ? std::max(epochs[0], epochs[1]) : std::min(epochs[0], epochs[1])/' \
  's/epochs\[0\] > epochs\[1\] ? 0 : 1/epochs[0] == state.epoch ? 0 : 1/' \
  's/newest_epoch(file, header\.half_bytes, seed) != found\.state\.epoch/false/'
mutation 'a short write counts as a whole one' src/base/files/file.cpp \
  's/    bytes = bytes\.subspan(static_cast<std::size_t>(put));/    bytes = {};/'
mutation 'interrupted call not repeated' src/base/files/file.cpp \
  's/while (result < 0 \&\& errno == EINTR) result = call();//'
mutation 'failed sync forgotten' src/store/journal/journal_writer.cpp \
  's/      sync_failed = true;  \/\/ the kernel.*$//'
mutation 'failed write of a frame not cleared' src/store/journal/journal_writer.cpp \
  's/^        wipe_remains();$/        remains_bytes = 0;/'
mutation 'torn frames left in place at opening' src/store/journal/journal_writer.cpp \
  's/^  j\.clear_free_space();$//'
mutation 'torn frames left on file systems without holes' src/store/journal/journal_writer.cpp \
  '/::clear(/,/^}/s/    fill_zeros(from, to);//'
mutation 'no blocks ready for the next commits' src/store/journal/journal_writer.cpp \
  '/::write_commit/,/^}/s/  j\.make_ready(.*);//'
mutation 'entries that a run hides still show' src/store/page_map/shown_stack.cpp \
  's/      report_chain(s, false);//'
mutation 'entries that a run has hidden stay hidden without it' src/store/page_map/shown_stack.cpp \
  's/    if (!delta) report_chain(s, true);//'
mutation 'a lower run is applied again for each version' src/store/gc/reach/version_walk.cpp \
  's/stack.size() > common; stack.pop_back()/!stack.empty(); stack.pop_back()/'
mutation 'current epoch not rewritten at opening' src/store/journal/journal_writer.cpp \
  's/^  j\.renew_current_epoch();//'
mutation 'rewritten epoch not synced before the other half is cleared' src/store/journal/journal_writer.cpp \
  '/::renew_current_epoch/,/^}/s/  sync();//'
mutation 'no marker after a commit' src/store/journal/journal_writer.cpp \
  '/^void JournalWriter::sync_commit/,/^}/s/^  ++j\.sequence;/  ++j.sequence; if (0)/'
mutation 'no marker of the previous commit' src/store/journal/journal_writer.cpp \
  '/^void JournalWriter::write_commit/,/^}/s/^  j\.write_frame(bytes, j\.tail_bytes);/&  if (0)/'
mutation 'no marker written at opening' src/store/journal/journal_writer.cpp \
  '/^void JournalWriter::Impl::clear_free_space/,/^}/s/  write_marker(tail_bytes);//'
mutation 'a marker directly after its frame' src/store/journal/journal_writer.cpp \
  's/return std::min(round_up(end, kBlockBytes), half_end() - kSectorBytes);/return end;/'
mutation 'a truncated journal is accepted' src/store/journal/read_journal.cpp \
  's/  if (size >= whole) return;/  return;/'
mutation 'atomic: later records do not reveal corruption' src/interfaces/atomic_file/redo_journal.cpp \
  's/  if (recovering_) look_for_later(log, replay);//'
mutation 'atomic: no marker of the previous record' src/interfaces/atomic_file/redo_journal.cpp \
  's/  write_marker(tail_ + record\.size());//'
mutation 'atomic: a corrupted header leads to an older epoch' src/interfaces/atomic_file/redo_journal.cpp \
  's/  journal\.take_header_of_records();//'
mutation 'spill: page numbers of 32 bits' src/memory/copies/spill_file.cpp \
  's/length - kCovered}, page)/length - kCovered}, static_cast<std::uint32_t>(page))/'
mutation 'packs: descriptors without a bound' src/store/packs/pack_set.cpp \
  's/  if (descriptors_ < std::min(max_descriptors_, base::descriptor_share())) {/  if (true) {/'
mutation 'verify: a lack of descriptors counts as corruption' src/base/fail.hpp \
  's/e\.code() == Errc::out_of_memory || //'
mutation 'tail of a crashed checkpoint left in the pack' src/store/packs/record/pack_writer.cpp \
  's/^  if (size > version\.active_pack_end_bytes) active\.file->truncate.*$//'
mutation 'a failed flush of a checkpoint does not poison' src/store/branch/branch_writer.cpp \
  's/^    if (poison\.empty()) poison = reason;$//'
# Two mutations would have no effect. Packs listed after the branches: while gc reads the names, no process opens a
# branch for writing, and no pack appears. The later of two base frames' ends: the records between the two belong to
# the later frame, which is a version itself; the earlier end matters only when a writer discards that frame after
# gc has read it.
mutation 'gc: pins of open versions ignored' src/store/gc/reach/roots.cpp \
  's/: pinned_roots(store, out\.packs))/: std::vector<RootPlace>())/'
mutation 'gc: the base frame before the last is no version' src/store/gc/reach/roots.cpp \
  's/^      out\.versions\.push_back({i == 0 ? name/      if (i == 0) &/'
mutation 'gc: names not synced before anything is freed' src/store/gc/gc.cpp \
  's/^      settle_removals();$//'
mutation 'gc: active pack punched past its settled end' src/store/gc/reach/pack_use.cpp \
  's/std::min(roots\.settled_bytes(pack)\.value_or(use\.file_bytes), use\.file_bytes)/use.file_bytes/'
mutation 'gc: a pack that no frame refers to yet counts as garbage' src/store/gc/reach/roots.cpp \
  's/^  if (next != next_pack_\.end() \&\& pack >= next->second) return 0;$//'
mutation 'gc: names read without the exclusive lock' src/store/gc/gc.cpp \
  's/names\.emplace(store_, pace_\.patience)/read_only.emplace(store_)/'
mutation 'gc: a pack is emptied in large steps' src/store/gc/gc.cpp \
  's/kPunchStepBytes = 1u << 20/kPunchStepBytes = 1u << 30/'
mutation 'the collector works while a commit writes' src/region/gc_pacing.cpp \
  's/return pacing_\.commits_ == 0;/return true;/'
mutation 'a commit does not wait for a collector that is behind' src/region/gc_pacing.cpp \
  's/lag_bytes() <= kFreeLagBytes;/true;/'
mutation 'a step does not report how much was freed' src/region/gc_pacing.cpp \
  's/^  pacing_\.freed_bytes_ = freed_bytes;$/  (void)freed_bytes;/'
mutation 'the collector stays behind for all later commits' src/region/gc_pacing.cpp \
  's/^  written_bytes_ = freed_bytes_;$//'
mutation 'a commit waits for a collector that has ended' src/region/gc_pacing.cpp \
  '/::~Collection()/,/^}/s/pacing_\.collecting_ = pacing_\.stepping_ = false;/pacing_.stepping_ = false;/'
mutation 'a collection begins with the debt of the last one' src/region/gc_pacing.cpp \
  's/^  pacing_\.written_bytes_ = pacing_\.freed_bytes_ = 0;$//'
mutation 'a commit is built upon one that could not be undone' src/region/commit.cpp \
  's/^  if (!base_copies_lost) return;$/  if (!base_copies_lost || true) return;/'
mutation 'a failed undo is forgotten' src/region/commit.cpp \
  's/^    base_copies_lost = true;$//'
mutation 'scattered writes fill whole chunks' src/memory/paged/chunk_filler_zeros.cpp \
  's/const bool only_page = pages > 1 .*/const bool only_page = false;/'
mutation 'a complete chunk counts as incomplete' src/memory/paged/chunk_filler_zeros.cpp \
  '/^int ChunkFiller::complete/,/^}/s/  state_\.chunks\[index\]\.sole_mapped_page\.store(0);//'
mutation 'the sole mapped page of a chunk counts as untouched' src/memory/paged/paged_state.hpp \
  's/return sole != 0 \&\& page % chunk_pages() != sole - 1/return sole != 0/'
mutation 'an eviction puts untouched pages back unnoticed' src/memory/paged/chunk_filler.cpp \
  '/^int ChunkFiller::show(/,/^}/s/  state_\.chunks\[state_\.chunk_of(first)\]\.sole_mapped_page\.store(0);//'
mutation 'a rollback maps untouched pages unnoticed' src/memory/engine/uffd_memory.cpp \
  's/} else if (!untouched) {/} else {/'
mutation 'populating omits untouched pages' src/memory/paged/chunk_filler.cpp \
  's/ \&\& chunk\.sole_mapped_page\.load() == 0//'
mutation 'a program does not wait for a branch that is briefly in use' src/run/live/live_file.cpp \
  's/region_(open_when_free(/region_(open(/'
mutation 'lines that a failed commit took are not compared again' src/region/commit.cpp \
  's/const bool marks_say_all = cards \&\& pending.empty();/const bool marks_say_all = cards != nullptr;/'
mutation 'a private copy is dropped whatever its content' src/memory/engine/uffd_copies.cpp \
  's/    if (state_\.equals_base_copy(first + i)) equal |= /    equal |= /'
mutation 'a write to a temporarily protected page is not handled' src/memory/engine/uffd_copies.cpp \
  's/      return FaultResult::retry;/      return FaultResult::not_ours;/'
mutation 'copies of held chunks are dropped' src/memory/paged/reclaimer.cpp \
  's/ || state_\.chunks\.is_held(index)) return/) return/' \
  's/    if (!state_\.chunks\.is_held(index + claimed - 1)) continue;.*/    continue;/'
mutation 'zero pages that are read do not count' src/memory/paged/memory_account.cpp \
  's/^  if (!state_\.traits\.zeros_take_memory) return 0;$/  return 0;/'
mutation 'a removed pack stays open' src/store/packs/pack_set.cpp \
  's/^        close_unread(\*entry);$//'
mutation 'a pack is closed while it is read' src/store/packs/pack_file.cpp \
  's/^  if (users_\.load() != 0) return false;$//'
mutation 'heat: the last version that needs a record counts' src/store/gc/reach/pack_heat.cpp \
  's/use\.rank = std::min(use\.rank, ranks_\.since(use\.since));/use.rank = ranks_.since(use.since);/'
mutation 'heat: versions before a record shows count' src/store/gc/reach/pack_heat.cpp \
  's/if (shows \&\& use\.shown == 0) use\.since = ranks_\.visited();//'
mutation 'space is not freed without a command' src/region/background_gc.cpp \
  's/^    if (outlook\.is_due()) collect(kShortPatience, at_steps);$//'
mutation 'a full disk is an error before anything is collected' src/region/commit.cpp \
  's/ && space->make_room()/ \&\& false/'
mutation 'gc: a reader that cannot pin a version does not hold the names' src/store/catalog/lock/version_pin.cpp \
  's/^    pin_ = std::move(names\.file_);$//'
mutation 'gc: the copy after the root is freed' src/store/gc/reach/pack_use.cpp \
  's/^    if (copy\.to != 0) out\[newest\.pack\]\.copies\.push_back(copy);$//'
mutation 'gc: index of a sealed pack is freed' src/store/gc/reach/pack_use.cpp \
  's/^      needed\.push_back(index);$//'
mutation 'gc: holes rounded outwards' src/store/gc/reach/pack_use.cpp \
  's/if (up(at) < down(to)) holes\.push_back({up(at), down(to)});/if (down(at) < up(to)) holes.push_back({down(at), up(to)});/'
mutation 'decompressed size not compared' src/base/bytes/codec.cpp \
  's/return got >= 0 \&\& static_cast<std::size_t>(got) == raw\.size();/return got >= 0;/'
mutation 'size of a zstd frame not compared' src/base/bytes/codec.cpp \
  's/ZSTD_getFrameContentSize(stored\.data(), stored\.size()) == raw_size/true/' \
  's/           ZSTD_decompressDCtx(.*$/           !ZSTD_isError(ZSTD_decompressDCtx(zstd.get(), raw.data(), raw.size(), stored.data(), stored.size()));/' \
  '/!ZSTD_isError/,/raw\.size();$/s/^               raw\.size();$//'
mutation 'bytes after the last whole unit of words lost' src/base/bytes/word_planes.cpp \
  's/^  if (whole < in\.size()) std::memcpy.*$//'
mutation 'blocks too large to be joined not refused' src/base/bytes/codec.cpp \
  's/^  if (raw\.size() > impl_->planes\.size()) return false;$//'
mutation 'a program gets the original environment' src/run/run/exec_environment.cpp \
  's/^  if (kept_count == 0) return out;$/  return out;/'
mutation 'a shell gets the cleared environment' src/run/run/exec_environment.cpp \
  's/== nullptr) putenv(kept\[i\]);/== nullptr) continue;/' \
  's/^  if (kept_count == 0 || names_library(theirs)) return;$/  return;/'
mutation 'static programs are not reported' src/run/calls/exec_calls.cpp \
  's/^  if (!note_program(path, kind)) return;$/  return;/'
mutation 'an opened file is not recorded' src/run/run/run_record.cpp \
  '/^void note_opened/,/^}/s/++record->targets\[target\].opened/record->targets[target].opened += 0/'
mutation 'a file that changed while it was live is not recorded' src/run/live/live_file.cpp \
  's/^  note_changed(target_);$//'
mutation 'a file that changed around the run is taken for repaired' src/cli/run/run_files.cpp \
  's/ && !image->in_use && !image->changed)) return;/ \&\& !image->in_use)) return;/'
mutation 'the kernel does not empty the number of a process' src/base/threads/fork_count.cpp \
  's/kNumberBytes, MADV_WIPEONFORK/kNumberBytes, MADV_NORMAL/'
mutation 'a call by its number bypasses the library' src/run/calls/numbered_calls.cpp \
  's/^    if (const auto result = family(number, a)) return result;$/    if (false) return family(number, a);/'
mutation 'process 1 is identified only by its number' src/run/process/proc.cpp \
  's/^  return process | space.st_ino << 32;$/  return process;/'

mutation 'a failed frame that cannot be cleared does not poison' src/store/journal/journal_writer.cpp \
  's/if (!wipe_header(at) \&\& frame_may_be_whole(frame\.size(), at)) sync_failed = true;/if (!wipe_header(at)) frame_may_be_whole(frame.size(), at);/'
mutation 'image: touched ranges forgotten before the flush' src/store/stream/image_file.cpp \
  '/::sync_if_due/,/^}/s/^  sync();$/  intent_.forget();\n  sync();/'
mutation 'image: a failed touch ignored' src/store/stream/image_file.cpp \
  's/with_context(path(), \[&\] { intent_\.touch(pages); });/try { intent_.touch(pages); } catch (const Error\&) {}/'
mutation 'atomic: the size of a new journal not synced' src/interfaces/atomic_file/file_journal.cpp \
  's/^    made->sync_data();.*$//'
mutation 'the order of a snapshot not synced' src/store/catalog/snapshot_order.cpp \
  's/^  file->sync_data();$//'
mutation 'the order of snapshots claimed without its lock' src/store/catalog/snapshot_order.cpp \
  's/^  lock(\*file);$/  static_cast<void>(\&lock);/'
mutation 'a new file named before it is durable' src/base/files/new_file.cpp \
  '/::name_it/,/^}/s/^  file_->sync_data();$//'
mutation 'the name of a new file not synced' src/base/files/new_file.cpp \
  '/::name_it/,/^}/s/^  fs_\.sync_directory(.*$//'
mutation 'incomplete files are swept while they are locked' src/base/files/new_file.cpp \
  's/if (!file->try_lock_exclusive() || file->replaced()) return;//'
mutation 'a new file without its lock' src/base/files/new_file.cpp \
  's/return file\.try_lock_exclusive() \&\& !file\.replaced();/return !file.replaced();/'
mutation 'a new file gets the old content of the branch' src/run/live/live_file.cpp \
  's/  options\.image\.is_content = true;//'
mutation 'a file that was removed stays live' src/run/files/file_names.cpp \
  '/^int FileNames::remove/,/^}/s/  release_at(name);//'
mutation 'what is renamed onto a name is not looked at' src/run/files/file_names.cpp \
  '/^int FileNames::rename/,/^}/s/    adopt(now);//'
mutation 'mappings of a file without a name are of nothing' src/run/live/left_file.cpp \
  's/  show_file(mappings);//'
mutation 'the reserve for growth shows in the file' src/store/stream/image_file.cpp \
  's/  if (file_bytes - file_bytes_ > kLittleBytes) return set_size(file_bytes);/  return set_size(std::max(file_bytes, region_bytes_));/'
mutation 'a flush is not a commit for a file that looks like LMDB'"'"'s' src/run/live/live_file.cpp \
  's/ && lmdb_lock_\.is_open(path_)//'
mutation 'a child of fork stores to its own copy' src/run/files/files.cpp \
  's/live->protect_inherited();/live->inherited();/'
mutation 'a killed process leaves its unfinished journal' src/interfaces/atomic_file/journal_file.cpp \
  's/^      remove_left(fs, path);$/      continue;/'

mutation 'dedup: the record that was appended last is not found' src/store/branch/checkpoint/dedup.cpp \
  's/return record\.offset_bytes <= appended_\.offset_bytes;/return record.offset_bytes < appended_.offset_bytes;/'
# The other two bounds of dedup, `<` before a published end, are equivalent to `<=`: see Dedup::is_reached().
mutation 'an open version is not pinned' src/store/catalog/lock/version_pin.cpp \
  's/^      pin_ = packs\.pin(root\.pack, root\.offset_bytes);$//'
mutation 'gc does not wait for large commits' src/store/catalog/lock/version_pin.cpp \
  's/return file->try_lock_exclusive(); })) {/return true; })) {/'
mutation 'a pack is removed from the archive before its name at home is durable' src/store/gc/pack_mover.cpp \
  '/^bool move_home/,/^}/{s/^  fs\.sync_directory(store\.packs_directory());$//;s/^  fs\.sync_directory(base::parent_of(old));$/&\n  fs.sync_directory(store.packs_directory());/}'
mutation 'a pack is removed from home before its name in the archive is durable' src/store/gc/pack_mover.cpp \
  '/^bool move_to_archive/,/^}/{s/^  fs\.sync_directory(archive);$//;s/^  return true;$/  fs.sync_directory(archive);\n&/}'
mutation 'a pack directly follows one that was abandoned but not removed' src/store/packs/record/pack_writer.cpp \
  's/std::max(w\.next_number, (pack \& UINT32_MAX) + 2)/std::max(w.next_number, (pack \& UINT32_MAX) + 1)/'
mutation 'image: closed without a flush' src/store/stream/image_file.cpp \
  '/^void ImageFile::close/,/^}/s/^  sync();$//'
mutation 'a branch with a writer is removed' src/store/catalog/store_names.cpp \
  '/^void StoreDirectory::remove_branch/,/^}/s/^  if (journal == nullptr) fail(.*$//'
# Not included: a failed commit that forgets the dirty pages. Undoing it makes the pages private again, which the
# trackers detect; only a failure before anything is encoded needs Region::Impl::pending.
mutation 'a failed commit does not restore the base copies' src/region/commit.cpp \
  's/^    encoder->undo(.*$/    (void)encoder;/'
mutation 'image: written before its touched ranges are durable' src/region/commit.cpp \
  's|^    if (auto\* const file = memory->file_behind()) file->prepare_commit(c\.dirty);$||'
mutation 'a call does not wait for the commit in the background' src/region/call_guards.hpp \
  's/^    impl->background->wait_idle();$//'
mutation 'the last page of a range is not committed' src/region/region_pages.cpp \
  's/(offset + length - 1) \/ kPageBytes - first + 1};/(offset + length - 1) \/ kPageBytes - first};/'
mutation 'rollback keeps the grown part' src/region/region_pages.cpp \
  's/^  if (memory->size_bytes() > committed_bytes) memory->resize(committed_bytes);$//'
mutation 'atomic: the journal is emptied before the file is durable' src/interfaces/atomic_file/redo_journal.cpp \
  '/^void RedoJournal::bring/,/^}/s/^  barrier(image);$//'
mutation 'atomic: a commit without its barrier' src/interfaces/atomic_file/redo_journal.cpp \
  '/^void RedoJournal::append/,/^}/s/^  barrier(\*medium_);$//'
mutation 'atomic: the valid header is overwritten' src/interfaces/atomic_file/redo_journal.cpp \
  's/return epoch % 2 \* format::kRedoHeaderCopyBytes;/return (epoch + 1) \/ 2 % 2 * format::kRedoHeaderCopyBytes;/'
mutation 'atomic: a poisoned journal accepts commits' src/interfaces/atomic_file/redo_journal.cpp \
  '/^void RedoJournal::append/,/^}/s/^  if (!poison_\.empty()) fail.*$//'
mutation 'atomic: a file is truncated before that is recorded' src/interfaces/atomic_file/atomic_file.cpp \
  's/^  append_record(size_bytes);$/  image->resize(size_bytes);\n&/'
mutation 'atomic: a failed commit discards its marks' src/interfaces/atomic_file/atomic_file.cpp \
  '/::commit()/,/^}/s/^    put_back();$//'
mutation 'atomic: a journal in use is opened' src/interfaces/atomic_file/journal_file.cpp \
  '/^std::unique_ptr<base::File> open_journal/,/^}/s/if (!file->try_lock_exclusive())/if (false)/'
mutation 'atomic: the journal is removed before the file has its content' src/interfaces/atomic_file/file_journal.cpp \
  '/::recover/,/^}/s/^  Replay replay;$/&\n  if (!options.corrupted) fs.unlink(journal_path(path));/;s/^    remove_journal(fs, path);$/    if (fs.exists(journal_path(path))) remove_journal(fs, path);/'
mutation 'atomic: a corrupted journal that must be kept is written' src/interfaces/atomic_file/redo_journal.cpp \
  's/^  if (!damage_\.empty()) return replay;$//'
mutation 'atomic: a full journal has no room for the last marker' src/interfaces/atomic_file/redo_journal.cpp \
  's/return end_with_marker(tail_ + record_bytes) <=/return tail_ + record_bytes <=/' \
  's/make_room(end_with_marker(tail_ + record\.size()))/make_room(tail_ + record.size())/' \
  's/^  assert(medium_->byte_addressable() || end_with.*$/  if (end_with_marker(end) > medium_->size_bytes()) return;/'
mutation 'atomic: leftovers in use are removed' src/interfaces/atomic_file/journal_file.cpp \
  's/begins_as_journal(\*left) \&\& left->try_lock_exclusive()/begins_as_journal(*left)/'
mutation 'atomic: leftovers of others are removed' src/interfaces/atomic_file/journal_file.cpp \
  's/begins_as_journal(\*left) \&\& left->try_lock_exclusive()/left->try_lock_exclusive()/' \
  's/^bool begins_as_journal/[[maybe_unused]] &/'
mutation 'atomic: leftovers of earlier builds are kept' src/interfaces/atomic_file/journal_file.cpp \
  's/^  remove_random_names(fs, file_path);$/  static_cast<void>(\&remove_random_names);/'
mutation 'a failed flush discards the list of written pages' src/run/live/live_file.cpp \
  '/::commit_written/,/^}/s/^    anywhere_ = true;$//'
mutation 'a failed flush is no error' src/run/live/live_file.cpp \
  '/^int LiveFile::commit_with/,/^}/s/^  return error;$/  (void)error;\n  return 0;/'
mutation 'a file that could not be committed is released' src/run/files/file_states.cpp \
  's/\&LiveFile::commit) != 0)$/\&LiveFile::commit) == INT_MIN)/'
mutation 'the truncation of a file is not committed' src/run/live/live_file.cpp \
  '/^int LiveFile::set_size/,/^}/s/^    anywhere_ = true;$//'
mutation 'a hole is not committed' src/run/live/live_file.cpp \
  '/^int LiveFile::clear/,/^}/s/^    note_written(offset_bytes, count);$//'
mutation 'a flush is kept, and not what was written before it' src/run/files/file_states.cpp \
  's/^    written = files_\.written_among_others(file);$//'
mutation 'a close is kept, and not what was written before it' src/run/files/file_states.cpp \
  's/commit_among(files_\.written_among_others(\*open\.live), /commit_among({}, /'
mutation 'a new name is kept, and not what was written before it' src/run/files/file_names.cpp \
  '/^int FileNames::rename/,/^}/s/^  states_\.commit_written();$//'
mutation 'a removed name is committed, but not the earlier writes' src/run/files/file_names.cpp \
  's/^  if (path != nullptr) commit_before_change(path);$//'
mutation 'files are committed in the order of their opening' src/run/files/open_files.cpp \
  's/std::sort(found\.begin(), found\.end(),/std::sort(found.begin(), found.begin(),/'
mutation 'a write next to a mapping is not ordered' src/run/live/live_file.cpp \
  's/if (mapped_writable_) return take_position();/if (mapped_writable_) return;/'
mutation 'earlier mappings are not searched' src/run/files/file_states.cpp \
  's/^  if (const int error = UnseenUses::refuse(open, fd)) return error;$//'
mutation 'a write has the length of the last failed one' src/run/live/live_file.cpp \
  's/^    set_size(std::max(size_before, copied == 0 ? 0 : offset_bytes + copied));$/    (void)size_before;/'
mutation 'datastore: the stamp is kept while files are written' src/interfaces/metall/datastore.cpp \
  '/^Datastore Datastore::open(/,/^}/s/^    datastore::remove_stamp(impl->place);$//'
mutation 'datastore: a failed commit counts as the last' src/interfaces/metall/datastore.cpp \
  '/  void pack()/,/^  }/s/^    committed = false;$//'
mutation 'datastore: files are restored before the lock is taken' src/interfaces/metall/datastore.cpp \
  '/^Datastore Datastore::open(/,/^}/{s/^    impl->reserve(capacity);$/&\n    datastore::put_files_back(*impl->store, impl->place, options);/}'
mutation 'datastore: created over an existing one' src/interfaces/metall/datastore.cpp \
  's/if (version\.is_branch \&\& version\.sequence == 0) return/if (version.is_branch) return/'
mutation 'datastore: zeroes bytes beyond its segment' src/interfaces/metall/datastore.cpp \
  's/length > size_bytes() - offset/length > impl.region.size_bytes() - offset/'
mutation 'datastore: the store is removed with the first version' src/interfaces/metall/datastore.cpp \
  's/^    if (!store\.versions()\.empty()) return;$//'
mutation 'datastore: files of another boot are trusted' src/interfaces/metall/stamp.cpp \
  's/(!base::boot_id()\.empty() \&\& text == stamp_text(version, Lasting::this_boot))/text.starts_with(stamp_text(version, Lasting::for_ever))/'
mutation 'datastore: a truncated file leaves its end in the area' src/interfaces/metall/files.cpp \
  's/^  if (size < entry\.length_bytes) base::make_zero.*$//'

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
    src/remote/*) printf '%s\n' 'test_remote *' ;;
    src/interfaces/mapped_io/*) printf '%s\n' 'test_interfaces_mapped_io *' ;;
    src/memory/* | src/region/*) printf '%s\n' "$region" 'test_memory *' 'test_soak *' "$crash" "$store" "$rest" "$generated" ;;
    src/run/* | src/cli/*) printf '%s\n' 'test_run *-*Lmdb*' ;;
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
  if ! apply "$i" "$tree/$file" >/dev/null; then
    result='CHANGES NOTHING'
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
