// The signer's shortcuts: pages in memory, and tree pages that it keeps.
#include <filesystem>

#include "store/signature/signing_fixture.hpp"

namespace vellum::store::test {
namespace {

// The pages of a model that a region would have in memory: all, or all but one.
class ModelPages final : public CommittedPages {
 public:
  explicit ModelPages(const Model& model, PageNumber missing = UINT64_MAX)
      : model_(model), missing_(missing) {}
  bool copy_page(PageNumber page, std::byte* out) const override {
    EXPECT_LT(page, model_.pages());  // not those of the tree
    if (page == missing_) return false;
    if (out != nullptr) std::memcpy(out, model_.page(page), kPageBytes);
    return true;
  }

 private:
  const Model& model_;
  const PageNumber missing_;
};

TEST_F(Signing, PagesInMemoryGiveTheSameTree) {
  Model model(40);
  begin(model.pages());
  for (int i = 0; i < 40; ++i) {
    if (i % 6 == 5) model.grow(model.pages() + random_() % 300 + 1);
    for (auto n = random_() % 3; n > 0; --n) {
      change(model, random_() % 10);
      commit(*writer_, model, random_() % 2 == 0);
    }
    change(model, random_() % 60);
    const bool is_missing = !model.touched.empty() && i % 4 == 3;
    const ModelPages pages(model, is_missing ? *model.touched.begin() : UINT64_MAX);
    const std::string name = "v" + std::to_string(i);
    snapshot(model, name, &pages);
    expect_signed(name, model);
    if (HasFatalFailure() || HasFailure()) return;
  }
  expect_whole();
}

// The run of the content and that of the tree are one.
TEST_F(Signing, PagesInMemoryTakeNoRunOfTheirOwn) {
  Model model(4000);
  begin(model.pages());
  for (PageNumber p = 0; p < model.pages(); ++p) model.store64(p, 0, p + 1);
  const ModelPages pages(model);
  snapshot(model, "a", &pages);
  EXPECT_EQ(ref("a").version.runs.size(), 1u);
  model.store64(1234, 8, 5);
  snapshot(model, "b", &pages);
  EXPECT_EQ(ref("b").version.runs.size(), 2u);
  expect_signed("b", model);
}

// The signer's own tree has the pages of a snapshot that failed.
TEST_F(Signing, ASnapshotThatFailedLeavesNothingInTheTree) {
  Model model(700);
  begin(model.pages());
  change(model, 300);
  snapshot(model, "a");
  const std::string tmp = store_->tmp_directory();
  Model other = model;
  other.store64(5, 8, 77);
  std::filesystem::rename(tmp, tmp + ".gone");
  EXPECT_THROW(snapshot(other, "b"), Error);
  std::filesystem::rename(tmp + ".gone", tmp);
  model.store64(6, 8, 78);
  snapshot(model, "b");
  expect_signed("b", model);
  EXPECT_EQ(ref("b").signature->number, 2u);
  model.store64(600, 8, 79);
  snapshot(model, "c");
  expect_signed("c", model);
  expect_whole();
}

// Snapshots that this writer has not signed itself: by its branch's name, and by another key.
TEST_F(Signing, AnotherSignerBetweenIsNoticed) {
  Model model(700);
  begin(model.pages());
  change(model, 300);
  snapshot(model, "a");
  set_sign_key_file(other_file_);
  model.store64(5, 8, 77);
  snapshot(model, "b");
  set_sign_key_file(key_file_);
  model.store64(6, 8, 78);
  snapshot(model, "c");
  expect_signed("c", model);
  set_sign_key_file("");
  model.store64(7, 8, 79);
  snapshot(model, "d");
  set_sign_key_file(key_file_);
  model.store64(8, 8, 80);
  snapshot(model, "e");
  expect_signed("e", model);
  EXPECT_EQ(ref("e").signature->parent_name, "c");
}

class ExchangedRef : public SignatureAttack, public testing::WithParamInterface<bool> {};

// The ref of v3 gets the page map of a later commit, so that nothing seems to differ. The writer that has
// signed v3 is still open, and a snapshot may fail meanwhile.
TEST_P(ExchangedRef, IsNotContinuedByItsSigner) {
  model_.store64(60, 8, 76);
  commit(*writer_, model_, false);
  writer_->checkpoint_journal();
  format::SnapshotRef forged = ref("v3");
  ASSERT_NE(forged.version.runs, writer_->head().runs);
  forged.version.runs = writer_->head().runs;
  put_ref(forged);
  if (GetParam()) {
    const std::string tmp = store_->tmp_directory();
    std::filesystem::rename(tmp, tmp + ".gone");
    Model other = model_;
    other.store64(52, 8, 78);
    EXPECT_THROW(snapshot(other, "v4"), Error);
    std::filesystem::rename(tmp + ".gone", tmp);
  }
  model_.store64(51, 8, 77);
  snapshot(model_, "v4");
  expect_signed("v4", model_);
}

INSTANTIATE_TEST_SUITE_P(AfterAFailure, ExchangedRef, testing::Bool());

TEST(TreePage, ItsRootIsThatOfItsNodes) {
  std::mt19937_64 random(1);
  TreePage page;
  TreeNodes nodes{};
  for (const std::size_t count : {1u, 2u, 16u, 128u, 4u, 128u}) {
    for (int i = 0; i < 50; ++i) {
      const std::size_t index = random() % count;
      format::TreeHash hash{};
      if (random() % 3 != 0) hash.fill(static_cast<std::byte>(random()));
      nodes[index] = hash;
      page.set(index, hash);
      if (random() % 4 != 0) continue;
      EXPECT_EQ(page.root(count, 7), format::stored_subtree(std::span(nodes).first(count), 7));
    }
  }
  TreePage loaded;
  loaded.load(nodes);
  EXPECT_EQ(loaded.root(128, 7), format::stored_subtree(nodes, 7));
  EXPECT_TRUE(std::ranges::equal(loaded.nodes(), nodes));
}

TEST(KeptTree, KeepsABoundedNumberOfPages) {
  KeptTree kept;
  EXPECT_EQ(kept.take(3), nullptr);
  for (PageNumber page = 0; page < KeptTree::kMaxPages + 10; ++page)
    kept.put(page, std::make_unique<TreePage>());
  EXPECT_EQ(kept.size(), KeptTree::kMaxPages);
  auto page = kept.take(3);
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(kept.take(3), nullptr);
  kept.put(3, std::move(page));
  EXPECT_NE(kept.take(3), nullptr);
  EXPECT_EQ(kept.take(KeptTree::kMaxPages + 5), nullptr);
}

}  // namespace
}  // namespace vellum::store::test
