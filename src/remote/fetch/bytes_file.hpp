// remote/fetch/bytes_file.hpp: a read-only file in memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/files/read_only_file.hpp"

namespace vellum::remote {

class BytesFile final : public base::ReadOnlyFile {
 public:
  // The bytes after `start`, up to `size_bytes`, are zero. REQUIRES: size_bytes >= start.size().
  BytesFile(std::string path, std::vector<std::byte> start, std::uint64_t size_bytes)
      : path_(std::move(path)), start_(std::move(start)), size_bytes_(size_bytes) {
    assert(start_.size() <= size_bytes_);
  }
  BytesFile(std::string path, std::vector<std::byte> bytes)
      : path_(std::move(path)), start_(std::move(bytes)), size_bytes_(start_.size()) {}

  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    if (try_pread(out, offset_bytes) != 0) {
      fail(Errc::corrupted, "{}: truncated at byte {}", path_, size_bytes_);
    }
  }
  int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept override {
    if (offset_bytes > size_bytes_ || out.size() > size_bytes_ - offset_bytes) return ENODATA;
    const std::uint64_t from = std::min<std::uint64_t>(offset_bytes, start_.size());
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), start_.size() - from));
    if (n != 0) std::memcpy(out.data(), start_.data() + from, n);
    if (n != out.size()) std::memset(out.data() + n, 0, out.size() - n);
    return 0;
  }
  // The bytes live as long as this object.
  bool pin_byte(std::uint64_t) override { return true; }
  bool byte_locked(std::uint64_t) const override { return false; }
  void unpin_byte(std::uint64_t) override {}
  std::vector<std::uint64_t> pinned_bytes() const override { return {}; }
  bool replaced() const override { return false; }
  std::uint64_t allocated_bytes() const override { return start_.size(); }
  std::uint64_t next_data(std::uint64_t offset_bytes) const override {
    return offset_bytes < start_.size() ? offset_bytes : UINT64_MAX;
  }

 private:
  const std::string path_;
  const std::vector<std::byte> start_;
  const std::uint64_t size_bytes_;
};

}  // namespace vellum::remote
