// The cache of decoded records: a record in use is not read repeatedly.
#include "store/packs/record/record_cache.hpp"

#include "base/bytes/mix64.hpp"
#include "store/packs/record/record_frames.hpp"
#include "store/support.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::store::test {
namespace {

// Counts how often page-ins read each record: map blocks, blocks of pages, deltas. A read that
// continues where the last one ended reads the rest of that record.
class CountingFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    return std::make_unique<CountingFile>(*this, ForwardingFs::open(path, mode));
  }
  std::map<std::uint64_t, std::size_t> loads;  // by offset; there is one pack
  std::uint64_t last_end = 0;

 private:
  class CountingFile final : public vellum::test::ForwardingFile {
   public:
    CountingFile(CountingFs& fs, std::unique_ptr<base::File> real)
        : ForwardingFile(std::move(real)), fs_(fs) {}
    int try_pread(std::span<std::byte> out, std::uint64_t at) const noexcept override {
      if (at != fs_.last_end) ++fs_.loads[at];
      fs_.last_end = at + out.size();
      return ForwardingFile::try_pread(out, at);
    }

   private:
    CountingFs& fs_;
  };
};

// More than `some` records were read, and few of them repeatedly.
void expect_read_once(const CountingFs& fs, std::size_t some) {
  std::size_t loads = 0;
  for (const auto& [offset, times] : fs.loads) loads += times;
  EXPECT_GT(fs.loads.size(), some);
  EXPECT_LT(static_cast<double>(loads), 1.1 * static_cast<double>(fs.loads.size()));
}

struct Shape {
  const char* name;
  std::size_t pages, checkpoints, pages_a_checkpoint;
};

class DeltasInUse : public testing::TestWithParam<Shape> {};

// Every page has deltas of many checkpoints, so every page-in needs records of many.
TEST_P(DeltasInUse, AScanReadsDeltasOnce) {
  const auto [name, pages, checkpoints, pages_a_checkpoint] = GetParam();
  TempDirectory directory;
  Model model(pages);
  {
    const auto store =
        StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
    store->create_branch("main", pages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "main");
    std::mt19937_64 random(6);
    for (PageNumber p = 0; p < pages; ++p) model.fill_noise(p, random);
    commit(*writer, model, true);
    for (std::size_t checkpoint = 0; checkpoint < checkpoints; ++checkpoint) {
      for (std::size_t i = 0; i < pages_a_checkpoint; ++i) {
        model.store64(random() % pages, random() % 512 * 8, random());
      }
      commit(*writer, model, true);
    }
  }
  CountingFs fs(base::posix_fs());
  const auto store = StoreDirectory::open(fs, directory.path("s"));
  const auto source = open_version(*store, "main");
  fs.loads.clear();
  expect_same(*source, model.bytes);
  expect_read_once(fs, checkpoints);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, DeltasInUse,
                         testing::Values(Shape{"OfFewPages", 2048, 240, 64},
                                         Shape{"OfManyPages", 8192, 60, 2048}),
                         [](const auto& shape) { return std::string(shape.param.name); });

// Every page-in needs pages of many grown blocks, because each commit wrote pages throughout the
// region.
TEST(RecordCache, KeepsGrownBlocksThatAScanNeedsAgain) {
  constexpr std::size_t kCommits = 48, kBlockPages = 64, kPages = kCommits * kBlockPages;
  TempDirectory directory;
  Model model(kPages);
  {
    const auto store =
        StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
    store->create_branch("main", kPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "main");
    for (std::size_t c = 0; c < kCommits; ++c) {
      for (PageNumber p = c; p < kPages; p += kCommits) {
        for (std::size_t i = 0; i < kPageBytes; i += 8) model.store64(p, i, p * kPageBytes + i);
      }
      commit(*writer, model, true, kBlockPages);
    }
  }
  CountingFs fs(base::posix_fs());
  const auto store = StoreDirectory::open(fs, directory.path("s"));
  const auto source = open_version(*store, "main");
  RecordCache::View view;
  ReadFailure failure;
  ASSERT_TRUE(store->records().get(
      {source->chain(kPages - 1).back().record, format::RecordType::pages}, view, failure));
  ASSERT_EQ(view.header().items, kBlockPages);
  view.release();
  fs.loads.clear();
  expect_same(*source, model.bytes);
  expect_read_once(fs, kCommits);
}

// All pages of a block at once need no frame; a frame that holds the block serves them, too.
TEST(RecordCache, AWholeBlockIsDecodedIntoTheCallersBuffer) {
  constexpr std::size_t kPages = 64;
  TempDirectory directory;
  Model model(kPages);
  {
    const auto store =
        StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
    store->create_branch("main", kPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "main");
    std::mt19937_64 random(6);
    for (PageNumber p = 0; p < kPages; ++p) model.fill(p, random);
    commit(*writer, model, true);
  }
  const auto store = StoreDirectory::open(base::posix_fs(), directory.path("s"));
  const auto source = open_version(*store, "main");
  const format::MapEntry base = source->chain(0).back();
  ASSERT_EQ(base.kind, format::PageKind::base);
  RecordCache::View block;
  ReadFailure failure;
  ASSERT_TRUE(store->records().get({base.record, format::RecordType::pages}, block, failure));
  const std::size_t pages = block.header().items;
  ASSERT_GE(pages, 4U);

  const auto fresh = StoreDirectory::open(base::posix_fs(), directory.path("s"));
  const auto keeps_packs_open = open_version(*fresh, "main");
  RecordCache::View view;  // releases its frame before `fresh` is destroyed
  std::vector<std::byte> out(pages * kPageBytes);
  const auto get = [&](std::size_t direct_pages) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return fresh->records().get(
        {base.record, format::RecordType::pages, {std::span(out).first(direct_pages * kPageBytes)}},
        view, failure);
  };
  const auto is_block = [&](const std::byte* content) {
    return std::memcmp(content, model.page(0), pages * kPageBytes) == 0;
  };
  for (std::uint32_t slot = 0; slot < pages; ++slot) {
    std::vector<std::byte> page(kPageBytes);
    ASSERT_TRUE(fresh->records().get({base.record, format::RecordType::pages, {page, slot, true}},
                                     view, failure));
    EXPECT_TRUE(view.empty());
    EXPECT_EQ(std::memcmp(page.data(), model.page(slot), kPageBytes), 0) << slot;
  }
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(get(pages));
    EXPECT_TRUE(view.empty());
    EXPECT_TRUE(is_block(out.data()));
  }
  ASSERT_TRUE(get(pages - 1));
  ASSERT_FALSE(view.empty());
  EXPECT_TRUE(is_block(view.raw().data()));
  ASSERT_TRUE(get(pages));
  ASSERT_FALSE(view.empty()) << "the block was read again";
  EXPECT_TRUE(is_block(view.raw().data()));
}

// The records fill two thirds of a class's frames, in any order of fingerprints.
TEST(FrameClass, RecordsThatFitStay) {
  constexpr std::size_t kFrames = 360, kRecords = 240;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    FrameClass frames;
    frames.make({}, kFrames);
    const auto fingerprint = [&](std::size_t record) {
      return base::mix64(seed << 32 | record) | 1;
    };
    std::size_t loads = 0;
    for (std::size_t use = 0; use < 10 * kRecords; ++use) {
      CacheFrame& frame = frames.pick(fingerprint(use % kRecords));
      if (frame.fingerprint.load() != fingerprint(use % kRecords)) ++loads;
      frame.fingerprint.store(fingerprint(use % kRecords));
      frames.touch(frame);
    }
    EXPECT_LE(loads, kRecords + kRecords / 20) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vellum::store::test
