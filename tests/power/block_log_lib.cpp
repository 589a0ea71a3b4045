#include "power/block_log_lib.hpp"

#include <cstring>
#include <stdexcept>

namespace vellum::power {

BlockLog::BlockLog(MappedMemory file, const Progress& progress) : file_(std::move(file)) {
  end_.begun = progress.begun;
  end_.returned = progress.returned;
  const std::span<const std::byte> all = file_.bytes();
  for (std::size_t at = 0; at < all.size();) {
    LogEntry entry;
    if (all.size() - at < sizeof entry.header) throw std::runtime_error("the log ends in a header");
    std::memcpy(&entry.header, all.data() + at, sizeof entry.header);
    at += sizeof entry.header;
    if (all.size() - at < entry.header.length_bytes) {
      throw std::runtime_error("the log ends in a write");
    }
    entry.bytes = all.subspan(at, entry.header.length_bytes);
    at += entry.header.length_bytes;
    entries_.push_back(entry);
  }
}

}  // namespace vellum::power
