#include "format/redo.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "base/round_up.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/number.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr char kMagic[9] = "VELLUMRJ";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kHeaderSeed = 0x5245444f48454144;

// The fields of a record's first line; the rest is zero. Then 8 bytes per span: the number of its
// first line and, in the lowest bits, its count less one. Then, at the next multiple of 64, the
// lines of all spans.
struct FirstLine {
  std::uint64_t checksum = 0;  // of all bytes after it
  std::uint64_t bytes = 0;     // the whole record
  std::uint64_t sequence = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t spans = 0;
};
static_assert(sizeof(FirstLine) <= kRedoRecordHeaderBytes);

std::uint64_t record_seed(const RedoHeader& header) {
  return header.nonce ^ (header.epoch * 0x9e3779b97f4a7c15);
}

std::uint64_t read_u64(const std::byte* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

RedoSpan decode_span(std::uint64_t word) {
  return {word / kLinesPerPage, static_cast<std::uint32_t>(word % kLinesPerPage) + 1, nullptr};
}

// Fills `out` from a record's table. Returns whether the lines fill the record exactly.
bool read_spans(std::span<const std::byte> record, std::uint64_t spans, std::uint64_t file_bytes,
                std::vector<RedoSpan>& out) {
  assert(record.size() >= kRedoRecordHeaderBytes && record.size() % kLineBytes == 0);
  const std::byte* table = record.data() + kRedoRecordHeaderBytes;
  std::uint64_t at =
      base::round_up(kRedoRecordHeaderBytes + spans * sizeof(std::uint64_t), kLineBytes);
  assert(at <= record.size());
  out.clear();
  out.reserve(spans);
  for (std::uint64_t i = 0; i < spans; ++i) {
    RedoSpan span = decode_span(read_u64(table + i * sizeof(std::uint64_t)));
    const std::uint64_t bytes = span.count * kLineBytes;
    const bool within_page = span.first_line % kLinesPerPage + span.count <= kLinesPerPage;
    const bool within_file = span.first_line + span.count <= pages_in(file_bytes) * kLinesPerPage;
    if (!within_page || !within_file || bytes > record.size() - at) return false;
    span.bytes = record.data() + at;
    at += bytes;
    out.push_back(span);
  }
  return at == record.size();
}

}  // namespace

std::vector<std::byte> encode_redo_header(const RedoHeader& header) {
  assert(header.epoch != 0);
  std::vector<std::byte> out;
  ByteWriter write(out);
  write.bytes(std::as_bytes(std::span(kMagic, 8)));
  write.u32(kVersion);
  write.u32(0);
  write.u64(header.epoch);
  write.u64(header.nonce);
  write.u64(header.inode);
  write.u64(static_cast<std::uint64_t>(header.born_ns));
  write.u64(header.least_bytes);
  write.u64(base::checksum64(out, kHeaderSeed));
  assert(out.size() == kRedoHeaderBytes);
  return out;
}

const char* decode_redo_header(std::span<const std::byte> bytes, RedoHeader& out) noexcept {
  if (bytes.size() < kRedoHeaderBytes) return "it is too short";
  bytes = bytes.first(kRedoHeaderBytes);
  if (std::memcmp(bytes.data(), kMagic, 8) != 0) return "it does not begin as one";
  ByteReader read(bytes.subspan(8));
  const std::uint32_t version = read.u32();
  read.u32();
  out.epoch = read.u64();
  out.nonce = read.u64();
  out.inode = read.u64();
  out.born_ns = static_cast<std::int64_t>(read.u64());
  out.least_bytes = read.u64();
  if (read.u64() != base::checksum64(bytes.first(kRedoHeaderBytes - 8), kHeaderSeed))
    return "its header's checksum is wrong";
  if (version != kVersion) return "a newer Vellum has written it";
  return out.epoch == 0 ? "its epoch is 0" : nullptr;
}

bool redo_header_is_newer(std::span<const std::byte> bytes) noexcept {
  bytes = bytes.first(std::min(bytes.size(), kRedoHeaderBytes));
  return number_is_newer(number_of(bytes)) && ends_with_checksum(bytes, kHeaderSeed) &&
         std::memcmp(bytes.data(), kMagic, 8) == 0;
}

void encode_redo_record(const RedoHeader& header, std::uint64_t sequence, std::uint64_t file_bytes,
                        std::span<const RedoSpan> spans, std::vector<std::byte>& out) {
  std::uint64_t lines = 0;
  for (const RedoSpan& span : spans) lines += span.count;
  const std::uint64_t table_end = kRedoRecordHeaderBytes + spans.size() * sizeof(std::uint64_t);
  const std::uint64_t data = base::round_up(table_end, kLineBytes);
  out.resize(data + lines * kLineBytes);
  std::memset(out.data(), 0, kRedoRecordHeaderBytes);
  std::memset(out.data() + table_end, 0, data - table_end);
  FirstLine fields{0, out.size(), sequence, file_bytes, spans.size()};
  std::byte* table = out.data() + kRedoRecordHeaderBytes;
  std::byte* at = out.data() + data;
  for (const RedoSpan& span : spans) {
    assert(span.count >= 1 && span.first_line % kLinesPerPage + span.count <= kLinesPerPage);
    assert(span.first_line + span.count <= pages_in(file_bytes) * kLinesPerPage);
    assert(span.bytes != nullptr);
    const std::uint64_t word = span.first_line * kLinesPerPage + (span.count - 1);
    std::memcpy(table, &word, sizeof word);
    table += sizeof word;
    std::memcpy(at, span.bytes, span.count * kLineBytes);
    at += span.count * kLineBytes;
  }
  assert(at == out.data() + out.size() && out.size() % kLineBytes == 0);
  std::memcpy(out.data(), &fields, sizeof fields);
  fields.checksum = redo_checksum(header, out);
  std::memcpy(out.data(), &fields.checksum, sizeof fields.checksum);
}

std::uint64_t redo_sequence(std::span<const std::byte> log) noexcept {
  return log.size() < kRedoRecordHeaderBytes ? 0
                                             : read_u64(log.data() + offsetof(FirstLine, sequence));
}

std::uint64_t redo_checksum(const RedoHeader& header, std::span<const std::byte> record) noexcept {
  assert(record.size() >= kRedoRecordHeaderBytes);
  return base::checksum64(record.subspan(sizeof(std::uint64_t)), record_seed(header));
}

void spans_in_record(std::span<const std::byte> record, std::vector<RedoSpan>& out) {
  assert(record.size() >= kRedoRecordHeaderBytes);
  FirstLine fields;
  std::memcpy(&fields, record.data(), sizeof fields);
  [[maybe_unused]] const bool fits = read_spans(record, fields.spans, fields.file_bytes, out);
  assert(fits);
}

std::size_t decode_redo_record(const RedoHeader& header, std::uint64_t sequence,
                               std::span<const std::byte> log, RedoRecord& out) {
  if (log.size() < kRedoRecordHeaderBytes) return 0;
  FirstLine fields;
  std::memcpy(&fields, log.data(), sizeof fields);
  if (fields.bytes < kRedoRecordHeaderBytes || fields.bytes > log.size() ||
      fields.bytes % kLineBytes != 0 || fields.sequence != sequence ||
      fields.file_bytes > kMaxRedoFileBytes ||
      fields.spans > (fields.bytes - kRedoRecordHeaderBytes) / (sizeof(std::uint64_t) + kLineBytes))
    return 0;
  const auto record = log.first(fields.bytes);
  if (redo_checksum(header, record) != fields.checksum) return 0;
  out.sequence = fields.sequence;
  out.file_bytes = fields.file_bytes;
  return read_spans(record, fields.spans, fields.file_bytes, out.spans) ? fields.bytes : 0;
}

}  // namespace vellum::format
