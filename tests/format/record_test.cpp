#include "format/records/record.hpp"

#include <gtest/gtest.h>

#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

RecordRef ref_of(const RecordHeader& h) { return {h.pack, h.offset_bytes, h.tag()}; }

TEST(PackHeader, RoundTrip) {
  const PackHeader h{samples::store_id(), (3ULL << 32) | 7, 3};
  const Bytes bytes = encode_pack_header(h);
  ASSERT_EQ(bytes.size(), kPackHeaderBytes);
  PackHeader back;
  ASSERT_TRUE(decode_pack_header(bytes, back));
  EXPECT_EQ(back.store_id, h.store_id);
  EXPECT_EQ(back.pack, h.pack);
  EXPECT_EQ(back.branch_id, h.branch_id);
}

TEST(PackHeader, ATranslatedPackNamesItsTable) {
  PackHeader h{samples::store_id(), 5, 3, 4096, 0x12345678};
  PackHeader back;
  ASSERT_TRUE(decode_pack_header(encode_pack_header(h), back));
  EXPECT_EQ(back.translation_offset_bytes, 4096u);
  EXPECT_EQ(back.translation_tag, 0x12345678u);
  for (const std::uint64_t wrong : {std::uint64_t{8}, std::uint64_t{4097}, kMaxPackOffsetBytes}) {
    h.translation_offset_bytes = wrong;
    EXPECT_FALSE(decode_pack_header(encode_pack_header(h), back)) << wrong;
  }
  h.translation_offset_bytes = 0;  // a tag without an offset
  EXPECT_FALSE(decode_pack_header(encode_pack_header(h), back));
}

TEST(Record, RoundTripWithHash) {
  RecordHeader h;
  const Bytes bytes = samples::record(h);
  EXPECT_EQ(bytes.size(), record_extent_bytes(h));
  EXPECT_EQ(bytes.size() % kRecordAlignBytes, 0u);
  RecordHeader back;
  ASSERT_EQ(decode_record_header(bytes, back), nullptr);
  EXPECT_EQ(back.type, h.type);
  EXPECT_EQ(back.codec, h.codec);
  EXPECT_EQ(back.pack, h.pack);
  EXPECT_EQ(back.offset_bytes, h.offset_bytes);
  EXPECT_EQ(back.raw_bytes, h.raw_bytes);
  EXPECT_EQ(back.stored_bytes, 3u);
  EXPECT_EQ(back.items, h.items);
  EXPECT_TRUE(back.has_hash);
  EXPECT_EQ(back.checksum, h.checksum);
  EXPECT_EQ(verify_record(bytes, back, ref_of(h), samples::seed()), nullptr);
  const auto payload = record_payload(bytes, back);
  EXPECT_EQ(Bytes(payload.begin(), payload.end()),
            (Bytes{std::byte{1}, std::byte{2}, std::byte{3}}));
}

TEST(Record, AppendsBehindWhatIsThere) {
  Bytes out(8, std::byte{9});
  RecordHeader h;
  h.offset_bytes = 64;
  h.pack = 1;
  h.raw_bytes = kPageBytes;
  h.items = 1;
  const Bytes page(kPageBytes, std::byte{7});
  append_record(out, h, {}, page, samples::seed());
  const auto record = std::span<const std::byte>(out).subspan(8);
  RecordHeader back;
  ASSERT_EQ(decode_record_header(record, back), nullptr);
  EXPECT_EQ(verify_record(record, back, ref_of(h), samples::seed()), nullptr);
  EXPECT_FALSE(back.has_hash);
}

TEST(Record, ThreeKindsOfWrongAreToldApart) {
  RecordHeader h;
  Bytes bytes = samples::record(h);
  const auto ref = ref_of(h);
  const auto with = [&](auto change) {
    RecordRef r = ref;
    change(r);
    return std::string(verify_record(bytes, h, r, samples::seed()));
  };
  EXPECT_EQ(with([](RecordRef& r) { r.tag ^= 1; }), "stale record");
  EXPECT_EQ(with([](RecordRef& r) { r.pack ^= 1; }), "misdirected record");
  EXPECT_EQ(with([](RecordRef& r) { r.offset_bytes += 8; }), "misdirected record");
  EXPECT_STREQ(verify_record(bytes, h, ref, samples::seed() + 1), "checksum mismatch");
  EXPECT_STREQ(verify_record(std::span<const std::byte>(bytes).first(90), h, ref, samples::seed()),
               "truncated record");
  bytes[60] ^= std::byte{1};
  EXPECT_STREQ(verify_record(bytes, h, ref, samples::seed()), "checksum mismatch");
}

TEST(Record, HeaderFromAnotherReadIsNoticed) {
  RecordHeader h;
  const Bytes bytes = samples::record(h);
  RecordHeader other = h;
  other.raw_bytes += kPageBytes;
  EXPECT_STREQ(verify_record(bytes, other, ref_of(h), samples::seed()), "checksum mismatch");
}

// Encodes a header with any values and a right checksum: only the range checks can refuse it.
const char* decode_with(RecordType type, base::Codec codec, std::uint32_t raw, std::size_t stored,
                        std::uint32_t items) {
  Bytes out;
  RecordHeader h;
  h.type = type;
  h.codec = codec;
  h.offset_bytes = 64;
  h.raw_bytes = raw;
  h.items = items;
  append_record(out, h, {}, Bytes(stored), samples::seed());
  RecordHeader back;
  return decode_record_header(out, back);
}

TEST(Record, HeaderRanges) {
  using base::Compression;
  EXPECT_EQ(decode_with(RecordType::pages, Compression::none, 4096, 4096, 1), nullptr);
  EXPECT_EQ(decode_with(RecordType::pages, Compression::zstd, kMaxRecordRawBytes, 100,
                        kMaxRecordRawBytes / 4096),
            nullptr);
  EXPECT_EQ(decode_with(RecordType::version, Compression::none, 100, 100, 1), nullptr);
  EXPECT_STREQ(decode_with(RecordType::pages, Compression::none, 0, 0, 0),
               "impossible record size");
  EXPECT_STREQ(
      decode_with(RecordType::pages, Compression::lz4, kMaxRecordRawBytes + 4096, 9, 32769),
      "impossible record size");
  EXPECT_STREQ(decode_with(RecordType::pages, Compression::none, 4096, 4095, 1),
               "impossible stored size");
  EXPECT_STREQ(decode_with(RecordType::pages, Compression::zstd, 4096, 0, 1),
               "impossible stored size");
  EXPECT_STREQ(decode_with(RecordType::pages, Compression::zstd, 4096, 9000, 1),
               "impossible stored size");
  EXPECT_STREQ(decode_with(RecordType::pages, Compression::zstd, 4096, 100, 2),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::deltas, Compression::zstd, 65537, 100, 1),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::deltas, Compression::zstd, 60000, 100, 4097),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::map_block, Compression::zstd, 60000, 100, 1025),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::map_block, Compression::zstd, 60000, 100, 0),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::run_root, Compression::zstd, 100, 50, 13),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::version, Compression::zstd, kMaxVersionBytes + 1, 50, 1),
               "impossible item count");
  EXPECT_STREQ(decode_with(RecordType::index, Compression::zstd, 8, 8, 1), "impossible item count");
}

TEST(Record, HeaderUnknowns) {
  RecordHeader h;
  const Bytes good = samples::record(h);
  const auto changed = [&](std::size_t at, int value) {
    Bytes b = good;
    b[at] = static_cast<std::byte>(value);
    RecordHeader back;
    return std::string(decode_record_header(b, back));
  };
  EXPECT_EQ(changed(0, 0), "not a record");
  EXPECT_EQ(changed(4, 0), "a record type that format 1.0 does not have");
  constexpr int kAfterTheLastType = static_cast<int>(RecordType::based_pages) + 1;
  EXPECT_EQ(changed(4, kAfterTheLastType), "a record type that format 1.0 does not have");
  EXPECT_EQ(changed(5, 200), "a codec that format 1.0 does not have");
  EXPECT_EQ(changed(6, 4), "a record flag that format 1.0 does not have");
  EXPECT_EQ(changed(36, 1), "reserved bytes of a record are not zero");
  EXPECT_EQ(changed(47, 1), "reserved bytes of a record are not zero");
  EXPECT_EQ(changed(16, 1), "impossible record offset");
  EXPECT_EQ(changed(23, 255), "impossible record offset");
}

TEST(Index, RoundTrip) {
  std::vector<IndexLine> back;
  ASSERT_TRUE(decode_index(encode_index(samples::index_lines()), back));
  EXPECT_EQ(back, samples::index_lines());
  ASSERT_TRUE(decode_index(encode_index({}), back));
  EXPECT_TRUE(back.empty());
}

TEST(Index, OverlapAndHostileCountAreRefused) {
  auto lines = samples::index_lines();
  lines[0].stored_bytes = 200;  // would overlap the second record
  std::vector<IndexLine> back;
  EXPECT_FALSE(decode_index(encode_index(lines), back));
  Bytes hostile(20, std::byte{0xff});
  hostile[9] = std::byte{1};  // 2^64 - 1 lines
  EXPECT_FALSE(decode_index(hostile, back));
  EXPECT_TRUE(back.empty());
}

TEST(Trailer, RoundTripAndRefusals) {
  const Bytes bytes = encode_pack_trailer(9, 4096, samples::seed());
  ASSERT_EQ(bytes.size(), kPackTrailerBytes);
  std::uint64_t offset = 0;
  ASSERT_TRUE(decode_pack_trailer(bytes, 9, samples::seed(), offset));
  EXPECT_EQ(offset, 4096u);
  EXPECT_FALSE(decode_pack_trailer(bytes, 8, samples::seed(), offset));
  EXPECT_FALSE(decode_pack_trailer(bytes, 9, samples::seed() + 1, offset));
  EXPECT_FALSE(
      decode_pack_trailer(encode_pack_trailer(9, 63, samples::seed()), 9, samples::seed(), offset));
  EXPECT_FALSE(decode_pack_trailer(encode_pack_trailer(9, 1ULL << 60, samples::seed()), 9,
                                   samples::seed(), offset));
}

}  // namespace
}  // namespace vellum::format
