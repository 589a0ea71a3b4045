// format/journal.hpp: a branch's journal: a header page and two halves, used in turn.
//
// An epoch fills one half: a base frame (the whole Version that the packs hold), then commit frames
// with consecutive sequence numbers. A checkpoint writes the pages of the epoch to packs and starts
// the next epoch in the other half, so a torn base frame leaves the previous half whole. The base
// frame of a background checkpoint also contains the commits since the checkpoint's start, after the
// version.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/records/delta.hpp"
#include "format/version.hpp"
#include "format/wire/encoding.hpp"
#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::size_t kJournalHeaderBytes = 4096;
inline constexpr std::size_t kFrameAlignBytes = 8;

struct JournalHeader {
  Uuid store_id{};
  std::uint64_t branch_id = 0;
  std::int64_t created_ns = 0;
  std::uint32_t half_bytes = 0;
  std::string branch;                // must equal the directory's name
  std::optional<Encoding> encoding;  // how the branch's pages are stored; none: the store's
};
// Exactly kJournalHeaderBytes. With keys, the header is authenticated, and stays readable.
std::vector<std::byte> encode_journal_header(const JournalHeader& h,
                                             const StoreKeys* keys = nullptr);
const char* decode_journal_header(std::span<const std::byte> bytes, const FileSeal& seal,
                                  JournalHeader& out);

// The numbers are stored on disk: never reuse one. A commit marker states that the frame with its
// sequence was synced. It follows that frame, empty and not synced itself, until the next frame
// overwrites it.
enum class FrameType : std::uint8_t {
  base = 1,
  commit = 2,
  commit_marker = 3,
  base_with_commits = 4
};
// Whether an epoch starts with a frame of this type.
constexpr bool is_base(FrameType type) noexcept {
  return type == FrameType::base || type == FrameType::base_with_commits;
}

struct FrameHeader {
  FrameType type = FrameType::base;
  std::uint64_t epoch = 0;     // 1, 2, ...; odd epochs use the first half
  std::uint64_t sequence = 0;  // of the version that this frame completes
  std::uint32_t payload_bytes = 0;
  bool sealed = false;  // the payload is encrypted; its seal follows
};
using Payload = std::span<const std::byte>;

// A frame whose payload is encoded in place, after space for the header: one write stores it, without
// a copy.
class FrameBuffer {
 public:
  FrameBuffer();  // an empty payload
  explicit FrameBuffer(Payload payload);
  // The payload is appended here. REQUIRES: seal() has not been called.
  std::vector<std::byte>& bytes() noexcept {
    assert(!sealed_);
    return bytes_;
  }
  Payload payload() const noexcept;
  // Fills in the header and pads to kFrameAlignBytes; returns the frame. Of `h`, `payload_bytes` and
  // `sealed` are not used. payload() stays readable. REQUIRES: it has not been called.
  std::span<const std::byte> seal(FrameHeader h, const FrameSeal& seal);
  std::vector<std::byte> release() && noexcept {
    return std::move(encrypted_.empty() ? bytes_ : encrypted_);
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::byte> encrypted_;  // the frame of an encrypted store
  std::uint32_t payload_bytes_ = 0;   // once sealed
  bool sealed_ = false;
};

// The same for a payload that exists already, which is copied.
std::vector<std::byte> encode_frame(const FrameHeader& h, Payload payload, const FrameSeal& seal);
// Decodes a whole, valid frame at the start of `bytes`. False: none starts there (end of the log, torn
// or stale bytes). The payload is as stored.
bool decode_frame(std::span<const std::byte> bytes, std::uint64_t seed, FrameHeader& out,
                  std::span<const std::byte>& payload) noexcept;
// The same, and decrypts the payload to `opened`, if the store is encrypted.
bool open_frame(std::span<const std::byte> bytes, const FrameSeal& seal, FrameHeader& out,
                std::span<const std::byte>& payload, std::vector<std::byte>& opened);
// That of a whole frame; zeros, if the frame is not sealed.
Authenticator frame_authenticator(std::span<const std::byte> frame, const FrameHeader& h) noexcept;
std::uint64_t frame_extent_bytes(const FrameHeader& h) noexcept;
// The size of the frame at the start of `bytes` by its header, which is not checked; 0 if none starts
// there.
std::uint64_t frame_extent_at(std::span<const std::byte> bytes) noexcept;

// Payload of a commit frame.
enum class PartType : std::uint8_t { pages = 1, deltas = 2, zeros = 3 };
struct CommitPart {
  PartType type = PartType::pages;
  base::Codec codec = base::Compression::none;
  std::uint32_t raw_bytes = 0;    // of `stored`, decompressed; 0 for zeros
  std::vector<PageNumber> pages;  // ascending; empty for deltas (the batch names them)
  std::vector<std::byte> stored;  // pages or a delta batch, compressed by `codec`
  bool operator==(const CommitPart&) const = default;
};
// A decoded commit.
struct CommitBody : CommitInfo {
  std::vector<CommitPart> parts;  // a page appears in at most one part
  bool operator==(const CommitBody&) const = default;
};

// A part to be encoded, as views of the caller's bytes.
struct PartView {
  PartType type = PartType::pages;
  base::Codec codec = base::Compression::none;
  std::uint32_t raw_bytes = 0;
  std::span<const PageNumber> pages = {};
  std::span<const std::byte> stored = {};
  // Deltas that are encoded straight into the payload, uncompressed, in place of `stored`.
  const DeltaBatch* deltas = nullptr;
  DeltaRun deltas_at = {};

  std::size_t stored_bytes() const noexcept {
    return deltas != nullptr ? deltas_at.encoded_bytes : stored.size();
  }
};
// Appends the payload of a commit frame.
void encode_commit(const CommitInfo& info, std::span<const PartView> parts,
                   std::vector<std::byte>& out);
std::vector<std::byte> encode_commit(const CommitBody& body);
bool decode_commit(std::span<const std::byte> payload, CommitBody& out);

// Payload of a base frame: an encoded Version. In a base frame with commits, the payloads of the
// commits after that version follow, oldest first. REQUIRES: `commits` is not empty.
std::vector<std::byte> encode_base_with_commits(const Version& base,
                                                std::span<const Payload> commits);
// The version of a base frame of either type. The commits after it are not decoded.
bool decode_base_version(FrameType type, std::span<const std::byte> payload, Version& out);
// A base frame of either type. Also false if its sequence is not that of its last commit.
bool decode_base(const FrameHeader& h, std::span<const std::byte> payload, Version& base,
                 std::vector<CommitBody>& commits);

// The head of a journal: its base, and the commits that follow, oldest first. These three functions
// are the only place that combines the two.
const CommitInfo& head_info(const Version& base, std::span<const CommitBody> commits) noexcept;
std::uint64_t head_sequence(const Version& base, std::span<const CommitBody> commits) noexcept;
// The base with the head's facts and sequence. Its runs stay those of the base.
Version head_version(const Version& base, std::span<const CommitBody> commits);

}  // namespace vellum::format
