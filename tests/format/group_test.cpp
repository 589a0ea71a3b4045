// The files of a group's records.
#include "format/group.hpp"

#include <gtest/gtest.h>

#include "format/wire/checks.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

const char* file_problem(const Bytes& bytes) {
  GroupFile out;
  const char* text = decode_group_file(bytes, out);
  return text == nullptr ? "" : text;
}

const char* record_problem(const Bytes& bytes) {
  GroupRecord out;
  const char* text = decode_group_record(bytes, samples::store_id(), out);
  return text == nullptr ? "" : text;
}

Bytes good_record() { return encode_group_record(samples::group_record(), samples::store_id()); }

TEST(Group, RoundTrip) {
  GroupFile file;
  ASSERT_EQ(decode_group_file(encode_group_file(samples::group_file()), file), nullptr);
  EXPECT_EQ(file, samples::group_file());
  GroupRecord record;
  ASSERT_EQ(decode_group_record(good_record(), samples::store_id(), record), nullptr);
  EXPECT_EQ(record, samples::group_record());
}

TEST(Group, SaysWhatIsWrong) {
  EXPECT_STREQ(file_problem({}), "not a group");
  EXPECT_STREQ(file_problem(good_record()), "larger than a group");
  EXPECT_STREQ(record_problem({}), "not the record of a global version");
  EXPECT_STREQ(record_problem(encode_group_file(samples::group_file())),
               "not the record of a global version");
  Bytes bad = good_record();
  bad[8] = std::byte{9};
  EXPECT_STREQ(record_problem(samples::sealed(bad)), "written by a newer format");
  bad = good_record();
  bad.back() ^= std::byte{1};
  EXPECT_STREQ(record_problem(bad), "checksum mismatch");
  bad = good_record();
  bad.pop_back();
  EXPECT_STREQ(record_problem(bad), "truncated");
  Uuid other = samples::store_id();
  other[0] ^= std::byte{1};
  EXPECT_STREQ(record_problem(encode_group_record(samples::group_record(), other)),
               "belongs to another group");
}

// Content that Vellum never writes, with a right checksum.
TEST(Group, Forged) {
  const auto with = [](auto change) {
    GroupRecord record = samples::group_record();
    change(record);
    return encode_group_record(record, samples::store_id());
  };
  const auto with_partition = [&](auto change) {
    return with([&](GroupRecord& record) { change(record.partitions[1]); });
  };
  EXPECT_STREQ(record_problem(with([](GroupRecord& r) { r.number = 0; })), "malformed number");
  EXPECT_STREQ(record_problem(with([](GroupRecord& r) { r.epoch = 0; })), "malformed number");
  EXPECT_STREQ(record_problem(with([](GroupRecord& r) { r.pin.epoch = 5; })), "malformed number");
  EXPECT_STREQ(record_problem(with([](GroupRecord& r) { r.name = "-x"; })), "malformed name");
  EXPECT_STREQ(record_problem(with_partition([](GroupPartition& p) { p.order = 0; })),
               "malformed partition");
  EXPECT_STREQ(record_problem(with_partition([](GroupPartition& p) { p.region_bytes = 1; })),
               "malformed partition");
  EXPECT_STREQ(record_problem(with_partition([](GroupPartition& p) { p.store = ""; })),
               "malformed partition");
  EXPECT_STREQ(
      record_problem(with_partition([](GroupPartition& p) { p.store = std::string("/a\0b", 4); })),
      "malformed partition");
  EXPECT_STREQ(record_problem(with_partition([](GroupPartition& p) { p.branch = "a/b"; })),
               "malformed partition");
  EXPECT_STREQ(record_problem(with_partition(
                   [](GroupPartition& p) { p.store = std::string(kMaxGroupPathBytes + 1, 'x'); })),
               "malformed partition");
  GroupFile file = samples::group_file();
  file.partitions = kMaxGroupPartitions + 1;
  EXPECT_STREQ(file_problem(encode_group_file(file)), "malformed");
  file.partitions = 0;
  EXPECT_STREQ(file_problem(encode_group_file(file)), "malformed");
}

// A count that exceeds the input allocates no memory.
TEST(Group, BoundsTheNumberOfPartitions) {
  GroupRecord record = samples::group_record();
  record.partitions.resize(1);
  record.message = "m";
  Bytes bytes = encode_group_record(record, samples::store_id());
  const Bytes mark{std::byte{1}, std::byte{'m'}, std::byte{1}};
  const auto at = std::search(bytes.begin(), bytes.end(), mark.begin(), mark.end());
  ASSERT_NE(at, bytes.end());
  *(at + 2) = std::byte{100};
  EXPECT_STREQ(record_problem(samples::sealed(bytes)), "malformed number of partitions");
}

// The record of the largest supported job: docs/guides/mpi.md has the figure.
TEST(Group, RecordOfTenThousandRanks) {
  GroupRecord record = samples::group_record();
  record.partitions.clear();
  for (std::size_t i = 0; i < 10'000; ++i) {
    GroupPartition p = samples::group_record().partitions[0];
    p.store = "../store-" + std::to_string(i);
    p.host = "node" + std::to_string(i / 64);
    record.partitions.push_back(p);
  }
  const Bytes bytes = encode_group_record(record, samples::store_id());
  EXPECT_LT(bytes.size(), 650'000u);
  GroupRecord back;
  ASSERT_EQ(decode_group_record(bytes, samples::store_id(), back), nullptr);
  EXPECT_EQ(back, record);
}

}  // namespace
}  // namespace vellum::format
