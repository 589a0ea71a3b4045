#include "crash/pages_lib.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes/mix64.hpp"

namespace vellum::crash {

using format::kPageBytes;

void Pages::grow(std::size_t pages) {
  now_.resize(pages * kPageBytes);
  old_.resize(pages * kPageBytes);
}

void Pages::store64(std::size_t page, std::size_t offset, std::uint64_t value) {
  std::memcpy(at(now_, page) + offset, &value, sizeof value);
  touched_.insert(page);
}

void Pages::fill(std::size_t page, std::mt19937_64& random) {
  for (std::size_t i = 0; i < kPageBytes; i += 8) store64(page, i, i % 16 == 0 ? random() : i);
}

void Pages::zero(std::size_t page) {
  std::memset(at(now_, page), 0, kPageBytes);
  touched_.insert(page);
}

void Pages::fill_numbered(std::size_t page, std::uint64_t content) {
  constexpr std::size_t kWords = kPageBytes / 8, kOwnWords = 40;
  std::mt19937_64 random(content);
  const std::uint64_t common = random();
  for (std::size_t i = 0; i < kWords; ++i) {
    store64(page, 8 * i, i < kOwnWords ? random() : common);
  }
}

void Pages::fill_moved(std::size_t page, std::uint64_t first_word) {
  constexpr std::size_t kWords = kPageBytes / 8, kOwnWordsOneIn = 7;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = first_word + i, random = base::mix64(word + 1);
    store64(page, 8 * i, random % kOwnWordsOneIn == 0 ? random : 0x706f6e6d6c6b6a69);
  }
}

void Pages::copy(std::size_t page, const std::byte* from) {
  std::memcpy(at(now_, page), from, kPageBytes);
  touched_.insert(page);
}

void Pages::close_block(base::Codec codec, bool note, store::PageWrites& out) {
  if (block_.pages.empty()) return;
  static base::Compressor compressor;
  block_.stored.resize(raw_.size());
  const std::size_t size = compressor.compress(codec, 1, raw_, block_.stored);
  block_.codec = size == 0 ? base::Compression::none : codec;
  if (size == 0) {
    block_.stored = raw_;
  } else {
    block_.stored.resize(size);
  }
  if (note) block_.noted = store::Dedup::worth_noting(raw_, block_.stored.size());
  out.blocks.push_back(std::exchange(block_, {}));
  raw_.clear();
}

void Pages::add_to_block(std::size_t page, std::size_t block_pages, base::Codec codec, bool note,
                         store::PageWrites& out) {
  block_.pages.push_back(page);
  raw_.insert(raw_.end(), at(now_, page), at(now_, page) + kPageBytes);
  if (block_.pages.size() == block_pages) close_block(codec, note, out);
}

store::PageWrites Pages::take(std::size_t block_pages, base::Codec codec,
                              const store::Dedup* dedup) {
  store::PageWrites out;
  std::vector<format::PageNumber> whole;
  before_.clear();
  for (const std::size_t page : touched_) {
    const std::byte* now = at(now_, page);
    std::byte* old = at(old_, page);
    if (std::memcmp(now, old, kPageBytes) == 0) continue;
    if (std::all_of(now, now + kPageBytes, [](std::byte b) { return b == std::byte{}; })) {
      out.zeros.push_back(page);
    } else if (out.deltas.add_difference(page, old, now) &&
               out.deltas.last_cost_bytes() > kPageBytes / 3) {
      out.deltas.pop_back();
      whole.push_back(page);
    }
    before_.emplace_back(page, std::vector<std::byte>(old, old + kPageBytes));
    std::memcpy(old, now, kPageBytes);
  }
  if (dedup != nullptr) {
    dedup->find(whole, [&](std::size_t i) { return at(now_, whole[i]); }, out.found);
  }
  for (const format::PageNumber page : whole) {
    add_to_block(page, block_pages, codec, dedup != nullptr, out);
  }
  close_block(codec, dedup != nullptr, out);
  touched_.clear();
  return out;
}

void Pages::untake() {
  for (auto& [page, bytes] : before_) {
    std::memcpy(at(old_, page), bytes.data(), kPageBytes);
    touched_.insert(page);
  }
  before_.clear();
}

}  // namespace vellum::crash
