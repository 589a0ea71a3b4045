// store/gc/pack_rewriter.hpp: a smaller file for a pack, which replaces the old one.
//
// References do not change: the new file says where each record went (format/records/translation.hpp). It
// is complete, durable and compared with the old file before it gets the pack's name. Until then it
// lies in tmp, or beside the old file if that is in an archive. Any holder of the lock of gc may
// then delete it.
#pragma once

#include <functional>
#include <string>

#include "base/threads/thread_pool.hpp"
#include "store/gc/pack_plan.hpp"

namespace vellum::store {

// The name of the new file before publish().
std::string rewritten_file_name(std::uint64_t pack);
bool is_rewritten_file_name(const std::string& name);

class GcExclusive;

class PackRewriter {
 public:
  PackRewriter(StoreDirectory& store, base::ThreadPool& pool, const PackPlan& plan);
  // Removes the new file unless it was published.
  ~PackRewriter();
  PackRewriter(const PackRewriter&) = delete;
  PackRewriter& operator=(const PackRewriter&) = delete;

  // Calls `progress` with the bytes of the old file done so far. False: the pack needs more than a
  // translation can hold. Throws Errc::corrupted, naming the place in the old file.
  bool write(const std::function<void(std::uint64_t)>& progress);
  std::uint64_t new_bytes() const noexcept;
  // False: the pin of an open version is on the old file, which stays. Errc::busy: the names are
  // held elsewhere. REQUIRES: write() returned true; the lock of gc.
  bool publish(const GcExclusive& gc);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
