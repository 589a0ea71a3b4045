// The program's advice on its pages: which to bring in soon, and which may leave first.
#include <algorithm>

#include "memory/paged/paged_memory.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kMaxWanted = 256;  // ranges

}  // namespace

void PagedMemory::advise(PageNumber first, std::size_t count, Advice advice) {
  switch (advice) {
    case Advice::normal:
    case Advice::sequential:
    case Advice::random:
      for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i) {
        if (chunks_[i].advice.load(std::memory_order_relaxed) == advice) continue;
        chunks_[i].advice.store(advice, std::memory_order_relaxed);
      }
      return;
    case Advice::will_need:
      return want_chunks(first, count);
    case Advice::dont_need:
      return drop_chunks(first, count);
  }
}

// Takes half of the limit at most: more would take from itself.
void PagedMemory::want_chunks(PageNumber first, std::size_t count) {
  const std::size_t most = std::max<std::size_t>(pager_->limit_bytes() / 2 / chunk_bytes(), 1);
  const std::size_t begin = chunk_of(first), end = chunk_of(first + count - 1) + 1;
  {
    const std::lock_guard lock(wanted_mutex_);
    wanted_.push_back({begin, std::min(end, begin + most)});
    if (wanted_.size() > kMaxWanted) wanted_.pop_front();
    join_read_ahead();
  }
  if (HelperThread* const ahead = read_ahead_.load()) ahead->wake();
}

// The next chunk that the program has asked for; false: none.
bool PagedMemory::next_wanted(std::size_t& index) noexcept {
  const std::lock_guard lock(wanted_mutex_);
  const std::size_t chunks = chunks_of(size_bytes());
  while (!wanted_.empty()) {
    auto& window = wanted_.front();
    while (!window.empty() && window.first < chunks && !chunks_.is_missing(window.first))
      ++window.first;
    if (!window.empty() && window.first < chunks) {
      index = window.first++;
      return true;
    }
    wanted_.pop_front();
  }
  return false;
}

void PagedMemory::drop_chunks(PageNumber first, std::size_t count) {
  const PageNumber end = first + count;
  const std::size_t begin_chunk = chunk_of(first + chunk_pages() - 1);
  // The region's end may cut its last chunk.
  const std::size_t end_chunk =
      end * kPageBytes >= size_bytes() ? chunks_of(size_bytes()) : end / chunk_pages();
  std::size_t staying = 0;  // chunks that stay, just before this one
  for (std::size_t index = begin_chunk; index < end_chunk; ++index) {
    chunks_[index].heat.store(0, std::memory_order_relaxed);
    if (!chunks_.is_missing(index)) evict(index, Changed::stay);
    if (!chunks_.is_missing(index)) {
      ++staying;
      continue;
    }
    leave_first_.add(index - staying, staying);
    staying = 0;
  }
  if (begin_chunk < end_chunk) leave_first_.add(end_chunk - staying, staying);
}

}  // namespace vellum::region
