// A push and a restore that are interrupted at each call, by a kill or a power cut: the newest
// complete version at the remote opens in all partitions, and is the previous or the pushed one.
//
// Stores, records and the remote are on one simulated disk. After a power cut, unsynced data is
// lost at random.
#include "group/remote/object_versions.hpp"
#include "group/remote/restore.hpp"
#include "group/writer_partitions.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::group::test {
namespace {

constexpr const char* kUrl = "file:///r";
constexpr int kPowerCuts = 1;

std::unique_ptr<Job> open_job(base::Fs& fs, Ranks& ranks) {
  JobOptions options;
  options.records = "/g";
  options.partitions = kPartitions;
  options.store_path = store_path;
  options.remote = std::make_shared<ObjectVersions>(fs, kUrl);
  options.release_in_background = false;
  WriterPartitions opener(fs);
  return std::make_unique<Job>(fs, ranks, options, opener);
}

GroupContent content_of(Job& job) {
  GroupContent state;
  for (std::uint32_t p = 0; p < kPartitions; ++p) {
    state.push_back(static_cast<WriterPartition&>(job.memory(p)).model().bytes);
  }
  return state;
}

void store_all(Job& job, std::uint64_t value) {
  for (std::uint32_t p = 0; p < kPartitions; ++p) {
    Model& model = static_cast<WriterPartition&>(job.memory(p)).model();
    for (std::size_t page = 0; page < kPages; page += 3) {
      model.store64(page, 8 * p, 1000 * value + page);
    }
  }
}

void push(Job& job) { job.finish_push(job.push_async("")); }

void restore(base::Fs& fs, const std::string& records, const std::string& stores) {
  OneRank all;
  restore_group(fs, all, {kUrl, records, "", stores, std::nullopt}, {});
}

void remove_tree(base::Fs& fs, const std::string& path) {
  for (const auto& entry : fs.list(path)) {
    const std::string inside = path + "/" + entry.name;
    if (entry.is_directory) {
      remove_tree(fs, inside);
    } else {
      fs.unlink(inside);
    }
  }
  fs.remove_directory(path);
}

GroupContent newest_of(base::Fs& fs, const std::string& records, const std::string& stores) {
  const RecordDirectory directory = RecordDirectory::open(fs, records);
  return state_of(fs, *directory.newest(), directory.group().id, stores);
}

// The state that a machine without stores of the group restores from the remote.
GroupContent state_at_remote(const sim::Disk& disk) {
  sim::SimFs machine(disk);
  restore(machine, "/copy", "/copy-{}");
  return newest_of(machine, "/copy", "/copy-{}");
}

class GroupRemoteCrash : public testing::Test {
 protected:
  // `before` is at the remote. `after` is the newest version of the stores, with or without a name.
  void make(const std::string& name) {
    disk_.make_directory("/r");
    const auto job = open_job(disk_, rank_);
    store_all(*job, 1);
    job->snapshot("", "");
    push(*job);
    before_ = content_of(*job);
    store_all(*job, 2);
    job->snapshot(name, "");
    after_ = content_of(*job);
    ASSERT_FALSE(before_ == after_);
  }

  // Runs `work` on copies of the disk, each interrupted one call later. `check` gets the resulting
  // disk, after a kill or a power cut. Returns the number of calls.
  template <typename Work, typename Check>
  std::uint64_t cut_at_each_call(const Work& work, const Check& check) {
    for (std::uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE(fmt::format("cut at call {}", nth));
      sim::SimFs fs(disk_.disk());
      fs.start_log();
      bool was_cut = false;
      returned_ = false;
      try {
        work(fs, nth);
        fs.make_directory("/end");  // background threads swallow the exception of the cut
      } catch (const std::exception& e) {
        was_cut = true;
        EXPECT_NE(std::string(e.what()).find("power cut"), std::string::npos) << e.what();
      }
      check(fs.disk(), was_cut);
      for (int i = 0; i < kPowerCuts; ++i) check(sim::any_image(fs, random_), was_cut);
      if (was_cut && !HasFailure()) continue;
      std::printf("  %llu calls, each cut by a kill and by %d power cut\n",
                  static_cast<unsigned long long>(nth - 1), kPowerCuts);
      return nth - 1;
    }
  }

  void cut_pushes() {
    int found_before = 0, found_after = 0;
    const auto work = [&](sim::SimFs& fs, std::uint64_t nth) {
      const auto job = open_job(fs, rank_);
      fs.cut_power_at(nth);
      push(*job);
      returned_ = true;
      job->close();  // when the pins of the previous version are removed
    };
    const std::uint64_t calls = cut_at_each_call(work, [&](const sim::Disk& left, bool was_cut) {
      const GroupContent there = state_at_remote(left);
      ASSERT_TRUE(there == after_ || (!returned_ && there == before_)) << "none, or a mixture";
      if (was_cut) ++(there == after_ ? found_after : found_before);
      // The job continues from its own newest version, and pushes the missing objects.
      sim::SimFs again(left);
      const auto job = open_job(again, rank_);
      ASSERT_TRUE(content_of(*job) == after_);
      push(*job);
      job->close();  // its thread uses the disk until then
      ASSERT_TRUE(state_at_remote(again.disk()) == after_);
    });
    EXPECT_GT(calls, 40u);
    EXPECT_GT(found_before, 40) << "cuts before the commit point";
    EXPECT_GT(found_after, 40) << "cuts behind it";
  }

  // Restores a disk from which `lose` has removed something.
  template <typename Lose>
  void cut_restores(const Lose& lose) {
    push(*open_job(disk_, rank_));
    lose();
    const auto work = [](sim::SimFs& fs, std::uint64_t nth) {
      fs.cut_power_at(nth);
      restore(fs, "/g", "/s{}");
    };
    const std::uint64_t calls = cut_at_each_call(work, [&](const sim::Disk& left, bool was_cut) {
      ASSERT_TRUE(state_at_remote(left) == after_);
      sim::SimFs again(left);
      ASSERT_TRUE(was_cut || newest_of(again, "/g", "/s{}") == after_);
      restore(again, "/g", "/s{}");
      ASSERT_TRUE(newest_of(again, "/g", "/s{}") == after_);
      ASSERT_TRUE(content_of(*open_job(again, rank_)) == after_);
    });
    EXPECT_GT(calls, 40u);
  }

  sim::SimFs disk_;
  OneRank rank_;
  std::mt19937_64 random_{17};
  GroupContent before_, after_;
  bool returned_ = false;  // the interrupted call
};

TEST_F(GroupRemoteCrash, APushMayBeInterruptedAtAnyCall) {
  make("");
  cut_pushes();
}

TEST_F(GroupRemoteCrash, APushOfANamedVersionMayBeInterruptedAtAnyCall) {
  make("two");
  cut_pushes();
}

TEST_F(GroupRemoteCrash, ARestoreOfALostStoreMayBeInterruptedAtAnyCall) {
  make("");
  cut_restores([this] { remove_tree(disk_, store_path(1)); });
}

TEST_F(GroupRemoteCrash, ARestoreOfAllStoresMayBeInterruptedAtAnyCall) {
  make("two");
  cut_restores([this] {
    for (std::uint32_t p = 0; p < kPartitions; ++p) remove_tree(disk_, store_path(p));
    remove_tree(disk_, "/g");
  });
}

}  // namespace
}  // namespace vellum::group::test
