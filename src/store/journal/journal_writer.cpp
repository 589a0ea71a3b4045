#include "store/journal/journal_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "base/round_up.hpp"
#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "store/packs/io_cost.hpp"

namespace vellum::store {

using base::round_up;
using format::FrameHeader;
using format::FrameType;
using Clock = std::chrono::steady_clock;

namespace {

std::uint64_t half_start(std::uint64_t epoch, std::uint32_t half_bytes) noexcept {
  return format::kJournalHeaderBytes + (epoch % 2 == 1 ? 0 : half_bytes);
}

// Units of loss: file systems lose blocks, media lose sectors.
constexpr std::uint64_t kBlockBytes = 4096, kSectorBytes = 512;
// The space that a writer prepares first, and the least after a frame, for its commit marker.
constexpr std::uint64_t kFirstStepBytes = 8u << 10, kMarkerRoomBytes = kBlockBytes + kSectorBytes;

}  // namespace

std::vector<std::byte> new_journal_start(const format::JournalHeader& header,
                                         const format::Version& base,
                                         const format::StoreKeys* keys) {
  std::vector<std::byte> out = format::encode_journal_header(header, keys);
  const auto frame = format::encode_frame({FrameType::base, 1, base.sequence, 0},
                                          format::encode_version(base), frame_seal(header, keys));
  out.insert(out.end(), frame.begin(), frame.end());
  return out;
}

struct JournalWriter::Impl {
  std::unique_ptr<base::File> file;
  std::uint32_t half_bytes = 0;
  format::FrameSeal seal{0};         // `before`: of the last frame that was synced
  format::Authenticator unsynced{};  // of the frame of write_commit()
  std::uint64_t epoch = 0;
  format::Version base;            // of the epoch
  std::uint64_t sequence = 0;      // of the last frame
  std::uint64_t base_end = 0;      // file offset just past the base frame
  std::uint64_t tail_bytes = 0;    // file offset of the next frame
  std::uint64_t unsynced_end = 0;  // file offset just past the frame of write_commit(); 0: none
  bool sync_failed = false;
  std::uint64_t remains_at = 0;  // file offset of a frame whose write failed
  std::size_t remains_bytes = 0;
  std::uint64_t ready_bytes[2] = {};  // file offset up to which the half of even and odd epochs is
                                      // written: a commit there changes no metadata
  IoCost io;

  std::uint64_t half_end() const noexcept { return half_start(epoch, half_bytes) + half_bytes; }
  // File offset of the marker of a frame that ends at `end`, in another block: the loss of one block
  // never destroys both. If the frame nearly fills the half, the marker is in another sector.
  std::uint64_t marker_place(std::uint64_t end) const noexcept {
    return std::min(round_up(end, kBlockBytes), half_end() - kSectorBytes);
  }

  format::Authenticator authenticator(std::span<const std::byte> frame,
                                      std::size_t payload_bytes) const noexcept {
    FrameHeader h;
    h.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    h.sealed = seal.keys != nullptr;
    return format::frame_authenticator(frame, h);
  }
  void write(std::span<const std::byte> bytes, std::uint64_t at) {
    const auto start = Clock::now();
    file->pwrite(bytes, at);
    io.write_ns += base::elapsed_ns(start);
    io.bytes_written += bytes.size();
  }
  void sync() {
    const auto start = Clock::now();
    try {
      file->sync_data();
    } catch (...) {
      sync_failed = true;  // the kernel may have dropped dirty pages
      throw;
    }
    io.flush_ns += base::elapsed_ns(start);
    ++io.flushes;
  }
  // Writes a frame. If that fails, the frame must not become valid: it is wiped, at the latest before
  // the next frame is written.
  void write_frame(std::span<const std::byte> frame, std::uint64_t at) {
    wipe_remains();
    try {
      write(frame, at);
    } catch (...) {
      remains_at = at;
      remains_bytes = frame.size();
      try {
        wipe_remains();
      } catch (...) {
        if (!wipe_header(at) && frame_may_be_whole(frame.size(), at)) sync_failed = true;
      }
      throw;
    }
  }
  void wipe_remains();
  bool wipe_header(std::uint64_t at) noexcept;
  bool frame_may_be_whole(std::size_t bytes, std::uint64_t at) noexcept;
  void write_marker(std::uint64_t end) noexcept;
  void renew_current_epoch();
  void clear_free_space();
  void clear(std::uint64_t from, std::uint64_t to);
  void make_ready(std::uint64_t of_epoch, std::uint64_t end);
  void fill_zeros(std::uint64_t from, std::uint64_t to);
};

// Wipes the sectors of a failed frame before another frame overwrites them. Parts of both may be
// equal, so a crash that stores only some of the new sectors could make the old frame whole.
void JournalWriter::Impl::wipe_remains() {
  if (remains_bytes == 0) return;
  write(std::vector<std::byte>(remains_bytes), remains_at);
  sync();
  remains_bytes = 0;
}

bool JournalWriter::Impl::wipe_header(std::uint64_t at) noexcept {
  static constexpr std::byte kZeros[format::kFrameHeaderBytes] = {};
  try {
    file->pwrite(kZeros, at);
    return true;
  } catch (...) {
    return false;
  }
}

bool JournalWriter::Impl::frame_may_be_whole(std::size_t bytes, std::uint64_t at) noexcept {
  try {
    std::vector<std::byte> found(bytes);
    const int error = file->try_pread(found, at);
    FrameHeader header;
    std::span<const std::byte> payload;
    return error == 0 ? format::decode_frame(found, seal.seed, header, payload) : error != ENODATA;
  } catch (...) {
    return true;
  }
}

// Records, after a frame that ends at `end`, that the frame with `sequence` was synced. Without the
// marker, a synced frame that is corrupted later looks like one that a crash tore, and its commit
// would be lost silently. The marker costs no flush. A commit writes the previous commit's marker
// after its own frame, and its sync makes both durable. The commit's own marker is written after that
// sync. It survives a crash of this process; only a power cut can lose it.
void JournalWriter::Impl::write_marker(std::uint64_t end) noexcept {
  try {
    const std::uint64_t at = marker_place(end);
    if (at < end) return;  // no space: after the largest base frame in the smallest half
    write(format::encode_frame({FrameType::commit_marker, epoch, sequence, 0}, {}, seal), at);
  } catch (...) {
    // The commit is durable without it.
  }
}

// After a failed sync, the frames of a crashed writer may exist only in the page cache, as clean
// pages. Writing them again makes them dirty, so the next sync reports the truth.
void JournalWriter::Impl::renew_current_epoch() {
  const std::uint64_t start = half_start(epoch, half_bytes);
  assert(tail_bytes > start && tail_bytes <= half_end());
  std::vector<std::byte> bytes(static_cast<std::size_t>(tail_bytes - start));
  file->pread(bytes, start);
  file->pwrite(bytes, start);
  sync();
}

void JournalWriter::Impl::fill_zeros(std::uint64_t from, std::uint64_t to) {
  assert(from <= to);
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(1u << 20, to - from));
  while (from < to) {
    const std::uint64_t n = std::min<std::uint64_t>(zeros.size(), to - from);
    file->pwrite(std::span(zeros).first(static_cast<std::size_t>(n)), from);
    from += n;
  }
}

// A hole reads as zeros and uses no space: an idle branch uses little more than its base frame.
void JournalWriter::Impl::clear(std::uint64_t from, std::uint64_t to) {
  assert(from <= to);
  if (from == to) return;
  try {
    file->punch(from, to - from);
  } catch (const Error& e) {
    if (e.code() != Errc::unsupported) throw;
    fill_zeros(from, to);
  }
}

// Clears the frame that a crash tore (see wipe_remains) and the frames of other epochs.
void JournalWriter::Impl::clear_free_space() {
  clear(tail_bytes, half_end());
  const std::uint64_t other = half_start(epoch + 1, half_bytes);
  clear(other, other + half_bytes);
  ready_bytes[epoch % 2] = tail_bytes;
  ready_bytes[(epoch + 1) % 2] = other;
  make_ready(epoch, tail_bytes);
  write_marker(tail_bytes);
  sync();
}

// Writes zeros at the place of the next frames, twice as many each time. Commits then overwrite blocks
// that the file system has allocated and written, so their sync writes no metadata. The sync of the
// current commit makes the zeros durable, together with its frame.
void JournalWriter::Impl::make_ready(std::uint64_t of_epoch, std::uint64_t end) {
  std::uint64_t& ready = ready_bytes[of_epoch % 2];
  const std::uint64_t start = half_start(of_epoch, half_bytes);
  const std::uint64_t wanted = std::min(end + kMarkerRoomBytes, start + half_bytes);
  assert(end <= start + half_bytes && ready >= start);
  if (wanted <= ready) return;
  const std::uint64_t step = std::max(kFirstStepBytes, 2 * (ready - start));
  const std::uint64_t to = std::min(std::max(wanted, start + step), start + half_bytes);
  try {
    fill_zeros(ready, to);
    ready = to;
  } catch (const Error& e) {
    // Commits then allocate their blocks and report a full disk themselves.
    if (e.code() != Errc::no_space) throw;
  }
}

JournalWriter::JournalWriter(std::unique_ptr<base::File> file, const JournalState& state)
    : impl_(std::make_shared<Impl>()) {
  assert(file != nullptr && state.epoch != 0);
  assert(state.base_end_bytes <= state.tail_bytes);
  Impl& j = *impl_;
  j.file = std::move(file);
  j.half_bytes = state.header.half_bytes;
  j.seal = state.frame_seal();
  j.epoch = state.epoch;
  j.base = state.base;
  j.sequence = state.head_sequence();
  j.tail_bytes = state.tail_bytes;
  j.base_end = state.base_end_bytes;
  // The order matters: the other half is the fallback until this epoch is durable.
  j.renew_current_epoch();
  j.clear_free_space();
}

bool JournalWriter::fits(std::size_t payload_bytes) const noexcept {
  FrameHeader h;
  h.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  h.sealed = impl_->seal.keys != nullptr;
  return payload_bytes <= impl_->half_bytes &&
         round_up(impl_->tail_bytes + format::frame_extent_bytes(h), kBlockBytes) <
             impl_->half_end();  // the marker after it has its own block
}

void JournalWriter::write_commit(format::FrameBuffer& frame) {
  Impl& j = *impl_;
  assert(j.unsynced_end == 0 && !j.sync_failed);
  assert(fits(frame.payload().size()));
  const std::size_t payload_bytes = frame.payload().size();
  const auto bytes = frame.seal({FrameType::commit, j.epoch, j.sequence + 1, 0}, j.seal);
  const std::uint64_t end = j.tail_bytes + bytes.size();
  j.make_ready(j.epoch, end);
  j.write_frame(bytes, j.tail_bytes);
  j.write_marker(end);
  j.unsynced_end = end;
  j.unsynced = j.authenticator(bytes, payload_bytes);
}

void JournalWriter::sync_commit() {
  Impl& j = *impl_;
  assert(j.unsynced_end > j.tail_bytes);
  j.sync();
  j.tail_bytes = std::exchange(j.unsynced_end, 0);
  ++j.sequence;
  j.seal.before = j.unsynced;
  j.write_marker(j.tail_bytes);
}

bool JournalWriter::carries(const format::Version& base, std::size_t commits,
                            std::size_t commit_bytes) const {
  constexpr std::size_t kMaxVarintBytes = 10;
  const std::uint64_t lengths = (std::uint64_t{commits} + 2) * kMaxVarintBytes;
  return format::kFrameHeaderBytes + format::encode_version(base).size() + lengths + commit_bytes +
             format::seal_bytes(impl_->seal.keys != nullptr) <=
         impl_->half_bytes / 4 * 3;
}

void JournalWriter::start_epoch(const format::Version& base,
                                std::span<const format::Payload> commits) {
  Impl& j = *impl_;
  assert(j.unsynced_end == 0 && !j.sync_failed);
  const std::uint64_t sequence = base.sequence + commits.size();
  assert(sequence == j.sequence || sequence == j.sequence + 1);
  const FrameType type = commits.empty() ? FrameType::base : FrameType::base_with_commits;
  const auto payload = commits.empty() ? format::encode_version(base)
                                       : format::encode_base_with_commits(base, commits);
  const auto frame = format::encode_frame({type, j.epoch + 1, sequence, 0}, payload, j.seal);
  if (frame.size() > j.half_bytes) {
    fail(Errc::invalid_argument, "{}: a version of {} bytes does not fit the journal",
         j.file->path(), frame.size());
  }
  format::Version copy = base;  // nothing may fail after the sync
  const std::uint64_t start = half_start(j.epoch + 1, j.half_bytes);
  j.make_ready(j.epoch + 1, start + frame.size());
  j.write_frame(frame, start);
  j.sync();
  ++j.epoch;
  j.base = std::move(copy);
  j.sequence = sequence;
  j.seal.before = j.authenticator(frame, payload.size());
  j.base_end = start + frame.size();
  j.tail_bytes = j.base_end;
  j.write_marker(j.tail_bytes);
}

void JournalWriter::start_line(const format::Version& base) {
  assert(impl_->unsynced_end == 0);
  impl_->sequence = base.sequence;
  start_epoch(base);
}

std::uint64_t JournalWriter::used_bytes() const noexcept {
  assert(impl_->tail_bytes >= half_start(impl_->epoch, impl_->half_bytes));
  return impl_->tail_bytes - half_start(impl_->epoch, impl_->half_bytes);
}

const format::Version& JournalWriter::base() const noexcept { return impl_->base; }

std::uint64_t JournalWriter::epoch() const noexcept { return impl_->epoch; }

std::uint32_t JournalWriter::half_bytes() const noexcept { return impl_->half_bytes; }

void JournalWriter::release_space() noexcept {
  constexpr std::uint64_t kHole = 4096;
  Impl& j = *impl_;
  assert(j.tail_bytes == j.base_end && j.unsynced_end == 0);
  try {
    const std::uint64_t other = half_start(j.epoch + 1, j.half_bytes);
    j.file->punch(other, j.half_bytes);
    const std::uint64_t from = round_up(j.base_end, kHole);
    if (from < j.half_end()) j.file->punch(from, j.half_end() - from);
  } catch (...) {
    // A file system without holes keeps the bytes.
  }
}

const base::File& JournalWriter::file() const noexcept { return *impl_->file; }
const IoCost& JournalWriter::io() const noexcept { return impl_->io; }
bool JournalWriter::sync_failed() const noexcept { return impl_->sync_failed; }

}  // namespace vellum::store
