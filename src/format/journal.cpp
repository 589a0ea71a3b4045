#include "format/journal.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "base/round_up.hpp"
#include "format/version.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/commit_info.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr std::size_t kJournalNameOffset = 56, kJournalEncodingOffset = 256;
constexpr std::size_t kJournalSealOffset = 512;
constexpr std::size_t kFramePayloadBytesOffset = 24, kFrameChecksumOffset = 32;
constexpr std::size_t kMinPartBytes = 5;  // type, codec, raw bytes, page count, stored length

std::span<const std::byte> text_bytes(const std::string& s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

bool all_zero(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

// `stored_bytes`: of payload and seal.
std::uint64_t frame_checksum(std::span<const std::byte> frame, std::size_t stored_bytes,
                             std::uint64_t seed) noexcept {
  return base::checksum64(frame.first(kFrameChecksumOffset),
                          frame.subspan(kFrameHeaderBytes, stored_bytes), seed);
}

// No frame has epoch 0, so the header has a key of its own.
base::MessageKey header_key(const JournalHeader& h) noexcept {
  return {base::KeyUse::journal, h.branch_id, 0};
}

const char* check_header_seal(std::span<const std::byte> bytes, const JournalHeader& h,
                              const StoreKeys& keys) noexcept {
  const bool good = keys.open(header_key(h), bytes.first(kJournalSealOffset), {},
                              bytes.subspan(kJournalSealOffset, kSealBytes));
  return good ? nullptr : "not written with the store's key (forged or exchanged)";
}

}  // namespace

std::vector<std::byte> encode_journal_header(const JournalHeader& h, const StoreKeys* keys) {
  assert(h.branch.size() <= kMaxNameBytes);
  std::vector<std::byte> out;
  out.reserve(kJournalHeaderBytes);
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kJournalMagic, 8)));
  w.u32(format_version(keys != nullptr));
  w.u32(h.half_bytes);
  w.bytes(h.store_id);
  w.u64(h.branch_id);
  w.u64(static_cast<std::uint64_t>(h.created_ns));
  w.u32(static_cast<std::uint32_t>(h.branch.size()));
  w.u32(0);
  w.bytes(text_bytes(h.branch));
  out.resize(kJournalEncodingOffset);
  if (h.encoding.has_value()) write_encoding(w, *h.encoding);
  assert(out.size() <= kJournalEncodingOffset + kEncodingBytes);
  out.resize(kJournalHeaderBytes - 8);
  if (keys != nullptr) {
    const std::span all(out);
    keys->seal(header_key(h), all.first(kJournalSealOffset), {},
               all.subspan(kJournalSealOffset, kSealBytes));
  }
  append_checksum(out, checksum_seed(h.store_id));
  assert(out.size() == kJournalHeaderBytes);
  return out;
}

const char* decode_journal_header(std::span<const std::byte> bytes, const FileSeal& seal,
                                  JournalHeader& out) {
  if (bytes.size() < kJournalHeaderBytes) return "truncated journal header";
  bytes = bytes.first(kJournalHeaderBytes);
  ByteReader in(bytes);
  if (std::memcmp(in.bytes(8).data(), kJournalMagic, 8) != 0) return "not a journal";
  const std::uint32_t version = in.u32();
  JournalHeader h;
  h.half_bytes = in.u32();
  read_uuid(in, h.store_id);
  h.branch_id = in.u64();
  h.created_ns = static_cast<std::int64_t>(in.u64());
  const std::uint32_t name_bytes = in.u32();
  if (!ends_with_checksum(bytes, checksum_seed(h.store_id))) return "checksum mismatch";
  if (number_is_newer(version)) return kNewerFormat;
  if (h.store_id != seal.store_id) return "belongs to another store";
  const bool sealed = seal.keys != nullptr;
  if (version != format_version(sealed) || in.u32() != 0 || name_bytes > kMaxNameBytes)
    return "malformed journal header";
  if (!journal_half_ok(h.half_bytes)) return "impossible journal size";
  const auto name = bytes.subspan(kJournalNameOffset, name_bytes);
  h.branch.assign(reinterpret_cast<const char*>(name.data()), name.size());
  if (name_problem(h.branch) != nullptr) return "malformed branch name";
  const auto rest =
      bytes.subspan(kJournalEncodingOffset, kJournalHeaderBytes - 8 - kJournalEncodingOffset);
  const auto encoding = rest.first(kEncodingBytes);
  const std::size_t seal_at = kJournalSealOffset - kJournalEncodingOffset;
  if (!all_zero(rest.subspan(kEncodingBytes, seal_at - kEncodingBytes)) ||
      !all_zero(rest.subspan(seal_at + seal_bytes(sealed)))) {
    return "malformed journal header";
  }
  if (!all_zero(encoding)) {
    ByteReader own(encoding);
    if (!read_encoding(own, h.encoding.emplace())) return "impossible encoding";
  }
  if (sealed) {
    if (const char* problem = check_header_seal(bytes, h, *seal.keys)) return problem;
  }
  out = std::move(h);
  return nullptr;
}

std::uint64_t frame_extent_bytes(const FrameHeader& h) noexcept {
  const std::uint64_t bytes =
      kFrameHeaderBytes + std::uint64_t{h.payload_bytes} + seal_bytes(h.sealed);
  return base::round_up(bytes, kFrameAlignBytes);
}

std::uint64_t frame_extent_at(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kFrameHeaderBytes) return 0;
  ByteReader in(bytes);
  if (in.u32() != kFrameMagic) return 0;
  FrameHeader h;
  in.u8();
  h.sealed = (in.u8() & kFrameFlagSealed) != 0;
  in.bytes(kFramePayloadBytesOffset - 6);
  h.payload_bytes = in.u32();
  return frame_extent_bytes(h);
}

namespace {

// All of the header but its checksum.
std::vector<std::byte> frame_header(const FrameHeader& h) {
  std::vector<std::byte> header;
  header.reserve(kFrameHeaderBytes);
  ByteWriter w(header);
  w.u32(kFrameMagic);
  w.u8(static_cast<std::uint8_t>(h.type));
  w.u8(h.sealed ? kFrameFlagSealed : 0);
  w.u16(0);
  w.u64(h.epoch);
  w.u64(h.sequence);
  w.u32(h.payload_bytes);
  w.u32(0);
  assert(header.size() == kFrameChecksumOffset);
  return header;
}

// Fills kFrameHeaderBytes at the start of `frame`. `stored`: payload and seal.
void write_frame_header(const FrameHeader& h, std::span<const std::byte> stored, std::uint64_t seed,
                        std::byte* frame) {
  assert(h.payload_bytes + seal_bytes(h.sealed) == stored.size());
  std::vector<std::byte> header = frame_header(h);
  ByteWriter(header).u64(base::checksum64(header, stored, seed));
  assert(header.size() == kFrameHeaderBytes);
  std::copy(header.begin(), header.end(), frame);
}

base::MessageKey frame_key(const FrameHeader& h, const FrameSeal& seal) noexcept {
  return {base::KeyUse::journal, seal.branch_id, h.epoch};
}

// What a frame is authenticated with: all of its header but the checksum, and its predecessor.
std::vector<std::byte> frame_context(const FrameHeader& h, const FrameSeal& seal) {
  std::vector<std::byte> out = frame_header(h);
  if (!is_base(h.type)) out.insert(out.end(), seal.before.begin(), seal.before.end());
  return out;
}

std::vector<std::byte> encrypted_frame(const FrameHeader& h, std::span<const std::byte> payload,
                                       const FrameSeal& seal) {
  std::vector<std::byte> out(static_cast<std::size_t>(frame_extent_bytes(h)));
  const std::span all(out);
  const auto text = all.subspan(kFrameHeaderBytes, payload.size());
  std::copy(payload.begin(), payload.end(), text.begin());
  seal.keys->seal(frame_key(h, seal), frame_context(h, seal), text,
                  all.subspan(kFrameHeaderBytes + payload.size(), kSealBytes));
  write_frame_header(h, all.subspan(kFrameHeaderBytes, payload.size() + kSealBytes), seal.seed,
                     out.data());
  return out;
}

}  // namespace

FrameBuffer::FrameBuffer() : bytes_(kFrameHeaderBytes) {}

FrameBuffer::FrameBuffer(std::span<const std::byte> payload) : FrameBuffer() {
  bytes_.reserve(kFrameHeaderBytes + payload.size() + kFrameAlignBytes);
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
}

std::span<const std::byte> FrameBuffer::payload() const noexcept {
  assert(bytes_.size() >= kFrameHeaderBytes);
  const std::span<const std::byte> all(bytes_);
  return sealed_ ? all.subspan(kFrameHeaderBytes, payload_bytes_) : all.subspan(kFrameHeaderBytes);
}

std::span<const std::byte> FrameBuffer::seal(FrameHeader h, const FrameSeal& seal) {
  assert(!sealed_);
  assert(payload().size() <= kMaxJournalHalfBytes);
  h.payload_bytes = payload_bytes_ = static_cast<std::uint32_t>(payload().size());
  h.sealed = seal.keys != nullptr;
  if (h.sealed) {
    encrypted_ = encrypted_frame(h, payload(), seal);
    sealed_ = true;
    return encrypted_;
  }
  write_frame_header(h, payload(), seal.seed, bytes_.data());
  bytes_.resize(static_cast<std::size_t>(frame_extent_bytes(h)));
  assert(bytes_.size() % kFrameAlignBytes == 0);
  sealed_ = true;
  return bytes_;
}

std::vector<std::byte> encode_frame(const FrameHeader& h, std::span<const std::byte> payload,
                                    const FrameSeal& seal) {
  FrameBuffer frame(payload);
  frame.seal(h, seal);
  return std::move(frame).release();
}

bool decode_frame(std::span<const std::byte> bytes, std::uint64_t seed, FrameHeader& out,
                  std::span<const std::byte>& payload) noexcept {
  if (bytes.size() < kFrameHeaderBytes) return false;
  ByteReader in(bytes);
  if (in.u32() != kFrameMagic) return false;
  const std::uint8_t type = in.u8();
  const std::uint8_t flags = in.u8();
  const bool reserved_zero = ((flags & ~unsigned{kFrameFlagSealed}) | in.u16()) == 0;
  if (type < static_cast<std::uint8_t>(FrameType::base) ||
      type > static_cast<std::uint8_t>(FrameType::base_with_commits)) {
    return false;
  }
  FrameHeader h;
  h.type = static_cast<FrameType>(type);
  h.sealed = (flags & kFrameFlagSealed) != 0;
  h.epoch = in.u64();
  h.sequence = in.u64();
  h.payload_bytes = in.u32();
  if (!reserved_zero || in.u32() != 0 || h.epoch == 0) return false;
  if (frame_extent_bytes(h) > bytes.size()) return false;
  const std::size_t stored_bytes = h.payload_bytes + seal_bytes(h.sealed);
  if (in.u64() != frame_checksum(bytes, stored_bytes, seed)) return false;
  out = h;
  payload = bytes.subspan(kFrameHeaderBytes, h.payload_bytes);
  return true;
}

bool open_frame(std::span<const std::byte> bytes, const FrameSeal& seal, FrameHeader& out,
                std::span<const std::byte>& payload, std::vector<std::byte>& opened) {
  if (!decode_frame(bytes, seal.seed, out, payload)) return false;
  if (out.sealed != (seal.keys != nullptr)) return false;
  if (!out.sealed) return true;
  opened.assign(payload.begin(), payload.end());
  payload = opened;
  return seal.keys->open(frame_key(out, seal), frame_context(out, seal), opened,
                         bytes.subspan(kFrameHeaderBytes + out.payload_bytes, kSealBytes));
}

Authenticator frame_authenticator(std::span<const std::byte> frame, const FrameHeader& h) noexcept {
  Authenticator out{};
  if (!h.sealed) return out;
  const auto seal = frame.subspan(kFrameHeaderBytes + h.payload_bytes, kSealBytes);
  std::ranges::copy(seal.last(out.size()), out.begin());
  return out;
}

namespace {

void write_page_list(ByteWriter& w, std::span<const PageNumber> pages) {
  w.varint(pages.size());
  PageNumber next = 0;
  for (const PageNumber p : pages) {
    assert(p >= next && p < kMaxPages);
    w.varint(p - next);
    next = p + 1;
  }
}

// A page takes at least a byte, so the list is never larger than eight times its input.
bool read_page_list(ByteReader& in, PageNumber end, std::vector<PageNumber>& out) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > in.left()) return false;
  out.resize(static_cast<std::size_t>(n));
  PageNumber next = 0;
  for (auto& p : out) {
    const std::uint64_t gap = in.varint();
    if (!in.ok() || next >= end || gap >= end - next) return false;
    p = next + gap;
    next = p + 1;
  }
  return true;
}

bool part_ok(const CommitPart& p) noexcept {
  switch (p.type) {
    case PartType::pages:
      return !p.pages.empty() && p.raw_bytes <= kMaxRecordRawBytes &&
             p.raw_bytes == p.pages.size() * kPageBytes &&
             stored_size_ok(p.codec, p.raw_bytes, p.stored.size());
    case PartType::deltas:
      return p.pages.empty() && p.raw_bytes >= 1 && p.raw_bytes <= kMaxDeltaBatchRawBytes &&
             stored_size_ok(p.codec, p.raw_bytes, p.stored.size());
    case PartType::zeros:
      return !p.pages.empty() && p.raw_bytes == 0 && p.codec == base::Compression::none &&
             p.stored.empty();
  }
  return false;
}

bool read_part(ByteReader& in, PageNumber end, CommitPart& out) {
  const std::uint8_t type = in.u8();
  const auto codec = base::codec_from_byte(in.u8());
  const std::uint64_t raw = in.varint();
  if (!in.ok() || type < 1 || type > 3 || !codec || raw > kMaxRecordRawBytes) return false;
  out.type = static_cast<PartType>(type);
  out.codec = *codec;
  out.raw_bytes = static_cast<std::uint32_t>(raw);
  if (!read_page_list(in, end, out.pages)) return false;
  const auto stored = in.bytes(in.varint());
  if (!in.ok()) return false;
  out.stored.assign(stored.begin(), stored.end());
  return part_ok(out);
}

}  // namespace

void encode_commit(const CommitInfo& info, std::span<const PartView> parts,
                   std::vector<std::byte>& out) {
  std::size_t bound = 64 + info.message.size();
  for (const PartView& p : parts) bound += 32 + p.pages.size() * 2 + p.stored_bytes();
  out.reserve(out.size() + bound);
  ByteWriter w(out);
  write_info(w, info);
  w.varint(parts.size());
  for (const PartView& p : parts) {
    w.u8(static_cast<std::uint8_t>(p.type));
    w.u8(base::codec_byte(p.codec));
    w.varint(p.raw_bytes);
    write_page_list(w, p.pages);
    w.varint(p.stored_bytes());
    if (p.deltas != nullptr) {
      assert(p.type == PartType::deltas && p.codec == base::Compression::none);
      assert(p.raw_bytes == p.deltas_at.encoded_bytes);
      append_delta_batch(*p.deltas, p.deltas_at, out);
    } else {
      w.bytes(p.stored);
    }
  }
  write_last_info(w, info);
}

std::vector<std::byte> encode_commit(const CommitBody& body) {
  std::vector<PartView> parts;
  parts.reserve(body.parts.size());
  for (const CommitPart& p : body.parts) {
    parts.push_back({p.type, p.codec, p.raw_bytes, p.pages, p.stored});
  }
  std::vector<std::byte> out;
  encode_commit(body, parts, out);
  return out;
}

bool decode_commit(std::span<const std::byte> payload, CommitBody& out) {
  ByteReader in(payload);
  CommitBody body;
  if (!read_info(in, body)) return false;
  const std::uint64_t parts = in.varint();
  if (!in.ok() || parts > in.left() / kMinPartBytes) return false;
  // Grows by parts: a part in memory is much larger than its smallest encoding.
  for (std::uint64_t i = 0; i < parts; ++i) {
    if (!read_part(in, body.region_bytes / kPageBytes, body.parts.emplace_back())) return false;
  }
  if (!read_last_info(in, body)) return false;
  out = std::move(body);
  return true;
}

std::vector<std::byte> encode_base_with_commits(const Version& base,
                                                std::span<const Payload> commits) {
  assert(!commits.empty());
  const auto version = encode_version(base);
  std::size_t bound = version.size() + 16;
  for (const Payload commit : commits) bound += 10 + commit.size();
  std::vector<std::byte> out;
  out.reserve(bound);
  ByteWriter w(out);
  w.varint(version.size());
  w.bytes(version);
  w.varint(commits.size());
  for (const Payload commit : commits) {
    w.varint(commit.size());
    w.bytes(commit);
  }
  return out;
}

bool decode_base_version(FrameType type, std::span<const std::byte> payload, Version& out) {
  if (type == FrameType::base) return decode_version(payload, out);
  ByteReader in(payload);
  const auto version = in.bytes(in.varint());
  return type == FrameType::base_with_commits && in.ok() && decode_version(version, out);
}

bool decode_base(const FrameHeader& h, std::span<const std::byte> payload, Version& base,
                 std::vector<CommitBody>& commits) {
  if (!is_base(h.type) || !decode_base_version(h.type, payload, base)) return false;
  commits.clear();
  if (h.type == FrameType::base) return h.sequence == base.sequence;
  ByteReader in(payload);
  in.bytes(in.varint());
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > in.left()) return false;
  // Grows by commits: a commit in memory is much larger than its smallest encoding.
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto commit = in.bytes(in.varint());
    if (!in.ok() || !decode_commit(commit, commits.emplace_back())) return false;
  }
  return in.left() == 0 && h.sequence - base.sequence == count;
}

const CommitInfo& head_info(const Version& base, std::span<const CommitBody> commits) noexcept {
  return commits.empty() ? base.info() : commits.back();
}

std::uint64_t head_sequence(const Version& base, std::span<const CommitBody> commits) noexcept {
  return base.sequence + commits.size();
}

Version head_version(const Version& base, std::span<const CommitBody> commits) {
  Version head = base;
  head.sequence = head_sequence(base, commits);
  head.set_info(head_info(base, commits));
  return head;
}

}  // namespace vellum::format
