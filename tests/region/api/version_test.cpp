// Versions that are open together with the live region, and with each other.
#include <signal.h>

#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Versions : public StoreTest {};

TEST_P(Versions, ASnapshotNeverChanges) {
  Store store = create();
  Region region = store.create_region("main", 4 * kMiB, options());
  std::vector<std::vector<std::byte>> expected;
  for (int i = 0; i < 6; ++i) {
    std::memset(bytes_of(region) + static_cast<std::size_t>(i) * 100 * kPage, i + 1, 150 * kPage);
    word_at(region, 900 * kPage) = static_cast<std::uint64_t>(i);
    region.snapshot("s" + std::to_string(i));
    expected.push_back(content_of(region));
  }
  word_at(region, 0) = 99;
  std::vector<Region> open;
  for (int i = 0; i < 6; ++i)
    open.push_back(store.open_version("s" + std::to_string(i), options()));
  word_at(region, kPage) = 98;
  region.commit();
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FALSE(open[i].writable());
    EXPECT_EQ(open[i].sequence(), i + 1);
    EXPECT_EQ(open[i].name(), "s" + std::to_string(i));
    EXPECT_EQ(content_of(open[i]), expected[i]) << i;
    EXPECT_EQ(content_of(store, "s" + std::to_string(i)), expected[i]) << i;
  }
  EXPECT_EQ(word_at(region, 0), 99u);
}

TEST_P(Versions, AHeadShowsTheCommitAtItsOpening) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  for (std::uint64_t i = 1; i <= 5; ++i) {
    word_at(region, 0) = i;
    word_at(region, i * 10 * kPage) = i;
    region.commit();
    word_at(region, 8) = i;  // not committed
    Region head = store.open_version("main", options());
    EXPECT_EQ(head.sequence(), 2 * i - 1);
    word_at(region, 0) = i + 100;
    region.commit();  // does not show
    EXPECT_EQ(word_at(head, 0), i);
    EXPECT_EQ(word_at(head, 8), i - 1);
    EXPECT_EQ(word_at(head, i * 10 * kPage), i);
    EXPECT_EQ(head.sequence(), 2 * i - 1);
    EXPECT_EQ(word_at(store.open_version("main", options()), 0), i + 100);
  }
}

TEST_P(Versions, VersionsAreReadOnly) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.snapshot("s");
  Region version = store.open_version("s", options());
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { version.commit(); }, [&] { version.snapshot("t"); }, [&] { version.rollback(); },
           [&] { version.grow(2 * kMiB); }}) {
    expect_error(Errc::read_only, {"s"}, call);
  }
  EXPECT_CHILD_SIGNAL(run_child([&] {
                        Region own = Store::open(path()).open_version("s", options());
                        require(word_at(own, 0) == 0, "it reads");
                        *static_cast<volatile std::uint64_t*>(own.data()) = 1;
                      }),
                      SIGSEGV);
}

TEST_P(Versions, VersionsOutliveTheStoreHandle) {
  Region version = [&] {
    Store store = create();
    Region region = store.create_region("main", kMiB, options());
    std::memset(region.data(), 3, kMiB);
    region.snapshot("s");
    return store.open_version("s", options());
  }();
  EXPECT_EQ(bytes_of(version)[kMiB - 1], std::byte{3});
}

TEST_P(Versions, AnUnchangedSnapshotIsAVersion) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.snapshot("empty");
  EXPECT_TRUE(all_zero(bytes_of(store.open_version("empty", options())), kMiB));
  word_at(region, 0) = 4;
  region.commit();
  region.snapshot("a");
  region.snapshot("b");
  EXPECT_EQ(word_at(store.open_version("a", options()), 0), 4u);
  EXPECT_EQ(word_at(store.open_version("b", options()), 0), 4u);
  EXPECT_EQ(store.version("b").parent, "a");
  EXPECT_EQ(store.version("a").parent, "empty");
}

TEST_P(Versions, AVersionCostsItsChanges) {
  Store store = create();
  Region region = store.create_region("main", 16 * kMiB, options());
  std::uint64_t random = 1;
  for (std::uint64_t i = 0; i < 16 * kMiB; i += 8) {
    word_at(region, i) = random = random * 6364136223846793005u + 1442695040888963407u;
  }
  region.snapshot("base");
  const auto before = store.stat();
  for (int i = 0; i < 20; ++i) {
    word_at(region, static_cast<std::uint64_t>(i) * kMiB / 2) += 1;
    region.snapshot("s" + std::to_string(i));
  }
  const auto after = store.stat();
  EXPECT_LT(after.pack_bytes - before.pack_bytes, 20 * 8192u);
  EXPECT_EQ(after.snapshots, 21u);
  EXPECT_EQ(after.branches, 1u);
  EXPECT_GE(after.full_copy_bytes, 22 * 16 * kMiB);
}

VELLUM_BOTH_ENGINES(Versions);

}  // namespace
}  // namespace vellum::test
