// Which frames of a journal are valid. The tests build the files frame by frame; no writer would
// leave some of them.
#include "store/journal/journal_writer.hpp"
#include "store/journal/read_journal.hpp"

#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "store/support.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

using format::FrameType;
using vellum::test::MemoryFs;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kJournalHalfBytes = format::kMinJournalHalfBytes;
constexpr std::uint64_t kJournalBranchId = 77;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    header_.store_id[0] = std::byte{5};
    header_.branch_id = kJournalBranchId;
    header_.half_bytes = kJournalHalfBytes;
    header_.branch = "main";
    start();
  }

  // A journal without any frame.
  void start() {
    bytes_ = format::encode_journal_header(header_);
    bytes_.resize(format::kJournalHeaderBytes + 2 * std::size_t{kJournalHalfBytes});
  }
  static format::Version version(std::uint64_t sequence) {
    format::Version v;
    v.branch_id = kJournalBranchId;
    v.sequence = sequence;
    v.next_pack_number = 1;
    return v;
  }
  // Writes a frame at `at` of half 0 or 1; returns the place of the next one.
  std::size_t put(unsigned half, std::size_t at, const format::FrameHeader& h,
                  const std::vector<std::byte>& payload) {
    const auto frame = format::encode_frame(
        h, payload, format::checksum_seed(header_.store_id) ^ kJournalBranchId);
    std::copy(frame.begin(), frame.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(format::kJournalHeaderBytes +
                                                           half * kJournalHalfBytes + at));
    return at + frame.size();
  }
  std::size_t put_base(unsigned half, std::uint64_t epoch, const format::Version& v) {
    return put(half, 0, {FrameType::base, epoch, v.sequence, 0}, format::encode_version(v));
  }
  std::size_t put_commit(unsigned half, std::size_t at, std::uint64_t epoch,
                         std::uint64_t sequence) {
    return put(half, at, {FrameType::commit, epoch, sequence, 0}, format::encode_commit({}));
  }
  // A base frame that also holds `commits` commits.
  std::size_t put_base_with_commits(unsigned half, std::uint64_t epoch, const format::Version& v,
                                    std::size_t commits, std::uint64_t sequence) {
    const std::vector<Bytes> bodies(commits, format::encode_commit({}));
    return put(half, 0, {FrameType::base_with_commits, epoch, sequence, 0},
               format::encode_base_with_commits(
                   v, std::vector<format::Payload>(bodies.begin(), bodies.end())));
  }
  std::unique_ptr<base::File> file() {
    fs_.erase("/journal");
    fs_.write_file("/journal", bytes_);
    return fs_.open("/journal", base::OpenMode::read_only);
  }
  // The journal after a writer has continued from `state`.
  void write(const JournalState& state, const std::function<void(JournalWriter&)>& body) {
    file();
    JournalWriter writer(fs_.open("/journal", base::OpenMode::read_write), state);
    body(writer);
    bytes_ = fs_.read_file("/journal");
  }
  std::uint64_t head() { return read_journal(*file(), header_.store_id).head_sequence(); }
  void expect_corrupted(const char* reason) {
    const auto text = error_text(Errc::corrupted, [&] { head(); });
    EXPECT_TRUE(contains(text, "/journal")) << text;
    EXPECT_TRUE(contains(text, reason)) << text;
  }
  std::vector<std::uint64_t> bases() {
    std::vector<std::uint64_t> out;
    for (const auto& v : read_base_versions(*file(), header_.store_id)) out.push_back(v.sequence);
    return out;
  }
  void expect_no_base(const char* reason) {
    expect_corrupted(reason);
    const auto text = error_text(Errc::corrupted, [&] { bases(); });
    EXPECT_TRUE(contains(text, "neither half holds a whole base frame")) << text;
  }

  MemoryFs fs_;
  format::JournalHeader header_;
  std::vector<std::byte> bytes_;
};

TEST_F(JournalTest, CommitsFollowTheirBase) {
  std::size_t at = put_base(0, 3, version(10));
  EXPECT_EQ(head(), 10u);
  at = put_commit(0, at, 3, 11);
  put_commit(0, at, 3, 12);
  EXPECT_EQ(head(), 12u);
}

TEST_F(JournalTest, ABaseFrameHoldsTheCommitsMadeMeanwhile) {
  std::size_t at = put_base_with_commits(0, 3, version(10), 3, 13);
  EXPECT_EQ(head(), 13u);
  put_commit(0, at, 3, 14);
  EXPECT_EQ(head(), 14u);
  EXPECT_EQ(bases(), std::vector<std::uint64_t>{10});
}

TEST_F(JournalTest, ABaseFrameWithCommitsMayBeLargerThanAnyVersion) {
  put_base(1, 2, version(4));
  format::CommitBody large;
  large.region_bytes = 1u << 20;
  large.parts.push_back(
      {format::PartType::pages, base::Compression::none, 12288, {1, 2, 3}, Bytes(12288)});
  const Bytes commit = format::encode_commit(large);
  put(0, 0, {FrameType::base_with_commits, 3, 11, 0},
      format::encode_base_with_commits(version(10), std::vector<format::Payload>{commit}));
  EXPECT_EQ(head(), 11u);
  EXPECT_EQ(bases(), (std::vector<std::uint64_t>{10, 4}));
  bytes_[format::kJournalHeaderBytes + 12000] ^= std::byte{1};
  EXPECT_EQ(head(), 4u);
  EXPECT_EQ(bases(), std::vector<std::uint64_t>{4});
}

TEST_F(JournalTest, TheCommitsOfABaseFrameAreCounted) {
  put_base_with_commits(0, 3, version(10), 2, 11);
  expect_corrupted("the base frame of epoch 3 does not parse");
  put_base_with_commits(0, 3, version(10), 2, 13);
  expect_corrupted("the base frame of epoch 3 does not parse");
  put(0, 0, {FrameType::base_with_commits, 3, 10, 0}, format::encode_version(version(10)));
  expect_corrupted("the base frame of epoch 3 does not parse");
}

// A writer appends after such a frame, and a clean close keeps all of it.
TEST_F(JournalTest, AWriterAppendsAfterABaseFrameWithCommits) {
  put_base(0, 1, version(10));
  JournalState state = read_journal(*file(), header_.store_id);
  const Bytes commit = format::encode_commit({});
  const std::vector<format::Payload> commits(4, commit);
  write(state, [&](JournalWriter& w) {
    append_commit(w, commits[0]);
    append_commit(w, commits[1]);
    EXPECT_TRUE(w.carries(version(10), commits.size(), 0));
    EXPECT_FALSE(w.carries(version(10), commits.size(), kJournalHalfBytes / 4 * 3));
    w.start_epoch(version(11), std::span(commits).first(2));  // 12, which is there, and 13
    append_commit(w, commits[2]);
  });
  EXPECT_EQ(head(), 14u);
  EXPECT_EQ(bases(), (std::vector<std::uint64_t>{11, 10}));
  state = read_journal(*file(), header_.store_id);
  EXPECT_EQ(state.epoch, 2u);
  EXPECT_EQ(state.commits.size(), 3u);
  write(state, [&](JournalWriter& w) { append_commit(w, commits[3]); });
  EXPECT_EQ(head(), 15u);
}

// The epoch before the last one used the same half; one of its frames may remain where the log
// ends.
TEST_F(JournalTest, AFrameOfAnEarlierEpochIsNotTheNextCommit) {
  std::size_t at = put_base(0, 3, version(10));
  at = put_commit(0, at, 3, 11);
  put_commit(0, at, 1, 12);
  EXPECT_EQ(head(), 11u);
}

TEST_F(JournalTest, AFrameOfALaterEpochMeansDamage) {
  const std::size_t at = put_base(0, 3, version(10));
  put_commit(0, at, 5, 11);
  expect_corrupted("the frame after version 10 is corrupted, newer ones follow");
}

TEST_F(JournalTest, AGapInTheNumbersMeansDamage) {
  std::size_t at = put_base(0, 3, version(10));
  at = put_commit(0, at, 3, 11);
  put_commit(0, at, 3, 13);
  expect_corrupted("the frame after version 11 is corrupted, newer ones follow");
}

TEST_F(JournalTest, AnEarlierNumberIsNotTheNextCommit) {
  std::size_t at = put_base(0, 3, version(10));
  at = put_commit(0, at, 3, 11);
  put_commit(0, at, 3, 11);
  EXPECT_EQ(head(), 11u);
}

// Only the marker distinguishes a synced commit that was corrupted later from a torn one.
TEST_F(JournalTest, AMarkerAfterACorruptedCommitMeansDamage) {
  const std::size_t at = put_base(0, 3, version(10));
  const std::size_t end = put_commit(0, at, 3, 11);
  bytes_[format::kJournalHeaderBytes + at + format::kFrameHeaderBytes] ^= std::byte{1};
  EXPECT_EQ(head(), 10u);
  put(0, end, {FrameType::commit_marker, 3, 11, 0}, {});
  expect_corrupted("the frame after version 10 is corrupted, newer ones follow");
}

// Every synced frame of a writer therefore has its marker: the previous writer's last commit, found
// at opening; a commit of its own; a base frame.
TEST_F(JournalTest, AWriterAppendsAMarkerAfterDurableFrames) {
  const std::size_t at = put_base(0, 3, version(10));
  put_commit(0, at, 3, 11);
  const auto expect_marker = [&](std::uint64_t offset, const char* reason) {
    const Bytes good = bytes_;
    bytes_[offset + format::kFrameHeaderBytes] ^= std::byte{1};
    expect_corrupted(reason);
    bytes_ = good;
  };
  JournalState state = read_journal(*file(), header_.store_id);
  write(state, [](JournalWriter&) {});
  expect_marker(format::kJournalHeaderBytes + at, "the frame after version 10 is corrupted");

  write(state, [](JournalWriter& w) { append_commit(w, format::encode_commit({})); });
  expect_marker(state.tail_bytes, "the frame after version 11 is corrupted");

  state = read_journal(*file(), header_.store_id);
  write(state, [](JournalWriter& w) { w.start_epoch(version(12)); });
  EXPECT_EQ(head(), 12u);
  expect_marker(format::kJournalHeaderBytes + kJournalHalfBytes,
                "the frame after version 12 is corrupted");
}

TEST_F(JournalTest, TheLaterEpochIsValid) {
  put_base(0, 3, version(10));
  put_commit(1, put_base(1, 4, version(12)), 4, 13);
  EXPECT_EQ(head(), 13u);
  EXPECT_EQ(bases(), (std::vector<std::uint64_t>{12, 10}));
  put_base(0, 5, version(14));
  EXPECT_EQ(head(), 14u);
  EXPECT_EQ(bases(), (std::vector<std::uint64_t>{14, 12}));
}

// Odd epochs are in the first half: a base frame in the other half is a copy.
TEST_F(JournalTest, ABaseFrameInTheOtherHalfIsNotValid) {
  put_base(1, 3, version(10));
  expect_no_base("neither half holds a whole base frame");
  put_base(0, 1, version(4));
  expect_corrupted("the frame after version 4 is corrupted, newer ones follow");
  EXPECT_EQ(bases(), std::vector<std::uint64_t>{4});
}

TEST_F(JournalTest, ACommitIsNoBase) {
  put_commit(0, 0, 3, 10);
  expect_no_base("neither half holds a whole base frame");
}

TEST_F(JournalTest, ABaseFrameMustHoldAVersionOfThisBranchAndNumber) {
  put(0, 0, {FrameType::base, 3, 10, 0}, std::vector<std::byte>(9, std::byte{0xff}));
  expect_no_base("the base frame of epoch 3 does not parse");
  start();
  put(0, 0, {FrameType::base, 3, 11, 0}, format::encode_version(version(10)));
  expect_corrupted("the base frame of epoch 3 does not parse");
  start();
  format::Version other = version(10);
  other.branch_id = kJournalBranchId + 1;
  put_base(0, 3, other);
  expect_no_base("the base frame belongs to another branch");
}

TEST_F(JournalTest, ACommitMustParse) {
  const std::size_t at = put_base(0, 3, version(10));
  put(0, at, {FrameType::commit, 3, 11, 0}, std::vector<std::byte>(9, std::byte{0xff}));
  expect_corrupted("the commit of version 11 does not parse");
}

// A truncated file does not record which commits are lost. Repair uses the remaining ones.
TEST_F(JournalTest, AFileThatEndsEarlyIsCorrupted) {
  const std::size_t at = put_base(0, 3, version(10));
  put_commit(0, at, 3, 11);
  for (const std::size_t length : {bytes_.size() - 1, format::kJournalHeaderBytes + at}) {
    bytes_.resize(length);
    expect_corrupted("branch 'main'");
    expect_corrupted("truncated");
    error_text(Errc::corrupted, [&] { bases(); });
  }
  const auto remains = read_corrupted_journal(*file(), header_.store_id);
  EXPECT_EQ(remains.state.head_sequence(), 10u);
  EXPECT_EQ(remains.lost_commits, std::nullopt);
  bytes_.resize(format::kJournalHeaderBytes + at - 1);
  error_text(Errc::corrupted, [&] { read_corrupted_journal(*file(), header_.store_id); });
  bytes_.resize(format::kJournalHeaderBytes - 1);
  expect_corrupted("truncated");
}

// Once armed, a write fails after it has written a part, and later writes do nothing.
class StubbornFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<StubbornFile>(*this, ForwardingFs::open(path, mode));
  }
  void arm(std::size_t keep_out_bytes) {
    armed_ = true;
    keep_out_bytes_ = keep_out_bytes;
  }

 private:
  class StubbornFile final : public vellum::test::ForwardingFile {
   public:
    StubbornFile(StubbornFs& fs, std::unique_ptr<base::File> below)
        : ForwardingFile(std::move(below)), fs_(fs) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      if (!fs_.armed_) return ForwardingFile::pwrite(bytes, at);
      if (!fs_.struck_) ForwardingFile::pwrite(bytes.first(bytes.size() - fs_.keep_out_bytes_), at);
      fs_.struck_ = true;
      throw Error(Errc::io, path() + ": planned failure");
    }

   private:
    StubbornFs& fs_;
  };
  bool armed_ = false, struck_ = false;
  std::size_t keep_out_bytes_ = 0;
};

// A frame is whole although its write failed, and it cannot be wiped. An opening of the branch
// finds a commit that was reported as failed, so the writer must not continue from the state before
// it.
TEST_F(JournalTest, AWholeFailedFrameThatCannotBeWipedEndsTheWriter) {
  for (const std::size_t missing_bytes : {0u, 24u}) {
    start();
    put_base(0, 1, version(1));
    const JournalState state = read_journal(*file(), header_.store_id);
    StubbornFs fs(fs_);
    JournalWriter writer(fs.open("/journal", base::OpenMode::read_write), state);
    fs.arm(missing_bytes);
    EXPECT_THROW(append_commit(writer, format::encode_commit({})), Error);
    EXPECT_EQ(writer.sync_failed(), missing_bytes == 0);
  }
}

TEST_F(JournalTest, FramesBeforeTheDamageAreKept) {
  std::size_t at = put_base(0, 3, version(10));
  at = put_commit(0, at, 3, 11);
  const std::size_t bad = at;
  for (std::uint64_t sequence = 12; sequence < 16; ++sequence) at = put_commit(0, at, 3, sequence);
  EXPECT_EQ(read_corrupted_journal(*file(), header_.store_id).lost_commits, 0u);
  bytes_[format::kJournalHeaderBytes + bad + 8] ^= std::byte{1};
  expect_corrupted("the frame after version 11 is corrupted, newer ones follow, up to version 15");
  const auto remains = read_corrupted_journal(*file(), header_.store_id);
  EXPECT_EQ(remains.state.head_sequence(), 11u);
  EXPECT_EQ(remains.lost_commits, 4u);
}

}  // namespace
}  // namespace vellum::store::test
