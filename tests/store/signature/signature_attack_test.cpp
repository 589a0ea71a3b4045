// Attacks on signed snapshots: changed content, facts and names.
#include "store/branch/changed_branch.hpp"
#include "store/signature/signing_fixture.hpp"

namespace vellum::store::test {
namespace {

TEST_F(SignatureAttack, AChangedPageIsNamed) {
  replace_page("v2", 77, false);
  EXPECT_EQ(verify_store(*store_, true, nullptr).damages.size(), 0u);  // the checksums are right
  EXPECT_EQ(problem("v2"), "page 77 is not the one that was signed");
  EXPECT_EQ(problem("v1"), "");
  EXPECT_TRUE(contains(error_text(Errc::untrusted, [&] { prove_pages(*store_, "v2", {77, 1}); }),
                       "not what was signed"));
  // Other pages can still be proven.
  EXPECT_NO_THROW(prove_pages(*store_, "v2", {78, 1}));
  EXPECT_TRUE(contains(
      error_text(Errc::invalid_argument, [&] { prove_pages(*store_, "v2", {78, 1u << 17}); }),
      "passes the end"));
}

TEST_F(SignatureAttack, AChangedPageWithItsTreeIsNoticed) {
  replace_page("v2", 77, true);
  EXPECT_EQ(problem("v2"), "the content is not what was signed");
  error_text(Errc::untrusted, [&] { prove_pages(*store_, "v2", {78, 1}); });
}

// Also in a check of all versions, in which each is compared with the one before.
TEST_F(SignatureAttack, AChangedPageIsNoticedAfterAGoodVersion) {
  replace_page("v2", 77, false);
  SignatureChecker checker(*store_, keys_);
  EXPECT_EQ(checker.check("v1").problem, "");
  EXPECT_EQ(checker.check("v2").problem, "page 77 is not the one that was signed");
  EXPECT_EQ(checker.check("v3").problem, "");
}

TEST_F(SignatureAttack, AnotherVersionsContentOrNameIsNoticed) {
  const format::SnapshotRef v1 = ref("v1"), v2 = ref("v2");
  format::SnapshotRef forged = v2;
  forged.version.runs = v1.version.runs;
  put_ref(forged);
  EXPECT_EQ(problem("v2"), "the content is not what was signed");
  forged = v1;  // v1 as v2: an older version in place of a newer one
  forged.name = "v2";
  put_ref(forged);
  EXPECT_TRUE(contains(problem("v2"), "does not fit"));
}

TEST_F(SignatureAttack, EachSignedFactIsNoticed) {
  const format::SnapshotRef good = ref("v2");
  const auto expect_noticed = [&](auto change) {
    format::SnapshotRef forged = good;
    change(forged);
    put_ref(forged);
    EXPECT_TRUE(contains(problem("v2"), "does not fit")) << problem("v2");
  };
  expect_noticed([](auto& r) { r.branch = "other"; });
  expect_noticed([](auto& r) { ++r.created_ns; });
  expect_noticed([](auto& r) { ++r.version.time_ns; });
  expect_noticed([](auto& r) { ++r.version.sequence; });
  expect_noticed([](auto& r) { r.version.message = "forged"; });
  expect_noticed([](auto& r) { r.version.file_bytes = 5; });
  expect_noticed([](auto& r) { r.signature->root[0] ^= std::byte{1}; });
  expect_noticed([](auto& r) { r.signature->parent[0] ^= std::byte{1}; });
  expect_noticed([](auto& r) { r.signature->number = 9; });
  expect_noticed([](auto& r) { r.signature->signature[0] ^= std::byte{1}; });
  format::SnapshotRef stripped = good;
  stripped.signature.reset();
  put_ref(stripped);
  EXPECT_EQ(problem("v2"), "not signed");
}

TEST_F(SignatureAttack, AnotherKeyIsNoticed) {
  set_sign_key_file(other_file_);
  change(model_, 3);
  snapshot(model_, "v4");
  EXPECT_TRUE(contains(problem("v4"), "signed by another key"));
  // With the wanted key's name on it.
  format::SnapshotRef forged = ref("v4");
  forged.signature->key = keys_[0];
  put_ref(forged);
  EXPECT_TRUE(contains(problem("v4"), "does not fit"));
}

// An attacker with an older, genuine version of the same name.
TEST_F(SignatureAttack, AReplacedParentIsNoticed) {
  const format::SnapshotRef old = ref("v2");
  writer_.reset();
  store_->remove_snapshot("v2");
  put_ref(old);
  EXPECT_EQ(problem("v3"), "");
  store_->create_branch_at("again", ref("v1").version, "v1");
  store_->remove_snapshot("v2");
  store_->remove_branch("main");
  rename_branch(*store_, "again", "main");
  writer_ = BranchWriter::open(*store_, "main");
  Model other(200);
  change(other, 10);
  snapshot(other, "v2");
  EXPECT_EQ(problem("v2"), "");
  EXPECT_EQ(problem("v3"), "its parent 'v2' is not the version that it was signed on");
}

TEST_F(SignatureAttack, AnotherStoresSignatureIsNoticed) {
  const auto other = StoreDirectory::create(base::posix_fs(), dir_.path("other"), small_options());
  other->create_branch("main", model_.bytes.size(), 0);
  BranchWriter::open(*other, "main")->publish_snapshot("v1", "");
  const format::SnapshotRef foreign = read_snapshot(*other, "v1");
  ASSERT_TRUE(foreign.signature.has_value());
  format::SnapshotRef forged = ref("v1");
  forged.signature = foreign.signature;
  put_ref(forged);
  EXPECT_TRUE(contains(problem("v1"), "does not fit"));
}

}  // namespace
}  // namespace vellum::store::test
