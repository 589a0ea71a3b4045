// Signed snapshots: the stored tree against a plain computation over random changes.
#include <cstdlib>

#include "store/branch/changed_branch.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/gc/gc.hpp"
#include "store/signature/signing_fixture.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::store::test {
namespace {

TEST_F(Signing, TheTreeFollowsRandomChangesAndGrowth) {
  Model model(40);
  begin(model.pages());
  for (int i = 0; i < 40; ++i) {
    if (i % 6 == 5) model.grow(model.pages() + random_() % 90 + 1);
    change(model, random_() % 30);
    for (auto n = random_() % 3; n > 0; --n) {
      commit(*writer_, model, random_() % 2 == 0);
      change(model, random_() % 5);
    }
    const std::string name = "v" + std::to_string(i);
    snapshot(model, name);
    expect_signed(name, model);
    EXPECT_EQ(ref(name).signature->number, static_cast<std::uint64_t>(i) + 1);
    if (HasFatalFailure() || HasFailure()) return;
  }
  expect_whole();
}

TEST_F(Signing, SmallSparseAndEmptyRegions) {
  for (const std::size_t pages : {1u, 2u, 127u, 128u, 129u, 20000u}) {
    const std::string branch = "b" + std::to_string(pages);
    begin(pages, branch);
    Model model(pages);
    snapshot(model, branch + "-empty");
    expect_signed(branch + "-empty", model);
    model.store64(pages - 1, 8, 7);
    snapshot(model, branch + "-last");
    expect_signed(branch + "-last", model);
    model.zero(pages - 1);
    snapshot(model, branch + "-again");
    EXPECT_EQ(ref(branch + "-again").signature->root, ref(branch + "-empty").signature->root);
  }
}

TEST_F(Signing, BranchesOfSnapshotsAndUnsignedOnesBetween) {
  Model model(300);
  begin(model.pages());
  change(model, 200);
  snapshot(model, "a");
  set_sign_key_file("");
  change(model, 20);
  snapshot(model, "between");
  EXPECT_FALSE(ref("between").signature.has_value());
  EXPECT_EQ(problem("between"), "not signed");
  set_sign_key_file(key_file_);
  Model other = model;
  change(model, 20);
  snapshot(model, "b");
  expect_signed("b", model);
  EXPECT_EQ(ref("b").signature->parent_name, "a");
  EXPECT_EQ(ref("b").signature->number, 2u);

  store_->create_branch_at("side", ref("between").version, "between");
  writer_ = BranchWriter::open(*store_, "side");
  change(other, 20);
  snapshot(other, "c");
  expect_signed("c", other);
  EXPECT_EQ(ref("c").signature->number, 2u);
}

// Without the parent, the whole content is hashed: the root is the same.
TEST_F(Signing, ARemovedParentChangesOnlyTheCost) {
  Model model(300);
  begin(model.pages());
  change(model, 200);
  snapshot(model, "a");
  change(model, 30);
  snapshot(model, "b");
  store_->remove_snapshot("b");
  change(model, 30);
  snapshot(model, "c");
  expect_signed("c", model);
  EXPECT_EQ(ref("c").signature->number, 1u);
  SignatureChecker checker(*store_, keys_);
  EXPECT_EQ(checker.check("c").problem, "");
}

// A name that is used again says nothing about the tree that a version has.
TEST_F(Signing, AParentsNameThatIsUsedAgainDoesNotMislead) {
  Model model(300);
  begin(model.pages());
  change(model, 200);
  snapshot(model, "a");
  const format::SnapshotRef first = ref("a");
  store_->remove_snapshot("a");
  Model far(300);
  begin(far.pages(), "far");
  change(far, 100);
  snapshot(far, "a");  // of another branch
  writer_.reset();
  writer_ = BranchWriter::open(*store_, "main");
  change(model, 30);
  snapshot(model, "b");
  expect_signed("b", model);
}

TEST_F(Signing, ACommitAfterThatUsesTheBranchAsBefore) {
  Model model(50);
  begin(model.pages());
  for (int i = 0; i < 30; ++i) {
    change(model, 10);
    if (i % 3 == 0) {
      snapshot(model, "v" + std::to_string(i));
    } else {
      commit(*writer_, model, i % 2 == 0);
    }
    expect_same(*writer_->open_head(), model.bytes);
  }
  writer_.reset();
  expect_same(*open_version(*store_, "main"), model.bytes);
  expect_whole();
}

TEST_F(Signing, ALiveBranchIsSignedByAnotherWriter) {
  Model model(60);
  begin(model.pages());
  change(model, 40);
  commit(*writer_, model, false);
  snapshot_live_branch(*store_, "main", claim_name(*store_, "a"), "m");
  expect_signed("a", model);
  name_version(*store_, claim_name(*store_, "copy"), "main", ref("a").version, "");
  expect_signed("copy", model);
  change(model, 10);
  commit(*writer_, model, false);
  snapshot_live_branch(*store_, "main", claim_name(*store_, "b"), "");
  expect_signed("b", model);
  expect_whole();
}

TEST_F(Signing, GcAndRecompressionKeepIt) {
  Model model(300);
  begin(model.pages());
  for (int i = 0; i < 6; ++i) {
    change(model, 100);
    snapshot(model, "v" + std::to_string(i));
  }
  writer_.reset();
  for (int i = 0; i < 5; ++i) store_->remove_snapshot("v" + std::to_string(i));
  collect_garbage(*store_, false, nullptr, 3);
  expect_signed("v5", model);
  const SignatureCheck check = SignatureChecker(*store_, keys_).check("v5");
  EXPECT_EQ(check.problem, "");
  EXPECT_EQ(check.chain_ends_before, "v4");
  expect_whole();
}

TEST_F(Signing, OnlyChangedTreePagesAreWritten) {
  Model model(4000);
  begin(model.pages());
  for (PageNumber p = 0; p < model.pages(); ++p) model.store64(p, 0, p + 1);
  snapshot(model, "a");
  const std::uint64_t before = writer_->head().active_pack_end_bytes;
  model.store64(1234, 8, 5);
  snapshot(model, "b");
  const std::uint64_t signed_bytes = writer_->head().active_pack_end_bytes - before;
  set_sign_key_file("");
  model.store64(1235, 8, 5);
  snapshot(model, "c");
  const std::uint64_t plain_bytes = writer_->head().active_pack_end_bytes - before - signed_bytes;
  EXPECT_LT(signed_bytes, plain_bytes + 2048) << plain_bytes;
}

TEST_F(Signing, KeysInEachFormatAreRead) {
  for (const auto& damaged :
       {std::string(), std::string(kSignKey).substr(0, 60), std::string("x") + kSignKey[0]}) {
    error_text(Errc::invalid_argument, [&] { public_key_of(write("bad", damaged)); });
    error_text(Errc::invalid_argument, [&] { read_public_key(write("bad", damaged)); });
  }
  error_text(Errc::not_found, [&] { public_key_of(dir_.path("none")); });
  const std::string out = dir_.path("ssh");
  const std::string make = "ssh-keygen -q -t ed25519 -N '' -f " + out;
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no ssh-keygen";
  EXPECT_EQ(public_key_of(out), read_public_key(out + ".pub"));
  const std::string pem = "openssl pkey -in " + key_file_ + " -pubout -out " + dir_.path("pub");
  if (std::system(pem.c_str()) != 0) GTEST_SKIP() << "no openssl";
  EXPECT_EQ(read_public_key(dir_.path("pub")), keys_[0]);
}

TEST_F(Signing, APolicyRefusesOtherKeysAndNone) {
  Model model(20);
  begin(model.pages());
  set_signers(*store_, "main", keys_);
  set_sign_key_file("");
  EXPECT_TRUE(contains(error_text(Errc::untrusted, [&] { snapshot(model, "a"); }), "--sign-key"));
  set_sign_key_file(other_file_);
  EXPECT_TRUE(contains(error_text(Errc::untrusted, [&] { snapshot(model, "a"); }), "other.pem"));
  error_text(Errc::untrusted,
             [&] { snapshot_live_branch(*store_, "main", claim_name(*store_, "a"), ""); });
  EXPECT_FALSE(has_snapshot(*store_, "a"));
  set_sign_key_file(key_file_);
  change(model, 5);
  snapshot(model, "a");
  expect_signed("a", model);

  writer_.reset();
  rename_branch(*store_, "main", "renamed");
  EXPECT_EQ(signers_of(*store_, "renamed"), keys_);
  store_->remove_branch("renamed");
  store_->create_branch("renamed", kPageBytes, 0);
  EXPECT_TRUE(signers_of(*store_, "renamed").empty());
  set_signers(*store_, "renamed", keys_);
  set_signers(*store_, "renamed", {});
  EXPECT_TRUE(signers_of(*store_, "renamed").empty());
}

// Looks whether gc could read the names while a snapshot gets its name.
class NamingFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  void rename_new(const std::string& from, const std::string& to) override {
    if (to.ends_with(kRefSuffix)) {
      const auto other = StoreDirectory::open(base::posix_fs(), store);
      try {
        const NamesExclusive names(*other, std::chrono::milliseconds(0));
        ++seen_free;
      } catch (const Error&) {
        ++seen_held;
      }
    }
    ForwardingFs::rename_new(from, to);
  }
  std::string store;
  int seen_free = 0, seen_held = 0;
};

TEST(NamedVersion, IsNamedWhileGcFindsItsRecords) {
  TempDirectory directory;
  for (const bool signs : {false, true}) {
    const SigningProcess process(signs);
    NamingFs fs{base::posix_fs()};
    fs.store = directory.path(signs ? "signed" : "plain");
    const auto store = StoreDirectory::create(fs, fs.store, small_options());
    store->create_branch("main", 20 * kPageBytes, 0);
    Model model(20);
    const auto writer = BranchWriter::open(*store, "main");
    model.store64(3, 8, 5);
    commit(*writer, model, false);
    snapshot_live_branch(*store, "main", claim_name(*store, "a"), "");
    name_live_branch_for_now(*store, "main", claim_name(*store, "b"));
    const KeptVersion from = resolve_kept(*store, "a");
    name_version(*store, claim_name(*store, "c"), "main", from.version.version, "");
    // gc finds a version on a staging branch, where "a" is, and the signed "c".
    EXPECT_EQ(fs.seen_held, signs ? 1 : 2) << signs;
    EXPECT_EQ(fs.seen_free, signs ? 2 : 1) << signs;
  }
}

// The order of snapshots is not signed: what contradicts it is noted.
TEST_F(Signing, AChainThatBeginsAgainOrGoesBackIsNoted) {
  Model model(60);
  begin(model.pages());
  for (const char* name : {"v1", "v2", "v3"}) {
    change(model, 5);
    snapshot(model, name);
  }
  const auto note = [&](const std::vector<std::string>& names) {
    SignatureChecker checker(*store_, keys_);
    std::string last;
    for (const std::string& name : names) {
      const SignatureCheck check = checker.check(name);
      EXPECT_EQ(check.problem, "") << name;
      last = check.note;
    }
    return last;
  };
  EXPECT_EQ(note({"v1", "v2", "v3"}), "");
  format::SnapshotRef second = ref("v2");
  second.order = ref("v3").order + 1;
  put_ref(second);
  EXPECT_TRUE(contains(note({"v1", "v3"}), "comes after it"));
  EXPECT_TRUE(contains(note({"v1", "v3", "v2"}), "goes back"));
  writer_.reset();
  store_->remove_branch("main");
  begin(model.pages());
  Model again(60);
  change(again, 3);
  snapshot(again, "w1");
  EXPECT_TRUE(contains(note({"v1", "w1"}), "begins again"));
}

// Damage is reported for the version that has it.
TEST_F(Signing, DamageOfTheVersionBeforeIsNotThatOfTheNext) {
  Model model(60);
  begin(model.pages());
  change(model, 5);
  snapshot(model, "v1");
  change(model, 5);
  snapshot(model, "v2");
  std::ofstream(ref_path(*store_, "v1"), std::ios::binary | std::ios::trunc) << "damage";
  SignatureChecker checker(*store_, keys_);
  EXPECT_TRUE(contains(checker.check("v1").problem, "v1"));
  const SignatureCheck v2 = checker.check("v2");
  EXPECT_EQ(v2.problem, "");
  EXPECT_EQ(v2.chain_ends_before, "v1");
}

// The pages of the tree are behind the end of each region that can be signed.
TEST_F(Signing, ARegionWithATreeDoesNotGrowOverIt) {
  Model model(4);
  begin(model.pages());
  const auto grow = [&](std::uint64_t bytes) {
    format::CommitInfo info = meta_for(model);
    info.region_bytes = bytes;
    info.file_bytes.reset();
    writer_->begin()->finish(info, true);
  };
  snapshot(model, "v0");  // zeros: there is no tree
  model.store64(1, 8, 3);
  snapshot(model, "v1");
  error_text(Errc::unsupported, [&] { grow(format::kMaxSignedRegionBytes + kPageBytes); });
  writer_.reset();
  writer_ = BranchWriter::open(*store_, "main");
  grow(format::kMaxSignedRegionBytes);
  begin(model.pages(), "plain");
  grow(format::kMaxRegionBytes);
}

TEST_F(Signing, AHeadIsThatOfItsSnapshotOrNotSigned) {
  Model model(60);
  begin(model.pages());
  change(model, 5);
  snapshot(model, "v1");
  SignatureChecker checker(*store_, keys_);
  EXPECT_TRUE(checker.is_head("main", "v1"));
  model.store64(7, 8, 9);
  commit(*writer_, model, false);
  EXPECT_FALSE(checker.is_head("main", "v1"));
  snapshot(model, "v2");
  EXPECT_TRUE(checker.is_head("main", "v2"));
  EXPECT_FALSE(checker.is_head("main", "v1"));
  model.grow(61);
  commit(*writer_, model, true);
  EXPECT_FALSE(checker.is_head("main", "v2"));
  EXPECT_FALSE(checker.is_head("main", "none"));
}

}  // namespace
}  // namespace vellum::store::test
