// An attacker who reads all that a store leaves on a machine and at its remote, and looks for a
// million strings of its content.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
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

// All that is below one directory, and what this process has open without a name there.
class Machine {
 public:
  Machine(const SoughtStrings& strings, std::string directory)
      : strings_(strings), directory_(std::move(directory)) {
    fs::create_directory(directory_);
    fs::create_directory(directory_ + "/shared");
    ::setenv("VELLUM_SHARE_DIRECTORY", (directory_ + "/shared").c_str(), 1);
  }
  ~Machine() { ::unsetenv("VELLUM_SHARE_DIRECTORY"); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Looks now: the first two directories of each place where a string is.
  void look() {
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (!entry.is_regular_file() || !strings_.are_in(whole_file(entry.path()))) continue;
      const fs::path place = fs::relative(entry.path(), directory_);
      auto part = place.begin();
      std::string label = *part++;
      if (std::next(part) != place.end()) label += "/" + part->string();
      found_.insert(label);
    }
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
  const SoughtStrings& strings_;
  const std::string directory_;
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

void read_everywhere(Store& store, const SoughtStrings& strings, Machine& machine) {
  const std::string url = "file://" + (machine / "remote");
  store.add_remote("origin", url);
  store.push("origin");
  RemoteOptions cached;
  cached.cache_directory = machine / "cache";
  const Store there = Store::open(url, cached);
  CloneOptions lazy;
  lazy.lazy = true;
  Store::clone(url, machine / "lazy", lazy);
  Store::clone(url, machine / "clone");
  std::string bytes(strings.size_bytes(), '\0');
  for (const Store& from : {there, Store::open(machine / "lazy", cached), store}) {
    Region version = from.open_version("first", small_memory());
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

std::set<std::string> found_in_all_places(const std::string& directory, const StoreOptions& how) {
  const SoughtStrings strings;
  Machine machine(strings, directory);
  Store store = Store::create(machine / "store", how);
  write_versions(store, strings, machine);
  read_everywhere(store, strings, machine);
  move_to_tiers(store, machine);
  return machine.found();
}

TEST(Attacker, FindsNoneOfAMillionStrings) {
  const store::test::TempDirectory directory;
  StoreOptions encrypted;
  encrypted.encrypt = true;
  std::ofstream(directory.path("key")) << std::string(50, 'k');
  encrypted.key.key_file = directory.path("key");
  EXPECT_THAT(found_in_all_places(directory.path("plain"), StoreOptions()),
              testing::IsSupersetOf({"a file without a name", "archive", "cache/pieces",
                                     "clone/packs", "remote/pieces", "shared", "store/branches",
                                     "store/packs", "store/snapshots"}));
  set_key_source(encrypted.key);
  EXPECT_THAT(found_in_all_places(directory.path("encrypted"), encrypted), testing::IsEmpty());
  set_key_source(KeySource());
}

}  // namespace
}  // namespace vellum::remote::test
