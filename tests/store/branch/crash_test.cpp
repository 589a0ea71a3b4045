// Power cuts at every stage: afterwards, the branch has the last commit that returned or the one in
// progress, whole, and the store has every snapshot whose creation returned.
#include "store/branch/checkpointed_head.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/support.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::store::test {
namespace {

using Bytes = std::vector<std::byte>;

class PowerCuts {
 public:
  PowerCuts(std::uint64_t seed, bool background, bool pushes)
      : random_(seed),
        fs_(std::make_unique<sim::SimFs>()),
        background_(background),
        pushes_(pushes) {
    fs_->start_log();
    format::Superblock options = small_options();
    options.journal_half_bytes = 16u << 10;
    options.pack_bytes = 24u << 10;
    auto store = StoreDirectory::create(*fs_, "/s", options);
    store->create_branch("main", kPages * kPageBytes, 0);
  }

  void run(int cuts) {
    for (int i = 0; i < cuts && !::testing::Test::HasFatalFailure(); ++i) {
      fs_->cut_power_at(1 + random_() % 60);
      live();
      fs_ = sim::next_boot(*fs_, random_);
      if (random_() % 3 == 0) {
        // A second power cut, during the writer's recovery.
        fs_->cut_power_at(1 + random_() % 6);
        recover();
        fs_ = sim::next_boot(*fs_, random_);
      }
      look();
    }
  }

 private:
  static constexpr std::size_t kPages = 48;

  std::shared_ptr<StoreDirectory> open_store() {
    auto store = StoreDirectory::open(*fs_, "/s");
    if (background_) use_background_checkpoints(*store);
    return store;
  }

  void recover() {
    try {
      auto store = open_store();
      BranchWriter::open(*store, "main");
    } catch (const sim::PowerCut&) {
    }
  }

  // Works until the power cut.
  void live() {
    try {
      auto store = open_store();
      auto writer = BranchWriter::open(*store, "main");
      FollowedBranch followed;
      for (;;) {
        if (pushes_ && random_() % 2 == 0) push(*store, followed);
        attempt_ = model_;
        change();
        const bool snapshot = random_() % 5 == 0;
        const std::string name = "s" + std::to_string(next_snapshot_);
        commit(*writer, attempt_, snapshot || random_() % 8 == 0);
        model_ = attempt_;
        if (snapshot) {
          ++next_snapshot_;
          maybe_snapshots_[name] = model_.bytes;
          writer->publish_snapshot(name, "");
          snapshots_[name] = model_.bytes;
        }
        if (random_() % 10 == 0) {
          writer.reset();
          writer = BranchWriter::open(*store, "main");
        }
      }
    } catch (const sim::PowerCut&) {
    }
  }

  // What a push does in the store: that of a replication, or of a process of its own.
  void push(StoreDirectory& store, FollowedBranch& followed) {
    if (random_() % 8 == 0) collect_garbage(store, false, nullptr);
    if (random_() % 8 == 0) followed = {};
    const CheckpointedHead head(store, "main", &followed);
    Bytes pushed(kPages * kPageBytes);
    PageSource::open(store, head.version(), {}, "the pushed version")
        ->read(0, kPages, pushed.data());
    ASSERT_TRUE(pushed == model_.bytes);
  }

  void change() {
    for (std::size_t k = 1 + random_() % 6; k > 0; --k) {
      const PageNumber p = random_() % kPages;
      switch (random_() % 8) {
        case 0:
          attempt_.fill(p, random_);
          break;
        case 1:
          attempt_.zero(p);
          break;
        default:
          attempt_.store64(p, 8 * (random_() % 512), random_());
      }
    }
  }

  void look() {
    auto store = StoreDirectory::open(*fs_, "/s");
    const Bytes now = read_all(*store, "main");
    ASSERT_TRUE(now == model_.bytes || now == attempt_.bytes);
    if (now == attempt_.bytes) model_ = attempt_;
    for (const auto& name : snapshot_names(*store)) {
      ASSERT_TRUE(maybe_snapshots_.contains(name));
      ASSERT_TRUE(read_all(*store, name) == maybe_snapshots_[name]) << name;
      snapshots_[name] = maybe_snapshots_[name];
    }
    for (const auto& [name, bytes] : snapshots_) ASSERT_TRUE(has_snapshot(*store, name)) << name;
    for (const Damage& d : verify_store(*store, true, {}).damages) {
      ADD_FAILURE() << d.object << ": " << d.reason;
    }
  }

  static Bytes read_all(StoreDirectory& store, const std::string& name) {
    Bytes out(kPages * kPageBytes);
    open_version(store, name)->read(0, kPages, out.data());
    return out;
  }

  std::mt19937_64 random_;
  std::unique_ptr<sim::SimFs> fs_;
  const bool background_, pushes_;
  Model model_{kPages}, attempt_{kPages};
  int next_snapshot_ = 0;
  std::map<std::string, Bytes> snapshots_, maybe_snapshots_;
};

class CrashTest : public ::testing::TestWithParam<int> {};

// Every other seed has checkpoints concurrent with its commits, and half of them have pushes, which
// stage commits.
TEST_P(CrashTest, EveryPowerCutLeavesAWholeVersion) {
  PowerCuts(static_cast<std::uint64_t>(GetParam()), GetParam() % 2 == 0, GetParam() % 4 >= 2)
      .run(64);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CrashTest, ::testing::Range(1, 13));

}  // namespace
}  // namespace vellum::store::test
