// store/branch/dedup.hpp: finds pages that the store holds already.
//
// Of every sixteenth page, chosen by its content, a hash is kept in memory, and in the packs
// (record type `hashes`). A page of that kind which comes again leads to where it was stored; the
// contents are compared, and the pages around it, too, since what repeats repeats in stretches
// ("sparse indexing": Lillibridge et al., FAST 2009). So the index costs a byte a page, and a
// copied array, a branch that took the same way, or a region that went back is found.
//
// What is found may be something that no version needs any more, and gc may be about to free it. So
// one who looks keeps gc out (keep_gc_out) from before the first look until the new version is
// published; and looks at the file itself, never at decoded records that are left from before.
// And it refers only to what some version of another branch was published on when the hashes were
// loaded (Roots::reached_bytes), and to what its own writer has published, or appended in this very
// commit: the rest may be a fold that will fail, or one that was cut off, whose bytes no flush has
// made durable.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/page_hashes.hpp"
#include "store/lock/lease.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

class StoreCore;

// Threads: find() from any number at once; the others from one, beside find().
class Dedup {
 public:
  explicit Dedup(StoreCore& store) : store_(store) {}

  // Begins a commit on top of `head`, of the writer's own branch. False: gc is at work, or cannot
  // be kept out here; nothing is looked up then.
  bool enter(const format::Version& head);
  // The commit is over. When it has failed, what was noted in it is forgotten.
  void leave(bool published) noexcept;
  bool active() const noexcept { return gc_kept_out_ != nullptr; }

  // Moves the pages that the store holds already from `pages` to `found`. `content` gives the bytes
  // of the page at an index of `pages` as they are when it is called; nobody changes them
  // meanwhile. REQUIRES: active().
  using ContentFn = std::function<const std::byte*(std::size_t index)>;
  void find(std::vector<format::PageNumber>& pages, const ContentFn& content,
            std::vector<PageRef>& found) const;

  // Which pages of a block to note, once it is stored in `stored_bytes`.
  static std::vector<NotedPage> worth_noting(std::span<const std::byte> raw,
                                             std::size_t stored_bytes);
  // The block has become `record`.
  void note(const format::RecordRef& record, std::span<const NotedPage> pages);
  // What was noted since enter(), for `hashes` records.
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

  StoreCore& store_;
  format::Version head_;  // when the commit began
  Lease gc_kept_out_;
  mutable std::once_flag loaded_;         // what earlier writers have left
  std::vector<std::uint64_t> own_packs_;  // when the commit began; sorted
  mutable std::mutex appended_mutex_;
  format::RecordRef appended_;  // the last block of this commit; pack 0: none
  // Of each pack there was then: Roots::reached_bytes. Written under loaded_ only.
  mutable std::unordered_map<std::uint64_t, std::uint64_t> reached_bytes_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::unordered_map<std::uint32_t, Place> known_;
  std::vector<format::PageHash> noted_;  // since enter()
};

}  // namespace vellum::store
