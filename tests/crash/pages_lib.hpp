// A region as plain memory, and the page writes of its changes for a commit.
#pragma once

#include <random>
#include <set>
#include <vector>

#include "base/bytes/codec.hpp"
#include "store/branch/branch_writer.hpp"

namespace vellum::crash {

class Pages {
 public:
  explicit Pages(std::size_t pages = 0) : now_(pages * format::kPageBytes), old_(now_) {}
  explicit Pages(std::vector<std::byte> bytes) : now_(std::move(bytes)), old_(now_) {}

  std::size_t count() const noexcept { return now_.size() / format::kPageBytes; }
  const std::vector<std::byte>& bytes() const noexcept { return now_; }
  void grow(std::size_t pages);
  void store64(std::size_t page, std::size_t offset, std::uint64_t value);
  void fill(std::size_t page, std::mt19937_64& random);  // compresses to half its size
  void zero(std::size_t page);
  // A page that its number determines, unlike all others. Compresses to a twelfth.
  void fill_numbered(std::size_t page, std::uint64_t content);
  // The part of an endless text that begins with this word. A page with another start is stored
  // whole. Compresses to a sixth.
  void fill_moved(std::size_t page, std::uint64_t first_word);
  void copy(std::size_t page, const std::byte* from);
  std::size_t touched() const noexcept { return touched_.size(); }
  // The changes since the last call. With `dedup`, whole pages are looked up first.
  store::PageWrites take(std::size_t block_pages, base::Codec codec,
                         const store::Dedup* dedup = nullptr);
  void untake();  // the commit failed: the next take() returns these changes again

 private:
  void add_to_block(std::size_t page, std::size_t block_pages, base::Codec codec, bool note,
                    store::PageWrites& out);
  void close_block(base::Codec codec, bool note, store::PageWrites& out);
  std::byte* at(std::vector<std::byte>& bytes, std::size_t page) {
    return bytes.data() + page * format::kPageBytes;
  }

  std::vector<std::byte> now_, old_;
  std::set<std::size_t> touched_;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>>
      before_;  // pages before the last take()
  store::PageBlock block_;
  std::vector<std::byte> raw_;
};

}  // namespace vellum::crash
