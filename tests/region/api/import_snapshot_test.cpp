// An import that is to be a snapshot: where the name cannot be written, the branch is as it was.
#include "base/fail.hpp"
#include "region/api/import.hpp"
#include "region/api/store_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/disk/hook_fs.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class ImportAsSnapshot : public testing::Test {
 protected:
  ImportAsSnapshot() : fs_(base::posix_fs()) {
    (void)Store::create(directory_ / "store");
    store_.emplace(StoreAccess::handle_of(store::StoreDirectory::open(fs_, directory_ / "store")));
  }
  void import(const std::string& branch, const std::string& text, const std::string& snapshot) {
    std::size_t at = 0;
    store::StreamContent content(
        [&](void* to, std::size_t room) {
          const std::size_t n = text.copy(static_cast<char*>(to), room, at);
          at += n;
          return n;
        },
        text.size());
    api::import_content(*store_, branch, content, "", nullptr, &snapshot);
  }
  void refuse_refs() {
    fs_.hooks.before_write = [](const std::string& file) {
      if (file.find(".ref.") != std::string::npos) fail(Errc::no_space, "{}: full", file);
    };
  }

  TempDirectory directory_;
  HookFs fs_;
  std::optional<Store> store_;
};

TEST_F(ImportAsSnapshot, TheSnapshotIsTheNextVersionOfItsLine) {
  import("main", "one", "a");
  import("main", "two", "b");
  import("main", "two", "c");  // nothing has changed, and the name is wanted all the same
  EXPECT_EQ(store_->version("b").parent, "a");
  EXPECT_EQ(store_->version("c").parent, "b");
  EXPECT_EQ(store_->version("main").parent, "c");
  EXPECT_EQ(store_->version("c").file_bytes, 3u);
}

TEST_F(ImportAsSnapshot, WithoutSpaceForTheNameNothingChanges) {
  import("main", "one", "a");
  refuse_refs();
  EXPECT_ERRC(import("main", "another", "b"), Errc::no_space);
  EXPECT_ERRC(import("new", "another", "b"), Errc::no_space);
  fs_.hooks.before_write = nullptr;
  EXPECT_FALSE(store_->contains("b") || store_->contains("new"));
  EXPECT_EQ(store_->version("main").sequence, store_->version("a").sequence);
  EXPECT_EQ(content_of(*store_, "main"), content_of(*store_, "a"));
  import("main", "another", "b");
  EXPECT_TRUE(Store::open(directory_ / "store").verify({.read_data = true}).damages.empty());
}

}  // namespace
}  // namespace vellum::test
