// Power cuts while a job creates global versions: the next boot finds the last version that
// returned or the one in progress, the same in all partitions, and every named version that
// returned.
//
// All stores and the records are on one disk, and unsynced data is lost at random: each partition
// may be ahead of the others or behind, in any combination.
#include <fmt/format.h>

#include "group/writer_partitions.hpp"
#include "store/check/check.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::group {
namespace {

using namespace test;

class GroupCuts {
 public:
  explicit GroupCuts(std::uint64_t seed) : random_(seed), fs_(std::make_unique<sim::SimFs>()) {
    fs_->start_log();
    now_.assign(kPartitions, Bytes(kPages * format::kPageBytes));
  }

  void run(int cuts) {
    for (int i = 0; i < cuts && !::testing::Test::HasFailure(); ++i) {
      fs_->cut_power_at(1 + random_() % 200);
      live();
      fs_ = sim::next_boot(*fs_, random_);
      if (random_() % 3 == 0) {  // another power cut, while the branches are reset
        fs_->cut_power_at(1 + random_() % 40);
        open_only();
        fs_ = sim::next_boot(*fs_, random_);
      }
      look();
    }
  }
  int versions_made() const { return made_; }
  int found_in_progress() const { return found_in_progress_; }

 private:
  std::unique_ptr<Job> open_job() {
    JobOptions options;
    options.records = "/g";
    options.partitions = kPartitions;
    options.store_path = store_path;
    options.release_in_background = false;
    WriterPartitions opener(*fs_);
    return std::make_unique<Job>(*fs_, rank_, options, opener);
  }

  void open_only() {
    try {
      open_job();
    } catch (const Error& e) {
      expect_power_cut(e);
    }
  }

  void expect_power_cut(const Error& e) {
    EXPECT_NE(std::string(e.what()).find("power cut"), std::string::npos) << e.what();
  }

  // Works until the power cut.
  void live() {
    try {
      const auto job = open_job();
      // The opened version, or the first one; it has a record now.
      for (std::uint32_t p = 0; p < kPartitions; ++p) {
        ASSERT_TRUE(partition(*job, p).model().bytes == now_[p]) << "partition " << p;
      }
      for (;;) {
        next_ = now_;
        for (std::uint32_t p = 0; p < kPartitions; ++p) change(partition(*job, p).model(), p);
        const std::string name =
            random_() % 4 == 0 ? "v" + std::to_string(names_made_++) : std::string();
        if (!name.empty()) maybe_named_[name] = next_;
        if (random_() % 4 == 0) {
          job->finish(job->snapshot_async(name, ""));
        } else {
          job->snapshot(name, "");
        }
        now_ = next_;
        if (!name.empty()) named_[name] = now_;
        ++made_;
      }
    } catch (const Error& e) {
      expect_power_cut(e);
    }
  }

  static WriterPartition& partition(Job& job, std::uint32_t number) {
    return static_cast<WriterPartition&>(job.memory(number));
  }

  void change(Model& model, std::uint32_t number) {
    for (std::size_t k = random_() % 4; k > 0; --k) {
      const format::PageNumber p = random_() % kPages;
      if (random_() % 6 == 0) {
        model.fill(p, random_);
      } else {
        model.store64(p, 8 * (random_() % 512), random_());
      }
    }
    next_[number] = model.bytes;
  }

  void look() {
    const bool is_there = fs_->exists("/g/vellum.group");
    ASSERT_TRUE(is_there || made_ == 0);
    if (!is_there) return;
    const RecordDirectory directory = RecordDirectory::open(*fs_, "/g");
    const auto newest = directory.newest();
    ASSERT_TRUE(newest.has_value() || made_ == 0);
    if (!newest.has_value()) return;
    const GroupContent found = state_of(*fs_, *newest, directory.group().id);
    if (found != now_) {
      ASSERT_TRUE(found == next_) << "neither the last version nor the one in progress";
      ++found_in_progress_;
      now_ = next_;
    }
    std::set<std::string> seen;
    for (const auto& record : directory.all()) {
      if (record.name.empty()) continue;
      ASSERT_TRUE(maybe_named_.contains(record.name));
      ASSERT_TRUE(state_of(*fs_, record, directory.group().id) == maybe_named_[record.name])
          << record.name;
      named_[record.name] = maybe_named_[record.name];
      seen.insert(record.name);
    }
    for (const auto& [name, state] : named_) EXPECT_TRUE(seen.contains(name)) << name;
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      for (const Damage& d :
           store::verify_store(*StoreDirectory::open(*fs_, store_path(p)), true, {}).damages) {
        ADD_FAILURE() << d.object << ": " << d.reason;
      }
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<sim::SimFs> fs_;
  OneRank rank_;
  GroupContent now_, next_;
  std::map<std::string, GroupContent> named_, maybe_named_;
  int names_made_ = 0, made_ = 0, found_in_progress_ = 0;
};

class GroupPowerCutTest : public ::testing::TestWithParam<int> {};

TEST_P(GroupPowerCutTest, TheNewestRecordIsWholeInAllPartitions) {
  GroupCuts cuts(static_cast<std::uint64_t>(GetParam()));
  cuts.run(30);
  EXPECT_GT(cuts.versions_made(), 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroupPowerCutTest, ::testing::Range(1, 7));

}  // namespace
}  // namespace vellum::group
