#include "store/journal/read_journal.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/fail.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/header_error.hpp"

namespace vellum::store {

using format::FrameHeader;
using format::FrameType;
using format::JournalHeader;

namespace {

constexpr int kMaxTries = 10'000;
// Of a base frame without commits.
constexpr std::size_t kMaxBaseFrameBytes =
    format::kFrameHeaderBytes + format::kMaxVersionBytes + format::kSealBytes + 8;

struct Frame {
  FrameHeader header;
  std::span<const std::byte> payload;  // in the half, or in `opened`
  std::vector<std::byte> opened;
  format::Authenticator authenticator{};
};

struct Half {
  std::uint64_t start = 0;  // in the file
  std::vector<std::byte> bytes;

  bool frame_at(std::uint64_t at, const format::FrameSeal& seal, Frame& out) const {
    if (at >= bytes.size()) return false;
    const auto rest = std::span(bytes).subspan(static_cast<std::size_t>(at));
    if (!format::open_frame(rest, seal, out.header, out.payload, out.opened)) return false;
    out.authenticator = format::frame_authenticator(rest, out.header);
    return true;
  }
  // By its checksum only: behind a damaged frame, none can be opened.
  bool trace_at(std::uint64_t at, const format::FrameSeal& seal, Frame& out) const {
    const auto rest = std::span(bytes).subspan(static_cast<std::size_t>(at));
    return format::decode_frame(rest, seal.seed, out.header, out.payload) &&
           out.header.sealed == (seal.keys != nullptr);
  }
};

JournalHeader read_header(const base::File& file, const format::FileSeal& seal) {
  std::vector<std::byte> bytes(format::kJournalHeaderBytes);
  file.pread(bytes, 0);
  JournalHeader header;
  if (const char* problem = format::decode_journal_header(bytes, seal, header)) {
    fail_header(file.path(), bytes, format::checksum_seed(seal.store_id), problem);
  }
  return header;
}

// A journal has its whole length before it gets its name, so a shorter one was cut. The number of
// commits in the missing part is unknown.
void require_whole(const base::File& file, const JournalHeader& header) {
  const std::uint64_t size = file.size_bytes(), whole = journal_bytes(header.half_bytes);
  if (size >= whole) return;
  fail(Errc::corrupted, "branch '{}': {}: the file ends at byte {} of {} (truncated)",
       header.branch, file.path(), size, whole);
}

// Reads at most `limit_bytes` of half 0 or 1; less if the file ends earlier, which
// read_corrupted_journal() permits.
Half read_half(const base::File& file, unsigned index, std::uint32_t half_bytes,
               std::uint64_t limit_bytes) {
  assert(index < 2);
  Half half;
  half.start = format::kJournalHeaderBytes + std::uint64_t{index} * half_bytes;
  const std::uint64_t size = file.size_bytes();
  if (size <= half.start) return half;
  const std::uint64_t end =
      half.start + std::min({std::uint64_t{half_bytes}, limit_bytes, size - half.start});
  // The half of an idle branch is nearly all holes. Only holes follow the last data.
  constexpr std::uint64_t kPieceBytes = 64u << 10;
  for (std::uint64_t at = file.next_data(half.start); at < end; at = file.next_data(at)) {
    const auto n = static_cast<std::size_t>(std::min(kPieceBytes, end - at));
    const auto within = static_cast<std::size_t>(at - half.start);
    half.bytes.resize(within + n);
    file.pread(std::span(half.bytes).subspan(within, n), at);
    at += n;
  }
  return half;
}

// Reads at least the base frame of half 0 or 1, or the whole half.
Half read_base_frame(const base::File& file, unsigned index, std::uint32_t half_bytes) {
  Half half = read_half(file, index, half_bytes, kMaxBaseFrameBytes);
  const std::uint64_t bytes = format::frame_extent_at(half.bytes);
  if (bytes > half.bytes.size()) half = read_half(file, index, half_bytes, bytes);
  return half;
}

// The epoch of the base frame at the start of a half; 0: no base frame.
std::uint64_t epoch_of(const Half& half, unsigned index, const format::FrameSeal& seal) {
  Frame frame;
  if (!half.frame_at(0, seal, frame) || !format::is_base(frame.header.type)) return 0;
  const bool at_home = frame.header.epoch % 2 == (index == 0 ? 1 : 0);
  return at_home ? frame.header.epoch : 0;
}

std::uint64_t newest_epoch(const base::File& file, std::uint32_t half_bytes,
                           const format::FrameSeal& seal) {
  std::uint64_t newest = 0;
  for (unsigned i = 0; i < 2; ++i) {
    newest = std::max(newest, epoch_of(read_base_frame(file, i, half_bytes), i, seal));
  }
  return newest;
}

// Fills base, commits and tail of `state` from the half that holds its epoch.
void read_frames(const std::string& path, const Half& half, JournalState& state) {
  format::FrameSeal seal = frame_seal(state.header, state.keys);
  Frame frame;
  if (!half.frame_at(0, seal, frame) ||
      !format::decode_base(frame.header, frame.payload, state.base, state.commits)) {
    fail(Errc::corrupted, "{} at byte {}: the base frame of epoch {} does not parse", path,
         half.start, state.epoch);
  }
  if (state.header.branch_id > UINT32_MAX) {  // half of a pack's id
    fail(Errc::corrupted, "{}: the branch id is too large", path);
  }
  if (state.base.branch_id != state.header.branch_id) {
    fail(Errc::corrupted, "{} at byte {}: the base frame belongs to another branch", path,
         half.start);
  }
  std::uint64_t at = format::frame_extent_bytes(frame.header);
  state.base_end_bytes = half.start + at;
  seal.before = frame.authenticator;
  while (half.frame_at(at, seal, frame) && frame.header.type == FrameType::commit &&
         frame.header.epoch == state.epoch && frame.header.sequence == state.head_sequence() + 1) {
    if (!format::decode_commit(frame.payload, state.commits.emplace_back())) {
      fail(Errc::corrupted, "{} at byte {}: the commit of version {} does not parse", path,
           half.start + at, frame.header.sequence);
    }
    at += format::frame_extent_bytes(frame.header);
    seal.before = frame.authenticator;
  }
  state.tail_bytes = half.start + at;
  state.last_frame = seal.before;
}

// The largest sequence of a frame or marker at or after `from` that is newer than the head; 0: none.
// Each frame was synced before the next frame was written and before any marker with its sequence.
// Therefore all frames from the head to that sequence were whole at some time. A forged one leads to
// an error, never to content.
std::uint64_t newest_after(const Half& half, std::uint64_t from, const JournalState& state) {
  const format::FrameSeal seal = state.frame_seal();
  static constexpr std::byte kZeros[4096] = {};
  std::uint64_t newest = 0;
  Frame frame;
  for (std::uint64_t at = from; at + format::kFrameHeaderBytes <= half.bytes.size();) {
    if (at % sizeof kZeros == 0 && at + sizeof kZeros <= half.bytes.size() &&
        std::memcmp(half.bytes.data() + at, kZeros, sizeof kZeros) == 0) {
      at += sizeof kZeros;
      continue;
    }
    if (half.trace_at(at, seal, frame) &&
        (frame.header.epoch > state.epoch ||
         (frame.header.epoch == state.epoch && frame.header.sequence > state.head_sequence()))) {
      newest = std::max(newest, frame.header.sequence);
    }
    at += format::kFrameAlignBytes;
  }
  return newest;
}

// The result of one scan of the file.
struct Scan {
  JournalState state;
  std::uint64_t newest = 0;  // newest_after(), of the whole file
};

// False: neither half starts with a whole base frame.
bool scan(const base::File& file, const JournalHeader& header, const format::StoreKeys* keys,
          Scan& out) {
  out = {};
  out.state.header = header;
  out.state.keys = keys;
  const format::FrameSeal seal = out.state.frame_seal();
  const Half halves[2] = {read_half(file, 0, header.half_bytes, header.half_bytes),
                          read_half(file, 1, header.half_bytes, header.half_bytes)};
  const std::uint64_t epochs[2] = {epoch_of(halves[0], 0, seal), epoch_of(halves[1], 1, seal)};
  out.state.epoch = std::max(epochs[0], epochs[1]);
  if (out.state.epoch == 0) return false;
  const unsigned current = epochs[0] > epochs[1] ? 0 : 1;
  read_frames(file.path(), halves[current], out.state);
  assert(out.state.tail_bytes >= out.state.base_end_bytes);
  const std::uint64_t tail = out.state.tail_bytes - halves[current].start;
  out.newest = std::max(newest_after(halves[current], tail, out.state),
                        newest_after(halves[1 - current], 0, out.state));
  return true;
}

[[noreturn]] void fail_without_base(const base::File& file) {
  fail(Errc::corrupted, "{}: neither half holds a whole base frame", file.path());
}

}  // namespace

std::vector<format::Version> read_base_versions(const base::File& file,
                                                const format::FileSeal& seal) {
  const JournalHeader header = read_header(file, seal);
  require_whole(file, header);
  const format::FrameSeal frames = frame_seal(header, seal.keys);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    std::vector<std::pair<std::uint64_t, format::Version>> found;
    for (unsigned i = 0; i < 2; ++i) {
      const Half half = read_base_frame(file, i, header.half_bytes);
      const std::uint64_t epoch = epoch_of(half, i, frames);
      Frame frame;
      format::Version version;
      if (epoch == 0 || !half.frame_at(0, frames, frame) ||
          !format::decode_base_version(frame.header.type, frame.payload, version) ||
          version.branch_id != header.branch_id) {
        continue;
      }
      found.emplace_back(epoch, std::move(version));
    }
    // A writer keeps one half whole while it writes the other, so it has written both during the read.
    if (found.empty()) continue;
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<format::Version> out;
    out.reserve(found.size());
    for (auto& [epoch, version] : found) out.push_back(std::move(version));
    return out;
  }
  fail_without_base(file);
}

JournalState read_journal(const base::File& file, const format::FileSeal& seal) {
  const JournalHeader header = read_header(file, seal);
  require_whole(file, header);
  const format::FrameSeal frames = frame_seal(header, seal.keys);
  std::uint64_t suspect = 0;  // 1 + the head after which newer frames were found
  for (int tries = 0; tries < kMaxTries; ++tries) {
    Scan found;
    if (!scan(file, header, seal.keys, found)) {
      // A writer that starts an epoch keeps the other half whole, but it may have started two during
      // the read.
      if (newest_epoch(file, header.half_bytes, frames) != 0) continue;
      fail_without_base(file);
    }
    // The result was the head at that time only if no newer epoch has started since.
    if (newest_epoch(file, header.half_bytes, frames) != found.state.epoch) continue;
    if (found.newest == 0) return std::move(found.state);

    // Either the writer has appended frames after the tail was read, and the next scan finds them, or
    // the frame at the tail is corrupted.
    const std::uint64_t head = found.state.head_sequence();
    if (suspect == head + 1) {
      fail(
          Errc::corrupted,
          "branch '{}': {} at byte {}: the frame after version {} is corrupted, newer ones follow, "
          "up to version {}",
          header.branch, file.path(), found.state.tail_bytes, head, found.newest);
    }
    suspect = head + 1;
  }
  fail(Errc::busy, "{}: changes too fast to be read", file.path());
}

JournalRemains read_corrupted_journal(const base::File& file, const format::FileSeal& seal) {
  const JournalHeader header = read_header(file, seal);
  Scan found;
  if (!scan(file, header, seal.keys, found)) {
    fail_without_base(file);
  }
  JournalRemains out{std::move(found.state), std::nullopt};
  if (file.size_bytes() >= journal_bytes(header.half_bytes)) {
    out.lost_commits =
        std::max(found.newest, out.state.head_sequence()) - out.state.head_sequence();
  }
  return out;
}

}  // namespace vellum::store
