// The medium after a power cut, again and again.
#pragma once

#include <vector>

#include "power/block_log_lib.hpp"
#include "power/shared_memory_lib.hpp"

namespace vellum::power {

// Two copies of a disk: what is certainly on the medium, and an image of it, a file, to which some
// later writes are added. A mounted image is written to; restore() undoes that. Work is
// proportional to what the disk holds, not to its size.
class Image {
 public:
  explicit Image(const Descriptor& disk);  // as it is now
  const Descriptor& file() const { return image_file_; }

  void settle(const LogEntry& write);  // it is on the medium from now on
  // It has reached the image, or of its sectors those for which `sectors` is true.
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
