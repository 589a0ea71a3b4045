// The journal's protocol under power cuts: whichever lines had reached the medium, recovery gives
// the last commit that returned or the one in progress, whole. Every subset of lines where there
// are few, a sample where there are many.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "interfaces/atomic_file/line_medium_lib.hpp"
#include "interfaces/atomic_file/redo_journal.hpp"

namespace vellum::atomic_file {
namespace {

using test::Bytes;
using test::LineMedium;

constexpr std::size_t kPowerCutFileBytes = 3 * 4096 - 100;  // the last line is cut
constexpr std::size_t kMemoryBytes = 3 * 4096;

class PowerCuts {
 public:
  explicit PowerCuts(bool byte_addressable, unsigned seed)
      : byte_addressable_(byte_addressable), random_(seed), memory_(kMemoryBytes) {
    auto medium = std::make_unique<LineMedium>("journal", Bytes(), byte_addressable_,
                                               [this] { crash_here(); });
    journal_medium_ = medium.get();
    image_.emplace("image", Bytes(kPowerCutFileBytes), byte_addressable_, [this] { crash_here(); });
    // Its making is not watched: it has no name before it is whole.
    watching_ = false;
    journal_.emplace(RedoJournal::create(std::move(medium), {1, 0x1234567, 7, 8}, 4096));
    watching_ = true;
    before_ = after_ = committed_content();
  }

  void commit(std::size_t lines) {
    std::map<std::uint64_t, format::RedoSpan> spans;
    for (std::size_t i = 0; i < lines; ++i) {
      const std::uint64_t line = random_() % ((kPowerCutFileBytes + 63) / 64);
      std::uint32_t word = static_cast<std::uint32_t>(random_());
      std::memcpy(memory_.data() + line * 64 + random_() % 15 * 4, &word, 4);
      spans[line] = {line, 1, memory_.data() + line * 64};
    }
    std::vector<format::RedoSpan> list;
    for (const auto& span : spans) list.push_back(span.second);
    std::vector<std::byte> record;
    const auto encode = [&] {
      encode_redo_record(journal_->header(), journal_->next_sequence(), kPowerCutFileBytes, list,
                         record);
    };
    encode();
    if (!journal_->fits(record.size(), format::kRedoLogBegin + 4096)) {
      journal_->checkpoint(*image_);
      encode();
    }
    after_ = committed_content();
    journal_->append(record);
    before_ = after_;
    crash_here();
  }

  void checkpoint() { journal_->checkpoint(*image_); }
  std::size_t crashes() const { return crashes_; }
  std::size_t in_progress() const { return in_progress_; }

 private:
  Bytes committed_content() const {
    return {memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(kPowerCutFileBytes)};
  }

  void crash_here() {
    if (!watching_) return;
    const std::size_t lines = journal_medium_->pending_lines() + image_->pending_lines();
    constexpr std::size_t kEvery = 9;
    if (lines <= kEvery) {
      for (std::uint64_t subset = 0; subset < 1ULL << lines; ++subset)
        recover_with([&](std::size_t i) { return (subset >> i & 1) != 0; });
      return;
    }
    recover_with([](std::size_t) { return true; });
    recover_with([](std::size_t) { return false; });
    for (std::size_t missing = 0; missing < lines; ++missing)
      recover_with([&](std::size_t i) { return i != missing; });
    for (int i = 0; i < 30; ++i) recover_with([&](std::size_t) { return random_() % 2 != 0; });
  }

  template <typename Arrived>
  void recover_with(const Arrived& arrived) {
    ++crashes_;
    const std::size_t first = journal_medium_->pending_lines();
    auto medium = std::make_unique<LineMedium>("journal", journal_medium_->after_crash(arrived),
                                               byte_addressable_, nullptr);
    LineMedium image("image",
                     image_->after_crash([&](std::size_t i) { return arrived(first + i); }),
                     byte_addressable_, nullptr);
    RedoJournal journal = RedoJournal::open(std::move(medium));
    journal.checkpoint(image);
    if (image.now() == before_) return;
    ++in_progress_;
    ASSERT_TRUE(image.now() == after_) << "neither the last commit nor the one in progress";
  }

  bool byte_addressable_, watching_ = false;
  std::mt19937 random_;
  Bytes memory_, before_, after_;
  LineMedium* journal_medium_ = nullptr;
  std::optional<LineMedium> image_;
  std::optional<RedoJournal> journal_;
  std::size_t crashes_ = 0, in_progress_ = 0;
};

class PowerCutTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Media, PowerCutTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "PersistentMemory" : "Disk"; });

TEST_P(PowerCutTest, SmallCommitsEverySubsetOfLines) {
  PowerCuts run(GetParam(), 3);
  for (std::size_t i = 0; i < 16 && !HasFailure(); ++i) run.commit(1 + i % 5);
  EXPECT_GT(run.crashes(), 1000U);
  EXPECT_GT(run.in_progress(), 0U);
}

TEST_P(PowerCutTest, LargeCommitsAndCheckpointsInBetween) {
  PowerCuts run(GetParam(), 4);
  for (std::size_t i = 0; i < 20 && !HasFailure(); ++i) {
    run.commit(20 + i);
    if (i % 3 == 0) run.checkpoint();
  }
  EXPECT_GT(run.crashes(), 1000U);
}

TEST_P(PowerCutTest, CommitLargerThanTheJournal) {
  PowerCuts run(GetParam(), 5);
  run.commit(3);
  run.commit(150);
  run.commit(2);
}

}  // namespace
}  // namespace vellum::atomic_file
