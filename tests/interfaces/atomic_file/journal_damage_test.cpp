// A commit of an atomic file that returned is brought to the file, or opening says that the journal
// is corrupted: for every sector and block that is lost, and every truncation.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vellum/error.hpp>

#include "interfaces/atomic_file/line_medium_lib.hpp"
#include "interfaces/atomic_file/redo_journal.hpp"

namespace vellum::atomic_file {
namespace {

using test::Bytes;
using test::LineMedium;

constexpr std::uint64_t kFileBytes = 8 * 4096;
constexpr std::uint64_t kLogBytes = 3 * 4096;  // less than all commits take

struct Moment {
  std::uint64_t epoch = 0;
  std::uint64_t begin = 0, end = 0;  // of the last record, in the journal
  Bytes content;                     // of the file, when all commits are applied
  Bytes killed, cut;                 // the journal, after a kill and after a power cut
  Bytes image;                       // the file
};

// Commits of different sizes, with checkpoints between them.
class Life {
 public:
  explicit Life(bool byte_addressable) {
    auto medium = std::make_unique<LineMedium>("journal", Bytes(), byte_addressable, nullptr);
    medium_ = medium.get();
    journal_.emplace(RedoJournal::create(std::move(medium), {1, 0x1234567, 7, 8}, kLogBytes));
    for (std::uint64_t i = 1; i <= 24; ++i) commit(1 + i * i % 20);
    EXPECT_GT(journal_->header().epoch, 2u) << "no checkpoint";
  }
  const std::vector<Moment>& moments() const { return moments_; }

 private:
  void commit(std::uint64_t lines) {
    std::vector<format::RedoSpan> spans;
    for (std::uint64_t i = 0; i < lines; ++i) {
      const std::uint64_t line = (moments_.size() * 7 + i * 3) % (kFileBytes / 64);
      std::memset(memory_.data() + line * 64, static_cast<int>(moments_.size() + 1), 64);
      spans.push_back({line, 1, memory_.data() + line * 64});
    }
    std::vector<std::byte> record;
    const auto encode = [&] {
      encode_redo_record(journal_->header(), journal_->next_sequence(), kFileBytes, spans, record);
    };
    encode();
    if (!journal_->fits(record.size(), format::kRedoLogBegin + kLogBytes)) {
      journal_->checkpoint(image_);
      tail_ = format::kRedoLogBegin;
      encode();
    }
    journal_->append(record);
    const std::uint64_t begin = tail_;
    tail_ += record.size();
    moments_.push_back({journal_->header().epoch, begin, tail_, memory_, medium_->now(),
                        medium_->after_crash([](std::size_t) { return false; }), image_.now()});
  }

  LineMedium image_{"image", Bytes(kFileBytes), false, nullptr};
  LineMedium* medium_ = nullptr;
  std::optional<RedoJournal> journal_;
  Bytes memory_ = Bytes(kFileBytes);
  std::uint64_t tail_ = format::kRedoLogBegin;
  std::vector<Moment> moments_;
};

// The file after recovery, or no value when recovery reports a corrupted journal.
std::optional<Bytes> recovered(const Bytes& journal, const Bytes& file) {
  LineMedium image("image", file, false, nullptr);
  try {
    RedoJournal::open(std::make_unique<LineMedium>("journal", journal, false, nullptr))
        .checkpoint(image);
    return image.now();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
    EXPECT_NE(std::string(e.what()).find("journal"), std::string::npos) << e.what();
    EXPECT_EQ(image.now(), file) << "nothing is half done";
    return std::nullopt;
  }
}

Bytes lose(Bytes bytes, std::size_t at, std::size_t length, bool flip) {
  for (std::size_t i = at; i < std::min(at + length, bytes.size()); ++i) {
    bytes[i] = flip ? ~bytes[i] : std::byte{};
  }
  return bytes;
}

void expect_all_or_corrupted(const Life& life, std::size_t unit) {
  for (std::size_t i = 0; i < life.moments().size(); ++i) {
    const Moment& m = life.moments()[i];
    const Bytes before = i == 0 ? Bytes(kFileBytes) : life.moments()[i - 1].content;
    ASSERT_EQ(recovered(m.killed, m.image), m.content);
    ASSERT_EQ(recovered(m.cut, m.image), m.content);
    for (std::size_t at = 0; at < m.killed.size(); at += unit) {
      for (const bool flip : {false, true}) {
        const auto killed = recovered(lose(m.killed, at, unit, flip), m.image);
        ASSERT_TRUE(!killed || *killed == m.content) << i << " byte " << at << " of " << unit;
        const auto cut = recovered(lose(m.cut, at, unit, flip), m.image);
        const bool last = at < m.end && at + unit > m.begin;
        ASSERT_TRUE(!cut || *cut == m.content || (last && *cut == before))
            << i << " byte " << at << " of " << unit << " after a power cut";
      }
    }
  }
}

TEST(AtomicJournalDamage, TheLossOfASectorIsDetected) { expect_all_or_corrupted(Life(false), 512); }

TEST(AtomicJournalDamage, TheLossOfABlockIsDetected) { expect_all_or_corrupted(Life(false), 4096); }

// The header of the previous epoch and a record of this one have the facts of the lost header.
TEST(AtomicJournalDamage, ALostHeaderIsRecovered) {
  const Life life(false);
  for (const Moment& m : life.moments()) {
    for (const std::size_t header : {std::size_t{0}, format::kRedoHeaderCopyBytes})
      EXPECT_EQ(recovered(lose(m.killed, header, 512, true), m.image), m.content)
          << "epoch " << m.epoch << ", header at " << header;
  }
}

// In persistent memory no markers are written: a loss before the last record is detected.
TEST(AtomicJournalDamage, TheLossOfALineOfPersistentMemoryIsDetected) {
  const Life life(true);
  const auto& moments = life.moments();
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const Moment& m = moments[i];
    for (std::size_t at = format::kRedoLogBegin; at < m.begin; at += 64) {
      const auto got = recovered(lose(m.killed, at, 64, true), m.image);
      ASSERT_TRUE(!got || *got == m.content) << i << " byte " << at;
    }
  }
}

// With Damage::keep the commits before the damage are applied, and the journal is not written.
void expect_prefix(const Life& life, const Bytes& journal, std::size_t of, const char* what,
                   std::size_t at) {
  const auto& moments = life.moments();
  LineMedium image("image", moments[of].image, false, nullptr);
  auto medium = std::make_unique<LineMedium>("journal", journal, false, nullptr);
  LineMedium* const kept = medium.get();
  RedoJournal opened = RedoJournal::open(std::move(medium), Damage::keep);
  const Replay replay = opened.checkpoint(image);
  if (opened.damage().empty()) return;
  ASSERT_EQ(kept->now(), journal) << what << at;
  const Bytes found = image.now();
  const auto is_found = [&](const Moment& m) { return m.content == found; };
  ASSERT_TRUE(found == moments[of].image || std::any_of(moments.begin(), moments.end(), is_found))
      << what << at;
  if (opened.has_header() && replay.commits != 0) {
    ASSERT_TRUE(is_found(moments[of - replay.commits_lost])) << what << at;
  }
}

TEST(AtomicJournalDamage, CommitsBeforeTheDamageAreAppliedOnRequest) {
  const Life life(false);
  for (std::size_t i = 0; i < life.moments().size(); ++i) {
    const Bytes& journal = life.moments()[i].killed;
    for (std::size_t at = 0; at < journal.size(); at += 512)
      expect_prefix(life, lose(journal, at, 512, true), i, "lost sector at ", at);
  }
  const std::size_t last = life.moments().size() - 1;
  const Bytes& journal = life.moments()[last].killed;
  for (std::size_t size = 0; size < journal.size(); size += 512) {
    const Bytes cut(journal.begin(), journal.begin() + static_cast<std::ptrdiff_t>(size));
    LineMedium image("image", life.moments()[last].image, false, nullptr);
    RedoJournal opened = RedoJournal::open(
        std::make_unique<LineMedium>("journal", cut, false, nullptr), Damage::keep);
    opened.checkpoint(image);
    EXPECT_FALSE(opened.damage().empty()) << size;
    const auto same = [&](const Moment& m) { return m.content == image.now(); };
    ASSERT_TRUE(image.now() == life.moments()[last].image ||
                std::any_of(life.moments().begin(), life.moments().end(), same))
        << size;
  }
}

TEST(AtomicJournalDamage, AJournalThatWasCutIsCorrupted) {
  const Life life(false);
  const Moment& m = life.moments().back();
  for (std::size_t length = 0; length < m.killed.size(); length += 64) {
    const Bytes cut(m.killed.begin(), m.killed.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_EQ(recovered(cut, m.image), std::nullopt) << length;
  }
}

}  // namespace
}  // namespace vellum::atomic_file
