// A disk in memory: directories and files; copies are cheap.
//
// An image of a crash differs from its neighbours in a few sectors. File content is kept in chunks
// and inodes that copies share until one of them writes; a copy of a whole disk costs a vector of
// pointers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vellum::sim {

inline constexpr std::uint64_t kSectorBytes = 512;
inline constexpr std::uint64_t kChunkBytes = 4096;

// The bytes of a file. Threads: concurrent reads are allowed.
class Content {
 public:
  std::uint64_t size() const noexcept { return size_; }
  void write(std::uint64_t at, std::span<const std::byte> bytes);  // extends
  void resize(std::uint64_t size);
  void allocate(std::uint64_t at, std::uint64_t length);  // extends
  void punch(std::uint64_t at, std::uint64_t length);
  // REQUIRES: the range lies inside.
  void read(std::uint64_t at, std::span<std::byte> out) const;
  std::uint64_t allocated_bytes() const noexcept;
  std::uint64_t hash() const;  // of size and bytes: a hole counts as zeros

 private:
  struct Chunk {
    std::array<std::byte, kChunkBytes> bytes{};
    mutable std::uint64_t hash = 0;  // 0: not computed
  };
  Chunk& edit(std::size_t index);
  void zero(std::uint64_t from, std::uint64_t to);

  std::uint64_t size_ = 0;
  std::vector<std::shared_ptr<Chunk>> chunks_;  // null: a hole
};

using InodeId = std::size_t;

struct Inode {
  bool is_directory = false;
  Content content;
  std::map<std::string, InodeId> entries;
};

class Disk {
 public:
  static constexpr InodeId kRoot = 0;
  Disk();
  InodeId add_inode(bool is_directory);  // without a name yet
  std::size_t inodes() const noexcept { return inodes_.size(); }
  const Inode& at(InodeId id) const { return *inodes_[id]; }
  Inode& edit(InodeId id);
  std::optional<InodeId> find(const std::string& path) const;
  std::uint64_t hash() const;                 // of all named files
  std::vector<std::string> describe() const;  // a line for each file, for messages

 private:
  std::uint64_t hash_of(InodeId id) const;
  void describe(InodeId id, const std::string& path, std::vector<std::string>& out) const;

  std::vector<std::shared_ptr<Inode>> inodes_;
};

}  // namespace vellum::sim
