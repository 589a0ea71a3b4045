// Copies of packs in a cache: read first, never required, never trusted without verification.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/branch/checkpoint/dedup.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/pack_mover.hpp"
#include "store/gc/tier/tiers_fixture.hpp"

namespace vellum::store::test {
namespace {

namespace stdfs = std::filesystem;

// Counts the bytes of records that are read, by directory.
class ReadCountFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<CountedFile>(*this, ForwardingFs::open(path, mode));
  }
  std::uint64_t reads_in(const std::string& directory) {
    const std::lock_guard guard(mutex_);
    return reads_[directory];
  }
  void reset() {
    const std::lock_guard guard(mutex_);
    reads_.clear();
  }

 private:
  class CountedFile final : public vellum::test::ForwardingFile {
   public:
    CountedFile(ReadCountFs& fs, std::unique_ptr<base::File> real)
        : ForwardingFile(std::move(real)), fs_(fs) {}
    int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
      const std::lock_guard guard(fs_.mutex_);
      ++fs_.reads_[path().substr(0, path().rfind('/'))];
      return ForwardingFile::try_pread(out, at);
    }

   private:
    ReadCountFs& fs_;
  };
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> reads_;
};

class CacheTierTest : public TiersTest {
 protected:
  ReadCountFs counted{base::posix_fs()};
  // Reads everything. Returns the bytes of records for pages and page maps that were read from home
  // and from the cache.
  void read_all(std::uint64_t& from_home, std::uint64_t& from_cache) {
    const auto reader = StoreDirectory::open(counted, store->path());
    counted.reset();
    for (const auto& [name, bytes] : contents) expect_same(*open_version(*reader, name), bytes);
    from_home = counted.reads_in(home()) + counted.reads_in(archive);
    from_cache = counted.reads_in(cache);
  }
  void expect_all_from_home() {
    std::uint64_t from_home = 0, from_cache = 0;
    read_all(from_home, from_cache);
    EXPECT_GT(from_home, 0u);
    EXPECT_EQ(from_cache, 0u);
  }
};

TEST_F(CacheTierTest, IsLookedAtFirst) {
  make(6);
  expect_all_from_home();
  add_cache();
  expect_all_from_home();
  const TierReport report = apply();
  EXPECT_EQ(report.copies_made, packs_in(home()).size() - 1);
  EXPECT_EQ(report.copied_bytes, list_tiers(*fresh())[1].bytes);
  std::uint64_t from_home = 0, from_cache = 0;
  read_all(from_home, from_cache);
  EXPECT_GT(from_cache, from_home);
  EXPECT_EQ(apply().copies_made, 0u);
  // The same for packs in an archive: only unsettled records are read there.
  add_archive();
  EXPECT_EQ(move(true).packs_moved, report.copies_made);
  counted.reset();
  read_all(from_home, from_cache);
  EXPECT_GT(from_cache, counted.reads_in(archive));
  EXPECT_EQ(apply().copies_made, 0u);
  expect_all();
  remove_tier(*fresh(), cache);
  EXPECT_TRUE(stdfs::is_empty(cache));
  expect_all();
}

TEST_F(CacheTierTest, HasCopiesOfWhatNewVersionsNeed) {
  make(8, 100);
  add_cache(96u << 10);
  apply();
  const auto list = list_tiers(*fresh());
  EXPECT_LE(list[1].bytes, 96u << 10);
  EXPECT_GT(list[1].packs, 0u);
  const auto first = packs_in(cache);
  go_on("t0", kPages);
  go_on("t1", kPages);
  const TierReport next = apply();
  EXPECT_GT(next.copies_made, 0u);
  EXPECT_GT(next.copies_removed, 0u);
  EXPECT_LE(list_tiers(*fresh())[1].bytes, 96u << 10);
  EXPECT_NE(packs_in(cache), first);
  limit_cache(*fresh(), cache, 4096);
  apply();
  EXPECT_TRUE(packs_in(cache).empty());
  expect_all();
}

// Any of its files may vanish or change at any time.
TEST_F(CacheTierTest, DamageAndLossOfCopiesDoNothing) {
  make(5);
  add_cache();
  apply();
  const auto packs = packs_in(cache);
  ASSERT_GT(packs.size(), 3u);
  const auto early = fresh();
  const auto s1 = open_version(*early, "s1");
  // Every region of every copy, with files already open, and with newly opened ones.
  for (const std::uint64_t pack : packs) {
    const std::string file = file_in(cache, pack);
    const auto size = stdfs::file_size(file);
    for (std::uint64_t at = random() % 64; at < size; at += 64 + random() % 64) flip(file, at);
  }
  expect_same(*s1, contents.at("s1"));
  expect_same(*open_version(*early, "s3"), contents.at("s3"));
  expect_all();
  // The headers are intact, but nothing else.
  for (const std::uint64_t pack : packs) {
    const auto size = stdfs::file_size(file_in(home(), pack));
    stdfs::copy_file(file_in(home(), pack), file_in(cache, pack),
                     stdfs::copy_options::overwrite_existing);
    stdfs::resize_file(file_in(cache, pack), format::kPackHeaderBytes);
    stdfs::resize_file(file_in(cache, pack), size);
  }
  expect_all();
  stdfs::resize_file(file_in(cache, packs[0]), 10);
  stdfs::remove(file_in(cache, packs[1]));
  stdfs::create_directory(file_in(cache, packs[1]));
  stdfs::remove(file_in(cache, packs[2]));
  stdfs::create_symlink("/dev/zero", file_in(cache, packs[2]));
  expect_all();
  stdfs::remove(file_in(cache, packs[1]));
  stdfs::remove_all(cache);
  expect_same(*s1, contents.at("s1"));
  expect_all_from_home();
  gc();
  EXPECT_EQ(apply().copies_made, 0u);
  expect_all();
  // It is created again on demand, with its earlier id: another machine may have one with this id.
  const auto id = fresh()->packs().places().state()->tiers.directories[0].id;
  add_cache();
  EXPECT_EQ(fresh()->packs().places().state()->tiers.directories[0].id, id);
  EXPECT_EQ(apply().copies_made, packs.size());
  EXPECT_EQ(list_tiers(*fresh()).size(), 2u);
  expect_all();
}

// Every byte of one copy in turn, for a reader that has it open.
TEST_F(CacheTierTest, AnyByteOfACopy) {
  make(2, 10);
  add_cache();
  apply();
  const std::uint64_t pack = packs_in(cache).at(0);
  const std::string file = file_in(cache, pack);
  const auto size = stdfs::file_size(file);
  for (std::uint64_t at = 0; at < size; at += 1 + random() % 97) {
    flip(file, at);
    const auto reader = fresh();
    expect_same(*open_version(*reader, "s0"), contents.at("s0"));
    flip(file, at);
  }
}

TEST_F(CacheTierTest, StaleCopiesAreNotRead) {
  make(10);
  add_cache();
  apply();
  const auto early = fresh();
  for (const auto& [name, bytes] : contents) open_version(*early, name);
  for (int i = 0; i < 8; ++i) remove("s" + std::to_string(i));
  const auto stale = dir.path("stale");
  stdfs::copy(cache, stale);
  const GcReport report = gc(9);
  EXPECT_GT(report.recompressed.packs, 0u);
  EXPECT_GE(report.copies_removed, report.recompressed.packs);
  // As if gc had not processed them, for example another machine's cache.
  for (const auto& entry : stdfs::directory_iterator(stale)) {
    stdfs::copy(entry.path(), cache, stdfs::copy_options::skip_existing);
  }
  for (const std::uint64_t pack : packs_in(cache)) {
    if (!stdfs::exists(file_in(home(), pack))) continue;
    EXPECT_EQ(is_copy_current(*store, pack, cache), !is_translated(*store, pack));
  }
  expect_all();
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*early, name), bytes);
  EXPECT_GT(apply().copies_removed, 0u);
  std::uint64_t from_home = 0, from_cache = 0;
  read_all(from_home, from_cache);
  EXPECT_GT(from_cache, from_home);
  expect_all();
}

// Packs that exist only in a cache are removed ones: nothing may refer to them.
TEST_F(CacheTierTest, NoPageRefersToACopy) {
  make(4, 0);
  add_cache();
  apply();
  const auto bytes = contents.at("s0");
  // All of it is overwritten, and no version needs the old packs.
  rewrite("t");
  for (int i = 0; i < 4; ++i) remove("s" + std::to_string(i));
  const std::string stale = dir.path("stale");
  stdfs::copy(cache, stale);
  const auto packs = packs_in(home()).size();
  gc();
  EXPECT_LT(packs_in(home()).size(), packs);
  for (const auto& entry : stdfs::directory_iterator(stale)) {
    stdfs::copy(entry.path(), cache, stdfs::copy_options::skip_existing);
  }
  // The first content again, by a writer that searches for it.
  {
    auto writer = BranchWriter::open(*store, "main");
    Model now(kPages);
    now.bytes = contents.at("main");
    for (PageNumber p = 0; p < kPages; ++p) {
      std::memcpy(now.page(p), bytes.data() + p * kPageBytes, kPageBytes);
      now.touched.insert(p);
    }
    commit(*writer, now, true);
    name_head(*writer, now, "again");
  }
  stdfs::remove_all(cache);
  expect_all();
}

// Readers in threads while the cache is filled, emptied and removed.
TEST_F(CacheTierTest, ComesAndGoesBesideReaders) {
  make(5);
  add_archive();
  add_cache();
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto reader = StoreDirectory::open(base::posix_fs(), store->path());
        for (const auto& [name, bytes] : contents) {
          expect_same(*open_version(*reader, name), bytes);
        }
      }
    });
  }
  for (int round = 0; round < 12; ++round) {
    add_cache();
    apply();
    move(round % 2 == 0);
    if (round % 3 == 0) gc(round % 2);
    if (round % 3 == 1) stdfs::remove_all(cache);
    if (round % 3 == 2) remove_tier(*fresh(), cache);
  }
  stop = true;
  for (auto& t : readers) t.join();
  expect_all();
}

}  // namespace
}  // namespace vellum::store::test
