// bench/lib/copies.hpp: the cost of versions without Vellum: full copies, and zstd --patch-from of
// one copy after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <vellum/region.hpp>

namespace bench {

// A region's nonzero pages in sequence: the content of a sparse copy. (A prefix is no substitute:
// the heap keeps a block at the region's very end.)
using Image = std::vector<std::byte>;
void gather_image(const vellum::Region& region, Image& image);

// Writes the bytes to a new file, flushes and closes it. Returns the seconds; the file is then
// removed, which is not timed.
double write_copy(const std::string& file, std::span<const std::byte> bytes);

// A full copy of a version, opened the usual way.
class MappedCopy {
 public:
  explicit MappedCopy(const std::string& file);
  ~MappedCopy();
  MappedCopy(const MappedCopy&) = delete;
  MappedCopy& operator=(const MappedCopy&) = delete;
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// The result of `zstd -3 --patch-from=<previous image> <image>` for consecutive images, and of
// plain `zstd -3` for the first, computed with libzstd in this process.
//
// The program compresses in parts of a few MiB in a worker thread, and for all parts but the first
// it finds only matches of 64 bytes and more in the previous image; with --single-thread it finds
// short ones, too. Checked against zstd 1.5.4, the sixth image of: a map of 1 M random keys (46
// MiB) 13,349,938 bytes here, 13,349,942 by the program, 8,575,947 and 8,575,951 with
// --single-thread; a vector of 2 M sequential integers 340,858 and 340,862; an R-MAT graph (scale
// 17) 5,471,693 and 5,471,697, single 4,972,245 and 4,972,249. (4 bytes are the checksum.)
enum class Patches { none, plain, single_thread };
Patches patches_named(const std::string& name);  // none, plain or single; anything else throws

class PatchFrom {
 public:
  explicit PatchFrom(bool single_thread);
  // Returns the compressed bytes. Keeps the image for the next call, and stores the previous one in
  // its variable.
  std::uint64_t add(Image& image);

 private:
  struct Context;
  bool single_thread_;
  std::shared_ptr<Context> context_;
  Image before_;
};

// Full copies and patches of the same images, summed up.
class Peers {
 public:
  // `file`: the path of a copy, one at a time.
  Peers(std::string file, Patches patches)
      : file_(std::move(file)),
        patches_(patches != Patches::none),
        patch_(patches == Patches::single_thread) {}
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
