// remote/pieces/pack_filler.hpp: records from a remote go into a store's packs.
//
// A record goes to the place of its reference in the pack's file. A pack that has, or gets, records
// from a translated pack is written anew, as a translated pack: with all that it has, and what has
// come. A record that it has in another form gets the slots of both. Where a branch's writer may
// write, nothing is touched: before its active pack is written anew, the branch leaves it.
// docs/remote-format.md has the order of writes.
//
// REQUIRES: the caller holds what gc holds (store/catalog/lock/version_pin.hpp) while this lives: a commit
// beside may have found a record that no version needs yet.
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

  // Whether the store has the record, whole, with all slots that this one has. Threads: any.
  bool has(const PieceRecord& record) const;
  // Takes a record that has() denies. REQUIRES: its bytes are checked, and records ascend by pack as
  // far as finish_below() says. Errc::corrupted: the store has something else in its place.
  void add(const PieceRecord& record, std::span<const std::byte> bytes);
  // Packs with smaller ids get no more records.
  void finish_below(std::uint64_t pack);
  // Makes all of it durable.
  void finish();
  // Checks that each page of the version is there: its record, whole, with the page's slot.
  // Errc::corrupted names a record that is not.
  void require_all(const format::Version& version);

 private:
  struct PackInProgress;
  void find_needed_records();
  void note_live(const store::LiveSet& live_set);
  PackInProgress& pack_in_progress(std::uint64_t pack);
  bool is_free(const PackInProgress& pack, const PieceRecord& record) const;
  void write(PackInProgress& pack, const PieceRecord& record, std::span<const std::byte> bytes);
  void rewrite(PackInProgress& pack);
  void add_existing_records(PackInProgress& pack);
  void add_form(PackInProgress& pack, OwnedRecord form);
  std::optional<OwnedRecord> local_form(const format::RecordRef& ref) const;

  store::StoreDirectory& store_;
  store::Roots roots_;
  bool has_needed_records_ = false;
  std::map<std::uint64_t, std::set<format::RecordRef>>
      needed_;  // as find_needed_records() has found
  struct RefHash {
    std::size_t operator()(const format::RecordRef& ref) const noexcept;
  };
  std::unordered_set<format::RecordRef, RefHash> live_;  // that versions of this store need
  std::map<std::uint64_t, std::vector<format::RecordRef>> live_of_pack_;
  std::map<std::uint64_t, std::unique_ptr<PackInProgress>> packs_;
  // Records that no version needs yet, and that need not come: by pack.
  mutable std::map<std::uint64_t, std::set<format::RecordRef>> unneeded_;
  mutable std::mutex mutex_;                                 // of unneeded_
  std::unordered_set<format::RecordRef, RefHash> received_;  // checked as they came
  std::set<std::string> directories_;                        // that got a new pack
};

}  // namespace vellum::remote
