#include "memory/paging/read_streams.hpp"

#include <algorithm>

#include "format/wire/types.hpp"

namespace vellum::region {

// A region has at most 2^34 chunks, of one page each.
namespace {
constexpr unsigned kLastBits = 40, kWindowBits = 12, kFaultsBits = 6;
constexpr unsigned kFaultsAt = kLastBits + kWindowBits, kAnnouncedAt = kFaultsAt + kFaultsBits,
                   kDownwardsAt = kAnnouncedAt + 1, kWritesAt = kDownwardsAt + 1;
constexpr std::uint64_t low_bits(unsigned n) { return (1ULL << n) - 1; }
static_assert(format::kMaxRegionBytes / format::kPageBytes <= low_bits(kLastBits) &&
              kWritesAt < 64);
}  // namespace

ReadStreams::State ReadStreams::unpack(std::uint64_t word) noexcept {
  State state;
  state.last = word & low_bits(kLastBits);
  state.window = word >> kLastBits & low_bits(kWindowBits);
  state.faults = static_cast<unsigned>(word >> kFaultsAt & low_bits(kFaultsBits));
  state.announced = (word >> kAnnouncedAt & 1) != 0;
  state.downwards = (word >> kDownwardsAt & 1) != 0;
  state.writes = (word >> kWritesAt & 1) != 0;
  return state;
}

std::uint64_t ReadStreams::pack(const State& state) noexcept {
  static_assert(kMaxFaults <= low_bits(kFaultsBits));
  assert(state.last <= low_bits(kLastBits) && state.window <= low_bits(kWindowBits));
  return std::uint64_t{state.last} | std::uint64_t{state.window} << kLastBits |
         std::uint64_t{state.faults} << kFaultsAt | std::uint64_t{state.announced} << kAnnouncedAt |
         std::uint64_t{state.downwards} << kDownwardsAt | std::uint64_t{state.writes} << kWritesAt;
}

ReadStreams::Window ReadStreams::State::ahead_of_last() const noexcept {
  if (!downwards) return {last + 1, last + 1 + window, false};
  return {last - std::min(last, window), last, true};
}

void ReadStreams::widen(State& state, bool used_up, std::size_t most) noexcept {
  if (state.faults < kEstablished && !state.announced) return;
  if (state.window == 0) {
    state.window = kFirstWindow;
  } else if (used_up) {
    state.window *= 2;
  }
  state.window = std::min<std::size_t>({state.window, most, low_bits(kWindowBits)});
}

ReadStreams::Window ReadStreams::note_fault(const FaultIn& fault, std::size_t most) noexcept {
  const std::size_t index = fault.chunk;
  for (Stream& stream : streams_) {
    State state = unpack(stream.word.load(std::memory_order_relaxed));
    if (state.faults == 0) continue;
    // The second fault shows the direction; announced streams read upwards.
    if (state.faults == 1 && !state.announced) state.downwards = index < state.last;
    const auto window = static_cast<std::int64_t>(state.window);
    const std::int64_t ahead = state.ahead(index);
    if (ahead < 0 || ahead > window + 1) continue;
    if (ahead != 0) {
      state.last = index;
      state.faults = std::min(state.faults + 1, kMaxFaults);
      state.announced = fault.announced && !state.downwards;
      state.writes = fault.writes;
      widen(state, ahead > window, most);
      stream.word.store(pack(state), std::memory_order_release);
    }
    return state.ahead_of_last();
  }
  return begin(fault, most);
}

// A stream of many faults is replaced only after as many faults outside of it, so a few stray
// faults among those of a reader do not end its stream.
ReadStreams::Window ReadStreams::begin(const FaultIn& fault, std::size_t most) noexcept {
  for (std::size_t i = 0; i < kStreams; ++i) {
    Stream& stream = streams_[hand_.fetch_add(1, std::memory_order_relaxed) % kStreams];
    State state = unpack(stream.word.load(std::memory_order_relaxed));
    if (state.faults >= kEstablished) {
      --state.faults;
      stream.word.store(pack(state), std::memory_order_release);
      continue;
    }
    state = {fault.chunk, 0, 1, fault.announced, false, fault.writes};
    widen(state, false, most);
    stream.behind.store(fault.chunk, std::memory_order_relaxed);
    stream.word.store(pack(state), std::memory_order_release);
    return state.ahead_of_last();
  }
  return {};
}

bool ReadStreams::follows(std::size_t chunk) const noexcept {
  for (const Stream& stream : streams_) {
    const State state = unpack(stream.word.load(std::memory_order_relaxed));
    if (state.last == chunk && state.faults > 1) return true;
  }
  return false;
}

std::optional<ReadStreams::Ahead> ReadStreams::next() noexcept {
  for (std::size_t i = 0; i < kStreams; ++i) {
    Stream& stream = streams_[turn_++ % kStreams];
    const State state = unpack(stream.word.load(std::memory_order_acquire));
    if (state.window == 0) continue;
    const std::int64_t given = state.ahead(stream.cursor);
    const auto window = static_cast<std::int64_t>(state.window);
    Window rest = state.ahead_of_last();
    if (given > 0 && given <= window) {
      (state.downwards ? rest.end : rest.first) = stream.cursor + (state.downwards ? 0 : 1);
    }
    if (rest.empty()) continue;
    stream.cursor = rest.take();
    return Ahead{stream.cursor, state.writes, state.downwards};
  }
  return std::nullopt;
}

bool ReadStreams::take_behind(std::size_t& index) noexcept {
  for (Stream& stream : streams_) {
    const State state = unpack(stream.word.load(std::memory_order_acquire));
    if (state.faults == 0 || !state.announced) continue;
    std::uint64_t at = stream.behind.load(std::memory_order_relaxed);
    // The chunk before the last may still be in use.
    while (at + 1 < state.last) {
      if (!stream.behind.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
      index = at;
      return true;
    }
  }
  return false;
}

}  // namespace vellum::region
