// Region::checkout(), the names that it takes, and what else undo needs: a line that a kill does
// not break, rules that forget, differences with their bytes.
#include <vellum/mapped.hpp>
#include <vellum/retention.hpp>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Undo : public StoreTest {
 protected:
  Region edited(Store& store, int versions) {
    Region region = store.create_region("main", kMiB, options());
    for (int i = 1; i <= versions; ++i) {
      word_at(region, 0) = static_cast<std::uint64_t>(i);
      word_at(region, static_cast<std::uint64_t>(i) * 8 * kPage) = 100;
      region.snapshot("v" + std::to_string(i));
    }
    return region;
  }
};

TEST_P(Undo, CheckoutRestoresAVersionInPlaceAndRedoes) {
  Store store = create();
  Region region = edited(store, 4);
  const auto four = content_of(region);
  void* const data = region.data();
  word_at(region, 0) = 99;  // not committed: forgotten
  const CommitReport report = region.checkout("main~2");
  EXPECT_EQ(region.data(), data);
  EXPECT_EQ(content_of(region), content_of(store, "v3"));
  EXPECT_EQ(report.sequence, 5u);
  EXPECT_LE(report.pages_changed, 2u);
  EXPECT_EQ(content_of(store, "main"), content_of(store, "v3"));
  EXPECT_EQ(store.version("main").message, "checkout of v3");
  region.checkout("v4", "redo");
  EXPECT_EQ(content_of(region), four);
  EXPECT_EQ(store.version("main").message, "redo");
  word_at(region, kPage) = 1;
  region.commit();
  region.checkout("v1");
  EXPECT_EQ(content_of(region), content_of(store, "v1"));
}

TEST_P(Undo, CheckoutRestoresSizes) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  region.resize_file(kPage + 10);
  region.snapshot("small");
  region.resize_file(2 * kMiB);
  word_at(region, kMiB + kPage) = 2;
  region.snapshot("large");
  region.checkout("small");
  EXPECT_EQ(region.file_bytes(), kPage + 10);
  EXPECT_EQ(store.version("main").file_bytes, kPage + 10);
  if (region.engine() != Engine::mapped) {  // there, nothing may be touched behind the file
    EXPECT_TRUE(all_zero(bytes_of(region) + 2 * kPage, region.size_bytes() - 2 * kPage));
  }
  region.checkout("large");
  EXPECT_EQ(region.file_bytes(), 2 * kMiB);
  EXPECT_EQ(word_at(region, kMiB + kPage), 2u);
  EXPECT_EQ(content_of(store, "main"), content_of(store, "large"));
}

TEST_P(Undo, AFailedCheckoutChangesNothing) {
  Store store = create();
  Region region = edited(store, 2);
  EXPECT_ERRC(region.checkout("v9"), Errc::not_found);
  EXPECT_ERRC(region.checkout("main~7"), Errc::not_found);
  EXPECT_EQ(content_of(region), content_of(store, "v2"));
  {
    const Transaction transaction = region.begin();
    EXPECT_ERRC(region.checkout("v1"), Errc::busy);
  }
  const Region old = store.open_version("v1", options());
  EXPECT_ERRC(Region(store.open_version("v1", options())).checkout("v1"), Errc::read_only);
  EXPECT_EQ(region.sequence(), 2u);
}

TEST_P(Undo, NamesAreThoseOfTheCommandLine) {
  Store store = create();
  const Region region = edited(store, 3);
  EXPECT_EQ(store.resolve("main~"), "v3");
  EXPECT_EQ(store.resolve("main~3"), "v1");
  EXPECT_EQ(store.resolve("latest"), "v3");
  EXPECT_EQ(store.resolve("latest~2"), "v1");
  EXPECT_EQ(store.resolve("@{0s}"), "v3");
  EXPECT_EQ(store.resolve("v2"), "v2");
  EXPECT_ERRC((void)store.resolve("v1~"), Errc::not_found);
  EXPECT_ERRC((void)store.resolve("main@{whenever}"), Errc::invalid_argument);
  EXPECT_EQ(store.version("main~2").name, "v2");
  EXPECT_EQ(word_at(store.open_version("main~2", options()), 0), 2u);
  EXPECT_EQ(content_of(store, "latest~2"), content_of(store, "v1"));
  store.create_branch("side", "main~2");
  EXPECT_EQ(content_of(store, "side"), content_of(store, "v2"));
}

// A small commit in the journal must not hide the snapshot before it.
TEST_P(Undo, AKilledProgramsBranchHasItsLastSnapshot) {
  Store store = create();
  EXPECT_CHILD_SIGNAL(run_child([&] {
                        Store own = Store::open(path());
                        Region region = edited(own, 3);
                        for (int i = 0; i < 20; ++i) {
                          ++word_at(region, 0);
                          region.commit("edit");
                        }
                        ::kill(::getpid(), SIGKILL);
                      }),
                      SIGKILL);
  EXPECT_EQ(store.version("main").parent, "v3");
  EXPECT_EQ(store.resolve("main~2"), "v2");
  Region region = store.open_region("main", options());
  EXPECT_EQ(word_at(region, 0), 23u);
  ++word_at(region, 0);
  region.snapshot("next");
  EXPECT_EQ(store.version("next").parent, "v3");
  EXPECT_EQ(store.version("next").pages_changed, 1u);
}

// As of the command line, without the branch's writer.
TEST_P(Undo, ASnapshotOfAnIdleBranchIsOnTheLine) {
  Store store = create();
  edited(store, 1).close();
  store.create_snapshot("by-hand", "main");
  Region region = store.open_region("main", options());
  ++word_at(region, 0);
  region.snapshot("next");
  EXPECT_EQ(store.version("by-hand").parent, "v1");
  EXPECT_EQ(store.version("next").parent, "by-hand");
}

TEST_P(Undo, RetentionRulesRemoveSnapshots) {
  Store store = create();
  const Region region = edited(store, 5);
  RetentionPolicy policy;
  policy.keep_last = 2;
  ForgetOptions options;
  options.dry_run = true;
  EXPECT_EQ(forget(store, policy, options).size(), 5u);
  EXPECT_TRUE(store.contains("v1"));
  options.dry_run = false;
  options.prefix = "v1";
  policy.keep_last = 1;
  (void)forget(store, policy, options);
  EXPECT_TRUE(store.contains("v1"));
  policy.keep_last = 2;
  (void)forget(store, policy);
  EXPECT_FALSE(store.contains("v3"));
  EXPECT_TRUE(store.contains("v4") && store.contains("v5"));
}

TEST_P(Undo, DifferencesAreRecordsWithTheirBytes) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 1000) = 7;
  region.snapshot("a");
  word_at(region, 1000) = 8;
  word_at(region, 1040) = 9;
  bytes_of(region)[kMiB - 1] = std::byte{5};
  region.snapshot("b");
  std::vector<ByteRange> ranges;
  store.diff("a", "b", DiffOptions{100}, [&](const DiffRange& d) {
    ranges.push_back(d.range);
    if (d.range.offset_bytes != 1000) return;
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, d.a, sizeof before);
    std::memcpy(&after, d.b, sizeof after);
    EXPECT_EQ(before, 7u);
    EXPECT_EQ(after, 8u);
  });
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].offset_bytes, 1000u);
  EXPECT_EQ(ranges[0].length_bytes, 100u);
  EXPECT_EQ(ranges[1].offset_bytes, (kMiB - 1) / 100 * 100);
  EXPECT_EQ(ranges[1].offset_bytes + ranges[1].length_bytes, kMiB);  // the last unit is cut
  EXPECT_ERRC(store.diff("a", "b", DiffOptions{0}, [](const DiffRange&) {}),
              Errc::invalid_argument);
}

VELLUM_BOTH_ENGINES(Undo);

// The file is the memory: bytes past its end have no content.
TEST(UndoMapped, CheckoutUpdatesTheImage) {
  TempDirectory directory;
  Store store = Store::create(directory / "store");
  RegionOptions options;
  options.image.path = directory / "file";
  Region region = store.create_region("main", 3 * kPage, options);
  word_at(region, 2 * kPage) = 3;
  region.snapshot("long");
  region.resize_file(100);
  region.snapshot("short");
  region.checkout("long");
  EXPECT_EQ(word_at(region, 2 * kPage), 3u);
  EXPECT_EQ(std::filesystem::file_size(options.image.path), 3 * kPage);
  region.checkout("short");
  EXPECT_EQ(std::filesystem::file_size(options.image.path), 100u);
}

}  // namespace
}  // namespace vellum::test
