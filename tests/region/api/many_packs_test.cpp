// A store of more packs than the process may have descriptors: everything works, and a call that
// fails for want of descriptors reports no damage.
#include <fcntl.h>
#include <sys/resource.h>

#include <random>

#include "store/catalog/store_directory.hpp"
#include "support/child.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kManyPacksPages = 1200;
constexpr rlim_t kDescriptors = 256;

void limit_descriptors(rlim_t most) {
  rlimit limit{};
  require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = most;
  require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

// The numbers repeat nowhere, so that a page is a record, and a record is a pack.
void fill(const Region& region, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint64_t at = 0; at < kManyPacksPages * kPage; at += 8) word_at(region, at) = random();
}
void require_filled(const std::byte* bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint64_t at = 0; at < kManyPacksPages * kPage; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    require(word == random(), "byte " + std::to_string(at) + " is what was stored");
  }
}

class ManyPacks : public EngineTest {
 protected:
  RegionOptions options() const {
    RegionOptions o;
    o.engine = GetParam();
    return o;
  }
  // Packs of a page each; smaller than StoreOptions allows.
  void make() const {
    format::Superblock superblock;
    superblock.pack_bytes = format::kMinPackBytes;
    superblock.block_bytes = format::kMinBlockBytes;
    superblock.grow_blocks = false;
    store::StoreDirectory::create(base::posix_fs(), path_, superblock);
    Store store = Store::open(path_);
    Region region = store.create_region("main", kManyPacksPages * kPage, options());
    fill(region, 1);
    region.snapshot("first");
    require(store.stat().packs > kManyPacksPages, "there is a pack for each page");
  }
  void use() const;

  TempDirectory directory_{memory_directory()};  // a pack is flushed when it is sealed
  const std::string path_ = directory_ / "store";
};

// Each has a Store of its own, so that none finds packs open already.
void ManyPacks::use() const {
  {
    Store store = Store::open(path_);
    Region region = store.open_region("main", options());
    require_filled(bytes_of(region), 1);
    word_at(region, 0) ^= 1;
    region.commit();
    word_at(region, 0) ^= 1;
    // The other half equals the store, and is read from it.
    std::memcpy(bytes_of(region), bytes_of(region) + kManyPacksPages / 2 * kPage,
                kManyPacksPages / 2 * kPage);
    region.commit();
    fill(region, 2);
    region.snapshot("second");
    require_filled(bytes_of(region), 2);
  }
  for (const auto& [name, seed] : {std::pair("first", 1U), std::pair("second", 2U)}) {
    Store store = Store::open(path_);
    require_filled(bytes_of(store.open_version(name, options())), seed);
    require_filled(content_of(store, name).data(), seed);
    store.export_file(name, directory_ / name);
  }
  Store store = Store::open(path_);
  std::uint64_t pages = 0;
  const auto totals = store.diff("first", "second", [&](const ByteRange&) { ++pages; });
  require(totals.pages_different == kManyPacksPages, "each page differs");
  require(Store::open(path_).stat().packs > 2 * kManyPacksPages, "stat");
  const auto report = Store::open(path_).verify({.read_data = true});
  require(report.damages.empty(), report.damages.empty() ? "" : report.damages[0].reason);
  store.remove_snapshot("first");
  require(store.collect_garbage().packs > 2 * kManyPacksPages, "gc has looked at all packs");
  require_filled(content_of(Store::open(path_), "second").data(), 2);
  require(store.verify({.read_data = true}).damages.empty(), "no damage after gc");
}

TEST_P(ManyPacks, AllCallsWorkWithFewDescriptors) {
  const auto end = run_child([&] {
    limit_descriptors(kDescriptors);
    make();
    use();
  });
  EXPECT_CHILD_EXIT(end, 0);
}

// Recompression gives packs other files while versions are open.
TEST_P(ManyPacks, PacksThatAreReplacedStayReadable) {
  const auto end = run_child([&] {
    limit_descriptors(kDescriptors);
    make();
    Store store = Store::open(path_);
    Region old = store.open_version("first", options());
    GcOptions gc;
    gc.recompress_level = 3;
    Store::open(path_).collect_garbage(gc);
    require_filled(bytes_of(old), 1);
    require_filled(content_of(store, "first").data(), 1);
  });
  EXPECT_CHILD_EXIT(end, 0);
}

// The share of descriptors that packs may have follows the limit.
TEST_P(ManyPacks, AProgramMayLowerItsLimitOfDescriptors) {
  const auto end = run_child([&] {
    make();
    rlimit limit{};
    require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit_descriptors(std::min<rlim_t>(limit.rlim_max, 8192));
    Store store = Store::open(path_);
    limit_descriptors(kDescriptors);
    require(store.stat().packs > kManyPacksPages, "stat");
    require(store.verify({.read_data = true}).damages.empty(), "verify");
    require_filled(content_of(store, "first").data(), 1);
  });
  EXPECT_CHILD_EXIT(end, 0);
}

VELLUM_BOTH_ENGINES(ManyPacks);

// A program that has used up its descriptors gets that error, and nothing is reported corrupted. A
// sanitizer wants descriptors of its own, so this does not run under one.
TEST(NoDescriptorsNoSanitizer, MissingDescriptorsAreNoDamage) {
  TempDirectory directory;
  const std::string path = directory / "store";
  {
    Store store = Store::create(path);
    Region region = store.create_region("main", kMiB, {});
    for (std::uint64_t at = 0; at < kMiB; at += 8) word_at(region, at) = at * at;
    region.snapshot("s");
  }
  const auto body = [&] {
    Store store = Store::open(path);
    for (const std::uint64_t left : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u, 12u}) {
      limit_descriptors(1024);
      std::vector<int> taken;
      for (int fd = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
      for (std::uint64_t i = 0; i < left; ++i) {
        close(taken.back());
        taken.pop_back();
      }
      const auto no_damage = [](const std::function<void()>& call) {
        try {
          call();
        } catch (const Error& e) {
          require(e.code() == Errc::out_of_memory, e.what());
        }
      };
      no_damage([&] { require(store.verify({.read_data = true}).damages.empty(), "no damage"); });
      no_damage([&] {
        require(Store::open(path).verify({.read_data = true}).damages.empty(), "no damage");
      });
      no_damage([&] { Store::open(path).stat(); });
      no_damage([&] { Store::open(path).collect_garbage(); });
      no_damage([&] { content_of(Store::open(path), "s"); });
      for (const int fd : taken) close(fd);
    }
    require(store.verify({.read_data = true}).damages.empty(), "no damage when they are back");
  };
  const auto end = run_child(body);
  EXPECT_CHILD_EXIT(end, 0);
}

}  // namespace
}  // namespace vellum::test
