// A branch keeps the way in which it is stored.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kBytes = 2 * kMiB;

class BranchEncoding : public StoreTest {
 protected:
  // This differs from the store's way in everything, and the effect shows: content that would
  // compress to nothing takes all its bytes.
  static Encoding plain() {
    Encoding encoding;
    encoding.compression = Encoding::Compression::none;
    encoding.block_bytes = 16u << 10;
    encoding.grow_blocks = encoding.filters = encoding.dedup = encoding.deltas = false;
    encoding.hash = Encoding::Hash::sha256;
    return encoding;
  }
  RegionOptions with(const Encoding& encoding) const {
    RegionOptions out = options();
    out.encoding = encoding;
    return out;
  }
  // The bytes that a commit of the whole region takes, when every page is a number of its own.
  static std::uint64_t committed_bytes(Region& region) {
    static std::uint64_t salt = 0;
    ++salt;
    for (std::uint64_t at = 0; at < region.size_bytes(); at += 8) {
      word_at(region, at) = salt << 32 | at / kPage;
    }
    return region.commit().bytes_written;
  }
  static bool stored_plainly(Region&& region) { return committed_bytes(region) >= kBytes; }
  static void expect_plain(const Store& store, const std::string& branch) {
    const auto found = store.version(branch).encoding;
    ASSERT_TRUE(found.has_value()) << branch;
    EXPECT_EQ(found->compression, Encoding::Compression::none);
    EXPECT_EQ(found->block_bytes, 16u << 10);
    EXPECT_FALSE(found->grow_blocks || found->filters || found->dedup || found->deltas);
    EXPECT_EQ(found->hash, Encoding::Hash::sha256);
  }
};

TEST_P(BranchEncoding, ABranchKeepsTheEncodingOfItsCreation) {
  Store store = create();
  EXPECT_TRUE(stored_plainly(store.create_region("own", kBytes, with(plain()))));
  EXPECT_FALSE(stored_plainly(store.create_region("other", kBytes, options())));
  for (int i = 0; i < 2; ++i) {
    Store again = Store::open(path());
    EXPECT_TRUE(stored_plainly(again.open_region("own", options())));
    EXPECT_FALSE(stored_plainly(again.open_region("other", options())));
    expect_plain(again, "own");
    EXPECT_FALSE(again.version("other").encoding.has_value());
  }
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(BranchEncoding, AnOpeningMayHaveItsOwnEncoding) {
  Store store = create();
  store.create_region("own", kBytes, with(plain())).close();
  EXPECT_FALSE(stored_plainly(store.open_region("own", with(Encoding()))));
  EXPECT_TRUE(stored_plainly(store.open_region("own", options())));
  store.create_region("other", kBytes, options()).close();
  EXPECT_TRUE(stored_plainly(store.open_region("other", with(plain()))));
  EXPECT_FALSE(stored_plainly(store.open_region("other", options())));
  EXPECT_FALSE(store.version("other").encoding.has_value());
}

TEST_P(BranchEncoding, ABranchOfABranchInheritsTheEncoding) {
  Store store = create();
  {
    Region own = store.create_region("own", kBytes, with(plain()));
    committed_bytes(own);
    own.snapshot("s");
  }
  store.create_branch("child", "own");
  store.create_branch("grandchild", "child");
  expect_plain(store, "grandchild");
  EXPECT_TRUE(stored_plainly(store.open_region("grandchild", options())));
  store.create_branch("of-snapshot", "s");
  EXPECT_FALSE(store.version("of-snapshot").encoding.has_value());
  EXPECT_FALSE(store.version("s").encoding.has_value());
  store.create_branch("told", "s", plain());
  expect_plain(store, "told");
  store.create_branch("told-otherwise", "own", Encoding());
  EXPECT_EQ(store.version("told-otherwise").encoding->compression, Encoding::Compression::zstd);
  EXPECT_FALSE(stored_plainly(store.open_region("told-otherwise", options())));
}

TEST_P(BranchEncoding, AnInvalidEncodingIsRefusedAndNothingIsCreated) {
  Store store = create();
  store.create_region("main", kBytes, options()).close();
  Encoding bad;
  bad.block_bytes = 5000;
  EXPECT_ERRC(store.create_branch("b", "main", bad), Errc::invalid_argument);
  bad.block_bytes = 4u << 20;  // more than readers of this store have room for
  EXPECT_ERRC(store.create_branch("b", "main", bad), Errc::invalid_argument);
  EXPECT_ERRC(store.create_region("b", kBytes, with(bad)), Errc::invalid_argument);
  EXPECT_FALSE(store.contains("b"));
}

VELLUM_BOTH_ENGINES(BranchEncoding);

}  // namespace
}  // namespace vellum::test
