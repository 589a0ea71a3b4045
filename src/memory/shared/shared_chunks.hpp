// memory/shared/shared_chunks.hpp: the chunks of a shared file, as one reader sees them.
//
// A chunk is empty or full. A reader that needs an empty one locks it, reads it from the store and
// puts it there: the content first, the word that says so last. A reader that is killed meanwhile
// leaves the chunk empty and unlocked, whatever it has written, and the next one fills it anew. (Two
// that fill the same chunk put the same bytes.) Before a reader uses a full chunk for the first
// time, it compares the content with the word's checksum; a chunk that does not fit is not used.
//
// Any context, any number of threads, unless noted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/memory/reserve.hpp"
#include "memory/shared/shared_file.hpp"

namespace vellum::region {

class SharedChunks {
 public:
  // Throws Errc::out_of_memory.
  explicit SharedChunks(std::unique_ptr<SharedFile> file);
  ~SharedChunks();
  SharedChunks(const SharedChunks&) = delete;
  SharedChunks& operator=(const SharedChunks&) = delete;

  int descriptor() const noexcept { return file_->descriptor(); }

  bool is_full(std::size_t index) const noexcept {
    return word(index).state.load(std::memory_order_acquire) == Word::kFull;
  }
  // Whether a full chunk has the content that its word says. REQUIRES: full; one thread a chunk.
  bool check(std::size_t index) noexcept { return check(index, 1) == 1; }
  // Checks full chunks in order; returns how many are right before the first that is not.
  std::size_t check(std::size_t index, std::size_t count) noexcept;

  // To fill chunks. False: another reader does it.
  bool try_lock(std::size_t index, std::size_t count = 1) noexcept {
    return file_->try_lock(index, count);
  }
  void unlock(std::size_t index, std::size_t count = 1) noexcept { file_->unlock(index, count); }
  // 0 or errno (ENOSPC: the file system is full). REQUIRES: locked.
  int put(std::size_t index, std::span<const std::byte> content) noexcept;
  // Sleeps until somebody has filled the chunk, or for `most`.
  void wait(std::size_t index, std::chrono::milliseconds most) noexcept;

  // Whether this reader is the one that brings in what nobody has asked for yet. It stays so until
  // it resigns or ends.
  bool is_loader() noexcept;
  void resign() noexcept;

 private:
  struct Word {
    static constexpr std::uint32_t kFull = 1;
    std::atomic<std::uint32_t> sum;  // the low half of the content's XXH3, seeded by the number
    std::atomic<std::uint32_t> state;
  };
  static_assert(sizeof(Word) == 8 && std::atomic<std::uint32_t>::is_always_lock_free);

  Word& word(std::size_t index) const noexcept {
    return reinterpret_cast<Word*>(map_ + file_->layout().words_at())[index];
  }
  std::span<std::byte> content(std::size_t index, std::size_t count) const noexcept;
  std::atomic<bool>& checked(std::size_t index) const noexcept {
    return reinterpret_cast<std::atomic<bool>*>(checked_.data())[index];
  }

  const std::unique_ptr<SharedFile> file_;
  const base::Reservation checked_;  // one byte per chunk: this reader knows that it is right
  std::byte* map_ = nullptr;         // all of the file
  std::atomic<bool> loader_{false};
};

}  // namespace vellum::region
