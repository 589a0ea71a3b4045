// Pages with long chains of deltas.
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/check/check.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kChainPages = 64;

class Chains : public ::testing::Test {
 protected:
  Chains() {
    store->create_branch("main", kChainPages * kPageBytes, 0);
    writer = BranchWriter::open(*store, "main");
  }
  // A writer without the chains in memory.
  void open_again() {
    writer.reset();
    writer = BranchWriter::open(*store, "main");
  }

  TempDirectory directory;
  FaultFs fs{base::posix_fs()};
  const std::shared_ptr<StoreDirectory> store =
      StoreDirectory::create(fs, directory.path("s"), small_options());
  std::unique_ptr<BranchWriter> writer;
  Model model{kChainPages};
};

// Each page has the maximum number of deltas. Reading a few such pages at once needs more memory
// than the fault handler has, so it reads in smaller steps.
TEST_F(Chains, LongestChainsOfManyPagesAreReadAtOnce) {
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
TEST_F(Chains, ChainsOnZeroPagesNeedNoBase) {
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

// The committed pages that a commit has in memory.
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

// Words change and change back: in the end, all were written, and few differ from the base.
TEST_F(Chains, APageWhoseWordsChangeBackKeepsItsBase) {
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
  EXPECT_EQ(open_version(*store, "main")->chain(0).back(), base) << "the page was stored again";
  expect_same(*open_version(*store, "main"), model.bytes);
}

// Pages with full chains have changed too much, and never change back. After some comparisons
// without success, they are stored whole without a comparison.
TEST_F(Chains, PagesThatChangeTooMuchAreStoredWhole) {
  std::mt19937_64 random(9);
  for (PageNumber p = 0; p < kChainPages; ++p) model.fill(p, random);
  checkpoint_from_memory(*writer, model);
  for (int checkpoint = 1; checkpoint <= 8 * (kMaxDeltaDepth + 1); ++checkpoint) {
    for (PageNumber p = 0; p < kChainPages; ++p) {
      for (int i = 0; i < 30; ++i) model.store64(p, 8 * (random() % 512), random());
    }
    checkpoint_from_memory(*writer, model);
    const auto head = open_version(*store, "main");
    expect_same(*head, model.bytes);
    const std::size_t deltas = static_cast<std::size_t>(checkpoint) % (kMaxDeltaDepth + 1);
    for (PageNumber p = 0; p < kChainPages; ++p) ASSERT_EQ(head->chain(p).size(), 1 + deltas) << p;
  }
  EXPECT_TRUE(verify_store(*store, true, nullptr).damages.empty());
}

// A failed checkpoint compared a page with its base while a byte was equal. In the stored version,
// and in later ones, the byte differs, and no later delta contains it.
TEST_F(Chains, TheComparisonOfAFailedCheckpointIsNotUsed) {
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

// Full chains on bases of every kind, in succession: by writers with the chains in memory and by
// one that reads them from the store; with and without the pages in memory, and after failed
// checkpoints.
TEST_F(Chains, ChainsOnSuccessiveBasesAreRead) {
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
        Model failed = model;  // with other changes, which are never committed
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

const format::MapEntry kBase{5, 1, 3, format::PageKind::base, 0, {1, 4096, 7}};

// A delta of the bytes at these offsets on each of the pages.
format::DeltaBatch deltas_of(std::initializer_list<PageNumber> pages,
                             std::initializer_list<std::uint16_t> offsets) {
  format::DeltaBatch out;
  std::vector<format::DeltaSpan> spans;
  for (const std::uint16_t offset : offsets) spans.push_back({offset, 1});
  const std::vector<std::byte> bytes(spans.size(), std::byte{1});
  for (const PageNumber page : pages) out.add(page, spans, bytes);
  return out;
}

// The known offsets that the newest deltas of page 5 change; far enough apart not to be merged.
struct Touched {
  explicit Touched(const ChangedSpans& changed, std::size_t deltas, PageNumber page = 5) {
    format::DeltaComposer composer;
    known = changed.touch(page, deltas, composer, base);
    if (!known) return;
    const std::vector<std::byte> content(kPageBytes);
    format::DeltaBatch out;
    composer.append_to(out, page, content.data());
    for (const auto& span : out.spans_of(out.pages()[0])) offsets.push_back(span.offset_bytes);
  }
  bool known = false;
  std::optional<format::MapEntry> base;
  std::vector<std::uint16_t> offsets;
};

using Offsets = std::vector<std::uint16_t>;

TEST(ChangedSpansOf, TheNewestDeltasOfAPageAreRecorded) {
  ChangedSpans changed;
  EXPECT_FALSE(Touched(changed, 1).known);
  changed.add(deltas_of({4, 5}, {100}));
  changed.add({});
  changed.add(deltas_of({3, 6}, {200}));
  changed.add(deltas_of({5}, {300, 400}));
  changed.add(deltas_of({5, 6}, {500}));
  EXPECT_EQ(Touched(changed, 1).offsets, Offsets{500});
  EXPECT_EQ(Touched(changed, 2).offsets, (Offsets{300, 400, 500}));
  EXPECT_EQ(Touched(changed, 3).offsets, (Offsets{100, 300, 400, 500}));
  EXPECT_FALSE(Touched(changed, 3).base.has_value());
  EXPECT_FALSE(Touched(changed, 4).known) << "the older delta is unknown";
  EXPECT_EQ(Touched(changed, 2, 6).offsets, (Offsets{200, 500}));
  EXPECT_FALSE(Touched(changed, 1, 7).known);
  changed.clear();
  EXPECT_FALSE(Touched(changed, 1).known);
  EXPECT_EQ(changed.bytes(), 0u);
}

// A base is returned only if the chain starts with the delta that was written with it.
TEST(ChangedSpansOf, ARestartedChainHasNoOldBase) {
  ChangedSpans changed;
  changed.add(deltas_of({5}, {100}));
  changed.add(deltas_of({5}, {200}), {kBase});
  EXPECT_EQ(Touched(changed, 1).base, kBase);
  changed.add(deltas_of({5}, {300}));
  EXPECT_FALSE(Touched(changed, 1).base.has_value());
  EXPECT_EQ(Touched(changed, 2).base, kBase);
  EXPECT_EQ(Touched(changed, 2).offsets, (Offsets{200, 300}));
  EXPECT_FALSE(Touched(changed, 3).base.has_value());
}

TEST(ChangedSpansOf, TheOldestSpansAreForgotten) {
  ChangedSpans changed(1u << 20);
  changed.add(deltas_of({5}, {100}));
  std::size_t most = 0, batches = 1;
  for (; Touched(changed, 1).known; ++batches) {
    ASSERT_LT(batches, 10'000u);
    format::DeltaBatch many;
    const std::vector<format::DeltaSpan> spans(8, {8, 1});
    const std::vector<std::byte> bytes(8);
    for (PageNumber p = 100; p < 400; ++p) many.add(p, spans, bytes);
    changed.add(std::move(many));
    most = std::max(most, changed.bytes());
  }
  EXPECT_LE(most, 1u << 20);
  EXPECT_GE(most, 900u << 10);
  EXPECT_TRUE(Touched(changed, 1, 200).known);
  // The number of batches is bounded, too.
  for (std::size_t i = 0; i < ChangedSpans::kMaxBatches; ++i) changed.add(deltas_of({5}, {100}));
  EXPECT_FALSE(Touched(changed, 1, 200).known);
  EXPECT_TRUE(Touched(changed, ChangedSpans::kMaxBatches).known);
}

// The comparison with the base continues while it succeeds, and restarts later.
TEST(RebaseSamplerOf, ComparesPagesThatChangeBackAndSamplesOthers) {
  RebaseSampler sampler;
  const auto compared = [&](bool cheap) {
    int n = 0;
    for (PageNumber page = 0; page < 4096; ++page) {
      if (!sampler.worth_comparing(page)) continue;
      sampler.note_compared(cheap);
      ++n;
    }
    return n;
  };
  EXPECT_EQ(compared(true), 4096);
  const int in_vain = compared(false) + compared(false);
  EXPECT_GT(in_vain, 2 * 256);
  EXPECT_LT(in_vain, 2048);
  EXPECT_EQ(compared(false), 256) << "one in sixteen";
  EXPECT_GT(compared(true), 256);
  EXPECT_EQ(compared(true), 4096);
}

}  // namespace
}  // namespace vellum::store::test
