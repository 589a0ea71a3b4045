// store/gc/pack_rewriter.hpp: writes a pack again, smaller, and puts that file in the place of the
// old one.
//
// References stay as they are: the new file says where each record went (format/translation.hpp).
// It is complete, durable and compared with the old one before it gets the pack's name; until then
// it is one in tmp, or beside the old one where that lies in an archive, that anybody may delete
// who holds the lock of gc.
#pragma once

#include <functional>
#include <string>

#include "base/thread_pool.hpp"
#include "store/gc/pack_plan.hpp"

namespace vellum::store {

// Of the new file.
std::string rewritten_file_name(std::uint64_t pack);
bool is_rewritten_file_name(const std::string& name);

class PackRewriter {
 public:
  PackRewriter(StoreCore& store, base::ThreadPool& pool, const PackPlan& plan);
  // Takes the new file away unless it was published.
  ~PackRewriter();
  PackRewriter(const PackRewriter&) = delete;
  PackRewriter& operator=(const PackRewriter&) = delete;

  // Calls `progress` with the bytes of the old file that are done. False: the pack has more to say
  // than a translation can hold. Throws Errc::damaged, naming the place in the old file.
  bool write(const std::function<void(std::uint64_t)>& progress);
  std::uint64_t new_bytes() const noexcept;
  // False: someone has a version open whose mark is on the old file; it stays. Errc::busy: someone
  // holds the names. REQUIRES: write() returned true; the lock of gc.
  bool publish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
