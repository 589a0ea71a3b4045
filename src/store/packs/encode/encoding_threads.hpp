// store/packs/encode/encoding_threads.hpp: encoding by the threads of a pool.
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/bytes/codec.hpp"
#include "base/threads/thread_pool.hpp"

namespace vellum::store {

class EncodingThreads {
 public:
  // `own` is the caller's compressor. The others are created when needed: each takes a megabyte.
  EncodingThreads(base::ThreadPool& pool, base::Compressor& own)
      : pool_(&pool), own_(own), others_(pool.workers()) {}
  // Only the caller's thread.
  explicit EncodingThreads(base::Compressor& own) : own_(own) {}

  std::size_t count() const noexcept { return pool_ == nullptr ? 1 : pool_->workers() + 1; }

  // Calls body(index, compressor) for every index in [0, count), as ThreadPool::parallel_for does.
  void run(std::size_t count,
           const std::function<void(std::size_t index, base::Compressor& compressor)>& body) {
    if (count == 1 || pool_ == nullptr) {
      for (std::size_t i = 0; i < count; ++i) body(i, own_);
      return;
    }
    pool_->parallel_for(
        count, [&](std::size_t index, std::size_t worker) { body(index, compressor(worker)); });
  }

 private:
  base::Compressor& compressor(std::size_t worker) {
    if (worker == 0) return own_;
    assert(worker <= others_.size());
    auto& other = others_[worker - 1];
    if (other == nullptr) other = std::make_unique<base::Compressor>();
    return *other;
  }

  base::ThreadPool* const pool_ = nullptr;
  base::Compressor& own_;
  std::vector<std::unique_ptr<base::Compressor>> others_;
};

}  // namespace vellum::store
