// Creating an encrypted store: two creators, and what a killed one leaves.
#include <atomic>
#include <fstream>
#include <semaphore>
#include <thread>

#include <vellum/key.hpp>

#include "store/catalog/key_file.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/support.hpp"
#include "support/disk/hook_fs.hpp"

namespace vellum::store::test {
namespace {

class EncryptedCreation : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(directory_.path("key")) << std::string(50, 'k');
    source_.key_file = directory_.path("key");
    set_key_source(source_);
  }
  void TearDown() override { set_key_source(KeySource()); }

  std::string path() const { return directory_.path("s"); }
  // Whether the creator succeeded.
  bool create(base::Fs& fs) const {
    try {
      StoreDirectory::create_encrypted(fs, path(), small_options(), source_);
      return true;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::already_exists) << e.what();
      return false;
    }
  }
  void expect_usable() const {
    const auto store = StoreDirectory::open(base::posix_fs(), path());
    store->create_branch("main", kPageBytes, 0);
    EXPECT_TRUE(store->is_encrypted());
    EXPECT_TRUE(std::filesystem::is_empty(path() + "/tmp"));
  }

  TempDirectory directory_;
  KeySource source_;
};

// The second starts when the first is about to name its slots. It ends, or waits for the lock.
TEST_F(EncryptedCreation, TwoCreatorsMakeOneStore) {
  std::counting_semaphore<> there(0);
  vellum::test::HookFs second(base::posix_fs()), first(base::posix_fs());
  second.hooks.before_lock = [&](const std::string& file) {
    if (file.ends_with(".lock")) there.release();
  };
  std::thread other;
  bool other_succeeded = false;
  first.hooks.before_rename = [&](const std::string& to) {
    if (!to.ends_with(kKeysName) || other.joinable()) return;
    other = std::thread([&] {
      other_succeeded = create(second);
      there.release();
    });
    there.acquire();
  };
  const bool succeeded = create(first);
  ASSERT_TRUE(other.joinable());
  other.join();
  EXPECT_NE(succeeded, other_succeeded);
  expect_usable();
}

TEST_F(EncryptedCreation, ManyCreatorsMakeOneStore) {
  std::vector<std::thread> threads;
  std::atomic<int> succeeded = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (create(base::posix_fs())) ++succeeded;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(succeeded, 1);
  expect_usable();
}

struct Killed {};

TEST_F(EncryptedCreation, AKilledCreatorHindersNobody) {
  vellum::test::HookFs killed(base::posix_fs());
  killed.hooks.before_rename = [](const std::string& to) {
    if (to.ends_with(kSuperblockName)) throw Killed();
  };
  EXPECT_THROW(create(killed), Killed);
  std::ofstream(path() + "/tmp/" + kKeysName + ".lock").flush();
  EXPECT_TRUE(std::filesystem::exists(path() + "/" + kKeysName));
  EXPECT_TRUE(create(base::posix_fs()));
  const auto store = StoreDirectory::open(base::posix_fs(), path());
  EXPECT_TRUE(store->is_encrypted());
}

// A user's copy of the slots is no remains of a creator.
TEST_F(EncryptedCreation, SlotsOfAnotherStoreAreNotReplaced) {
  std::filesystem::create_directory(path());
  std::ofstream(path() + "/" + kKeysName) << "a copy";
  EXPECT_FALSE(create(base::posix_fs()));
  EXPECT_EQ(std::filesystem::file_size(path() + "/" + kKeysName), 6u);
}

}  // namespace
}  // namespace vellum::store::test
