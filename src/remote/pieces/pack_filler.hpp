// remote/pieces/pack_filler.hpp: writes records of a remote into a store's packs.
//
// A record is written at the place of its reference in the pack's file. A pack that has or gets
// records from a translated pack is rewritten as a translated pack, with the old and the new
// records. If it has another form of a record, it gets the merged form. The range of a branch's
// writer is never written: before the active pack of a branch is rewritten, the branch switches to
// a new pack. docs/remote-format.md has the order of writes.
//
// The new file has every intact record of the old one, needed or not: a process may have a version
// open that no name and no pin leads to.
//
// REQUIRES: the caller holds gc's lock (store/catalog/lock/version_pin.hpp) for the lifetime of
// this object: a concurrent commit may have found a record that no version needs yet.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "remote/pieces/merged_record.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/live_set.hpp"
#include "store/gc/reach/roots.hpp"

namespace vellum::remote {

class PackFiller {
 public:
  explicit PackFiller(store::StoreDirectory& store);
  ~PackFiller();
  PackFiller(const PackFiller&) = delete;
  PackFiller& operator=(const PackFiller&) = delete;

  // Whether the store has the record intact, with all slots of this form. Threads: any.
  bool has(const PieceRecord& record) const;
  // Adds a record for which has() is false. REQUIRES: its bytes are checked; its pack is not below
  // an id that was given to finish_below(). Errc::corrupted: the store has another record at its
  // place.
  void add(const PieceRecord& record, std::span<const std::byte> bytes);
  // Completes packs with smaller ids: they get no more records.
  void finish_below(std::uint64_t pack);
  // Completes all packs and makes them durable.
  void finish();
  // Checks that the store has the record of each page of the version intact, with the page's slot.
  // Errc::corrupted names a missing record.
  void require_all(const format::Version& version);

 private:
  struct PackInProgress;
  void note_live(const store::LiveSet& live_set);
  bool may_exist(std::uint64_t pack) const;
  std::vector<PieceRecord> live_records(std::uint64_t pack) const;
  PackInProgress& pack_in_progress(std::uint64_t pack);
  bool is_free(const PackInProgress& pack, const PieceRecord& record) const;
  void write(PackInProgress& pack, const PieceRecord& record, std::span<const std::byte> bytes);
  void rewrite(PackInProgress& pack);
  std::set<format::RecordRef> existing_records(const PackInProgress& pack) const;
  void add_existing_records(PackInProgress& pack);
  void add_form(PackInProgress& pack, OwnedRecord form);
  std::optional<OwnedRecord> local_form(const format::RecordRef& ref) const;

  store::StoreDirectory& store_;
  store::Roots roots_;
  struct RefHash {
    std::size_t operator()(const format::RecordRef& ref) const noexcept;
  };
  std::unordered_set<format::RecordRef, RefHash> live_;  // records that versions of this store need
  std::map<std::uint64_t, std::vector<format::RecordRef>> live_of_pack_;
  std::map<std::uint64_t, std::unique_ptr<PackInProgress>> packs_;
  std::unordered_set<format::RecordRef, RefHash> received_;  // checked by the caller of add()
  std::set<std::string> directories_;                        // with a new pack
  mutable std::mutex mutex_;                                 // guards the next member
  // The packs that exist; nullopt: some may be remote, or in an archive that is absent. A version
  // that is pulled has no record in a pack that its own writer has made since.
  std::optional<std::set<std::uint64_t>> existing_;
};

}  // namespace vellum::remote
