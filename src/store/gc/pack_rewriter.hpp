// store/gc/pack_rewriter.hpp: a smaller file for a pack, which replaces the old one.
//
// References do not change: the new file has a translation of the records' offsets
// (format/records/translation.hpp). It gets the pack's name after it is complete, durable, and
// compared with the old file. Until then it is in tmp, or in the same archive as the old file, and
// any holder of the lock of gc may delete it.
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

  // Calls `progress` with the number of bytes of the old file that are done. False: the pack's
  // translation or index would be too large. Throws Errc::corrupted with the offset in the old
  // file. REQUIRES: called once.
  bool write(const std::function<void(std::uint64_t)>& progress);
  std::uint64_t new_bytes() const noexcept;
  // False: an open version has a pin on the old file, which is not replaced. Errc::busy: another
  // process holds the names. REQUIRES: write() returned true; the lock of gc.
  bool publish(const GcExclusive& gc);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vellum::store
