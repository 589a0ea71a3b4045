// Pages that stand on long chains of deltas.
#include "fault_fs.hpp"
#include "store/check/verify.hpp"
#include "store/checkpoint/checkpoint.hpp"
#include "support.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kChainPages = 64;

class Chains : public ::testing::Test {
 protected:
  Chains() {
    store->create_branch("main", kChainPages * kPageBytes, 0);
    writer = BranchWriter::open(*store, "main");
  }
  // A writer that knows nothing of the chains.
  void open_again() {
    writer.reset();
    writer = BranchWriter::open(*store, "main");
  }

  TempDirectory directory;
  FaultFs fs{base::posix_fs()};
  const std::shared_ptr<StoreCore> store =
      StoreCore::create(fs, directory.path("s"), small_options());
  std::unique_ptr<BranchWriter> writer;
  Model model{kChainPages};
};

// As many deltas on each page as a checkpoint allows, and then some: reading a few of them side by
// side needs more room than the fault handler has, and goes on in smaller steps.
TEST_F(Chains, TheLongestOnManyPagesAtOnce) {
  std::mt19937_64 random(3);
  for (PageNumber p = 0; p < kChainPages; ++p) model.fill(p, random);
  commit(*writer, model, true);
  std::size_t longest = 0;
  for (int checkpoint = 0; checkpoint < 2 * kMaxDeltaDepth; ++checkpoint) {
    for (PageNumber p = 0; p < kChainPages; ++p) {
      model.store64(p, 8 * static_cast<std::size_t>(checkpoint), random());
    }
    commit(*writer, model, true);
    const auto source = open_version(*store, "main");
    std::size_t deltas = 0;
    for (PageNumber p = 0; p < 16; ++p) deltas += source->chain(p).size() - 1;
    longest = std::max(longest, deltas);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{16}, kChainPages}) {
      expect_same(*source, model.bytes, step);
    }
  }
  EXPECT_EQ(longest, 16u * kMaxDeltaDepth);
  EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
}

// A page that grows by small stores on a page of zeros has no base at all.
TEST_F(Chains, OnZeros) {
  std::mt19937_64 random(4);
  for (int checkpoint = 0; checkpoint < 3 * kMaxDeltaDepth; ++checkpoint) {
    for (PageNumber p = 0; p < kChainPages; p += 3) {
      model.store64(p, 8 * static_cast<std::size_t>(checkpoint), random());
    }
    commit(*writer, model, true);
    expect_same(*open_version(*store, "main"), model.bytes);
  }
  EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
}

// What a commit has in memory.
class PagesInMemory final : public CommittedPages {
 public:
  explicit PagesInMemory(const Model& model) : model_(model) {}
  bool copy_page(PageNumber page, std::byte* out) const override {
    if (out != nullptr) std::memcpy(out, model_.page(page), kPageBytes);
    return true;
  }

 private:
  const Model& model_;
};

void checkpoint_from_memory(BranchWriter& writer, Model& model) {
  base::Compressor compressor;
  auto c = writer.begin();
  c->add(model.take(4, compressor));
  const PagesInMemory committed(model);
  c->finish(meta_for(model), true, &committed);
}

// Of words that change and change back, all have been stored to in the end, and few differ.
TEST_F(Chains, OfWordsThatChangeBackStayCheap) {
  std::mt19937_64 random(7);
  for (std::size_t at = 0; at < kPageBytes; at += 8) model.store64(0, at, random());
  checkpoint_from_memory(*writer, model);
  const auto before = model.bytes;
  const auto base = open_version(*store, "main")->chain(0).back();
  for (int checkpoint = 0; checkpoint < 8 * kMaxDeltaDepth; ++checkpoint) {
    std::memcpy(model.page(0), before.data(), kPageBytes);
    for (int i = 0; i < 24; ++i) model.store64(0, 8 * (random() % 512), random());
    checkpoint_from_memory(*writer, model);
  }
  EXPECT_EQ(open_version(*store, "main")->chain(0).back(), base) << "it has not been stored again";
  expect_same(*open_version(*store, "main"), model.bytes);
}

// A failed checkpoint has compared a page with its base when a byte was as there. In the store, and
// again later, it is another: no delta since tells of it.
TEST_F(Chains, AFailedCheckpointTeachesNothing) {
  std::mt19937_64 random(8);
  std::uint64_t word_of_base = 0;
  for (PageNumber p = 0; p < kChainPages; ++p) model.fill(p, random);
  checkpoint_from_memory(*writer, model);
  std::memcpy(&word_of_base, model.page(0), sizeof word_of_base);
  model.store64(0, 0, random());
  checkpoint_from_memory(*writer, model);
  open_again();
  for (int checkpoint = 1; checkpoint < kMaxDeltaDepth; ++checkpoint) {
    model.store64(0, 8 * static_cast<std::size_t>(checkpoint), random());
    checkpoint_from_memory(*writer, model);
  }
  ASSERT_EQ(open_version(*store, "main")->chain(0).size(), 1u + kMaxDeltaDepth);
  Model failed = model;
  failed.store64(0, 0, word_of_base);
  fs.fail_nth(Call::write, 1, Errc::no_space);
  EXPECT_THROW(checkpoint_from_memory(*writer, failed), Error);
  fs.heal();
  model.store64(0, 800, random());
  checkpoint_from_memory(*writer, model);
  EXPECT_EQ(open_version(*store, "main")->chain(0).size(), 2u);
  expect_same(*open_version(*store, "main"), model.bytes);
}

// Full chains on bases of every kind, one after the other, by writers that know the chains and by
// one that has found them; with the pages in memory, without them, and after failed checkpoints.
TEST_F(Chains, OnOneBaseAfterTheOther) {
  std::mt19937_64 random(6);
  for (int base = 0; base < 5; ++base) {
    for (PageNumber p = 0; p < kChainPages; ++p) {
      if ((p + static_cast<PageNumber>(base)) % 3 == 0) {
        model.zero(p);
      } else {
        model.fill(p, random);
      }
    }
    checkpoint_from_memory(*writer, model);
    for (int commits = 0; commits < 2 * kMaxDeltaDepth + 3; ++commits) {
      for (PageNumber p = 0; p < kChainPages; ++p) {
        if (random() % 8 != 0) model.store64(p, 8 * (random() % 32), random());
      }
      if (commits % 3 == 0) commit(*writer, model, false);
      for (PageNumber p = 0; p < kChainPages; p += 2) model.store64(p, 8 * (random() % 512), 1);
      if (random() % 4 == 0) {
        Model failed = model;  // with other changes, which will never have been
        for (PageNumber p = 0; p < kChainPages; ++p) failed.store64(p, 8 * (random() % 512), 2);
        if (random() % 2 == 0) failed.fill(random() % kChainPages, random);
        fs.fail_nth(Call::write, 1, Errc::no_space);
        EXPECT_THROW(checkpoint_from_memory(*writer, failed), Error);
        fs.heal();
      }
      if (random() % 4 == 0) {
        commit(*writer, model, true);
      } else {
        checkpoint_from_memory(*writer, model);
      }
      expect_same(*open_version(*store, "main"), model.bytes);
      if (base != 2 || commits != kMaxDeltaDepth / 2) continue;
      open_again();
    }
  }
  EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
}

using Spans = std::vector<format::DeltaSpan>;
const Spans kFirst = {{8, 8}}, kSecond = {{0, 4}, {100, 2}};
const format::MapEntry kBase{5, 1, 3, format::PageKind::base, 0, {1, 4096, 7}};
const format::MapEntry kOther{5, 1, 0, format::PageKind::base, 0, {2, 4096, 9}};

TEST(ChangedSpansOf, APage) {
  ChangedSpans changed;
  changed.extend(5, kSecond);
  EXPECT_EQ(changed.find(5), nullptr) << "the delta below is not known";
  changed.begin(kBase, kFirst);
  changed.extend(5, kSecond);
  changed.extend(6, kSecond);
  ASSERT_NE(changed.find(5), nullptr);
  ASSERT_EQ(changed.find(5)->spans.size(), 3u);
  EXPECT_EQ(changed.find(5)->spans[2].offset_bytes, 100u);
  EXPECT_EQ(changed.find(5)->base, kBase);
  changed.begin(kOther, kSecond);
  ASSERT_NE(changed.find(5), nullptr);
  EXPECT_EQ(changed.find(5)->spans.size(), 2u);
  EXPECT_EQ(changed.find(5)->base, kOther);
  changed.clear();
  EXPECT_EQ(changed.find(5), nullptr);
}

TEST(ChangedSpansOf, PagesThatGetANewBaseAreForgotten) {
  ChangedSpans changed;
  const std::size_t empty = changed.bytes();
  for (PageNumber p = 4; p < 9; ++p) {
    format::MapEntry base = kBase;
    base.page = p;
    changed.begin(base, kSecond);
  }
  const format::MapEntry delta{5, 1, 0, format::PageKind::delta, 1, {1, 8192, 9}};
  const format::MapEntry block{6, 2, 0, format::PageKind::base, 0, {1, 9000, 1}};
  const format::MapEntry zeros{8, 10, 0, format::PageKind::zero, 0, {}};
  const format::MapEntry written[] = {delta, kBase, block, zeros};
  changed.update(written);
  EXPECT_NE(changed.find(4), nullptr);
  EXPECT_NE(changed.find(5), nullptr) << "its delta stands on the base beside it";
  for (PageNumber p = 6; p < 9; ++p) EXPECT_EQ(changed.find(p), nullptr) << p;
  const format::MapEntry all{0, 100, 0, format::PageKind::zero, 0, {}};
  changed.update({&all, 1});
  EXPECT_EQ(changed.bytes(), empty);
}

// With few spans a page it is the pages that take the memory; with many, the spans.
TEST(ChangedSpansOf, TooManyPagesOrSpans) {
  ChangedSpans changed(1u << 20);
  std::size_t most = 0, times_anew = 0;
  const auto note = [&](const auto& body) {
    const std::size_t before = changed.bytes();
    body();
    most = std::max(most, changed.bytes());
    times_anew += changed.bytes() < before;
  };
  for (PageNumber p = 0; p < 50'000; ++p) {
    note([&] { changed.begin({p, 1, 0, format::PageKind::base, 0, {1, 4096, 7}}, kFirst); });
  }
  EXPECT_GE(times_anew, 5u);
  times_anew = 0;
  changed.begin(kBase, kFirst);
  for (int i = 0; i < 300'000; ++i) note([&] { changed.extend(5, kSecond); });
  EXPECT_EQ(times_anew, 1u);
  EXPECT_EQ(changed.find(5), nullptr) << "without its beginning it is not known";
  EXPECT_LE(most, (1u << 20) + 8);
  EXPECT_GE(most, 900u << 10);
}

}  // namespace
}  // namespace vellum::store::test
