// The steps of a push:
//   1. Pin the versions, so that gc of the store keeps their records.
//   2. Take the last head that this store has seen as the base, and check only during the uploads
//      that it still exists. If it is not the newest, read the newest head and begin again.
//   3. Compare each version with the base: it may be there already, or belong to another writer.
//   4. Reuse pieces of related versions; upload new pieces for the other records, then the list of
//      pieces and, if due, a name table. No head refers to them yet.
//   5. Note each branch's write id as intended in the remote's file, so that a later push
//      recognizes this one if it is interrupted.
//   6. Create the next head if its number is free: the commit point. Otherwise begin again at 2.
//   7. Check that the head counts (Remote::publish()), then note the write ids as seen.
// If the remote turns out to be an older copy of itself, all of it is looked at again, and no object
// counts as existing because a head has it.
#include "remote/push.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/fail.hpp"
#include "remote/locks.hpp"
#include "remote/objects/list_on_base.hpp"
#include "remote/pieces/early_records.hpp"
#include "remote/pieces/known_pieces.hpp"
#include "remote/pieces/piece_maker.hpp"
#include "remote/pieces/uploads.hpp"
#include "remote/pieces/version_records.hpp"
#include "remote/session/branch_relation.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/commit_name.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/catalog/working_set_file.hpp"

namespace vellum::remote {
namespace {

constexpr int kMaxTries = 1000;         // each fails since another pusher was faster
constexpr std::size_t kMaxRelated = 3;  // by shared runs, and by sequence
// Limits for the records in a list besides roots: an absolute one, and a share of the upload.
constexpr std::uint64_t kMaxOpeningBytes = 128u << 10, kOpeningShare = 32;
// Small lists and pieces of a replicated commit become a part of the head's object.
constexpr std::uint64_t kMaxEmbeddedBytes = 256u << 10;
constexpr std::uint64_t kCopiedShare = 16;  // of the upload: lists beside the copy of the head
// A working set with at least this many bytes of records has pieces of its own.
constexpr std::uint64_t kMinBytesInUse = 256u << 10;
constexpr std::uint64_t kMinBytesToList = 3 * kPieceBytes;
constexpr std::size_t kMaxPushThreads = 16;  // each holds a piece in memory
// A push that refers to no more objects asks for each: two listings cost as much as 25 small reads.
// It looks at heads with embedded objects in any case.
constexpr std::size_t kMaxAsked = 24;

// The base of the push is no longer the newest head, or refers to lost objects.
struct HeadSuperseded {};

// A version of the store to push. gc keeps it for the lifetime of this object.
struct VersionToPush {
  std::string name;
  bool is_branch = false;
  std::unique_ptr<store::KeptVersion> snapshot;
  std::unique_ptr<store::CheckpointedHead> head;
  store::SeenHead seen;  // of a branch
  SeenBranch begun;      // of a branch: what is noted before the push publishes it
  RemoteVersion entry;   // of the new head

  const store::ResolvedVersion& resolved() const {
    assert(is_branch ? head != nullptr : snapshot != nullptr);
    return is_branch ? head->head() : snapshot->version;
  }
};

std::set<std::string> version_names(const store::StoreDirectory& store,
                                    const PushOptions& options) {
  std::set<std::string> names(options.versions.begin(), options.versions.end());
  if (!names.empty()) return names;
  for (const std::string& name : store::snapshot_names(store)) names.insert(name);
  for (const std::string& branch : store.branch_names()) {
    if (!store::is_staging_name(branch)) names.insert(branch);
  }
  if (names.empty()) fail(Errc::invalid_argument, "{} has no version yet", store.path());
  return names;
}

VersionToPush find_version(store::StoreDirectory& store, const std::string& name,
                           FollowedBranches* followed) {
  if (store::parse_commit_name(name)) {
    fail(Errc::invalid_argument,
         "'{}' is a commit, which a remote cannot name: keep it as a snapshot first", name);
  }
  VersionToPush out;
  out.name = name;
  if (!store::has_snapshot(store, name) && store::has_branch(store, name)) {
    out.is_branch = true;
    out.head = std::make_unique<store::CheckpointedHead>(
        store, name, followed == nullptr ? nullptr : &(*followed)[name]);
    const store::ResolvedVersion& head = out.head->head();
    out.seen = {head.version.branch_id, head.head_sequence(), head.head_info().time_ns};
    out.entry.is_branch = true;
    out.entry.ref = {name, name, 0, 0, out.head->version()};
    out.entry.encoding = head.encoding;
    return out;
  }
  out.snapshot = std::make_unique<store::KeptVersion>(store::resolve_kept(store, name));
  const store::ResolvedVersion& version = out.snapshot->version;
  out.entry.ref = {name,          version.branch,  version.created_ns,
                   version.order, version.version, version.signature};
  return out;
}

bool is_same_snapshot(const RemoteVersion& there, const RemoteVersion& here) {
  return !there.is_branch && there.ref.branch == here.ref.branch &&
         there.ref.created_ns == here.ref.created_ns && there.ref.version == here.ref.version &&
         there.ref.signature == here.ref.signature;
}

std::size_t runs_in_common(const format::Version& a, const format::Version& b) {
  std::size_t common = 0;
  for (const auto& run : a.runs) {
    common += std::count_if(b.runs.begin(), b.runs.end(),
                            [&](const auto& r) { return r.root == run.root; }) != 0
                  ? 1
                  : 0;
  }
  return common;
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

// Versions of the remote that probably share pieces with this one.
std::set<const RemoteVersion*> related_names(const Head& head, const RemoteVersion& version) {
  std::set<const RemoteVersion*> out;
  if (const RemoteVersion* same = head.find(version.ref.name)) out.insert(same);
  std::vector<std::tuple<std::size_t, const RemoteVersion*>> sharing;
  std::vector<std::tuple<std::uint64_t, const RemoteVersion*>> near;
  for (const RemoteVersion& name : head.versions) {
    const std::size_t common = runs_in_common(name.ref.version, version.ref.version);
    if (common != 0) sharing.emplace_back(SIZE_MAX - common, &name);
    if (name.ref.branch == version.ref.branch || name.ref.name == version.ref.version.parent) {
      near.emplace_back(distance(name.ref.version.sequence, version.ref.version.sequence), &name);
    }
  }
  const auto take = [&](auto& candidates) {
    std::sort(candidates.begin(), candidates.end());
    for (std::size_t i = 0; i < std::min(candidates.size(), kMaxRelated); ++i) {
      out.insert(std::get<1>(candidates[i]));
    }
  };
  take(sharing);
  take(near);
  return out;
}

class Push {
 public:
  Push(Session& session, const PushOptions& options, const ProgressFn& progress,
       const PushRules& rules)
      : session_(session),
        remote_(session.remote()),
        options_(options),
        progress_(progress),
        seen_objects_(rules.seen_objects != nullptr ? *rules.seen_objects : own_seen_objects_),
        own_branches_only_(rules.own_branches_only),
        embeds_(rules.embeds && !options.dry_run),
        asks_each_(rules.seen_objects == nullptr && !options.dry_run),
        uses_embedded_(rules.uses_embedded),
        pool_(std::min(kMaxPushThreads, remote_.objects().connections()) - 1) {
    for (const std::string& name : version_names(session.store(), options)) {
      versions_.push_back(find_version(session.store(), name, followed(rules)));
    }
    // Earlier versions first: the later ones reuse their pieces.
    std::sort(versions_.begin(), versions_.end(),
              [](const VersionToPush& a, const VersionToPush& b) {
                const auto order = [](const VersionToPush& w) {
                  return std::tie(w.entry.ref.branch, w.entry.ref.version.sequence, w.name);
                };
                return order(a) < order(b);
              });
  }

  PushReport run() {
    const auto guess = remote_.cached_head();
    if (guess.has_value() && try_guess(*guess)) return report_;
    if (options_.dry_run) seen_objects_.forget();  // it has counted objects as uploaded
    for (int i = 0; i < kMaxTries; ++i) {
      const bool knew_loss = session_.has_lost();
      StoredHead newest = newest_head();
      if (i == 0 && guess.has_value() && is_lost_since(guess->head, newest.head)) {
        has_lost_heads_ = true;
        if (is_cut_off(*guess, newest.head)) {
          remote_.take_back(newest.head.number);
          newest = newest_head();
        }
      }
      if (!knew_loss && session_.has_lost()) seen_objects_.forget();
      note_lost_heads(newest.head);
      if (try_from(newest, false)) return report_;
    }
    fail(Errc::busy, "{}: other stores have pushed {} times meanwhile", remote_.objects().url(),
         kMaxTries);
  }

 private:
  // A dry run keeps nothing in the store.
  FollowedBranches* followed(const PushRules& rules) {
    return rules.followed != nullptr || options_.dry_run ? rules.followed : &own_followed_;
  }

  // A dry run mends nothing.
  StoredHead newest_head() {
    if (options_.dry_run) return session_.newest_head();
    const bool may_be_damaged = std::exchange(may_be_damaged_, false);
    return may_be_damaged ? session_.mended_newest_head() : session_.readable_newest_head();
  }

  // Pushes with the last head that this store has seen as the base, and checks during the uploads
  // that it is the newest. False: it is not, or refuses a version that the newest one may accept.
  bool try_guess(const StoredHead& guess) {
    try {
      return try_from(guess, true);
    } catch (const Error& e) {
      // not_found: objects of an old head may have been deleted.
      if (e.code() != Errc::busy && e.code() != Errc::already_exists && e.code() != Errc::not_found)
        throw;
    } catch (const HeadSuperseded&) {
    }
    return false;
  }

  bool try_from(StoredHead base, bool is_guess) {
    report_ = {};
    Head next = base.head;
    check_writer(base.head, next);
    if (base.head.number == 0) seen_objects_.forget();
    assumed_objects_.clear();
    assumed_embedded_.clear();
    if (!is_guess) {
      look_at_newest(base.head);
      load_seen_objects(base.head);
    }
    std::vector<VersionToPush*> changed;
    for (VersionToPush& version : versions_) {
      const bool is_there = settle_entry(base.head, version) && is_complete(version.entry);
      report_.versions.push_back({version.name, version.is_branch, is_there, version.entry.epoch});
      if (!is_there) changed.push_back(&version);
    }
    const auto embedded = upload(base, is_guess, changed);
    if (options_.dry_run) return true;
    if (changed.empty()) {
      if (base.head.number != 0) remote_.objects().make_durable(head_key(base.head.number));
      return true;
    }
    for (const VersionToPush* version : changed) put_entry(version->entry, next.versions);
    note(changed, true);
    const auto published = publish(base, std::move(next), *changed.back(), embedded);
    if (!published.has_value()) return false;
    seen_objects_.add_head(published->head);
    session_.published(*published);
    note(changed, false);
    skip_orders_of(session_.store(), base.head);
    return true;
  }

  // Nullopt: the head does not count. After a loss, the same head follows again with a number that no
  // older copy of the remote has: a restore of one that is still going on does not hide it.
  std::optional<StoredHead> publish(const StoredHead& base, Head next, const VersionToPush& last,
                                    std::span<const std::byte> embedded) {
    const std::uint64_t number = session_.number_after_loss();
    next.continues_at = number > base.head.next_number() ? number : 0;
    const bool copies = seen_objects_.wants_copy();
    const Remote::Lists lists = copies ? copied_lists(last) : Remote::Lists();
    const Remote::Lists* const copied = copies ? &lists : nullptr;
    auto out = remote_.publish(base, std::move(next), copied, embedded, &has_lost_heads_);
    if (out.has_value() && out->head.continues_at != 0) {
      const StoredHead first = std::move(*out);
      out = remote_.publish(first, first.head, copied, {}, &has_lost_heads_);
    }
    if (out.has_value() && copies) seen_objects_.note_copy();
    return out;
  }

  // Lists the remote's objects, so that the push does not refer to lost ones. Concurrently writes
  // the superblock if it is missing: the first store that pushes owns the remote.
  void load_seen_objects(const Head& base) {
    seen_objects_.load(remote_, embedded_of_related(base), pool_, [&] { require_superblock(); });
  }

  // Embedded objects that this push may refer to, or compares with.
  std::vector<EmbeddedObject> embedded_of_related(const Head& base) const {
    std::vector<EmbeddedObject> out;
    if (!uses_embedded_ || !has_embedded(base.versions)) return out;
    std::set<const RemoteVersion*> related;
    for (const VersionToPush& version : versions_) {
      related.merge(related_names(base, version.entry));
    }
    for (const RemoteVersion* name : related) {
      out.insert(out.end(), name->embedded.begin(), name->embedded.end());
    }
    return out;
  }

  void require_superblock() const {
    if (options_.dry_run) return require_same_store(remote_.objects(), session_.store());
    session_.restore_superblock();
    session_.follow_key_slots(true);
  }

  // Whether an object exists. Before the listing is loaded, assumes that it does; upload() checks
  // these assumptions.
  bool has(const std::string& key, std::uint64_t size_bytes) const {
    if (seen_objects_.is_known()) return seen_objects_.has(key, size_bytes);
    assumed_objects_.emplace(key, size_bytes);
    return true;
  }
  // The same, of an object that one of these heads may have.
  bool has(const std::string& key, const ContentName& name, std::uint64_t size_bytes,
           const std::vector<EmbeddedObject>& embedded) const {
    return find_embedded(key, name, size_bytes, embedded) != nullptr || has(key, size_bytes);
  }
  bool has_list(const RemoteVersion& version) const {
    return std::ranges::all_of(std::array{version.list.base, version.list.own}, [&](const auto& o) {
      return o.size_bytes == 0 ||
             has(list_key(o.content), o.content, o.size_bytes, version.embedded);
    });
  }

  // Null: none of the heads has it, or the head or this part of it is lost.
  const EmbeddedObject* find_embedded(const std::string& key, const ContentName& name,
                                      std::uint64_t size_bytes,
                                      const std::vector<EmbeddedObject>& embedded) const {
    if (!uses_embedded_ || seen_objects_.has_damaged(key, size_bytes)) return nullptr;
    const auto at =
        std::ranges::find_if(embedded, [&, start = hash_start(name.hash)](const auto& object) {
          return object.hash_start == start && object.size_bytes == size_bytes;
        });
    if (at == embedded.end()) return nullptr;
    if (!seen_objects_.is_known()) {
      assumed_embedded_.insert(*at);
    } else if (!seen_objects_.has(remote_, *at)) {
      return nullptr;
    }
    return &*at;
  }

  // Whether the version that is pushed may refer to an object that `other` refers to. What heads
  // have of a version is kept only as long as its own entry names it.
  bool may_refer(const std::string& key, const ContentName& name, std::uint64_t size_bytes,
                 const RemoteVersion& other) const {
    if (find_embedded(key, name, size_bytes, own_embedded_) != nullptr) return true;
    const bool is_elsewhere = find_embedded(key, name, size_bytes, other.embedded) != nullptr;
    return (!is_elsewhere || seen_objects_.is_known()) && has(key, size_bytes);
  }

  // Whether the remote has the version's list and all of its pieces.
  bool is_complete(const RemoteVersion& version) const {
    if (!has_list(version)) return false;
    try {
      return std::ranges::all_of(remote_.list(version.list), [&](const PieceName& piece) {
        return has(piece_key(piece.content), piece.content, piece.size_bytes, version.embedded);
      });
    } catch (const Error& e) {
      require_damage(e);
    }
    for (const ObjectName& object : {version.list.base, version.list.own}) {
      if (object.size_bytes != 0) seen_objects_.add(list_key(object.content), 0);
    }
    return false;
  }

  // Whether the remote has the version's list, undamaged. (is_complete() reads it and marks a
  // damaged one.)
  bool is_readable(const RemoteVersion& version) const {
    return has_list(version) && (is_complete(version) || has_list(version));
  }

  // Rethrows errors other than damage of an object. REQUIRES: called in the handler of `e`.
  static void require_damage(const Error& e) {
    assert(std::current_exception() != nullptr);
    if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
  }

  void check_writer(const Head& head, Head& next) const {
    const WriteId& me = session_.file().writer;
    if (head.only_writer != WriteId{} && head.only_writer != me) {
      fail(Errc::busy,
           "{}: only the store that created the remote may push to it, since its server lets two "
           "writers win",
           remote_.objects().url());
    }
    if (!session_.file().one_writer || head.only_writer == me) return;
    if (head.number != 0) {
      fail(Errc::busy, "{}: others push to the remote, and its server lets two writers win",
           remote_.objects().url());
    }
    next.only_writer = me;
  }

  // Sets the fields that depend on the head. True: the remote has the version already.
  bool settle_entry(const Head& head, VersionToPush& version) const {
    const RemoteVersion* there = head.find(version.name);
    if (there != nullptr && there->is_branch != version.is_branch) {
      fail(Errc::already_exists, "{}: '{}' is a {} there", remote_.objects().url(), version.name,
           there->is_branch ? "branch" : "snapshot");
    }
    version.entry.write_id = version.is_branch ? random_write_id() : WriteId{};
    if (version.is_branch) return settle_branch(there, version);
    version.entry.writer = there == nullptr ? session_.file().writer : there->writer;
    if (there == nullptr) return false;
    if (is_same_snapshot(*there, version.entry)) {
      version.entry.ref.order = there->ref.order;
      version.entry.list = there->list;
      version.entry.embedded = there->embedded;
      return true;
    }
    fail(Errc::already_exists, "{}: it has another snapshot '{}'", remote_.objects().url(),
         version.name);
  }

  bool settle_branch(const RemoteVersion* there, VersionToPush& version) const {
    assert(version.is_branch && (there == nullptr || there->is_branch));
    const SeenBranch* seen = session_.find(version.name);
    const WriteId& me = session_.file().writer;
    version.entry.writer = me;
    version.entry.epoch = std::max<std::uint64_t>(1, seen == nullptr ? 0 : seen->epoch);
    if (there == nullptr) {
      version.begun = noted_before_push(nullptr, seen, false);
      return false;
    }
    const bool is_known =
        (seen != nullptr && (there->write_id == seen->seen || there->write_id == seen->intended)) ||
        is_own_earlier_push(*there, me, seen, version.seen);
    if (!options_.take_over && (!is_known || (own_branches_only_ && there->writer != me))) {
      refuse_branch(*there, is_known);
    }
    version.begun = noted_before_push(there, seen, is_known);
    version.entry.epoch = is_known ? std::max(there->epoch, version.entry.epoch) : there->epoch + 1;
    version.entry.list = there->list;
    version.entry.embedded = there->embedded;
    const bool unchanged =
        is_known && seen != nullptr &&
        store::SeenHead{seen->branch_id, seen->sequence, seen->time_ns} == version.seen &&
        there->write_id == seen->seen;
    if (unchanged) version.entry.epoch = there->epoch;
    return unchanged;
  }

  [[noreturn]] void refuse_branch(const RemoteVersion& there, bool is_known) const {
    const std::string& url = remote_.objects().url();
    if (is_known) {
      fail(Errc::busy,
           "{}: another store replicates or pushes branch '{}' (commit {}), and this store has a "
           "copy: --take-over makes this store its writer, and ends the other's replication",
           url, there.ref.name, there.ref.version.sequence);
    }
    fail(Errc::busy,
         "{}: another store has pushed branch '{}' (commit {}): pull it, or push with --take-over, "
         "which drops that store's commits",
         url, there.ref.name, there.ref.version.sequence);
  }

  using Questions = std::vector<std::function<void()>>;

  // Uploads the objects of the changed versions, and a name table if one is due. Small objects are
  // uploaded concurrently with the checks that a guessed head is the newest; large ones after them.
  // Returns the objects that become a part of the next head.
  std::vector<std::byte> upload(StoredHead& base, bool is_guess,
                                const std::vector<VersionToPush*>& changed) {
    Questions questions;
    if (is_guess) questions = questions_about(base, !changed.empty());
    const ObjectName old_table = base.head.table;
    const std::string table_key = names_key(old_table.content);
    const bool needs_table = old_table.size_bytes != 0 && !options_.dry_run;
    if (needs_table && !seen_objects_.has(table_key, old_table.size_bytes)) {
      questions.push_back([&] { remote_.restore_table(old_table); });
    }
    bool looks = !seen_objects_.is_known(), lists = false;
    if (!looks && !options_.dry_run) session_.follow_key_slots(false);
    if (looks) questions.push_back([&] { require_superblock(); });
    const auto look_for_objects = [&](bool is_small) {
      if (!std::exchange(looks, false) || seen_objects_.is_known()) return;
      lists = !is_small || !asks_each_ || assumed_objects_.size() > kMaxAsked;
      for (auto& part : lists ? seen_objects_.load_tasks(remote_, embedded_of_related(base.head))
                              : tasks_for_each()) {
        questions.push_back(std::move(part));
      }
    };
    const auto ask = [&] {
      look_for_objects(false);
      for (const auto& question : std::exchange(questions, {})) question();
    };
    Uploads uploads(remote_, seen_objects_, pool_, ask, options_.dry_run);
    std::vector<std::byte> embedded = make_objects(base.head, changed, uploads);
    const auto table = changed.empty() ? std::nullopt : remote_.make_table(base);
    if (table.has_value()) uploads.add(table->key, table->bytes);
    look_for_objects(true);
    uploads.finish(questions);
    if (lists) seen_objects_.finish_loading();
    if (needs_table) seen_objects_.add(table_key, old_table.size_bytes);
    for (const auto& [key, size_bytes] : assumed_objects_)
      require_newest(seen_objects_.has(key, size_bytes));
    for (const EmbeddedObject& object : assumed_embedded_)
      require_newest(seen_objects_.has(remote_, object));
    require_newest(!is_guess || !uploads.has_found_damage());
    if (table.has_value()) table->use(base);
    report_.objects_uploaded = uploads.objects();
    report_.bytes_uploaded = uploads.bytes() + embedded.size();
    return embedded;
  }

  // Whether the guessed head is the newest. REQUIRES: `guess` outlives them.
  Questions questions_about(const StoredHead& guess, bool has_changes) {
    Questions out;
    // Of each number, there is only one head: the next one shows whether the guess was the newest.
    // Whether it still exists is asked after that put (Remote::publish()).
    const bool tries = has_changes && !options_.dry_run && is_own_last(guess);
    if (!tries) {
      out.push_back([&] { require_newest(remote_.newest_number() == guess.head.number); });
    }
    if (!tries || seen_objects_.wants_look()) {
      out.push_back([&, has_changes] { look_at_guess(guess, has_changes); });
    }
    return out;
  }

  // Looks for each object that this push assumes to exist.
  Questions tasks_for_each() {
    Questions out =
        seen_objects_.look_tasks(remote_, {assumed_embedded_.begin(), assumed_embedded_.end()});
    for (const auto& [key, size_bytes] : assumed_objects_) {
      out.push_back([this, key, size_bytes] { seen_objects_.look_for(remote_, key, size_bytes); });
    }
    return out;
  }

  // Whether the remote has the guessed head, and that of the last look. A push that changes nothing
  // relies on it.
  void look_at_guess(const StoredHead& guess, bool has_changes) {
    if (has_changes) {
      require_newest(remote_.has_head(guess.head.id()));
    } else if (guess.head.number != 0 && !remote_.has_sound_head(guess)) {
      may_be_damaged_ = true;
      require_newest(false);
    }
    look(guess.head);
    require_newest(!has_lost_heads_);
  }

  // The same, of a head that was read. gc of the remote deletes objects and heads, and begins a
  // generation.
  void look_at_newest(const Head& newest) {
    const auto last = seen_objects_.last_look();
    if (last.has_value() && last->generation != newest.generation) seen_objects_.forget();
    if (newest.number != 0) look(newest);
    note_lost_heads(newest);
  }

  void note_lost_heads(const Head& newest) {
    if (std::exchange(has_lost_heads_, false)) {
      session_.note_lost(newest);
      seen_objects_.forget();
    }
    if (session_.has_lost()) uses_embedded_ = false;
  }

  // Each push asks for the head before its own. A restore that went on during a push may have kept
  // that head, and lost earlier ones: the head of the last look must exist, too.
  void look(const Head& head) {
    const auto last = seen_objects_.last_look();
    if (last.has_value() && last->generation == head.generation &&
        is_lost(last->newest_head, head)) {
      has_lost_heads_ = true;
    }
    seen_objects_.note_look({head.id(), head.generation});
  }

  // Whether the newest head does not follow this one, which the store has seen earlier in the same
  // generation.
  bool is_lost_since(const Head& seen, const Head& newest) const {
    return seen.number != 0 && newest.number != 0 && seen.generation == newest.generation &&
           is_lost(seen.id(), newest);
  }
  // Whether a push of this store has published that head after one that was lost, and was interrupted
  // before it removed it again. It hides what others have published since.
  bool is_cut_off(const StoredHead& before, const Head& head) const {
    return !options_.dry_run && head.before == before.hash &&
           std::ranges::any_of(session_.file().branches, [&](const SeenBranch& branch) {
             const RemoteVersion* const there = head.find(branch.name);
             return branch.intended != WriteId{} && there != nullptr &&
                    there->write_id == branch.intended;
           });
  }
  // gc deletes the witness before a later head. An older Vellum has none.
  bool is_lost(const HeadId& seen, const Head& newest) const {
    if (seen == newest.id() || newest.witness().number == 0) return false;
    return !remote_.has_head(seen) && remote_.has_head(newest.witness());
  }

  // The lists of the last version, if they are a small part of the push.
  Remote::Lists copied_lists(const VersionToPush& version) const {
    const auto& [base_list, own] = version.entry.list;
    if (base_list.size_bytes + own.size_bytes > report_.bytes_uploaded / kCopiedShare) return {};
    return remote_.cached_lists(version.entry.list);
  }

  // Whether this store has published the head, and nothing since. After an interrupted push it may
  // have: note() must not replace what identifies that push before the newest head was read.
  bool is_own_last(const StoredHead& head) const {
    const RemoteFile& file = session_.file();
    return file.head_number == head.head.number && file.head_hash == head.hash &&
           std::ranges::all_of(file.branches, [](const SeenBranch& branch) {
             return branch.intended == WriteId{};
           });
  }

  static void require_newest(bool is_newest) {
    if (!is_newest) throw HeadSuperseded();
  }

  // Returns the objects that become a part of the next head; the others are added to the uploads.
  std::vector<std::byte> make_objects(const Head& head, const std::vector<VersionToPush*>& changed,
                                      Uploads& uploads) {
    std::vector<std::byte> embedded;
    // A restore that is still going on may replace the first head after a loss.
    const bool embeds = embeds_ && head.number != 0 && session_.number_after_loss() == 0 &&
                        changed.size() == 1 && changed[0]->is_branch;
    own_embedded_.clear();
    if (const RemoteVersion* there = embeds ? head.find(changed[0]->name) : nullptr) {
      own_embedded_ = there->embedded;
    }
    KnownPieces known;
    BaseLists bases;
    PieceMaker maker(session_.store(), remote_, seen_objects_, head.generation, pool_, progress_);
    for (VersionToPush* version : changed) {
      learn_pieces(head, *version, known, bases);
      const auto needed = records_of_version(session_.store(), version->entry.ref.version);
      KnownPieces::PiecePlan plan = known.plan(needed);
      report_.pieces_used_again += plan.used.size();
      std::vector<PieceRecord> missing;
      for (const std::size_t i : plan.missing) missing.push_back(needed[i]);
      const std::uint64_t most_bytes =
          std::min(kMaxOpeningBytes, records_bytes(missing) / kOpeningShare);
      const UsedRecords used = used_by_last(*version, needed);
      // With a listing, pieces of an interrupted push are not uploaded again; for few pieces it
      // does not pay.
      if (records_bytes(missing) >= kMinBytesToList) load_seen_objects(head);
      for (const auto& records : split_by_use(std::move(missing), used.records)) {
        for (const MadePiece& piece : maker.make(records, uploads)) {
          known.add(piece.name, piece.records);
          plan.used.push_back(known.id_of(piece.name));
        }
      }
      VersionPieces pieces;
      pieces.list = known.list(plan.used);
      known.require_records(pieces.list, needed);
      pieces.opening = opening_data(
          known.spans(pieces.list),
          opening_records(session_.store(), version->entry.ref.version, needed, most_bytes));
      pieces.in_use = {used.pages, known.pieces_with(pieces.list, used.records)};
      version->entry.list = make_list(head, pieces, bases, uploads);
      version->entry.embedded.clear();
      if (embeds) embedded = embed(head.next_number(), pieces.list, version->entry, uploads);
    }
    return embedded;
  }

  // Takes small objects out of the uploads, for the next head, and names all objects of the version
  // that heads have.
  std::vector<std::byte> embed(std::uint64_t number, const PieceList& pieces, RemoteVersion& entry,
                               Uploads& uploads) const {
    const auto small = uploads.take_small(kMaxEmbeddedBytes);
    std::vector<std::byte> out;
    const auto add = [&](const std::string& key, const ContentName& name,
                         std::uint64_t size_bytes) {
      if (const auto fresh = small.find(key); fresh != small.end()) {
        entry.embedded.push_back({number, 0, out.size(), size_bytes, hash_start(name.hash)});
        out.insert(out.end(), fresh->second.begin(), fresh->second.end());
      } else if (const auto* old = find_embedded(key, name, size_bytes, own_embedded_)) {
        entry.embedded.push_back(*old);
      }
    };
    for (const PieceName& piece : pieces) {
      add(piece_key(piece.content), piece.content, piece.size_bytes);
    }
    for (const ObjectName& list : {entry.list.base, entry.list.own}) {
      if (list.size_bytes != 0) add(list_key(list.content), list.content, list.size_bytes);
    }
    std::ranges::sort(entry.embedded);
    return out;
  }

  UsedRecords used_by_last(const VersionToPush& version,
                           const std::vector<PieceRecord>& needed) const {
    auto recorded = store::read_working_set(session_.store(), version.name,
                                            store::working_set_owner(version.resolved()));
    return used_records(session_.store(), version.entry.ref.version, std::move(recorded), needed);
  }

  // The records of a working set, if they are many, and the rest; both ascend.
  static std::vector<std::vector<PieceRecord>> split_by_use(std::vector<PieceRecord> records,
                                                            const std::vector<PieceRecord>& used) {
    std::set<format::RecordRef> refs;
    for (const PieceRecord& record : used) refs.insert(record.ref);
    std::vector<PieceRecord> in_use, rest;
    for (const PieceRecord& record : records) {
      (refs.contains(record.ref) ? in_use : rest).push_back(record);
    }
    if (rest.empty() || records_bytes(in_use) < kMinBytesInUse) return {std::move(records)};
    return {std::move(in_use), std::move(rest)};
  }

  // Adds the pieces and lists of related versions to `known` and `bases`. Indices that are not
  // cached are fetched concurrently.
  void learn_pieces(const Head& head, const VersionToPush& version, KnownPieces& known,
                    BaseLists& bases) {
    PieceList pieces;
    for (const RemoteVersion* name : related_names(head, version.entry)) {
      if (!is_readable(*name)) continue;
      const VersionPieces there = remote_.pieces_of(name->list);
      for (const PieceName& piece : there.list) {
        if (!known.has(piece) &&
            may_refer(piece_key(piece.content), piece.content, piece.size_bytes, *name)) {
          pieces.push_back(piece);
        }
      }
      const auto& [base, own] = name->list;
      const ObjectName& whole = base.size_bytes != 0 ? base : own;
      if (whole.size_bytes == 0 ||
          !may_refer(list_key(whole.content), whole.content, whole.size_bytes, *name)) {
        continue;
      }
      if (base.size_bytes != 0) {
        bases.add(base, remote_.base_list(base));
      } else {
        bases.add(own, std::make_shared<BaseList>(own.content.hash, there));
      }
    }
    std::sort(pieces.begin(), pieces.end());
    pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
    std::vector<std::vector<PieceRecord>> indices(pieces.size());
    pool_.parallel_for(pieces.size(), [&](std::size_t i, std::size_t) {
      try {
        indices[i] = remote_.piece_index(pieces[i]);
      } catch (const Error& e) {
        require_damage(e);
        seen_objects_.add(piece_key(pieces[i].content), 0);
      }
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!indices[i].empty()) known.add(pieces[i], indices[i]);
    }
  }

  // With the roots in its list, a version opens without reading a piece.
  OpeningData opening_data(std::vector<std::vector<PackSpan>> spans,
                           std::vector<PieceRecord> records) const {
    OpeningData out;
    out.spans = std::move(spans);
    out.roots = std::move(records);
    for (const PieceRecord& record : out.roots) {
      const auto bytes = read_record_bytes(session_.store(), record);
      out.root_bytes.insert(out.root_bytes.end(), bytes.begin(), bytes.end());
    }
    return out;
  }

  ListName make_list(const Head& head, const VersionPieces& pieces, BaseLists& bases,
                     Uploads& uploads) const {
    if (pieces.list.empty()) return {};
    auto [base, bytes] = bases.encode(pieces, remote_.file_seal());
    const ObjectName own{{head.generation, base::sha256(bytes)}, bytes.size()};
    if (base.size_bytes == 0) bases.add(own, std::make_shared<BaseList>(own.content.hash, pieces));
    remote_.keep_in_cache(list_key(own.content), bytes);
    uploads.add(list_key(own.content), std::move(bytes));
    return {base, own};
  }

  static void put_entry(const RemoteVersion& entry, std::vector<RemoteVersion>& names) {
    const auto at = std::lower_bound(
        names.begin(), names.end(), entry.ref.name,
        [](const RemoteVersion& n, const std::string& name) { return n.ref.name < name; });
    if (at != names.end() && at->ref.name == entry.ref.name) {
      *at = entry;
    } else {
      names.insert(at, entry);
    }
  }

  // `intended`: before publishing, so that an interrupted push is recognized. Otherwise afterwards.
  void note(const std::vector<VersionToPush*>& changed, bool intended) {
    std::vector<SeenBranch> branches;
    for (const VersionToPush* version : changed) {
      if (!version->is_branch) continue;
      SeenBranch branch;
      if (intended) {
        branch = version->begun;
        branch.intended = version->entry.write_id;
      } else {
        branch.seen = version->entry.write_id;
        branch.branch_id = version->seen.branch_id;
        branch.sequence = version->seen.sequence;
        branch.time_ns = version->seen.time_ns;
      }
      branch.name = version->name;
      branch.epoch = version->entry.epoch;
      branches.push_back(branch);
    }
    session_.note(branches);
  }

  Session& session_;
  const Remote& remote_;
  const PushOptions& options_;
  const ProgressFn& progress_;
  SeenObjects own_seen_objects_;
  SeenObjects& seen_objects_;
  mutable std::map<std::string, std::uint64_t> assumed_objects_;  // see has(); with their sizes
  mutable std::set<EmbeddedObject> assumed_embedded_;
  bool may_be_damaged_ = false;  // the newest head; set by one thread during upload()
  bool has_lost_heads_ = false;  // the remote; set by one thread during upload()
  const bool own_branches_only_, embeds_;
  const bool asks_each_;  // no later push of this process needs a listing
  bool uses_embedded_;
  std::vector<EmbeddedObject> own_embedded_;  // of the version's entry in the base, if it may stay
  base::ThreadPool pool_;
  FollowedBranches own_followed_;
  std::vector<VersionToPush> versions_;
  PushReport report_;
};

}  // namespace

PushReport push(Session& session, const PushOptions& options, const ProgressFn& progress,
                const PushRules& rules) {
  session.require_lock();
  PushReport out = Push(session, options, progress, rules).run();
  // A process that pushes repeatedly does it by itself. What it finds is a warning of the session:
  // the push has published.
  if (rules.seen_objects == nullptr && !options.dry_run) renew_locks_if_due(session);
  return out;
}

}  // namespace vellum::remote
