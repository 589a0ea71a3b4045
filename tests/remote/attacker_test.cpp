// An attacker who reads all that a store leaves on a machine and at its remote, and looks for a
// million strings of its content.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include <vellum/key.hpp>
#include <vellum/store.hpp>

#include "store/support.hpp"

namespace vellum::remote::test {
namespace {

namespace fs = std::filesystem;

// Random strings of 16 bytes, and a search for them at every offset.
class SoughtStrings {
 public:
  static constexpr std::size_t kCount = 1'000'000, kBytes = 16;

  SoughtStrings() : content_(kCount * kBytes / sizeof(std::uint64_t)), filter_(1u << 24) {
    std::mt19937_64 random(46);
    starts_.reserve(kCount);
    for (std::uint64_t& word : content_) word = random();
    for (std::size_t i = 0; i < content_.size(); i += kBytes / sizeof(std::uint64_t)) {
      starts_.insert(content_[i]);
      filter_[content_[i] >> 40] = true;
    }
  }
  const char* data() const { return reinterpret_cast<const char*>(content_.data()); }
  std::size_t size_bytes() const { return kCount * kBytes; }
  std::string one(std::size_t i) const { return {data() + i * kBytes, kBytes}; }
  // A message is text.
  std::string one_as_text(std::size_t i) const {
    std::string out;
    for (const char c : one(i))
      out += static_cast<char>('a' + (static_cast<unsigned char>(c) % 26));
    return out;
  }

  bool are_in(const std::string& bytes) const {
    for (std::size_t at = 0; at + kBytes <= bytes.size(); ++at) {
      std::uint64_t start = 0;
      std::memcpy(&start, bytes.data() + at, sizeof start);
      if (filter_[start >> 40] && starts_.contains(start)) return true;
    }
    return bytes.find(one_as_text(7)) != std::string::npos;
  }

 private:
  std::vector<std::uint64_t> content_;
  std::vector<bool> filter_;
  std::unordered_set<std::uint64_t> starts_;
};

std::string whole_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// All that is below one directory, what this process has open without a name there, and the pages
// that readers share.
class Machine {
 public:
  Machine(const SoughtStrings& strings, std::string directory)
      : strings_(strings), directory_(std::move(directory)) {
    fs::create_directory(directory_);
    if (::mkdtemp(shared_) == nullptr) throw std::runtime_error("no directory in /dev/shm");
    ::setenv("VELLUM_SHARE_DIRECTORY", shared_, 1);
  }
  ~Machine() {
    ::unsetenv("VELLUM_SHARE_DIRECTORY");
    fs::remove_all(shared_);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Looks now: the first two directories of each place where a string is.
  void look() {
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (!entry.is_regular_file()) continue;
      const fs::path place = fs::relative(entry.path(), directory_);
      auto part = place.begin();
      std::string label = *part++;
      if (std::next(part) != place.end()) label += "/" + part->string();
      look_at(entry.path(), label);
    }
    for (const auto& entry : fs::directory_iterator(shared_)) look_at(entry.path(), "shared pages");
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code closed;
      const std::string link = fs::read_symlink(entry.path(), closed).string();
      if (link.starts_with(directory_) && link.ends_with(" (deleted)") &&
          strings_.are_in(whole_file(entry.path()))) {
        found_.insert("a file without a name");
      }
    }
  }
  std::string operator/(const std::string& name) const { return directory_ + "/" + name; }
  const std::set<std::string>& found() const { return found_; }

 private:
  // A file that has not changed since is not searched again.
  void look_at(const fs::path& path, const std::string& label) {
    if (found_.contains(label)) return;
    struct stat now{};
    if (::stat(path.c_str(), &now) != 0) return;
    const Seen seen{path, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
    if (label != "shared pages" && !seen_.insert(seen).second) return;
    if (strings_.are_in(whole_file(path))) found_.insert(label);
  }

  using Seen = std::tuple<std::string, off_t, time_t, long>;

  const SoughtStrings& strings_;
  const std::string directory_;
  char shared_[64] = "/dev/shm/vellum-attacker-XXXXXX";
  std::set<Seen> seen_;
  std::set<std::string> found_;
};

RegionOptions small_memory() {
  RegionOptions out;
  out.capacity_bytes = 32u << 20;
  out.engine = Engine::sigsegv;
  out.memory_limit_bytes = 2u << 20;
  out.working_set = out.share = true;
  out.encoding = Encoding();
  out.encoding->compression = Encoding::Compression::none;
  return out;
}

void write_versions(Store& store, const SoughtStrings& strings, Machine& machine) {
  const RegionOptions options = small_memory();
  Region region = store.create_region("main", strings.size_bytes(), options);
  std::memcpy(region.data(), strings.data(), strings.size_bytes());
  machine.look();
  region.commit();
  region.snapshot("first", strings.one_as_text(7));
  std::memcpy(static_cast<char*>(region.data()) + 4096, strings.one(9).data(), 16);
  region.commit(strings.one_as_text(7));
  machine.look();
}

void read_everywhere(Store& store, const SoughtStrings& strings, Machine& machine,
                     const AddRemoteOptions& how) {
  const std::string url = "file://" + (machine / "remote");
  store.add_remote("origin", url, how);
  store.push("origin");
  RemoteOptions cached;
  cached.cache_directory = machine / "cache";
  Store there = Store::open(url, cached);
  CloneOptions lazy;
  lazy.lazy = true;
  Store::clone(url, machine / "lazy", lazy);
  Store::clone(url, machine / "clone");
  std::string bytes(strings.size_bytes(), '\0');
  Store lazy_clone = Store::open(machine / "lazy", cached);
  for (Store* const from : {&there, &lazy_clone, &store}) {
    const Region version = from->open_version("first", small_memory());
    std::memcpy(bytes.data(), version.data(), bytes.size());
    EXPECT_EQ(std::memcmp(bytes.data(), strings.data(), bytes.size()), 0);
    machine.look();  // pages that readers share exist while one reads
  }
}

void move_to_tiers(Store& store, Machine& machine) {
  store.add_archive(machine / "archive");
  store.add_cache(machine / "tier");
  TierMove all;
  all.home_bytes = 0;
  store.move_packs(all);
  store.apply_tiers();
  store.collect_garbage();
  machine.look();
}

std::set<std::string> found_in_all_places(const SoughtStrings& strings,
                                          const std::string& directory, const StoreOptions& how,
                                          const AddRemoteOptions& remote = {}) {
  Machine machine(strings, directory);
  Store store = Store::create(machine / "store", how);
  write_versions(store, strings, machine);
  read_everywhere(store, strings, machine, remote);
  move_to_tiers(store, machine);
  return machine.found();
}

TEST(Attacker, FindsNoneOfAMillionStrings) {
  const SoughtStrings strings;
  const store::test::TempDirectory directory;
  StoreOptions plain, encrypted;
  plain.pack_bytes = encrypted.pack_bytes = 4u << 20;  // most are complete, and can be moved
  encrypted.encrypt = true;
  std::ofstream(directory.path("key")) << std::string(50, 'k');
  encrypted.key.key_file = directory.path("key");
  EXPECT_THAT(found_in_all_places(strings, directory.path("plain"), plain),
              testing::IsSupersetOf({"a file without a name", "archive", "cache/pieces",
                                     "clone/packs", "remote/pieces", "shared pages",
                                     "store/branches", "store/packs", "store/snapshots"}));
  set_key_source(encrypted.key);
  EXPECT_THAT(found_in_all_places(strings, directory.path("encrypted"), encrypted),
              testing::IsEmpty());
  set_key_source(KeySource());
}

// The disk is trusted, the bucket is not, and neither is a cache on another disk.
TEST(Attacker, FindsNothingAtTheEncryptedRemoteOfAPlainStore) {
  const SoughtStrings strings;
  const store::test::TempDirectory directory;
  StoreOptions plain;
  plain.pack_bytes = 4u << 20;
  AddRemoteOptions encrypted;
  encrypted.encrypt = true;
  std::ofstream(directory.path("key")) << std::string(50, 'k');
  encrypted.key.key_file = directory.path("key");
  set_key_source(encrypted.key);
  const auto found = found_in_all_places(strings, directory.path("m"), plain, encrypted);
  set_key_source(KeySource());
  EXPECT_THAT(found, testing::IsSupersetOf({"clone/packs", "store/packs", "store/snapshots"}));
  for (const std::string& place : found) {
    EXPECT_FALSE(place.starts_with("remote") || place.starts_with("cache")) << place;
  }
}

}  // namespace
}  // namespace vellum::remote::test
