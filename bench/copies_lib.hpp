// bench/copies_lib.hpp: what versions cost without Vellum: full copies, and zstd --patch-from of
// one copy after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <vellum/region.hpp>

namespace bench {

// A region's bytes up to the last page that is not zero: what has to be in a copy that can be used
// again. (The heap's count of used bytes is no substitute: what lies behind its holes would be cut
// off.) Present in memory while this lives, so that write(2) can read it.
class Image {
 public:
  explicit Image(const vellum::Region& region);
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  vellum::Pin pin_;
  std::span<const std::byte> bytes_;
};

// Writes the bytes to a new file, flushes and closes it. Returns the seconds; the file is removed
// after them.
double write_copy(const std::string& file, std::span<const std::byte> bytes);

// What `zstd -3 --patch-from=<the image before> <image>` makes of consecutive images, and plain
// `zstd -3` of the first, computed with libzstd in this process.
class PatchFrom {
 public:
  PatchFrom();
  // Returns the compressed bytes. Keeps a copy of the image for the next call.
  std::uint64_t add(std::span<const std::byte> image);

 private:
  struct Context;
  std::shared_ptr<Context> context_;
  std::vector<std::byte> before_;
};

// Full copies and patches of the same images, summed up.
class Peers {
 public:
  // `file`: where a copy goes, one at a time.
  Peers(std::string file, bool patches) : file_(std::move(file)), patches_(patches) {}
  void add(const vellum::Region& region);
  double copy_seconds() const { return copy_seconds_; }
  double copy_bytes() const { return copy_bytes_; }
  double patch_bytes() const { return patch_bytes_; }  // 0 without patches

 private:
  std::string file_;
  bool patches_;
  PatchFrom patch_;
  double copy_seconds_ = 0, copy_bytes_ = 0, patch_bytes_ = 0;
};

}  // namespace bench
