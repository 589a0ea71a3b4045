// The medium after a power cut; reusable.
#pragma once

#include <vector>

#include "power/block_log_lib.hpp"
#include "power/shared_memory_lib.hpp"

namespace vellum::power {

// Two copies of a disk: the durable content of the medium, and an image file that also has some
// later writes. A mounted image is written to; restore() undoes these writes. Work is proportional
// to the data on the disk, not to its size.
class Image {
 public:
  explicit Image(const Descriptor& disk);  // with its current content
  const Descriptor& file() const { return image_file_; }

  void settle(const LogEntry& write);  // durable from now on
  // The write has reached the image, or only those of its sectors for which `sectors` is true.
  void add(const LogEntry& write);
  void add(const LogEntry& write, const std::vector<bool>& sectors);
  void restore();

 private:
  void restore_chunk(std::size_t chunk);

  Descriptor image_file_;
  MappedMemory image_, settled_;
  std::vector<bool> holds_data_;  // of settled_, by chunk
};

inline constexpr std::size_t kSectorBytes = 512;

}  // namespace vellum::power
