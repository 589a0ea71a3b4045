// Records of based pages at a remote: a version has the records of its base pages, too.
#include <gtest/gtest.h>

#include "remote/lazy_fixture.hpp"
#include "support/count_records.hpp"

namespace vellum::remote::test {
namespace {

using store::test::expect_same;
using store::test::open_version;

constexpr std::size_t kMovedPages = 320;

std::size_t based_records(StoreDirectory& store) {
  return vellum::test::count_records(store, format::RecordType::based_pages);
}

// Versions m0, m1, ...: each has the content of the previous one, shifted a little.
class BasedPagesAtARemote : public LazyTest {
 protected:
  BasedPagesAtARemote() {
    store = create_store(base::posix_fs(), dir.path("moved"), store::test::small_options());
    add_remote_file(*store, "origin", url(), false);
    store->create_branch("main", kMovedPages * format::kPageBytes, 0);
    const auto writer = BranchWriter::open(*store, "main");
    std::mt19937_64 random(11);
    Model model(kMovedPages);
    for (format::PageNumber p = 0; p < kMovedPages; ++p) store::test::fill_text(model, p, random);
    for (int i = 0; i < 4; ++i) {
      base::Compressor compressor;
      auto c = writer->begin(kMovedPages);
      c->add(model.take(4, compressor));
      c->finish(store::test::meta_for(model), true);
      const std::string name = "m" + std::to_string(i);
      writer->publish_snapshot(name, "");
      contents[name] = contents["main"] = model.bytes;
      std::rotate(model.bytes.begin(), model.bytes.begin() + 1000, model.bytes.end());
      for (format::PageNumber p = 0; p < kMovedPages; ++p) model.touched.insert(p);
    }
  }
};

TEST_F(BasedPagesAtARemote, OneVersionIsPushedWithTheBasePagesOfOthers) {
  ASSERT_GT(based_records(*store), 0u);
  push_names(*store, {"m3"});
  expect_good_remote();
  const auto copy = clone_to("c", {"m3"});
  EXPECT_GT(based_records(*copy), 0u);
  expect_contents(*copy, {{"m3", contents["m3"]}});
  store::collect_garbage(*copy, false, nullptr);
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c")), {{"m3", contents["m3"]}});
}

TEST_F(BasedPagesAtARemote, ACloneHasAllVersions) {
  push_names(*store, {"m0"});
  push_all(*store);
  expect_good_remote();
  expect_contents(*clone_to("c"), contents);
}

TEST_F(BasedPagesAtARemote, AStoreOpenedFromTheRemoteReadsThem) {
  for (const char* name : {"m0", "m1", "m2", "m3"}) push_names(*store, {name});
  const auto there = open_remote(base::posix_fs(), url());
  expect_same(*open_version(*there, "m3"), contents["m3"]);
  expect_same(*open_version(*there, "m1"), contents["m1"]);
}

// The packs are remote, and so are the records with the references to base pages.
TEST_F(BasedPagesAtARemote, AVersionOfALazyCloneIsPushedWithThem) {
  for (const char* name : {"m0", "m1", "m2", "m3"}) push_names(*store, {name});
  const auto lazy = clone_lazily("lazy");
  StoreAccess::handle_of(lazy).create_snapshot("again", "m3");
  push_names(*lazy, {"again"});
  expect_contents(*clone_to("c", {"again"}), {{"again", contents["m3"]}});
}

}  // namespace
}  // namespace vellum::remote::test
