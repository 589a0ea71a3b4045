#include "memory/paging/live_source.hpp"

#include <thread>

namespace vellum::region {

void LiveSource::replace(std::shared_ptr<store::PageSource> source) {
  const unsigned old = current_.load();
  sources_[1 - old] = std::move(source);
  current_.store(1 - old);
  while (readers_[old].load() != 0) std::this_thread::yield();
  sources_[old].reset();
}

}  // namespace vellum::region
