#include "format/journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes/checksum.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;

TEST(JournalHeader, RoundTrip) {
  const JournalHeader h = samples::journal_header();
  const Bytes bytes = encode_journal_header(h);
  ASSERT_EQ(bytes.size(), kJournalHeaderBytes);
  JournalHeader back;
  ASSERT_EQ(decode_journal_header(bytes, samples::store_id(), back), nullptr);
  EXPECT_EQ(back.store_id, h.store_id);
  EXPECT_EQ(back.branch_id, h.branch_id);
  EXPECT_EQ(back.created_ns, h.created_ns);
  EXPECT_EQ(back.half_bytes, h.half_bytes);
  EXPECT_EQ(back.branch, h.branch);
}

TEST(JournalHeader, LongestNameFits) {
  JournalHeader h = samples::journal_header();
  h.branch.assign(kMaxNameBytes, 'n');
  JournalHeader back;
  ASSERT_EQ(decode_journal_header(encode_journal_header(h), samples::store_id(), back), nullptr);
  EXPECT_EQ(back.branch, h.branch);
}

TEST(JournalHeader, AnEncodingComesBack) {
  JournalHeader h = samples::journal_header();
  h.encoding = Encoding{
      .block_bytes = 128u << 10, .compression = base::Compression::lz4, .compression_level = 7};
  for (int bits = 0; bits < 32; ++bits) {
    h.encoding->grow_blocks = (bits & 1) == 0;
    h.encoding->filters = (bits & 2) == 0;
    h.encoding->dedup = (bits & 4) == 0;
    h.encoding->deltas = (bits & 8) == 0;
    h.encoding->sha256 = (bits & 16) != 0;
    JournalHeader back;
    ASSERT_EQ(decode_journal_header(encode_journal_header(h), samples::store_id(), back), nullptr);
    EXPECT_EQ(back.encoding, h.encoding);
  }
  JournalHeader back = h;
  h.encoding.reset();
  ASSERT_EQ(decode_journal_header(encode_journal_header(h), samples::store_id(), back), nullptr);
  EXPECT_FALSE(back.encoding.has_value());
}

TEST(JournalHeader, AnImpossibleEncodingIsRefused) {
  JournalHeader h = samples::journal_header();
  h.encoding = Encoding{};
  const Bytes good = encode_journal_header(h);
  JournalHeader out;
  const auto problem = [&](std::size_t at, std::uint8_t value) {
    Bytes bytes = good;
    bytes[at] = std::byte{value};
    const std::uint64_t sum = base::checksum64(
        std::span<const std::byte>(bytes).first(bytes.size() - 8), samples::seed());
    std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
    const char* found = decode_journal_header(bytes, samples::store_id(), out);
    return std::string(found == nullptr ? "" : found);
  };
  EXPECT_EQ(problem(256, 0), "");  // 64 KiB: the byte is already 0
  for (const auto& [at, value] : std::vector<std::pair<std::size_t, std::uint8_t>>{{256, 1},
                                                                                   {258, 0},
                                                                                   {258, 3},
                                                                                   {259, 16},
                                                                                   {260, 9},
                                                                                   {260, 3},
                                                                                   {261, 0},
                                                                                   {261, 20},
                                                                                   {262, 32},
                                                                                   {263, 1}}) {
    EXPECT_EQ(problem(at, value), "impossible encoding") << at << " " << int{value};
  }
  for (const std::size_t at : {264u, 3000u, 4087u}) {
    EXPECT_EQ(problem(at, 1), "malformed journal header") << at;
  }
}

TEST(JournalHeader, SaysWhatIsWrong) {
  const Bytes good = encode_journal_header(samples::journal_header());
  JournalHeader back;
  const auto problem = [&](const Bytes& b) {
    return std::string(decode_journal_header(b, samples::store_id(), back));
  };
  EXPECT_EQ(problem(Bytes(good.begin(), good.end() - 1)), "truncated journal header");
  EXPECT_EQ(problem(Bytes(kJournalHeaderBytes)), "not a journal");
  Bytes changed = good;
  changed[3000] = std::byte{1};
  EXPECT_EQ(problem(changed), "checksum mismatch");
  changed = good;
  changed[10] = std::byte{2};  // 1.2
  EXPECT_EQ(problem(changed), "checksum mismatch");
  changed.resize(changed.size() - 8);
  append_checksum(changed, samples::seed());
  EXPECT_EQ(problem(changed), "written by a newer format");
  JournalHeader h = samples::journal_header();
  h.half_bytes = 100;
  EXPECT_EQ(problem(encode_journal_header(h)), "impossible journal size");
  h = samples::journal_header();
  h.branch = "a b";
  EXPECT_EQ(problem(encode_journal_header(h)), "malformed branch name");
  h = samples::journal_header();
  h.store_id[0] = std::byte{0};
  EXPECT_EQ(problem(encode_journal_header(h)), "belongs to another store");
}

TEST(BaseFrame, RoundTripWithCommits) {
  const Version v = samples::version();
  const CommitBody one = samples::commit_body(), two{};
  const Bytes first = encode_commit(one), second = encode_commit(two);
  const Bytes payload = encode_base_with_commits(v, std::vector<Payload>{first, second});
  FrameHeader h{FrameType::base_with_commits, 4, v.sequence + 2, 0};
  Version back;
  std::vector<CommitBody> commits;
  ASSERT_TRUE(decode_base(h, payload, back, commits));
  EXPECT_EQ(back, v);
  EXPECT_EQ(commits, (std::vector{one, two}));
  ASSERT_TRUE(decode_base_version(h.type, payload, back));
  EXPECT_EQ(back, v);
  for (const std::uint64_t sequence : {v.sequence, v.sequence + 1, v.sequence + 3}) {
    h.sequence = sequence;
    EXPECT_FALSE(decode_base(h, payload, back, commits)) << sequence;
  }
  h.sequence = v.sequence + 2;
  for (std::size_t n = 0; n < payload.size(); ++n) {
    EXPECT_FALSE(decode_base(h, std::span(payload).first(n), back, commits)) << n;
  }
  Bytes longer = payload;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_base(h, longer, back, commits));
  h.type = FrameType::base;
  EXPECT_FALSE(decode_base(h, payload, back, commits));
  h.type = FrameType::commit;
  EXPECT_FALSE(decode_base(h, payload, back, commits));
}

TEST(BaseFrame, WithoutCommitsItIsAVersion) {
  const Version v = samples::version();
  FrameHeader h{FrameType::base, 4, v.sequence, 0};
  Version back;
  std::vector<CommitBody> commits(3);
  ASSERT_TRUE(decode_base(h, encode_version(v), back, commits));
  EXPECT_EQ(back, v);
  EXPECT_TRUE(commits.empty());
  ++h.sequence;
  EXPECT_FALSE(decode_base(h, encode_version(v), back, commits));
}

TEST(Frame, RoundTripAndExtent) {
  for (std::size_t n : {0u, 1u, 7u, 8u, 9u, 5000u}) {
    const Bytes payload(n, std::byte{0x77});
    const FrameHeader h{FrameType::commit, 4, 17, 0};
    Bytes bytes = encode_frame(h, payload, 99);
    EXPECT_EQ(bytes.size() % kFrameAlignBytes, 0u);
    bytes.resize(bytes.size() + 100, std::byte{0xee});  // remains of an older epoch
    FrameHeader back;
    std::span<const std::byte> found;
    ASSERT_TRUE(decode_frame(bytes, 99, back, found));
    EXPECT_EQ(back.type, FrameType::commit);
    EXPECT_EQ(back.epoch, 4u);
    EXPECT_EQ(back.sequence, 17u);
    EXPECT_EQ(frame_extent_bytes(back), bytes.size() - 100);
    EXPECT_EQ(Bytes(found.begin(), found.end()), payload);
  }
}

TEST(Frame, TornOrForeignIsTheEndOfTheLog) {
  const Bytes payload(100, std::byte{1});
  const Bytes good = encode_frame({FrameType::base, 1, 0, 0}, payload, 99);
  FrameHeader back;
  std::span<const std::byte> found;
  EXPECT_FALSE(decode_frame(good, 98, back, found));
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(decode_frame(std::span<const std::byte>(good).first(n), 99, back, found));
    Bytes torn = good;  // the rest of the frame never reached the disk
    std::fill(torn.begin() + static_cast<std::ptrdiff_t>(n), torn.end(), std::byte{0});
    const bool lost_padding_only = n >= kFrameHeaderBytes + payload.size();
    EXPECT_EQ(decode_frame(torn, 99, back, found), lost_padding_only) << n;
  }
  Bytes hostile = good;
  std::memset(hostile.data() + 24, 0xff, 4);  // a payload of 4 GiB
  EXPECT_FALSE(decode_frame(hostile, 99, back, found));
}

TEST(Commit, RoundTrip) {
  CommitBody back;
  ASSERT_TRUE(decode_commit(encode_commit(samples::commit_body()), back));
  EXPECT_EQ(back, samples::commit_body());
  ASSERT_TRUE(decode_commit(encode_commit(CommitBody{}), back));
  EXPECT_EQ(back, CommitBody{});
}

TEST(Commit, TheFileSizeIsAtTheEndAndMayBeMissing) {
  const Bytes without = encode_commit(samples::commit_body());
  for (const std::uint64_t size : {0ULL, 1ULL, 4097ULL, (1ULL << 20) - 1, 1ULL << 20}) {
    CommitBody body = samples::commit_body();
    body.file_bytes = size;
    const Bytes with = encode_commit(body);
    CommitBody back;
    ASSERT_TRUE(decode_commit(with, back)) << size;
    EXPECT_EQ(back.file_bytes, size);
    EXPECT_EQ(back, body);
    ASSERT_GT(with.size(), without.size());
    EXPECT_TRUE(std::equal(without.begin(), without.end(), with.begin()));
    for (std::size_t n = without.size() + 1; n < with.size(); ++n) {
      EXPECT_FALSE(decode_commit(std::span<const std::byte>(with).first(n), back)) << n;
    }
    Bytes longer = with;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_commit(longer, back));
  }
}

// As a writer encodes a commit: views of the deltas, straight into the frame.
TEST(Commit, EncodedInPlaceItIsTheSame) {
  const DeltaBatch batch = samples::delta_batch();
  const DeltaRun run = deltas_that_fit(batch, 0);
  ASSERT_EQ(run.count, batch.pages().size());
  const auto raw_bytes = static_cast<std::uint32_t>(run.encoded_bytes);
  CommitBody body;
  body.set_info({5, 1u << 30, 0x10000, "message", 4097});
  const Bytes raw = encode_delta_batch(batch, 0, run.count);
  body.parts = {{PartType::deltas, base::Compression::none, raw_bytes, {}, raw},
                {PartType::zeros, base::Compression::none, 0, {7, 9}, {}}};
  std::vector<PartView> views(2);
  views[0] = {PartType::deltas, base::Compression::none, raw_bytes};
  views[0].deltas = &batch;
  views[0].deltas_at = run;
  views[1] = {PartType::zeros, base::Compression::none, 0, body.parts[1].pages};
  FrameBuffer frame;
  encode_commit(body, views, frame.bytes());
  const Bytes payload = encode_commit(body);
  EXPECT_TRUE(std::ranges::equal(frame.payload(), payload));
  const FrameHeader h{FrameType::commit, 3, 4, 0};
  EXPECT_TRUE(std::ranges::equal(frame.seal(h, 99), encode_frame(h, payload, 99)));
  EXPECT_TRUE(std::ranges::equal(frame.payload(), payload));
}

// The head is the base with the last commit's facts.
TEST(Head, HasTheFactsOfTheLastCommit) {
  const Version base = samples::version();
  EXPECT_EQ(head_version(base, {}), base);
  EXPECT_EQ(&head_info(base, {}), &base.info());
  const std::vector<CommitBody> commits{CommitBody{}, samples::commit_body()};
  EXPECT_EQ(head_info(base, commits), commits.back().info());
  EXPECT_EQ(head_sequence(base, commits), base.sequence + 2);
  Version expected = base;
  expected.set_info(commits.back());
  expected.sequence = base.sequence + 2;
  EXPECT_EQ(head_version(base, commits), expected);
}

TEST(Commit, RefusesWhatCannotBe) {
  const auto refused = [](auto change) {
    CommitBody b = samples::commit_body();
    change(b);
    CommitBody back;
    return !decode_commit(encode_commit(b), back);
  };
  EXPECT_TRUE(refused([](CommitBody& b) { b.region_bytes = 1000; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.region_bytes = kMaxRegionBytes * 2; }));
  EXPECT_TRUE(
      refused([](CommitBody& b) { b.region_bytes = 200 * kPageBytes; }));  // page 200 is outside
  EXPECT_TRUE(refused([](CommitBody& b) { b.file_bytes = b.region_bytes + 1; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.base_address = 12; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[0].raw_bytes = 4096; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[0].pages.clear(); }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[0].stored.clear(); }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[0].type = static_cast<PartType>(4); }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[1].raw_bytes = 4; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[1].pages = {1}; }));
  EXPECT_TRUE(refused([](CommitBody& b) {
    b.parts[1].codec = base::Compression::zstd;
    b.parts[1].raw_bytes = kMaxDeltaBatchRawBytes + 1;
  }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[2].stored = {std::byte{1}}; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[2].raw_bytes = 1; }));
  EXPECT_TRUE(refused([](CommitBody& b) { b.parts[2].pages.clear(); }));
}

TEST(Commit, AnUnknownCodecIsRefused) {
  CommitBody body = samples::commit_body();
  const Bytes good = encode_commit(body);
  body.parts[0].codec = base::Compression::lz4;
  const Bytes other = encode_commit(body);
  const auto at = std::mismatch(good.begin(), good.end(), other.begin()).first - good.begin();
  for (unsigned byte = 0; byte < 256; ++byte) {
    Bytes bytes = good;
    bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>(byte);
    CommitBody back;
    const bool known = base::codec_from_byte(static_cast<std::uint8_t>(byte)).has_value();
    EXPECT_EQ(decode_commit(bytes, back), known && byte != 0) << byte;
  }
}

TEST(Commit, TruncatedOrExtendedIsRefused) {
  const Bytes good = encode_commit(samples::commit_body());
  CommitBody back;
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(decode_commit(std::span<const std::byte>(good).first(n), back)) << n;
  }
  Bytes longer = good;
  longer.resize(good.size() + 2);  // one byte more is the size of an empty file
  EXPECT_FALSE(decode_commit(longer, back));
}

}  // namespace
}  // namespace vellum::format
