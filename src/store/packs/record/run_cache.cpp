#include "store/packs/record/run_cache.hpp"

#include <algorithm>
#include <cassert>

namespace vellum::store {

std::size_t LoadedRun::block_from(format::PageNumber page) const noexcept {
  const auto at =
      std::partition_point(root.blocks.begin(), root.blocks.end(),
                           [&](const format::MapBlockRef& b) { return b.last_page < page; });
  return static_cast<std::size_t>(at - root.blocks.begin());
}

format::RecordRef LoadedRun::block_ref(std::size_t block) const noexcept {
  assert(block < root.blocks.size());
  return {ref.root.pack, root.blocks[block].offset_bytes, root.blocks[block].tag};
}

std::shared_ptr<const LoadedRun> RunCache::get(const format::RunRef& ref,
                                               const std::function<LoadedRun()>& load) {
  assert(load != nullptr);
  {
    const std::lock_guard guard(mutex_);
    const auto at = runs_.find(ref.root);
    if (at != runs_.end()) {
      auto run = at->second.lock();
      if (run != nullptr && run->ref == ref) return run;
    }
  }
  auto run = std::make_shared<const LoadedRun>(load());
  const std::lock_guard guard(mutex_);
  // Drops unused runs occasionally.
  if (runs_.size() % 256 == 255) {
    std::erase_if(runs_, [](const auto& line) { return line.second.expired(); });
  }
  runs_[ref.root] = run;
  return run;
}

}  // namespace vellum::store
