// store/branch/checkpoint/dedup.hpp: an index of pages that the store already holds.
//
// The index has a hash of every sixteenth page, chosen by its content, in memory and in the packs
// (record type `hashes`). When such a page recurs, its hash leads to the stored copy. The contents
// are compared, and those of the pages around it too, since repeats form stretches ("sparse
// indexing": Lillibridge et al., FAST 2009). The index costs a byte per page. It finds copied arrays,
// equal changes of another branch, and content that a region had before.
//
// A page that is found may belong to no version any more, and gc may be about to free it. Therefore:
// - The writer keeps gc out (keep_gc_out) from before the first lookup until the new version is
//   published.
// - A lookup reads the file itself, never cached records.
// - A lookup refers only to bytes that a version of another branch was published on when the
//   hashes were loaded (Roots::reached_bytes), and to bytes that its own writer has published or
//   has appended in this commit. Other bytes may belong to a checkpoint that will fail, or to an
//   unfinished one, whose bytes no flush has made durable.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/records/page_hashes.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

class StoreDirectory;

// Threads: any number may call find() at once. One thread calls the rest, also during find().
class Dedup {
 public:
  explicit Dedup(StoreDirectory& store);

  // Starts a commit on `head`, the head of the writer's own branch. False: gc is running or cannot be
  // kept out here; the commit then looks nothing up.
  bool enter(const format::Version& head);
  // Ends the commit. Unless it was published, removes the pages that it has added.
  void leave(bool published) noexcept;
  bool active() const noexcept { return active_; }
  // Keeps gc out until leave(), also for a commit that looks nothing up. False: it cannot.
  bool keep_gc_out() { return gc_lock_.lock(); }

  // Moves the pages that the store already holds from `pages` to `found`. `content` returns the
  // bytes of the page at an index of `pages` as passed in; they do not change during the call.
  // REQUIRES: active().
  using ContentFn = std::function<const std::byte*(std::size_t index)>;
  void find(std::vector<format::PageNumber>& pages, const ContentFn& content,
            std::vector<PageRef>& found) const;

  // The pages of a block to be added to the index, if the block is stored in `stored_bytes`.
  static std::vector<NotedPage> worth_noting(std::span<const std::byte> raw,
                                             std::size_t stored_bytes);
  // Adds these pages of the block stored in `record` to the index.
  void note(const format::RecordRef& record, std::span<const NotedPage> pages);
  // The pages added since enter(), for `hashes` records.
  std::vector<format::PageHash> noted() const;

 private:
  struct Place {
    format::RecordRef record;
    std::uint32_t slot = 0;
  };
  class Stretch;

  void load() const;
  bool is_own(std::uint64_t pack) const noexcept;
  bool is_reached(const format::RecordRef& record) const;
  bool look_up(std::uint32_t hash, Place& out) const;

  StoreDirectory& store_;
  format::Version head_;  // at the start of the commit
  DeferredGcShared gc_lock_;
  bool active_ = false;
  mutable std::once_flag loaded_;         // the hashes of earlier writers
  std::vector<std::uint64_t> own_packs_;  // at the start of the commit; sorted
  mutable std::mutex appended_mutex_;
  format::RecordRef appended_;  // the last block of this commit; pack 0: none
  // Roots::reached_bytes of each pack at load time. Written under loaded_ only.
  mutable std::unordered_map<std::uint64_t, std::uint64_t> reached_bytes_;
  mutable std::mutex mutex_;  // of the members below
  mutable std::unordered_map<std::uint32_t, Place> known_;
  std::vector<format::PageHash> noted_;  // since enter()
};

}  // namespace vellum::store
