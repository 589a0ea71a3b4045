// store/packs/record/run_cache.hpp: roots of sorted runs, shared by the open versions of a store.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/bytes/mix64.hpp"
#include "format/records/page_map.hpp"

namespace vellum::store {

// A sorted run of the page map, opened for reading: its root is in memory, its blocks are in the
// pack. Immutable.
struct LoadedRun {
  format::RunRef ref;
  format::RunRoot root;

  // The first block whose last page is `page` or later; root.blocks.size() if there is none.
  std::size_t block_from(format::PageNumber page) const noexcept;
  format::RecordRef block_ref(std::size_t block) const noexcept;
};

// Threads: any.
class RunCache {
 public:
  // The run of `ref`. Calls `load` to read it unless it is already open. Throws what `load` throws.
  std::shared_ptr<const LoadedRun> get(const format::RunRef& ref,
                                       const std::function<LoadedRun()>& load);

 private:
  struct RefHash {
    std::size_t operator()(const format::RecordRef& r) const noexcept {
      return static_cast<std::size_t>(base::mix64(r.pack) ^ base::mix64(r.offset_bytes + r.tag));
    }
  };
  std::mutex mutex_;
  std::unordered_map<format::RecordRef, std::weak_ptr<const LoadedRun>, RefHash> runs_;
};

}  // namespace vellum::store
