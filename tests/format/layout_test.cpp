// Compares the tables of tests/format/layout.hpp with the encoders: every field is written with its
// own value, which must be at the offset in the table. tests/format/document_test.cpp compares the
// manual with the same tables.
#include "format/layout.hpp"
#include "format/wire/whole_file.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/bytes/checksum.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using Values = std::map<std::string, std::uint64_t>;

std::uint64_t magic_value(const char* magic) {
  return samples::little_endian(std::as_bytes(std::span(magic, 8)));
}

// Fields without a value have other tests (store_id, checksum, name); `reserved` must be zero.
void check(std::span<const Field> fields, std::size_t total_bytes, std::span<const std::byte> bytes,
           const Values& values) {
  std::size_t at = 0;
  std::size_t found = 0;
  for (const Field& f : fields) {
    EXPECT_EQ(f.offset_bytes, at) << f.name << ": fields leave no gap";
    at += f.bytes;
    ASSERT_LE(at, bytes.size());
    const auto field = bytes.subspan(f.offset_bytes, f.bytes);
    const std::string name = f.name;
    if (name == "reserved" || name == "seal") {  // a plain store has no seals
      for (const std::byte b : field) EXPECT_EQ(b, std::byte{0});
    } else if (name == "store_id") {
      EXPECT_EQ(0, std::memcmp(field.data(), samples::store_id().data(), 16));
    } else if (const auto it = values.find(name); it != values.end()) {
      EXPECT_EQ(samples::little_endian(field), it->second) << name;
      ++found;
    } else {
      EXPECT_TRUE(name == "checksum" || name == "name") << name << " has no value in this test";
    }
  }
  EXPECT_EQ(at, total_bytes);
  EXPECT_EQ(found, values.size());
}

void expect_checksum_at(std::span<const std::byte> bytes, std::size_t offset, std::uint64_t seed) {
  EXPECT_EQ(samples::little_endian(bytes.subspan(offset, 8)),
            base::checksum64(bytes.first(offset), seed));
}

TEST(Layout, Superblock) {
  Superblock sb = samples::superblock();
  sb.filters = sb.deltas = false;
  const Bytes bytes = encode_superblock(sb);
  EXPECT_EQ(bytes.size(), kSuperblockBytes);
  check(kSuperblockFields, bytes.size(), bytes,
        {{"magic", magic_value(kSuperblockMagic)},
         {"format_version", kFormatVersion},
         {"length", kSuperblockBytes},
         {"created_ns", static_cast<std::uint64_t>(sb.created_ns)},
         {"block_bytes", sb.block_bytes},
         {"codec", base::codec_byte(sb.compression)},
         {"codec_level", sb.compression_level},
         {"flags", kSuperblockFlagNoFilters | kSuperblockFlagNoDeltas},
         {"pack_bytes", sb.pack_bytes},
         {"journal_half_bytes", sb.journal_half_bytes}});
  expect_checksum_at(bytes, 64, 0);
}

TEST(Layout, PackHeader) {
  const Bytes bytes = encode_pack_header({samples::store_id(), 0x0102030405060708,
                                          0x1112131415161718, 0x2122232425262728, 0x31323334});
  check(kPackHeaderFields, kPackHeaderBytes, bytes,
        {{"magic", magic_value(kPackMagic)},
         {"format_version", kFormatVersion},
         {"translation_tag", 0x31323334},
         {"pack", 0x0102030405060708},
         {"branch_id", 0x1112131415161718},
         {"translation_offset_bytes", 0x2122232425262728}});
  expect_checksum_at(bytes, 56, samples::seed());
}

TEST(Layout, RecordHeader) {
  RecordHeader h;
  Bytes bytes = samples::record(h);
  check(kRecordHeaderFields, kRecordHeaderBytes, bytes,
        {{"magic", kRecordMagic},
         {"type", static_cast<std::uint64_t>(RecordType::pages)},
         {"codec", base::codec_byte(base::Compression::zstd)},
         {"flags", kRecordFlagHash},
         {"pack", h.pack},
         {"offset_bytes", h.offset_bytes},
         {"raw_bytes", h.raw_bytes},
         {"stored_bytes", 3},
         {"items", 2},
         {"checksum", h.checksum}});
  std::memset(bytes.data() + 48, 0, 8);
  const auto covered = std::span<const std::byte>(bytes).first(kRecordHeaderBytes + 32 + 3);
  EXPECT_EQ(h.checksum, base::checksum64(covered, samples::seed()));
  EXPECT_EQ(h.tag(), static_cast<std::uint32_t>(h.checksum));
}

TEST(Layout, PackTrailer) {
  const Bytes bytes = encode_pack_trailer(0x0102030405060708, 0x1112131415161718, samples::seed());
  check(kPackTrailerFields, kPackTrailerBytes, bytes,
        {{"magic", magic_value(kPackTrailerMagic)},
         {"pack", 0x0102030405060708},
         {"index_offset_bytes", 0x1112131415161718}});
  expect_checksum_at(bytes, 24, samples::seed());
}

TEST(Layout, JournalHeader) {
  JournalHeader h = samples::journal_header();
  h.branch.assign(kMaxNameBytes, 'n');
  h.encoding = samples::superblock();
  h.encoding->deltas = false;
  const Bytes bytes = encode_journal_header(h);
  check(kJournalHeaderFields, kJournalHeaderBytes, bytes,
        {{"magic", magic_value(kJournalMagic)},
         {"format_version", kFormatVersion},
         {"half_bytes", h.half_bytes},
         {"branch_id", h.branch_id},
         {"created_ns", static_cast<std::uint64_t>(h.created_ns)},
         {"name_bytes", kMaxNameBytes},
         {"block_bytes", h.encoding->block_bytes},
         {"codec", base::codec_byte(h.encoding->compression)},
         {"codec_level", h.encoding->compression_level},
         {"flags", kSuperblockFlagNoDeltas}});
  for (std::size_t i = 0; i < kMaxNameBytes; ++i) EXPECT_EQ(bytes[56 + i], std::byte{'n'});
  expect_checksum_at(bytes, 4088, samples::seed());
}

TEST(Layout, FrameHeader) {
  const FrameHeader h{FrameType::commit, 0x0102030405060708, 0x1112131415161718, 0};
  const Bytes payload(5, std::byte{0x33});
  const Bytes bytes = encode_frame(h, payload, 77);
  check(kFrameHeaderFields, kFrameHeaderBytes, bytes,
        {{"magic", kFrameMagic},
         {"type", static_cast<std::uint64_t>(FrameType::commit)},
         {"flags", 0},
         {"epoch", h.epoch},
         {"sequence", h.sequence},
         {"payload_bytes", 5}});
  const auto head = std::span<const std::byte>(bytes).first(32);
  EXPECT_EQ(samples::little_endian(std::span<const std::byte>(bytes).subspan(32, 8)),
            base::checksum64(head, payload, 77));
}

TEST(Layout, SnapshotHeader) {
  const Bytes bytes = encode_snapshot_ref(samples::snapshot_ref(), samples::store_id());
  check(kWholeFileHeaderFields, kWholeFileHeaderBytes, bytes,
        {{"magic", magic_value(kSnapshotMagic)},
         {"format_version", kFormatVersion},
         {"length", bytes.size()}});
  expect_checksum_at(bytes, bytes.size() - 8, samples::seed());
}

TEST(Layout, EveryCodecIsInTheTable) {
  std::vector<std::string> known, listed;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto codec = base::codec_from_byte(static_cast<std::uint8_t>(byte));
    if (!codec) continue;
    EXPECT_EQ(base::codec_byte(*codec), byte);
    known.push_back(std::to_string(byte) + base::codec_name(*codec));
  }
  for (const Number& n : kCodecNumbers) listed.push_back(std::to_string(n.value) + n.name);
  EXPECT_EQ(known, listed);
}

// The tables list every type that a decoder accepts: a number that is not in its table is refused.
TEST(Layout, EveryRecordTypeIsInTheTable) {
  RecordHeader h;
  const Bytes good = samples::record(h);
  std::size_t known = 0;
  for (unsigned v = 0; v < 256; ++v) {
    Bytes bytes = good;
    bytes[4] = static_cast<std::byte>(v);
    RecordHeader back;
    const char* problem = decode_record_header(bytes, back);
    known +=
        problem == nullptr || std::string(problem) != "a record type that format 1.0 does not have"
            ? 1
            : 0;
  }
  EXPECT_EQ(known, std::size(kRecordTypeNumbers));
}

}  // namespace
}  // namespace vellum::format
