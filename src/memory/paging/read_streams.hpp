// memory/paging/read_streams.hpp: sequential readers of a region, detected from its faults.
//
// A fault fills one chunk. Faults in three consecutive chunks, upwards or downwards, establish a
// stream. From then on the chunks after its last fault, its window, are worth reading ahead. A
// reader that uses up its window without a fault faults just behind it, and the window doubles. A
// reader that catches up with the read-ahead keeps its window. A region has four streams, so four
// threads can each read a part.
//
// The state is a few atomic words. All functions but next() may run in the fault handler, in any
// number of threads. A lost update costs one more fault.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace vellum::region {

class ReadStreams {
 public:
  struct Window {  // of chunks
    std::size_t first = 0, end = 0;
    bool downwards = false;
    bool empty() const noexcept { return first >= end; }
    // Removes the chunk that the reader accesses next. REQUIRES: not empty.
    std::size_t take() noexcept {
      assert(!empty());
      return downwards ? --end : first++;
    }
  };

  struct FaultIn {
    std::size_t chunk = 0;
    // Advice: the program reads this part in order. One fault is enough then, and the chunks behind
    // it may be evicted first.
    bool announced = false;
    bool writes = false;
  };
  // Notes a fault and returns the chunks that are worth reading ahead of it. `most`: the maximum of
  // a window; 0: no chunk is read ahead.
  Window note_fault(const FaultIn& fault, std::size_t most) noexcept;

  // Whether a stream's last fault was in this chunk, and not its first.
  bool follows(std::size_t chunk) const noexcept;

  struct Ahead {
    std::size_t chunk = 0;
    bool writes = false;  // the stream's last fault was a write
    bool downwards = false;
  };
  // Returns the next chunk of a window, each once. One caller at a time.
  std::optional<Ahead> next() noexcept;

  // Returns a chunk that a stream in an announced part has passed, each once. False: none.
  bool take_behind(std::size_t& index) noexcept;

 private:
  static constexpr std::size_t kStreams = 4;
  static constexpr std::size_t kFirstWindow = 4;
  static constexpr unsigned kEstablished = 3, kMaxFaults = 16;
  // One word, so that it changes as a whole.
  struct State {
    std::size_t last = 0;    // chunk of the last fault
    std::size_t window = 0;  // chunks after it
    unsigned faults = 0;     // in order; 0: no stream
    bool announced = false;
    bool downwards = false;
    bool writes = false;

    // The distance of a chunk ahead of the last fault; negative: behind it.
    std::int64_t ahead(std::size_t index) const noexcept {
      const auto up = static_cast<std::int64_t>(index) - static_cast<std::int64_t>(last);
      return downwards ? -up : up;
    }
    Window ahead_of_last() const noexcept;
  };
  struct Stream {
    std::atomic<std::uint64_t> word{0};
    std::atomic<std::uint64_t> behind{0};  // first chunk that take_behind() has not returned
    std::size_t cursor = SIZE_MAX / 2;  // next()'s own: the last chunk it returned; initially none
  };
  static State unpack(std::uint64_t word) noexcept;
  static std::uint64_t pack(const State& state) noexcept;
  static void widen(State& state, bool used_up, std::size_t most) noexcept;
  Window begin(const FaultIn& fault, std::size_t most) noexcept;

  Stream streams_[kStreams];
  std::atomic<unsigned> hand_{0};  // the stream to replace next
  std::size_t turn_ = 0;           // next()'s own
};

}  // namespace vellum::region
