// Records of pages and deltas that contain a SHA-256 of their content.
#include <gtest/gtest.h>

#include "base/bytes/sha256.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/packs/pack_scanner.hpp"

namespace vellum::store::test {
namespace {

using format::RecordType;

constexpr std::size_t kHashPages = 64;

class Hashes : public ::testing::Test {
 protected:
  void create(bool sha256) {
    format::Superblock options = small_options();
    options.sha256 = sha256;
    options.pack_bytes = 64u << 10;
    StoreDirectory::create(base::posix_fs(), path_, options)
        ->create_branch("main", kHashPages * kPageBytes, 0);
  }
  std::shared_ptr<StoreDirectory> open() const {
    return StoreDirectory::open(base::posix_fs(), path_);
  }

  // Writes whole pages directly into packs, then commits to the journal. These are checkpointed by
  // their own writer, and by one that has only the journal's frames.
  void write_all() {
    const auto store = open();
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < kHashPages; ++p) fill_text(model_, p, random_);
    commit(*writer, model_, true);
    for (int i = 0; i < 20; ++i) {
      model_.store64(random_() % kHashPages, 8 * (random_() % 512), random_());
      commit(*writer, model_, i % 7 == 6);
    }
    fill_text(model_, 3, random_);
    commit(*writer, model_, false);
    const auto frames = StoreDirectory::open(base::posix_fs(), path_)->read_branch("main");
    ASSERT_FALSE(frames.journal.commits.empty());
    copy_directory(path_, directory_.path("killed"));
    path_ = directory_.path("killed");
    const auto again = open();
    auto next = BranchWriter::open(*again, "main");
    model_.store64(5, 8, 77);
    commit(*next, model_, true);
    next->publish_snapshot("s", "");
  }

  // By type: records without a hash, and with one. Reading checks that each hash is right.
  struct Count {
    std::size_t without = 0, with = 0;
  };
  std::map<RecordType, Count> count() const {
    const auto store = open();
    std::map<RecordType, Count> out;
    for (const std::uint64_t pack : store->packs().list()) {
      const auto file = store->fs().open(store->packs().path_of(pack), base::OpenMode::read_only);
      PackScanner scanner(*file, pack, store->checksum_seed(), format::kPackHeaderBytes,
                          file->size_bytes());
      format::RecordHeader h;
      while (scanner.next(h)) {
        const auto record = load_record_at(*store, {pack, h.offset_bytes, h.tag()}, h.type);
        ++(record.header.has_hash ? out[h.type].with : out[h.type].without);
        if (!record.header.has_hash) continue;
        EXPECT_TRUE(std::ranges::equal(format::record_hash(record.bytes, record.header),
                                       base::sha256(record.raw)));
      }
    }
    return out;
  }
  void expect_all_hashed() const {
    const auto counts = count();
    for (const auto type : {RecordType::pages, RecordType::deltas}) {
      EXPECT_GT(counts.at(type).with, 0u);
      EXPECT_EQ(counts.at(type).without, 0u);
    }
    EXPECT_EQ(counts.at(RecordType::map_block).with, 0u);
    const auto store = open();
    expect_same(*open_version(*store, "main"), model_.bytes);
    EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
  }

  TempDirectory directory_;
  std::string path_ = directory_.path("store");
  Model model_{kHashPages};
  std::mt19937_64 random_{3};
};

TEST_F(Hashes, EveryBlockAndBatchHasAHash) {
  create(true);
  write_all();
  expect_all_hashed();
}

TEST_F(Hashes, NoRecordHasAHashUnlessRequested) {
  create(false);
  write_all();
  for (const auto& [type, counts] : count()) EXPECT_EQ(counts.with, 0u);
}

TEST_F(Hashes, HashesStayWhenAPackIsRewritten) {
  create(true);
  write_all();
  {
    const auto store = open();
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < kHashPages; p += 2) fill_text(model_, p, random_);
    commit(*writer, model_, true);
    commit(*writer, model_, true);
  }
  EXPECT_GT(collect_garbage(*open(), false, nullptr, 9).recompressed.packs, 0u);
  EXPECT_GT(translated_packs(*open()), 0u);
  expect_all_hashed();
}

// A record has other content with correct checksums: reading pages accepts it, verify does not.
TEST_F(Hashes, AWrongHashIsDamage) {
  create(true);
  const auto store = open();
  {
    auto writer = BranchWriter::open(*store, "main");
    auto commit = writer->begin();
    PageWrites writes;
    PageBlock block{{4, 5, 6, 7}, base::Compression::none, {}, {}, {}};
    block.stored.assign(4 * kPageBytes, std::byte{1});
    const auto other = base::sha256(std::vector<std::byte>(4 * kPageBytes, std::byte{2}));
    block.hash = {other.begin(), other.end()};
    writes.blocks.push_back(std::move(block));
    commit->add(std::move(writes));
    commit->finish({1, kHashPages * kPageBytes, 0, ""}, true);
  }
  std::fill_n(model_.page(4), 4 * kPageBytes, std::byte{1});
  expect_same(*open_version(*store, "main"), model_.bytes);
  EXPECT_TRUE(verify_store(*store, false, nullptr).damages.empty());
  const auto damages = verify_store(*store, true, nullptr).damages;
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_TRUE(contains(damages[0].reason, "SHA-256")) << damages[0].reason;
}

}  // namespace
}  // namespace vellum::store::test
