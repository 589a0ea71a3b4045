// An encrypted store in the C++ interface: a plain store never takes its place.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vellum/key.hpp>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "vellum/store.hpp"

namespace vellum::test {
namespace {

class EncryptedStore : public testing::Test {
 protected:
  EncryptedStore() {
    std::ofstream(directory_ / "key") << std::string(50, 'k');
    encrypted_.encrypt = true;
    encrypted_.key.key_file = directory_ / "key";
    source_.key_file = directory_ / "key";
    set_key_source(source_);
  }
  ~EncryptedStore() override { set_key_source(KeySource()); }

  TempDirectory directory_;
  const std::string path_ = directory_ / "s";
  StoreOptions encrypted_;
  KeySource source_;
};

TEST_F(EncryptedStore, OpenOrCreateWithEncryptionRefusesAPlainStore) {
  Store::create(path_);
  EXPECT_ERRC(Store::open_or_create(path_, encrypted_), Errc::wrong_key);
  EXPECT_FALSE(Store::open_or_create(path_).options().encrypt);
  std::filesystem::remove_all(path_);
  EXPECT_TRUE(Store::open_or_create(path_, encrypted_).options().encrypt);
  EXPECT_TRUE(Store::open_or_create(path_, encrypted_).options().encrypt);
  EXPECT_TRUE(Store::open_or_create(path_).options().encrypt);
}

TEST_F(EncryptedStore, ASourceForEncryptedStoresOnlyRefusesPlainOnes) {
  Store::create(path_);
  source_.encrypted_only = true;
  set_key_source(source_);
  EXPECT_ERRC(Store::open(path_), Errc::wrong_key);
  EXPECT_ERRC(Store::open_or_create(path_), Errc::wrong_key);
  const std::string other = directory_ / "t";
  EXPECT_ERRC(Store::create(other), Errc::wrong_key);
  EXPECT_ERRC(Store::open_or_create(other), Errc::wrong_key);
  EXPECT_FALSE(std::filesystem::exists(other));
  EXPECT_TRUE(Store::open_or_create(other, encrypted_).options().encrypt);
  EXPECT_TRUE(Store::open(other).options().encrypt);
}

TEST_F(EncryptedStore, TheEnvironmentAsksForEncryptedStoresOnly) {
  ::setenv("VELLUM_ENCRYPTED_ONLY", "1", 1);
  EXPECT_TRUE(key_source_of_environment().encrypted_only);
  ::setenv("VELLUM_ENCRYPTED_ONLY", "", 1);
  EXPECT_FALSE(key_source_of_environment().encrypted_only);
  ::unsetenv("VELLUM_ENCRYPTED_ONLY");
  EXPECT_FALSE(key_source_of_environment().encrypted_only);
}

// What would write plain files next to an encrypted store, or send them.
TEST_F(EncryptedStore, ImagesAndRemotesAreRefused) {
  Store store = Store::create(path_, encrypted_);
  RegionOptions options;
  options.capacity_bytes = 16u << 20;
  options.engine = Engine::sigsegv;
  store.create_region("main", 1u << 20, options).commit();
  options.engine = Engine::mapped;
  options.image.path = directory_ / "image";
  EXPECT_ERRC(store.open_region("main", options), Errc::unsupported);
  EXPECT_ERRC(store.create_region("other", 1u << 20, options), Errc::unsupported);
  EXPECT_FALSE(store.contains("other"));
  EXPECT_FALSE(std::filesystem::exists(options.image.path));
  const std::string remote = directory_ / "remote";
  EXPECT_ERRC(store.add_remote("origin", "file://" + remote), Errc::unsupported);
  const auto once = [](const ReplicateState&) { return false; };
  EXPECT_ERRC(store.replicate("file://" + remote, ReplicateOptions(), once), Errc::unsupported);
  EXPECT_FALSE(std::filesystem::exists(remote));
}

}  // namespace
}  // namespace vellum::test
