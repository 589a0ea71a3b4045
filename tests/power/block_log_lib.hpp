// The requests of a block device: every write and every flush, in the order of their arrival.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "power/shared_memory_lib.hpp"

namespace vellum::power {

// The progress of a workload, out of band: in memory that it shares with the recorder. The states
// of its files are numbered; a power cut may leave any from `returned` to `begun`.
struct Progress {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> returned{0};
};

// The header of an entry in the recorder's file; the bytes of a write follow.
struct LogHeader {
  std::uint64_t at_bytes = 0;
  std::uint64_t length_bytes = 0;  // 0: a flush
  std::uint64_t begun = 0;         // when the entry arrived, before any of it was done
  std::uint64_t returned = 0;
};

struct LogEntry {
  LogHeader header;
  std::span<const std::byte> bytes;
  bool is_flush() const { return bytes.empty(); }
};

class BlockLog {
 public:
  // `file`: the recorder's output. `progress`: at its end.
  BlockLog(MappedMemory file, const Progress& progress);
  const std::vector<LogEntry>& entries() const noexcept { return entries_; }
  // The progress just before an entry arrived, or after the last one.
  const LogHeader& before(std::size_t entry) const {
    return entry < entries_.size() ? entries_[entry].header : end_;
  }

 private:
  MappedMemory file_;
  std::vector<LogEntry> entries_;
  LogHeader end_;
};

}  // namespace vellum::power
