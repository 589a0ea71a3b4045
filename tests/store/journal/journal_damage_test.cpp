// A returned commit exists after opening, or opening reports that the journal is corrupted: for
// every lost sector and block, every truncation, after a kill and after a power cut at any commit.
#include "format/version.hpp"
#include "format/wire/superblock.hpp"
#include "store/journal/journal_writer.hpp"
#include "store/journal/read_journal.hpp"
#include "store/support.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

using vellum::test::ForwardingFile;
using vellum::test::MemoryFs;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kHalfBytes = 16u << 10;
constexpr std::uint64_t kJournalDamageBranchId = 77;
constexpr const char* kPath = "/journal";

// Keeps the durable content: that of the last sync.
class SyncedFile final : public ForwardingFile {
 public:
  SyncedFile(MemoryFs& fs, Bytes& durable)
      : ForwardingFile(fs.open(kPath, base::OpenMode::read_write)), fs_(fs), durable_(durable) {}
  void sync_data() override { durable_ = fs_.read_file(kPath); }

 private:
  MemoryFs& fs_;
  Bytes& durable_;
};

// The medium's content right after a commit returned.
struct Moment {
  std::uint64_t sequence = 0;
  std::uint64_t frame_begin = 0, frame_end = 0;  // of the last frame, in the file
  Bytes killed;                                  // after a kill
  Bytes cut;                                     // after a power cut: unsynced writes are lost
};

// The short history of a journal: commits of different sizes, checkpoints, a second opening, a
// clean close.
class Life {
 public:
  Life() {
    header_.store_id[0] = std::byte{5};
    header_.branch_id = kJournalDamageBranchId;
    header_.half_bytes = kHalfBytes;
    header_.branch = "main";
    fs_.write_file(kPath, whole_journal(header_, version(0)));
    durable_ = fs_.read_file(kPath);
    open();
  }

  const format::Uuid& store_id() const { return header_.store_id; }
  const std::vector<Moment>& moments() const { return moments_; }

  void open() {
    writer_.reset();
    const auto state = read_journal(*fs_.open(kPath, base::OpenMode::read_only), store_id());
    ASSERT_EQ(state.head_sequence(), sequence_);
    writer_ = std::make_unique<JournalWriter>(std::make_unique<SyncedFile>(fs_, durable_), state);
  }
  void commit(std::size_t message_bytes) {
    format::CommitBody body;
    body.message.assign(message_bytes, static_cast<char>('a' + sequence_ % 26));
    const auto payload = format::encode_commit(body);
    if (!writer_->fits(payload.size())) return checkpoint();
    const std::uint64_t begin = read().tail_bytes;
    ++sequence_;
    append_commit(*writer_, payload);
    note(begin, read().tail_bytes);
  }
  void checkpoint() {
    ++sequence_;
    writer_->start_epoch(version(sequence_));
    const JournalState state = read();
    note(format::kJournalHeaderBytes + (state.epoch % 2 == 1 ? 0 : kHalfBytes), state.tail_bytes);
  }
  void close() {
    checkpoint();
    writer_->release_space();
    const std::uint64_t begin = moments_.back().frame_begin, end = moments_.back().frame_end;
    note(begin, end);
    moments_.back().cut = moments_.back().killed;  // a hole is durable, or there is none
  }

 private:
  static format::Version version(std::uint64_t sequence) {
    format::Version v;
    v.branch_id = kJournalDamageBranchId;
    v.sequence = sequence;
    v.next_pack_number = 1;
    return v;
  }
  JournalState read() {
    return read_journal(*fs_.open(kPath, base::OpenMode::read_only), store_id());
  }
  void note(std::uint64_t begin, std::uint64_t end) {
    moments_.push_back({sequence_, begin, end, fs_.read_file(kPath), durable_});
  }

  MemoryFs fs_;
  Bytes durable_;
  format::JournalHeader header_;
  std::unique_ptr<JournalWriter> writer_;
  std::uint64_t sequence_ = 0;
  std::vector<Moment> moments_;
};

const Life& life() {
  static const auto made = [] {
    auto l = std::make_unique<Life>();
    for (std::size_t i = 0; i < 40; ++i) l->commit(i * i % 700);
    l->open();
    l->commit(3000);
    l->checkpoint();
    for (std::size_t i = 0; i < 12; ++i) l->commit(i % 3 == 0 ? 4000 : 20);
    l->close();
    l->open();
    l->commit(1);
    return l;
  }();
  return *made;
}

// The head that opening finds; nothing if it reports that the journal is corrupted.
std::optional<std::uint64_t> head_of(const Bytes& bytes) {
  MemoryFs fs;
  fs.write_file(kPath, bytes);
  try {
    return read_journal(*fs.open(kPath, base::OpenMode::read_only), life().store_id())
        .head_sequence();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
    EXPECT_TRUE(contains(e.what(), kPath)) << e.what();
    return std::nullopt;
  }
}

enum class HowCorrupted { zeros, flips, one_bit };

Bytes corrupted(Bytes bytes, std::size_t begin, std::size_t length, HowCorrupted how) {
  for (std::size_t i = begin; i < std::min(begin + length, bytes.size()); ++i) {
    if (how == HowCorrupted::zeros) bytes[i] = {};
    if (how == HowCorrupted::flips) bytes[i] ^= std::byte{0xff};
  }
  if (how == HowCorrupted::one_bit) bytes[begin + length / 2] ^= std::byte{1};
  return bytes;
}

// After a kill, every damage is distinguishable from a commit that never happened. After a power
// cut, the marker of the last commit is lost, so damage to its frame only is taken for a torn
// write.
void expect_all_or_corrupted(const Moment& m, std::size_t unit) {
  for (std::size_t at = 0; at < m.killed.size(); at += unit) {
    for (const HowCorrupted how :
         {HowCorrupted::zeros, HowCorrupted::flips, HowCorrupted::one_bit}) {
      const auto killed = head_of(corrupted(m.killed, at, unit, how));
      ASSERT_TRUE(!killed || *killed == m.sequence)
          << "version " << m.sequence << " was durable, byte " << at << " of " << unit
          << " corrupted, opens at " << *killed;
      const auto cut = head_of(corrupted(m.cut, at, unit, how));
      const bool last = at < m.frame_end && at + unit > m.frame_begin;
      ASSERT_TRUE(!cut || *cut == m.sequence || (last && *cut + 1 == m.sequence))
          << "version " << m.sequence << " was durable before a power cut, byte " << at << " of "
          << unit << " corrupted, opens at " << *cut;
    }
  }
}

TEST(JournalDamage, ALostSectorIsDetected) {
  for (const Moment& m : life().moments()) {
    expect_all_or_corrupted(m, 512);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// File systems lose whole blocks.
TEST(JournalDamage, ALostBlockIsDetected) {
  for (const Moment& m : life().moments()) {
    expect_all_or_corrupted(m, 4096);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(JournalDamage, AFileThatEndsEarlyIsCorrupted) {
  const Moment& m = life().moments()[39];
  ASSERT_EQ(head_of(m.killed), m.sequence);
  for (std::size_t bytes = 0; bytes < m.killed.size(); ++bytes) {
    Bytes shorter(m.killed.begin(), m.killed.begin() + static_cast<std::ptrdiff_t>(bytes));
    ASSERT_EQ(head_of(shorter), std::nullopt) << bytes;
  }
}

// After a power cut, each sector of an unfinished commit's frame is new or old.
TEST(JournalDamage, ATornFrameIsNoDamage) {
  const auto& moments = life().moments();
  for (std::size_t i = 1; i < moments.size(); ++i) {
    const Bytes& before = moments[i - 1].cut;
    const Bytes& after = moments[i].cut;
    for (std::size_t keep = 0; keep < after.size(); keep += 512) {
      Bytes front = before, back = after;
      std::copy_n(after.begin(), keep, front.begin());
      std::copy_n(before.begin(), keep, back.begin());
      for (const Bytes& torn : {front, back}) {
        const auto head = head_of(torn);
        ASSERT_TRUE(head && (*head == moments[i - 1].sequence || *head == moments[i].sequence))
            << "version " << moments[i].sequence << " torn at " << keep;
      }
    }
  }
}

}  // namespace
}  // namespace vellum::store::test
