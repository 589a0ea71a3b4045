// The journal on a medium that fails. power_cut_test.cpp has failures of power.
#include "interfaces/atomic_file/redo_journal.hpp"

#include <gtest/gtest.h>

#include <vellum/error.hpp>

#include "interfaces/atomic_file/line_medium_lib.hpp"

namespace vellum::atomic_file {
namespace {

using test::Bytes;
using test::LineMedium;

constexpr std::uint64_t kRedoJournalFileBytes = 4096;
const format::RedoHeader kHeader{1, 0x1234567, 7, 8};

class RedoJournalTest : public ::testing::Test {
 protected:
  // Its medium fails at the call after `calls_before_failure_` more, when that is not negative.
  RedoJournal create() {
    auto medium = std::make_unique<LineMedium>("journal", Bytes(), false, [this] {
      ++calls_;
      if (calls_before_failure_ >= 0 && calls_before_failure_-- == 0)
        throw Error(Errc::io, "journal: the disk is broken");
    });
    medium_ = medium.get();
    return RedoJournal::create(std::move(medium), kHeader, 4096);
  }
  void commit(RedoJournal& journal, char what) {
    const Bytes line(64, static_cast<std::byte>(what));
    const std::vector<format::RedoSpan> spans = {{3, 1, line.data()}};
    std::vector<std::byte> record;
    encode_redo_record(journal.header(), journal.next_sequence(), kRedoJournalFileBytes, spans,
                       record);
    journal.append(record);
  }
  char recovered(const Bytes& content) {
    LineMedium image("image", Bytes(kRedoJournalFileBytes), false, nullptr);
    RedoJournal::open(std::make_unique<LineMedium>("journal", content, false, nullptr))
        .checkpoint(image);
    return static_cast<char>(image.now()[3 * 64]);
  }

  LineMedium image_{"image", Bytes(kRedoJournalFileBytes), false, nullptr};
  LineMedium* medium_ = nullptr;
  int calls_before_failure_ = -1, calls_ = 0;
};

// The header of the next epoch may be on the disk or not. A commit behind the old records would be
// lost if it is; a commit over them would be lost if it is not.
TEST_F(RedoJournalTest, NoCommitFollowsAFailedHeader) {
  for (const int fails_at : {0, 1}) {  // its write, its barrier
    RedoJournal journal = create();
    commit(journal, 'a');
    calls_before_failure_ = fails_at;
    EXPECT_THROW(journal.checkpoint(image_), Error);
    EXPECT_EQ('a', static_cast<char>(image_.now()[3 * 64]));
    try {
      commit(journal, 'b');
      ADD_FAILURE() << "committed";
    } catch (const Error& error) {
      EXPECT_EQ(Errc::poisoned, error.code()) << error.what();
    }
    try {
      journal.checkpoint(image_);
      ADD_FAILURE() << "checkpointed";
    } catch (const Error& error) {
      EXPECT_EQ(Errc::poisoned, error.code()) << error.what();
    }
    if (fails_at == 0) {
      EXPECT_EQ('a', recovered(medium_->now())) << "the old header still counts";
    }
  }
}

// The header that a killed process wrote may be only in the page cache.
TEST_F(RedoJournalTest, ALeftoverEmptyJournalGetsItsHeaderAgain) {
  RedoJournal first = create();
  commit(first, 'a');
  first.checkpoint(image_);
  RedoJournal journal = RedoJournal::open(
      std::make_unique<LineMedium>("journal", medium_->now(), false, [this] { ++calls_; }));
  EXPECT_FALSE(journal.has_records());
  calls_ = 0;
  EXPECT_EQ(0U, journal.checkpoint(image_).commits);
  EXPECT_EQ(2, calls_) << "a write and a barrier";
  EXPECT_EQ(0U, journal.checkpoint(image_).commits);
  EXPECT_EQ(2, calls_) << "once";
  commit(journal, 'b');
  EXPECT_EQ(2U, journal.next_sequence());
}

// A power cut while a journal becomes longer may tear the header, also that of a new journal.
TEST_F(RedoJournalTest, AHeaderTornWhileTheJournalGrowsTakesNoCommit) {
  for (const bool checkpointed : {false, true}) {
    RedoJournal journal = create();
    commit(journal, 'a');
    if (checkpointed) journal.checkpoint(image_);
    const std::size_t before = medium_->now().size();
    char last = 'a';
    while (medium_->now().size() == before) commit(journal, ++last);
    Bytes torn = medium_->now();
    const std::uint64_t epoch = journal.header().epoch;
    torn[epoch % 2 * format::kRedoHeaderCopyBytes + 50] ^= std::byte{1};  // its least_bytes
    EXPECT_EQ(last, recovered(torn)) << "epoch " << epoch;
  }
}

}  // namespace
}  // namespace vellum::atomic_file
