// An encrypted store in the C++ interface: a plain store never takes its place, and a region leaves
// nothing of its pages in any file.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
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

// What would write plain files next to an encrypted store.
TEST_F(EncryptedStore, ImagesAreRefused) {
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
}

TEST_F(EncryptedStore, ARemoteOpensWithTheStoresSecretsAndListsItsSlots) {
  Store store = Store::create(path_, encrypted_);
  RegionOptions options;
  options.capacity_bytes = 1u << 20;
  options.engine = Engine::sigsegv;
  store.create_region("main", 1u << 20, options).commit();
  const std::string url = "file://" + (directory_ / "remote");
  store.add_remote("origin", url);
  store.push("origin");
  const Store there = Store::open(url);
  EXPECT_TRUE(there.options().encrypt);
  EXPECT_EQ(there.key_fingerprint(), store.key_fingerprint());
  EXPECT_EQ(there.keys().size(), 1u);
  Store::clone(url, directory_ / "copy");
  EXPECT_EQ(Store::open(directory_ / "copy").key_fingerprint(), store.key_fingerprint());
  set_key_source(KeySource());
  EXPECT_ERRC(Store::open(url), Errc::wrong_key);
  EXPECT_ERRC(Store::clone(url, directory_ / "other"), Errc::wrong_key);
}

namespace fs = std::filesystem;

constexpr std::string_view kMarker = "PLAINTEXT-MARKER";

bool has_marker(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.view().find(kMarker) != std::string::npos;
}

// The files in a directory that have the marker, and those without a name that this process has open.
std::set<std::string> marked_files(const std::string& directory) {
  std::set<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && has_marker(entry.path())) {
      out.insert(entry.path().extension() == ".pack" ? "pack" : entry.path().filename().string());
    }
  }
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    const std::string link = fs::read_symlink(entry.path(), closed).string();
    if (link.starts_with(directory) && link.ends_with(" (deleted)") && has_marker(entry.path())) {
      out.insert("spill");
    }
  }
  return out;
}

void mark_all(Region& region, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto* const data = static_cast<char*>(region.data());
  for (std::size_t at = 0; at < region.size_bytes(); at += 64) {
    const std::uint64_t noise = random();
    std::memcpy(data + at, kMarker.data(), kMarker.size());
    std::memcpy(data + at + kMarker.size(), &noise, sizeof noise);
  }
}

// What a region with more dirty pages than its limit leaves in files: while it works, after its
// commits, and after readers with working sets and shared pages.
std::set<std::string> marked_by_a_region(const std::string& directory, const StoreOptions& how) {
  Store store = Store::create(directory + "/s", how);
  RegionOptions options;
  options.capacity_bytes = 16u << 20;
  options.engine = Engine::sigsegv;
  options.memory_limit_bytes = 1u << 20;
  options.working_set = options.share = true;
  options.encoding = Encoding();
  options.encoding->compression = Encoding::Compression::none;
  std::set<std::string> out;
  {
    Region region = store.create_region("main", 8u << 20, options);
    mark_all(region, 1);
    out = marked_files(directory);
    region.commit();
    std::memcpy(static_cast<char*>(region.data()) + 32, kMarker.data(), kMarker.size());
    region.commit("a small one");
    out.merge(marked_files(directory));
    region.snapshot("kept", std::string(kMarker));
  }
  {
    Region version = store.open_version("kept", options);
    const auto* const data = static_cast<const char*>(version.data());
    for (std::size_t at = 0; at < version.size_bytes(); at += 4096) {
      EXPECT_EQ(std::memcmp(data + at, kMarker.data(), kMarker.size()), 0) << at;
    }
  }
  store.collect_garbage();
  out.merge(marked_files(directory));
  return out;
}

TEST_F(EncryptedStore, NoFileOfARegionHasPlainContent) {
  const std::string plain = directory_ / "plain", sealed = directory_ / "sealed";
  fs::create_directory(plain);
  fs::create_directory(sealed);
  EXPECT_EQ(marked_by_a_region(sealed, encrypted_), std::set<std::string>());
  EXPECT_EQ(marked_by_a_region(plain, StoreOptions()),
            (std::set<std::string>{"journal", "kept.ref", "pack", "spill"}));
}

}  // namespace
}  // namespace vellum::test
