// memory/shared/shared_chunks.hpp: the chunks of a shared file, as one reader sees them.
//
// A chunk is empty or full. A reader that needs an empty one locks it, reads it from the store and
// writes it to the file: the content first, the word that marks it as full last. If the reader is
// killed meanwhile, the chunk is empty and unlocked, whatever it has written, and the next reader
// fills it again. (Two that fill the same chunk write the same bytes.) Before a reader uses a full
// chunk for the first time, it compares the content with the word's checksum; a chunk that does not
// match is not used.
//
// Any context, any number of threads, unless noted.
#pragma once

#include <atomic>
#include <cassert>
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
  // Whether a full chunk's content matches its word. REQUIRES: full; one thread a chunk.
  bool check(std::size_t index) noexcept { return check(index, 1) == 1; }
  // Checks full chunks in order; returns how many match before the first that does not.
  std::size_t check(std::size_t index, std::size_t count) noexcept;

  // Locks chunks to fill them. False: another reader fills one of them.
  bool try_lock(std::size_t index, std::size_t count = 1) noexcept {
    return file_->try_lock(index, count);
  }
  void unlock(std::size_t index, std::size_t count = 1) noexcept { file_->unlock(index, count); }
  // 0 or errno (ENOSPC: the file system is full). REQUIRES: locked.
  int put(std::size_t index, std::span<const std::byte> content) noexcept;
  // Sleeps until a reader has filled the chunk, or for `most`.
  void wait(std::size_t index, std::chrono::milliseconds most) noexcept;

  // Whether this reader is the one that loads chunks that no reader has accessed yet. It stays the
  // loader until it resigns or ends.
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
    assert(index < file_->layout().chunks());
    return reinterpret_cast<Word*>(map_ + file_->layout().words_at())[index];
  }
  std::span<std::byte> content(std::size_t index, std::size_t count) const noexcept;
  std::atomic<bool>& checked(std::size_t index) const noexcept {
    assert(index < file_->layout().chunks());
    return reinterpret_cast<std::atomic<bool>*>(checked_.data())[index];
  }

  const std::unique_ptr<SharedFile> file_;
  const base::Reservation checked_;  // one byte per chunk: this reader has checked it
  std::byte* map_ = nullptr;         // all of the file
  std::atomic<bool> loader_{false};
};

}  // namespace vellum::region
