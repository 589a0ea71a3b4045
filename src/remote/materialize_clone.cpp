#include "remote/pull.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "remote/pieces/make_in_order.hpp"
#include "remote/pieces/merged_record.hpp"
#include "remote/pieces/new_pack.hpp"
#include "remote/pieces/version_records.hpp"
#include "remote/session/missing_pieces.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/reach/pack_use.hpp"
#include "store/gc/reach/roots.hpp"

namespace vellum::remote {
namespace {

constexpr std::size_t kMaxFetchThreads = 16;  // each holds a piece in memory

// A pack that is assembled in `tmp`, with its records at the places of their references.
class UnfinishedPack {
 public:
  UnfinishedPack(store::StoreDirectory& store, std::uint64_t pack)
      : store_(store), pack_(pack), tmp_(store.tmp_directory() + "/" + kPrefix + file_name()) {
    if (store.fs().exists(tmp_)) store.fs().unlink(tmp_);
    file_ = store.fs().open(tmp_, base::OpenMode::create_new);
    file_->pwrite(new_pack_header(store, pack), 0);
  }
  ~UnfinishedPack() { base::unlink_quietly(store_.fs(), tmp_); }
  UnfinishedPack(const UnfinishedPack&) = delete;
  UnfinishedPack& operator=(const UnfinishedPack&) = delete;

  // Merges the forms of a record that several pieces have.
  void add(const PieceRecord& record, std::span<const std::byte> bytes) {
    assert(record.ref.pack == pack_ && bytes.size() == record.size_bytes);
    if (written_.contains(record.ref)) return;
    if (record.is_original()) {
      require_free(record);
      file_->pwrite(bytes, record.ref.offset_bytes);
      written_[record.ref] = record;
      rewritten_.erase(record.ref);
      writeback_.wrote(*file_, record.ref.offset_bytes + bytes.size(), bytes.size());
      return;
    }
    OwnedRecord form{record, {bytes.begin(), bytes.end()}};
    const auto [at, fresh] = rewritten_.try_emplace(record.ref, form);
    if (!fresh) at->second = merged_record(store_, std::move(at->second), std::move(form));
  }

  // Syncs the file and renames it into place; the caller syncs the directory.
  void publish() {
    const std::string path = store_.packs().places().home_path(pack_);
    if (rewritten_.empty()) {
      file_->sync_data();
      store_.fs().rename(tmp_, path);
      return;
    }
    std::vector<OwnedRecord> records;
    for (auto& [ref, record] : rewritten_) records.push_back(std::move(record));
    for (const auto& [ref, record] : written_) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(record.size_bytes));
      file_->pread(bytes, ref.offset_bytes);
      records.push_back({record, std::move(bytes)});
    }
    write_translated_pack(store_, pack_, path, std::move(records));
  }

 private:
  static constexpr const char* kPrefix = "coming-";
  // Otherwise one record would overwrite a part of the other, which was readable at the remote.
  void require_free(const PieceRecord& record) const {
    const std::uint64_t from = record.ref.offset_bytes, to = from + record.size_bytes;
    const auto next = written_.lower_bound({pack_, from, 0});
    const bool has_next = next != written_.end() && next->first.offset_bytes < to;
    const bool has_previous =
        next != written_.begin() &&
        std::prev(next)->first.offset_bytes + std::prev(next)->second.size_bytes > from;
    if (has_next || has_previous) {
      fail_diverged(store_.packs().places().home_path(pack_), from);
    }
  }
  std::string file_name() const { return store::pack_file_name(pack_); }

  store::StoreDirectory& store_;
  const std::uint64_t pack_;
  const std::string tmp_;
  std::unique_ptr<base::File> file_;
  EarlyWriteback writeback_;
  std::map<format::RecordRef, PieceRecord> written_;
  std::map<format::RecordRef, OwnedRecord> rewritten_;  // forms that have no place in the file
};

class CloneMaterializer {
 public:
  CloneMaterializer(Session& session, PullReport& report, const ProgressFn& progress)
      : store_(session.store()),
        remote_(session.remote()),
        report_(report),
        progress_(progress),
        threads_(std::min(kMaxFetchThreads, remote_.objects().connections())) {}

  void run() {
    store_.packs().refresh();
    const auto packs = store_.packs().list_remote();
    missing_packs_ = {packs.begin(), packs.end()};
    const VersionPieces pieces =
        read_missing_pieces(store_.fs(), store_.path(), store_.file_seal());
    fetch_packs(pieces);
    store_.fs().sync_directory(store_.packs_directory());
    store_.packs().refresh();
    require_all();
    remove_missing_pieces(store_);
  }

 private:
  // Pieces ascend by their first pack, so packs below it are complete.
  void fetch_packs(const VersionPieces& pieces) {
    std::vector<std::size_t> needed;
    std::uint64_t total_bytes = 0;
    std::atomic<std::uint64_t> done_bytes = 0;
    for (std::size_t i = 0; i < pieces.list.size(); ++i) {
      if (std::ranges::any_of(pieces.opening.spans[i],
                              [&](const PackSpan& s) { return missing_packs_.contains(s.pack); })) {
        needed.push_back(i);
        total_bytes += pieces.list[i].size_bytes;
      }
    }
    make_in_order(
        threads_, needed.size(), [&](std::size_t i) { return fetch(pieces.list[needed[i]]); },
        [&](std::size_t i, const FetchedPiece& piece) {
          publish_below(piece.records.front().ref.pack);
          add(pieces.list[needed[i]], piece);
          done_bytes += pieces.list[needed[i]].size_bytes;
        },
        [&] {
          if (progress_) progress_({done_bytes, total_bytes, "bytes"});
        });
    publish_below(UINT64_MAX);
  }

  FetchedPiece fetch(const PieceName& name) const {
    FetchedPiece out = remote_.piece(name);
    remote_.require_records(name, out, [&](const PieceRecord& record) {
      return missing_packs_.contains(record.ref.pack);
    });
    return out;
  }

  void add(const PieceName& name, const FetchedPiece& piece) {
    ++report_.pieces_read;
    report_.bytes_read += piece.bytes.size();
    for_records(piece.records, piece.bytes, static_cast<std::size_t>(name.index_bytes),
                [&](const PieceRecord& record, std::span<const std::byte> bytes, std::size_t) {
                  if (!missing_packs_.contains(record.ref.pack)) return;
                  received_.insert(record.ref);
                  auto& pack = unfinished_[record.ref.pack];
                  if (pack == nullptr)
                    pack = std::make_unique<UnfinishedPack>(store_, record.ref.pack);
                  pack->add(record, bytes);
                });
  }

  void publish_below(std::uint64_t pack) {
    while (!unfinished_.empty() && unfinished_.begin()->first < pack) {
      unfinished_.begin()->second->publish();
      unfinished_.erase(unfinished_.begin());
    }
  }

  // Reads the page maps of all versions and checks that the store has each of their pages.
  void require_all() {
    const store::NamesShared names(store_);
    const store::Roots roots = store::read_roots(store_);
    store::LiveSet live_set(store_, true);
    store::reach_roots(store_, roots, live_set);
    for (store::LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
      if (!live_set.is_durable(id)) continue;
      const format::RecordRef& ref = live_set.record(id);
      PieceRecord here;
      if (find_local_record(store_, ref, here) && !store_.packs().is_remote(ref.pack) &&
          has_slots(here, live_set.durable_slots(id))) {
        if (!received_.contains(ref)) read_record_bytes(store_, here);
        continue;
      }
      fail(Errc::corrupted,
           "pack {:016x} at byte {}: the remote's pieces lack a record of a version", ref.pack,
           ref.offset_bytes);
    }
  }

  store::StoreDirectory& store_;
  const Remote& remote_;
  PullReport& report_;
  const ProgressFn& progress_;
  const std::size_t threads_;
  std::set<std::uint64_t> missing_packs_;
  std::set<format::RecordRef> received_;  // checked by fetch()
  std::map<std::uint64_t, std::unique_ptr<UnfinishedPack>> unfinished_;
};

}  // namespace

void materialize_packs(Session& session, PullReport& report, const ProgressFn& progress) {
  CloneMaterializer(session, report, progress).run();
}

}  // namespace vellum::remote
