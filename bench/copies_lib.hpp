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

// A region's pages that are not zero, one after the other: what a sparse copy of it holds. (A
// prefix is no substitute: the heap keeps a block at the region's very end.)
using Image = std::vector<std::byte>;
void gather_image(const vellum::Region& region, Image& image);

// Writes the bytes to a new file, flushes and closes it. Returns the seconds; the file is removed
// after them.
double write_copy(const std::string& file, std::span<const std::byte> bytes);

// What `zstd -3 --patch-from=<the image before> <image>` makes of consecutive images, and plain
// `zstd -3` of the first, computed with libzstd in this process.
class PatchFrom {
 public:
  PatchFrom();
  // Returns the compressed bytes. Keeps the image for the next call, and leaves the one before in
  // its place.
  std::uint64_t add(Image& image);

 private:
  struct Context;
  std::shared_ptr<Context> context_;
  Image before_;
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
  Image image_;
  PatchFrom patch_;
  double copy_seconds_ = 0, copy_bytes_ = 0, patch_bytes_ = 0;
};

}  // namespace bench
