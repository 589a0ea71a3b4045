#include "support/disk/sim_disk_lib.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes/checksum.hpp"

namespace vellum::sim {

namespace {

std::uint64_t zero_chunk_hash() {
  static const std::uint64_t hash =
      base::checksum64(std::array<std::byte, kChunkBytes>{}, 1) | 1;  // never 0
  return hash;
}

std::uint64_t combine(std::uint64_t a, std::uint64_t b) {
  const std::array words{a, b};
  return base::checksum64(std::as_bytes(std::span(words)));
}

std::uint64_t hash_text(const std::string& text) {
  return base::checksum64(std::as_bytes(std::span(text)));
}

std::size_t chunks_for(std::uint64_t bytes) {
  return static_cast<std::size_t>((bytes + kChunkBytes - 1) / kChunkBytes);
}

}  // namespace

Content::Chunk& Content::edit(std::size_t index) {
  auto& chunk = chunks_[index];
  if (chunk == nullptr) {
    chunk = std::make_shared<Chunk>();
  } else if (chunk.use_count() > 1) {
    chunk = std::make_shared<Chunk>(*chunk);
  }
  chunk->hash = 0;
  return *chunk;
}

void Content::write(std::uint64_t at, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (at + bytes.size() > size_) resize(at + bytes.size());
  while (!bytes.empty()) {
    const auto within = static_cast<std::size_t>(at % kChunkBytes);
    const std::size_t n = std::min<std::size_t>(bytes.size(), kChunkBytes - within);
    std::memcpy(edit(static_cast<std::size_t>(at / kChunkBytes)).bytes.data() + within,
                bytes.data(), n);
    bytes = bytes.subspan(n);
    at += n;
  }
}

// Only where the content is not zero.
void Content::zero(std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    const auto index = static_cast<std::size_t>(from / kChunkBytes);
    const auto within = static_cast<std::size_t>(from % kChunkBytes);
    const auto n = static_cast<std::size_t>(std::min(to - from, kChunkBytes - within));
    if (chunks_[index] != nullptr) std::memset(edit(index).bytes.data() + within, 0, n);
    from += n;
  }
}

void Content::resize(std::uint64_t size) {
  if (size < size_) {
    chunks_.resize(chunks_for(size));
    zero(size, chunks_.size() * kChunkBytes);  // the old bytes must not reappear
  } else {
    chunks_.resize(chunks_for(size));
  }
  size_ = size;
}

void Content::allocate(std::uint64_t at, std::uint64_t length) {
  if (at + length > size_) resize(at + length);
  for (std::uint64_t i = at / kChunkBytes; i * kChunkBytes < at + length; ++i) {
    auto& chunk = chunks_[static_cast<std::size_t>(i)];
    if (chunk == nullptr) chunk = std::make_shared<Chunk>();
  }
}

void Content::punch(std::uint64_t at, std::uint64_t length) {
  const std::uint64_t end = std::min(at + length, size_);
  if (at >= end) return;
  zero(at, end);
  for (std::uint64_t i = (at + kChunkBytes - 1) / kChunkBytes; (i + 1) * kChunkBytes <= end; ++i) {
    chunks_[static_cast<std::size_t>(i)] = nullptr;
  }
}

void Content::read(std::uint64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto within = static_cast<std::size_t>(at % kChunkBytes);
    const std::size_t n = std::min<std::size_t>(out.size(), kChunkBytes - within);
    const auto& chunk = chunks_[static_cast<std::size_t>(at / kChunkBytes)];
    if (chunk == nullptr) {
      std::memset(out.data(), 0, n);
    } else {
      std::memcpy(out.data(), chunk->bytes.data() + within, n);
    }
    out = out.subspan(n);
    at += n;
  }
}

std::uint64_t Content::allocated_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk == nullptr ? 0 : kChunkBytes;
  return bytes;
}

std::uint64_t Content::hash() const {
  std::uint64_t sum = size_;
  for (const auto& chunk : chunks_) {
    if (chunk != nullptr && chunk->hash == 0) chunk->hash = base::checksum64(chunk->bytes, 1) | 1;
    sum = combine(sum, chunk == nullptr ? zero_chunk_hash() : chunk->hash);
  }
  return sum;
}

Disk::Disk() { add_inode(true); }

InodeId Disk::add_inode(bool is_directory) {
  auto inode = std::make_shared<Inode>();
  inode->is_directory = is_directory;
  inodes_.push_back(std::move(inode));
  return inodes_.size() - 1;
}

Inode& Disk::edit(InodeId id) {
  auto& inode = inodes_[id];
  if (inode.use_count() > 1) inode = std::make_shared<Inode>(*inode);
  return *inode;
}

std::optional<InodeId> Disk::find(const std::string& path) const {
  InodeId id = kRoot;
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    if (slash > from) {
      const auto& entries = at(id).entries;
      const auto entry = entries.find(path.substr(from, slash - from));
      if (entry == entries.end()) return std::nullopt;
      id = entry->second;
    }
    from = slash + 1;
  }
  return id;
}

std::uint64_t Disk::hash_of(InodeId id) const {
  const Inode& inode = at(id);
  if (!inode.is_directory) return inode.content.hash();
  std::uint64_t sum = 7;
  for (const auto& [name, child] : inode.entries) {
    sum = combine(combine(sum, hash_text(name)), hash_of(child));
  }
  return sum;
}

std::uint64_t Disk::hash() const { return hash_of(kRoot); }

void Disk::describe(InodeId id, const std::string& path, std::vector<std::string>& out) const {
  const Inode& inode = at(id);
  if (!inode.is_directory) {
    out.push_back(
        fmt::format("{}: {} bytes, {:016x}", path, inode.content.size(), inode.content.hash()));
    return;
  }
  if (inode.entries.empty()) out.push_back(path + "/");
  for (const auto& [name, child] : inode.entries) describe(child, path + "/" + name, out);
}

std::vector<std::string> Disk::describe() const {
  std::vector<std::string> out;
  describe(kRoot, "", out);
  return out;
}

}  // namespace vellum::sim
