#include "remote/pull.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/thread_pool.hpp"
#include "remote/pieces/pack_filler.hpp"
#include "store/branch/adopt_version.hpp"
#include "store/lock/patience.hpp"
#include "store/lock/version_pin.hpp"

namespace vellum::remote {
namespace {

using namespace std::chrono_literals;
constexpr auto kGcWait = 30s;
constexpr std::size_t kMostReadingThreads = 16;  // each holds a piece in memory

store::VersionPin wait_for_gc(store::StoreCore& store) {
  store::VersionPin pin;
  const bool held = store::lock_with_patience(kGcWait, [&] {
    pin = store::keep_gc_out(store);
    return pin != nullptr;
  });
  if (!held) fail(Errc::busy, "{}: a gc is at work, and does not end", store.path());
  return pin;
}

class Pull {
 public:
  Pull(Session& session, const PullOptions& options, const ProgressFn& progress)
      : store_(session.store()),
        session_(session),
        remote_(session.remote()),
        progress_(progress),
        pool_(std::min(kMostReadingThreads, remote_.objects().connections()) - 1) {
    head_ = remote_.newest_head().head;
    for (const std::string& name : options.versions) {
      const RemoteName* found = head_.find(name);
      if (found == nullptr) {
        fail(Errc::not_found, "{}: the remote has no version '{}'", remote_.objects().url(), name);
      }
      wanted_.push_back(found);
    }
    if (options.versions.empty()) {
      for (const RemoteName& name : head_.names) wanted_.push_back(&name);
    }
    // Snapshots get their order anew, so they come in that of the remote.
    std::sort(wanted_.begin(), wanted_.end(), [](const RemoteName* a, const RemoteName* b) {
      return std::tie(a->is_branch, a->ref.order, a->ref.name) <
             std::tie(b->is_branch, b->ref.order, b->ref.name);
    });
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
  }

  PullReport run() {
    std::vector<const RemoteName*> to_do;
    for (const RemoteName* name : wanted_) {
      PulledVersion pulled{name->ref.name, name->is_branch, false, false};
      const Action action = action_for(*name);
      pulled.was_there = action == Action::nothing || action == Action::note;
      pulled.is_ahead = action == Action::leave;
      report_.versions.push_back(pulled);
      if (action == Action::get) to_do.push_back(name);
      if (action == Action::note) note(*name);
    }
    if (to_do.empty()) return report_;
    const store::VersionPin no_gc = wait_for_gc(store_);
    PackFiller filler(store_);
    for (const RemoteName* name : to_do) {
      with_context("'" + name->ref.name + "'", [&] { fetch(*name, filler); });
      publish(*name);
    }
    return report_;
  }

 private:
  // note: a pull that was cut off has done all but that.
  enum class Action { nothing, leave, get, note };

  Action action_for(const RemoteName& name) const {
    const std::string& wanted = name.ref.name;
    if (store::has_snapshot(store_, wanted)) {
      if (!name.is_branch) {
        const format::SnapshotRef here = store::read_snapshot(store_, wanted);
        if (here.version == name.ref.version && here.created_ns == name.ref.created_ns)
          return Action::nothing;
      }
      fail(Errc::already_exists, "{} has another version '{}' than {}", store_.path(), wanted,
           remote_.objects().url());
    }
    if (!store::has_branch(store_, wanted)) return Action::get;
    if (!name.is_branch) {
      fail(Errc::already_exists, "{} has a branch '{}', and {} a snapshot", store_.path(), wanted,
           remote_.objects().url());
    }
    return action_for_branch(name);
  }

  Action action_for_branch(const RemoteName& name) const {
    const SeenBranch* seen = session_.find(name.ref.name);
    const auto here = store::seen_head(store_.read_branch(name.ref.name).journal);
    const bool is_changed =
        seen == nullptr || here != store::SeenHead{seen->branch_id, seen->sequence, seen->time_ns};
    if (seen != nullptr && (name.write_id == seen->seen || name.write_id == seen->intended)) {
      return is_changed ? Action::leave : Action::nothing;
    }
    if (seen != nullptr && name.write_id == seen->pulling &&
        here.sequence == name.ref.version.sequence && here.time_ns == name.ref.version.time_ns) {
      return Action::note;
    }
    if (!is_changed) return Action::get;
    fail(Errc::io,
         "branch '{}' has changed both in {} and at {}: name one of the two otherwise (`vellum "
         "branch`), "
         "and pull again, or push with --take-over",
         name.ref.name, store_.path(), remote_.objects().url());
  }

  // The version's records come to the packs, durable.
  void fetch(const RemoteName& name, PackFiller& filler) {
    const PieceList pieces = remote_.list(name.list);
    const std::size_t window = 2 * (pool_.workers() + 1);
    for (std::size_t first = 0; first < pieces.size(); first += window) {
      const std::size_t count = std::min(window, pieces.size() - first);
      fetch_some(std::span(pieces).subspan(first, count), filler);
      if (progress_) progress_({first + count, pieces.size(), "pieces"});
    }
    filler.finish();
    filler.require_all(name.ref.version);
  }

  struct Fetched {
    Piece piece;  // without bytes: the store has all of it
    std::vector<bool> missing;
  };

  void fetch_some(std::span<const PieceName> pieces, PackFiller& filler) {
    std::vector<Fetched> fetched(pieces.size());
    pool_.parallel_for(pieces.size(), [&](std::size_t i, std::size_t) {
      fetched[i] = fetch_one(pieces[i], filler);
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (fetched[i].piece.bytes.empty()) continue;
      filler.finish_below(fetched[i].piece.records.front().ref.pack);
      add(pieces[i], fetched[i], filler);
      ++report_.pieces_read;
      report_.bytes_read += fetched[i].piece.bytes.size();
    }
  }

  // Whole, unless the store is known to have all of it: most of what is new is missing.
  Fetched fetch_one(const PieceName& name, const PackFiller& filler) const {
    Fetched out;
    const auto cached = remote_.cached_contents(name);
    if (cached.has_value() && std::ranges::all_of(*cached, [&](const PieceRecord& record) {
          return filler.has(record);
        })) {
      return out;
    }
    out.piece = remote_.piece(name);
    for (const PieceRecord& record : out.piece.records) out.missing.push_back(!filler.has(record));
    return out;
  }

  void add(const PieceName& name, const Fetched& fetched, PackFiller& filler) const {
    const std::span<const std::byte> bytes = fetched.piece.bytes;
    std::size_t at = static_cast<std::size_t>(name.contents_bytes);
    for (std::size_t i = 0; i < fetched.piece.records.size(); ++i) {
      const PieceRecord& record = fetched.piece.records[i];
      const auto content = bytes.subspan(at, static_cast<std::size_t>(record.size_bytes));
      at += content.size();
      if (!fetched.missing[i]) continue;
      if (const char* problem = check_record(record, content, store_.checksum_seed())) {
        fail(Errc::corrupted, "{} at byte {}: {}", remote_.name_of(piece_key(name.name)),
             at - content.size(), problem);
      }
      filler.add(record, content);
    }
  }

  void publish(const RemoteName& name) {
    const std::string& wanted = name.ref.name;
    if (!name.is_branch) {
      store_.create_snapshot(wanted, name.ref);
      return;
    }
    // A pull that is cut off between the branch and its note is known by this.
    SeenBranch before;
    if (const SeenBranch* seen = session_.find(wanted)) before = *seen;
    before.name = wanted;
    before.pulling = name.write_id;
    session_.note({before});
    if (!store::has_branch(store_, wanted)) {
      store_.create_branch_at(wanted, name.ref.version, name.ref.version.parent, name.encoding);
    } else if (!store::adopt_version(store_, wanted,
                                     {before.branch_id, before.sequence, before.time_ns},
                                     name.ref.version)) {
      fail(Errc::busy, "branch '{}' of {} has changed meanwhile", wanted, store_.path());
    }
    note(name);
  }

  void note(const RemoteName& name) {
    const auto now = store::seen_head(store_.read_branch(name.ref.name).journal);
    session_.note(
        {{name.ref.name, name.write_id, {}, {}, now.branch_id, now.sequence, now.time_ns}});
  }

  store::StoreCore& store_;
  Session& session_;
  const Remote& remote_;
  const ProgressFn& progress_;
  base::ThreadPool pool_;
  Head head_;
  std::vector<const RemoteName*> wanted_;
  PullReport report_;
};

}  // namespace

PullReport pull(Session& session, const PullOptions& options, const ProgressFn& progress) {
  return Pull(session, options, progress).run();
}

}  // namespace vellum::remote
