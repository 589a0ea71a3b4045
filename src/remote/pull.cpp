#include "remote/pull.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <map>
#include <optional>
#include <set>

#include "base/fail.hpp"
#include "remote/expected_root.hpp"
#include "remote/holds.hpp"
#include "remote/pieces/make_in_order.hpp"
#include "remote/pieces/new_pack.hpp"
#include "remote/pieces/pack_filler.hpp"
#include "remote/session/branch_relation.hpp"
#include "remote/session/missing_pieces.hpp"
#include "remote/session/own_objects.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/gc/reach/roots.hpp"
#include "store/signature/signed_versions.hpp"

namespace vellum::remote {
namespace {

using namespace std::chrono_literals;
constexpr auto kGcWait = 30s;
constexpr std::size_t kMaxReadingThreads = 16;  // each holds a piece in memory

constexpr int kMaxPullTries = 1000;  // each fails since a gc of the remote has begun

// A pull may replace pack files: this excludes gc, and commits that refer to records which no
// version needs yet.
store::GcExclusive hold_what_gc_holds(store::StoreDirectory& store) {
  return store::GcExclusive(store, kGcWait);
}

// Whether the store is a lazy clone of this remote.
bool is_lazy(const Session& session) {
  return session.name() == kDefaultRemoteName &&
         has_missing_pieces(session.store().fs(), session.store().path());
}

// The store has another version of a name. Other names are still pulled.
struct Refusal : Error {
  using Error::Error;
};

template <typename... Args>
[[noreturn]] void refuse(Errc code, fmt::format_string<Args...> text, Args&&... args) {
  throw Refusal(code, fmt::format(text, std::forward<Args>(args)...));
}

class Pull {
 public:
  Pull(Session& session, const PullOptions& options, const ProgressFn& progress)
      : store_(session.store()),
        session_(session),
        remote_(session.remote()),
        progress_(progress),
        takes_over_(options.take_over),
        dry_run_(options.dry_run),
        is_lazy_(is_lazy(session)),
        threads_(std::min(kMaxReadingThreads, remote_.objects().connections())) {
    remembers_ = options.only_newer;
    newest_ = session.newest_head(options.only_newer && !takes_over_);
    head_ = newest_.head;
    if (const std::string problem = session.going_back(newest_); !problem.empty() && !takes_over_)
      session.warn(problem);
    for (const std::string& name : options.versions) {
      const RemoteVersion* found = head_.find(name);
      if (found == nullptr) {
        fail(Errc::not_found, "{}: the remote has no version '{}'", remote_.objects().url(), name);
      }
      wanted_.push_back(found);
    }
    if (options.versions.empty()) {
      for (const RemoteVersion& name : head_.versions) wanted_.push_back(&name);
    }
    std::sort(wanted_.begin(), wanted_.end(), [](const RemoteVersion* a, const RemoteVersion* b) {
      return std::tie(a->is_branch, a->ref.order, a->ref.name) <
             std::tie(b->is_branch, b->ref.order, b->ref.name);
    });
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
    claim_root_ = claims_of_root(wanted_, options.expect_root, remote_.objects().url());
  }

  // False: a gc of the remote has begun meanwhile, and the store is unchanged.
  bool run() {
    std::vector<const RemoteVersion*> to_do;
    for (const RemoteVersion* name : wanted_) {
      if (name->is_branch) settle_cut_off(*name);
      PulledVersion pulled{name->ref.name, name->is_branch, false, false, false};
      const Action action = action_or_refusal(*name);
      if (action == Action::refuse) continue;
      pulled.was_there = action == Action::nothing || action == Action::note;
      pulled.is_older = action == Action::leave_newer;
      pulled.is_ahead = action == Action::leave || pulled.is_older;
      report_.versions.push_back(pulled);
      if (action == Action::get) to_do.push_back(name);
      if (action == Action::note && !dry_run_) note(*name);
    }
    if (!dry_run_) skip_orders_of(store_, head_);
    if (to_do.empty() || (dry_run_ && is_lazy_)) {
      if (!dry_run_) finish();
      return true;
    }
    const store::GcExclusive no_gc = hold_what_gc_holds(store_);
    if (dry_run_) {
      count_pieces(to_do);
      return true;
    }
    if (is_lazy_ && !note_pieces(to_do)) return false;
    for (const RemoteVersion* name : to_do) {
      if (!is_lazy_) with_context("'" + name->ref.name + "'", [&] { fetch(*name); });
      publish(*name);
      note_working_set(*name);
    }
    finish();
    return true;
  }
  // Throws if a name was refused. The others have been pulled.
  PullReport report() {
    if (refusals_.empty()) return std::move(report_);
    const Refusal& first = refusals_.front();
    if (report_.versions.empty()) throw first;
    fail(first.code(), "{}{}{}", first.what(),
         refusals_.size() == 1 ? "" : fmt::format(" (and {} more like it)", refusals_.size() - 1),
         dry_run_ ? "" : " (the other versions are pulled)");
  }

 private:
  void finish() {
    require_root(store_, claim_root_, remote_.objects().url());
    const bool accepts_loss = takes_over_ && session_.number_after_loss() != 0;
    if (remembers_ || accepts_loss || session_.remembers(newest_))
      session_.note_seen(newest_, takes_over_);
  }

  // leave_newer: the remote has lost commits that the store has. note: the store has not noted that
  // the remote has the same head.
  enum class Action { nothing, leave, leave_newer, get, note, refuse };

  Action action_or_refusal(const RemoteVersion& name) {
    try {
      return action_for(name);
    } catch (const Refusal& e) {
      refusals_.push_back(e);
      return Action::refuse;
    }
  }

  // An interrupted pull may have changed the branch without noting it. Then the branch has the head
  // of that pull, even if the remote has another one by now: notes it.
  void settle_cut_off(const RemoteVersion& name) {
    assert(name.is_branch);
    const std::string& wanted = name.ref.name;
    const SeenBranch* seen = session_.find(wanted);
    if (seen == nullptr || seen->pulling == WriteId{} || !store::has_branch(store_, wanted)) return;
    SeenBranch now = *seen;
    if (now.pulled_sequence == 0 && now.pulled_time_ns == 0 && now.pulling == name.write_id) {
      now.pulled_sequence = name.ref.version.sequence;  // noted by an older Vellum
      now.pulled_time_ns = name.ref.version.time_ns;
      now.pulled_epoch = name.epoch;
    }
    const auto here = store::seen_head(store_.read_branch(wanted).journal);
    if (here.sequence != now.pulled_sequence || here.time_ns != now.pulled_time_ns) return;
    session_.note({seen_branch(wanted, now.pulling, here, now.pulled_epoch)});
  }

  Action action_for(const RemoteVersion& name) const {
    const std::string& wanted = name.ref.name;
    if (store::has_snapshot(store_, wanted)) {
      if (!name.is_branch) {
        const format::SnapshotRef here = store::read_snapshot(store_, wanted);
        if (here.version == name.ref.version && here.created_ns == name.ref.created_ns &&
            here.signature == name.ref.signature) {
          return Action::nothing;
        }
      }
      refuse(Errc::already_exists, "{} has another version '{}' than {}", store_.path(), wanted,
             remote_.objects().url());
    }
    if (!name.is_branch && !store::may_be_snapshot(store_, name.ref)) {
      refuse(Errc::untrusted, "snapshot '{}' at {} has no signature that branch '{}' of {} accepts",
             wanted, remote_.objects().url(), name.ref.branch, store_.path());
    }
    if (!store::has_branch(store_, wanted)) return Action::get;
    if (!name.is_branch) {
      refuse(Errc::already_exists, "{} has a branch '{}', and {} a snapshot", store_.path(), wanted,
             remote_.objects().url());
    }
    return action_for_branch(name);
  }

  Action action_for_branch(const RemoteVersion& name) const {
    assert(name.is_branch);
    const SeenBranch* seen = session_.find(name.ref.name);
    const auto here = store::seen_head(store_.read_branch(name.ref.name).journal);
    const bool is_changed =
        seen == nullptr || here != store::SeenHead{seen->branch_id, seen->sequence, seen->time_ns};
    if (seen != nullptr && (name.write_id == seen->seen || name.write_id == seen->intended)) {
      return is_changed ? Action::leave : Action::nothing;
    }
    if (is_same_head(name, seen)) return Action::note;
    if (takes_over_) return Action::get;
    if (is_own_earlier_push(name, session_.file().writer, seen, here)) return Action::leave_newer;
    if (is_changed) refuse_both_changed(name);
    assert(seen != nullptr);  // without it the branch counts as changed
    switch (relation_of(name, *seen, here)) {
      case BranchRelation::newer:
        return Action::get;
      case BranchRelation::older:
        return Action::leave_newer;
      case BranchRelation::diverged:
        break;
    }
    refuse(
        Errc::io,
        "branch '{}': another store has taken it over at {}, and dropped commits that {} has: pull "
        "with --take-over drops them, too (first name them with `vellum snapshot` or `vellum "
        "branch`)",
        name.ref.name, remote_.objects().url(), store_.path());
  }

  // Whether the branch has the remote's version already, by an interrupted pull or an own push.
  bool is_same_head(const RemoteVersion& name, const SeenBranch* seen) const {
    const store::JournalState journal = store_.read_branch(name.ref.name).journal;
    const store::SeenHead here = store::seen_head(journal);
    const format::Version& there = name.ref.version;
    if (here.sequence != there.sequence || here.time_ns != there.time_ns) return false;
    return (seen != nullptr && name.write_id == seen->pulling) ||
           name.writer == session_.file().writer ||
           (journal.commits.empty() && journal.base.runs == there.runs);
  }

  [[noreturn]] void refuse_both_changed(const RemoteVersion& name) const {
    refuse(Errc::io,
           "branch '{}' has changed both in {} and at {}: keep one of the two under another name "
           "(`vellum branch`) and pull again, or push or pull with --take-over, which drops the "
           "other's commits",
           name.ref.name, store_.path(), remote_.objects().url());
  }

  PackFiller& filler() {
    if (!filler_.has_value()) filler_.emplace(store_);
    return *filler_;
  }

  // Writes the version's records to the packs, durable.
  void fetch(const RemoteVersion& name) {
    const VersionPieces pieces = remote_.pieces_of(name.list);
    in_use_[&name] = pieces.in_use.ranges;
    fetch_pieces(pieces.list);
    filler().finish();
    create_empty_packs(store_, name.ref.version);
    filler().require_all(name.ref.version);
  }

  void fetch_pieces(const PieceList& pieces) {
    PackFiller& packs = filler();
    for (const PieceName& piece : pieces) total_bytes_ += piece.size_bytes;
    make_in_order(
        threads_, pieces.size(), [&](std::size_t i) { return fetch_one(pieces[i], packs); },
        [&](std::size_t i, const PulledPiece& fetched) {
          add(pieces[i], fetched, packs);
          done_bytes_ += pieces[i].size_bytes;
        },
        [&] {
          if (progress_) progress_({done_bytes_, total_bytes_, "bytes"});
        });
  }

  // Adds the pieces that fetch_pieces() would fetch to the report. Those of several versions count
  // once.
  void count_pieces(const std::vector<const RemoteVersion*>& to_do) {
    std::set<PieceName> pieces;
    for (const RemoteVersion* name : to_do) {
      const PieceList list = remote_.list(name->list);
      pieces.insert(list.begin(), list.end());
    }
    for (const PieceName& piece : pieces) {
      if (has_all(remote_.cached_piece_index(piece), filler())) continue;
      ++report_.pieces_read;
      report_.bytes_read += piece.size_bytes;
    }
  }

  bool has_all(const std::optional<std::vector<PieceRecord>>& index,
               const PackFiller& filler) const {
    return index.has_value() && std::ranges::all_of(*index, [&](const PieceRecord& record) {
             return has(filler, record);
           });
  }

  // For a lazy clone: adds the versions' pieces to the list of missing pieces before a version
  // needs them, and fetches the records of packs that are files of the store. False: a gc of the
  // remote may not have read the hold.
  bool note_pieces(const std::vector<const RemoteVersion*>& to_do) {
    VersionPieces missing = read_missing_pieces(store_.fs(), store_.path(), store_.file_seal());
    VersionPieces fresh;
    for (const RemoteVersion* name : to_do) {
      const VersionPieces pieces = remote_.pieces_of(name->list);
      in_use_[name] = pieces.in_use.ranges;
      add_pieces(fresh, pieces);
    }
    const bool is_new = add_pieces(missing, fresh);
    if (is_new) {
      const auto lost = give_own_pieces(remote_, fresh.list);
      if (!lost.empty()) {  // a gc may have deleted its head
        if (has_gc_begun()) return false;
        fail(Errc::corrupted, "{}: it is lost or damaged in its head",
             remote_.name_of(piece_key(lost.front().content)));
      }
      put_hold(session_, missing.list);
      if (has_gc_begun()) return false;
    }
    fetch_for_files(fresh);
    if (is_new) write_missing_pieces(store_, missing);
    store_.packs().refresh();
    for (const RemoteVersion* name : to_do) create_empty_packs(store_, name->ref.version);
    return true;
  }

  bool has_gc_begun() const {
    return remote_.newest_number() != head_.number &&
           remote_.newest_head().head.generation != head_.generation;
  }

  void fetch_for_files(const VersionPieces& fresh) {
    const auto roots = store::read_roots(store_);
    files_ = {roots.packs.begin(), roots.packs.end()};
    PieceList pieces;
    for (std::size_t i = 0; i < fresh.list.size(); ++i) {
      const auto& spans = fresh.opening.spans[i];
      for (const PackSpan& span : spans) {
        if (!files_.contains(span.pack)) require_not_ours(store_, roots, span.pack);
      }
      if (std::ranges::any_of(spans, [&](const PackSpan& s) { return files_.contains(s.pack); })) {
        pieces.push_back(fresh.list[i]);
      }
    }
    if (pieces.empty()) return;
    fetch_pieces(pieces);
    filler().finish();
  }

  // Whether the record need not be fetched: the store has it, or it belongs to a remote pack.
  bool has(const PackFiller& filler, const PieceRecord& record) const {
    return (is_lazy_ && !files_.contains(record.ref.pack)) || filler.has(record);
  }

  struct PulledPiece {
    FetchedPiece piece;  // without bytes: the store has all records
    std::vector<bool> missing;
  };

  // Fetches the whole piece unless the store has all records of a known index: usually most records
  // of a new piece are missing.
  PulledPiece fetch_one(const PieceName& name, const PackFiller& filler) const {
    PulledPiece out;
    std::optional<std::vector<PieceRecord>> known = remote_.cached_piece_index(name);
    if (is_lazy_ && !known.has_value()) known = remote_.piece_index(name);
    if (has_all(known, filler)) return out;
    out.piece = remote_.piece(name);
    remote_.require_records(name, out.piece, [&](const PieceRecord& record) {
      out.missing.push_back(!has(filler, record));
      return out.missing.back();
    });
    return out;
  }

  // REQUIRES: calls ascend by the first pack of the piece.
  void add(const PieceName& name, const PulledPiece& fetched, PackFiller& filler) {
    const FetchedPiece& piece = fetched.piece;
    if (piece.bytes.empty()) return;
    filler.finish_below(piece.records.front().ref.pack);
    auto missing = fetched.missing.begin();
    for_records(piece.records, piece.bytes, static_cast<std::size_t>(name.index_bytes),
                [&](const PieceRecord& record, std::span<const std::byte> bytes, std::size_t) {
                  if (*missing++) filler.add(record, bytes);
                });
    ++report_.pieces_read;
    report_.bytes_read += piece.bytes.size();
  }

  void publish(const RemoteVersion& name) {
    const std::string& wanted = name.ref.name;
    if (!name.is_branch) {
      store_.create_snapshot(wanted, name.ref);
      return;
    }
    // Identifies this pull if it is interrupted after the change of the branch; see
    // settle_cut_off().
    SeenBranch before;
    if (const SeenBranch* seen = session_.find(wanted)) before = *seen;
    before.name = wanted;
    before.pulling = name.write_id;
    store::SeenHead replaced{before.branch_id, before.sequence, before.time_ns};
    if (takes_over_ && store::has_branch(store_, wanted)) {
      replaced = store::seen_head(store_.read_branch(wanted).journal);
    }
    before.pulled_sequence = name.ref.version.sequence;
    before.pulled_time_ns = name.ref.version.time_ns;
    before.pulled_epoch = name.epoch;
    session_.note({before});
    if (!store::has_branch(store_, wanted)) {
      store_.create_branch_at(wanted, name.ref.version, name.ref.version.parent, name.encoding);
    } else if (!store::adopt_version(store_, wanted, replaced, name.ref.version)) {
      fail(Errc::busy, "branch '{}' of {} has changed meanwhile", wanted, store_.path());
    }
    note(name);
  }

  // A local record takes precedence.
  void note_working_set(const RemoteVersion& name) {
    const std::string& wanted = name.ref.name;
    const auto& ranges = in_use_[&name];
    if (ranges.empty()) return;
    const auto owner = store::working_set_owner(store::resolve_version(store_, wanted));
    if (!store::read_working_set(store_, wanted, owner).empty()) return;
    store::write_working_set(store_, wanted, {owner, ranges});
  }

  void note(const RemoteVersion& name) {
    assert(name.is_branch);
    const auto now = store::seen_head(store_.read_branch(name.ref.name).journal);
    session_.note({seen_branch(name.ref.name, name.write_id, now, name.epoch)});
  }

  static SeenBranch seen_branch(const std::string& name, const WriteId& write_id,
                                const store::SeenHead& head, std::uint64_t epoch) {
    SeenBranch out;
    out.name = name;
    out.seen = write_id;
    out.branch_id = head.branch_id;
    out.sequence = head.sequence;
    out.time_ns = head.time_ns;
    out.epoch = epoch;
    return out;
  }

  store::StoreDirectory& store_;
  Session& session_;
  const Remote& remote_;
  const ProgressFn& progress_;
  const bool takes_over_, dry_run_, is_lazy_;
  bool remembers_ = false;
  const std::size_t threads_;
  StoredHead newest_;
  Head head_;
  std::vector<const RemoteVersion*> wanted_;
  std::vector<const RemoteVersion*> claim_root_;  // those that claim the expected root
  std::optional<PackFiller> filler_;              // it reads the page maps of the whole store
  std::set<std::uint64_t> files_;                 // packs that a lazy clone has
  std::map<const RemoteVersion*, std::vector<format::PageRange>> in_use_;  // of the lists
  std::atomic<std::uint64_t> done_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;  // of all pieces of all calls of fetch_pieces()
  PullReport report_;
  std::vector<Refusal> refusals_;  // of names that the store has for other versions
};

}  // namespace

PullReport pull(Session& session, const PullOptions& options, const ProgressFn& progress) {
  if (options.dry_run && options.packs) {
    fail(Errc::invalid_argument, "a dry run of a pull does not count the packs of a lazy clone");
  }
  if (!options.expect_root.empty() && (options.dry_run || is_lazy(session))) {
    fail(Errc::invalid_argument,
         "an expected root is compared with the content: not by a dry run, nor in a lazy clone");
  }
  for (int i = 0; i < kMaxPullTries; ++i) {
    Pull attempt(session, options, progress);
    if (!attempt.run()) continue;
    PullReport report = attempt.report();
    if (options.dry_run) return report;
    if (!options.packs) {
      const store::StoreDirectory& store = session.store();
      if (is_lazy(session)) {
        restore_hold(session,
                     read_missing_pieces(store.fs(), store.path(), store.file_seal()).list);
      }
      return report;
    }
    if (is_lazy(session)) {
      const store::GcExclusive no_gc = hold_what_gc_holds(session.store());
      materialize_packs(session, report, progress);
    }
    return report;
  }
  fail(Errc::busy, "{}: gc has begun there {} times meanwhile", session.remote().objects().url(),
       kMaxPullTries);
}

}  // namespace vellum::remote
