// Names that a killed process has published and not synced. Who removes the other name of a version
// makes them durable first.
#include <gtest/gtest.h>

#include "store/snapshots_fixture.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::store::test {
namespace {

constexpr const char* kPath = "/s";

// A store with the snapshot `s`.
Model make_snapshot(base::Fs& fs) {
  const auto store = StoreDirectory::create(fs, kPath, small_options());
  Model model(8);
  store->create_branch("main", model.bytes.size(), 0);
  std::mt19937_64 random{3};
  for (format::PageNumber page = 0; page < model.pages(); ++page) model.store64(page, 8, random());
  const auto writer = BranchWriter::open(*store, "main");
  commit(*writer, model, true);
  writer->publish_snapshot("s", "");
  return model;
}

using Work = std::function<void(StoreDirectory& store)>;

// Kills `first` at each call, then runs `second`, and cuts the power. The version stays.
void expect_kept(const Work& first, const Work& second) {
  sim::SimFs start;
  const Model model = make_snapshot(start);
  for (std::uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    sim::SimFs fs(start.disk());
    fs.start_log();
    bool was_killed = false;
    fs.cut_power_at(nth);
    try {
      first(*StoreDirectory::open(fs, kPath));
    } catch (const sim::PowerCut&) {
      was_killed = true;
    }
    fs.cut_power_at(UINT64_MAX);
    second(*StoreDirectory::open(fs, kPath));
    fs.stop_log();
    sim::CrashImages(fs, {2, 2, 3, 3}, 5)
        .for_each([&](const sim::Disk& image, std::size_t, std::size_t) {
          if (testing::Test::HasFailure()) return;
          sim::SimFs disk(image);
          const auto store = StoreDirectory::open(disk, kPath);
          ASSERT_TRUE(has_snapshot(*store, "s") || has_branch(*store, "s"));
          expect_same(*open_version(*store, "s"), model.bytes);
        });
    if (!was_killed || testing::Test::HasFailure()) return;
  }
}

TEST(KilledNames, ASnapshotThatBecomesABranchIsNeverWithoutAName) {
  const Work convert = [](StoreDirectory& store) { store.convert_to_branch("s"); };
  expect_kept(convert, convert);
}

TEST(KilledNames, AWriterThatFindsBothNamesKeepsTheBranch) {
  expect_kept([](StoreDirectory& store) { store.convert_to_branch("s"); },
              [](StoreDirectory& store) { store.settle_name("s"); });
}

}  // namespace
}  // namespace vellum::store::test
