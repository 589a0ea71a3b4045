// Signed snapshots: the stored tree against a plain computation over random changes, and attacks.
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/crypto/ed25519.hpp"
#include "format/records/record.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/signing_key.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/signature/sign_key.hpp"
#include "store/signature/signed_versions.hpp"
#include "store/signature/tree_update.hpp"
#include "store/support.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::store::test {
namespace {

using format::TreeHash;

// Without zero subtrees, stored nodes or earlier versions.
TreeHash plain_root(const std::vector<std::byte>& bytes) {
  std::vector<TreeHash> level;
  const auto leaf = [&](const std::byte* page) {
    level.push_back(format::leaf_hash(std::span<const std::byte, kPageBytes>(page, kPageBytes)));
  };
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) leaf(bytes.data() + at);
  const std::vector<std::byte> zeros(kPageBytes);
  while ((level.size() & (level.size() - 1)) != 0) leaf(zeros.data());
  for (; level.size() > 1; level.resize(level.size() / 2)) {
    for (std::size_t i = 0; i < level.size(); i += 2)
      level[i / 2] = format::node_hash(level[i], level[i + 1]);
  }
  return level.front();
}

class Signing : public ::testing::Test {
 protected:
  Signing() : store_(StoreDirectory::create(base::posix_fs(), dir_.path("s"), small_options())) {
    key_file_ = write("key.pem", kSignKey);
    other_file_ = write("other.pem", kOtherSignKey);
    set_sign_key_file(key_file_);
    keys_ = {public_key_of(key_file_)};
  }
  ~Signing() override { set_sign_key_file(""); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.path(name)) << text;
    return dir_.path(name);
  }
  void begin(std::size_t pages, const std::string& branch = "main") {
    store_->create_branch(branch, pages * kPageBytes, 0);
    writer_ = BranchWriter::open(*store_, branch);
  }
  void snapshot(Model& model, const std::string& name) {
    thread_local base::Compressor compressor;
    const NameLock claim = claim_name(*store_, name);
    auto c = writer_->begin();
    c->add(model.take(4, compressor));
    c->finish_as(claim, meta_for(model));
  }
  void change(Model& model, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const PageNumber page = random_() % model.pages();
      if (random_() % 5 == 0) {
        model.zero(page);
      } else if (random_() % 3 == 0) {
        model.fill(page, random_);
      } else {
        model.store64(page, random_() % 500 * 8, random_());
      }
    }
  }
  std::string problem(const std::string& name) {
    return SignatureChecker(*store_, keys_).check(name).problem;
  }
  // The signature holds, the stored tree is that of the content, and nothing is damaged.
  void expect_signed(const std::string& name, const Model& model) {
    const OpenSigned now = open_signed(*store_, name);
    ASSERT_TRUE(now.ref.signature.has_value()) << name;
    const std::uint64_t bytes = model.bytes.size();
    ASSERT_EQ(now.ref.version.region_bytes, bytes);
    EXPECT_EQ(now.ref.signature->root, plain_root(model.bytes)) << name;
    EXPECT_EQ(root_of_leaves(*now.source, bytes), now.ref.signature->root) << name;
    // Each page of the stored tree fits the page above it.
    TreeUpdate whole({*now.source, bytes, now.ref.signature->root}, bytes, nullptr);
    whole.set_content(*now.source, {0, bytes / kPageBytes});
    EXPECT_EQ(whole.finish(), now.ref.signature->root) << name;
    EXPECT_EQ(root_of_content(*now.source, bytes), now.ref.signature->root) << name;
    EXPECT_EQ(problem(name), "") << name;
  }
  void expect_whole() {
    for (const auto& damage : verify_store(*store_, true, nullptr).damages)
      ADD_FAILURE() << damage.object << ": " << damage.reason;
  }
  format::SnapshotRef ref(const std::string& name) { return read_snapshot(*store_, name); }
  // With the checksum that a forger computes.
  void put_ref(const format::SnapshotRef& ref) {
    base::publish_file(store_->fs(), store_->tmp_directory(), store_->snapshots_directory(),
                       ref.name + kRefSuffix, encode_snapshot_ref(ref, store_->file_seal()), true);
  }

  TempDirectory dir_;
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  std::string key_file_, other_file_;
  std::vector<PublicKey> keys_;
  std::mt19937_64 random_{1};
};

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

TEST(NamedVersion, IsNamedWhileGcCannotReadTheNames) {
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
    EXPECT_EQ(fs.seen_held, 3) << signs;
    EXPECT_EQ(fs.seen_free, 0) << signs;
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

// ---- Attacks on a plain store, whose checksums anybody can compute.

class SignatureAttack : public Signing {
 protected:
  SignatureAttack() : model_(200) {
    begin(model_.pages());
    change(model_, 150);
    snapshot(model_, "v1");
    change(model_, 20);
    snapshot(model_, "v2");
    change(model_, 20);
    snapshot(model_, "v3");
  }
  // Another content of this page under the name of a version, as a forger with the store's files writes it.
  void replace_page(const std::string& name, PageNumber page, bool with_tree) {
    format::SnapshotRef forged = ref(name);
    writer_.reset();
    set_sign_key_file(with_tree ? other_file_ : "");
    store_->create_branch_at("forger", forged.version, name);
    {
      const auto writer = BranchWriter::open(*store_, "forger");
      std::vector<std::byte> old(kPageBytes), now(kPageBytes);
      writer->source_at_open()->read(page, 1, old.data());
      now = old;
      now[17] ^= std::byte{1};
      PageWrites writes;
      ASSERT_TRUE(writes.deltas.add_difference(page, old.data(), now.data()));
      auto c = writer->begin();
      c->add(std::move(writes));
      c->finish_as(claim_name(*store_, "forged"), forged.version.info());
    }
    forged.version.runs = ref("forged").version.runs;
    put_ref(forged);
    set_sign_key_file(key_file_);
  }

  Model model_;
};

TEST_F(SignatureAttack, AChangedPageIsNamed) {
  replace_page("v2", 77, false);
  EXPECT_EQ(verify_store(*store_, true, nullptr).damages.size(), 0u);  // the checksums are right
  EXPECT_EQ(problem("v2"), "page 77 is not the one that was signed");
  EXPECT_EQ(problem("v1"), "");
  EXPECT_TRUE(contains(error_text(Errc::untrusted, [&] { prove_pages(*store_, "v2", {77, 1}); }),
                       "not what was signed"));
  // Other pages can still be proven.
  EXPECT_NO_THROW(prove_pages(*store_, "v2", {78, 1}));
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

// ---- Forged page maps and trees under genuine signatures. An attacker who writes a store's files can
// give any version any runs: here by a branch that continues it without a signature.

class ForgedTree : public SignatureAttack {
 protected:
  struct Page {
    PageNumber page;
    std::vector<std::byte> content;
  };
  static TreeNodes nodes_of(const PageSource& source, unsigned level, std::uint64_t number) {
    TreeNodes out;
    source.read(format::tree_page(level, number), 1, reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  static Page tree_page(unsigned level, std::uint64_t number, const TreeNodes& nodes) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(nodes.data());
    return {format::tree_page(level, number), {bytes, bytes + kPageBytes}};
  }
  // All pages of the tree of `from`.
  std::vector<Page> tree_of(const std::string& from) {
    const OpenSigned now = open_signed(*store_, from);
    std::vector<Page> out;
    root_of_content(*now.source, now.ref.version.region_bytes,
                    [&](unsigned level, std::uint64_t number, const TreeNodes& nodes) {
                      out.push_back(tree_page(level, number, nodes));
                    });
    return out;
  }
  // Replaces pages of `name`, also beyond its region's end.
  void put_pages(const std::string& name, const std::vector<Page>& pages) {
    format::SnapshotRef forged = ref(name);
    format::Version wide = forged.version;
    wide.region_bytes = format::kMaxRegionBytes;
    wide.file_bytes.reset();
    set_sign_key_file("");
    const std::string branch = "forger-" + std::to_string(forgers_++);
    store_->create_branch_at(branch, wide, name);
    {
      const auto writer = BranchWriter::open(*store_, branch);
      auto c = writer->begin();
      for (const Page& p : pages) {
        std::vector<std::byte> old(kPageBytes);
        writer->source_at_open()->read(p.page, 1, old.data());
        PageWrites writes;
        if (!writes.deltas.add_difference(p.page, old.data(), p.content.data())) continue;
        c->add(std::move(writes));
      }
      c->finish({}, true);
      forged.version.runs = writer->head().runs;
    }
    put_ref(forged);
    set_sign_key_file(key_file_);
  }
  std::vector<std::byte> evil_page() const { return std::vector<std::byte>(kPageBytes, std::byte{6}); }
  // A signature that attests another content than the signer has seen would be accepted for it.
  void expect_all(const std::vector<std::pair<std::string, bool>>& good) {
    SignatureChecker checker(*store_, keys_);
    for (const auto& [name, is_good] : good)
      EXPECT_EQ(checker.check(name).problem.empty(), is_good) << name;
  }
  int forgers_ = 0;
};

// v1 has the tree of v2, and v2 the content of v1: nothing differs between them.
TEST_F(ForgedTree, OfTheVersionBeforeDoesNotVouchForTheNext) {
  const format::SnapshotRef v2 = ref("v2");
  put_pages("v1", tree_of("v2"));
  format::SnapshotRef forged = v2;
  forged.version.runs = ref("v1").version.runs;
  put_ref(forged);
  expect_all({{"v1", true}, {"v2", false}});
}

// The same with every page but the top one: that one still leads to the root of v1.
TEST_F(ForgedTree, BelowItsTopDoesNotVouchForTheNext) {
  const format::SnapshotRef v2 = ref("v2");
  std::vector<Page> pages = tree_of("v2");
  std::erase_if(pages, [](const Page& p) { return p.page >= format::tree_page(1, 0); });
  put_pages("v1", pages);
  // v2 differs from v1 in a page of each group, so that each group's leaves are used.
  const OpenSigned then = open_signed(*store_, "v1");
  std::vector<Page> same;
  for (const PageNumber page : {PageNumber{3}, PageNumber{130}}) {
    std::vector<std::byte> bytes(kPageBytes);
    open_signed(*store_, "v2").source->read(page, 1, bytes.data());
    same.push_back({page, bytes});
  }
  format::SnapshotRef forged = v2;
  forged.version.runs = ref("v1").version.runs;
  put_ref(forged);
  put_pages("v2", {{3, evil_page()}, {130, evil_page()}});
  put_pages("v2", same);
  expect_all({{"v1", true}, {"v2", false}});
}

// A leaf of the branch's tree is forged before the signer goes on from it, near a page that it changes.
TEST_F(ForgedTree, IsNotSigned) {
  Model model = model_;
  const auto evil = evil_page();
  TreeNodes nodes = nodes_of(*open_signed(*store_, "v3").source, 0, 0);
  nodes[50] = format::stored_leaf(std::span<const std::byte>(evil).first<kPageBytes>());
  put_pages("v3", {tree_page(0, 0, nodes)});
  expect_all({{"v2", true}, {"v3", true}});  // its content is genuine

  writer_.reset();
  store_->create_branch_at("next", ref("v3").version, "v3");
  writer_ = BranchWriter::open(*store_, "next");
  model.store64(51, 8, 77);
  snapshot(model, "v4");
  expect_signed("v4", model);
  put_pages("v4", {{50, evil}});
  expect_all({{"v3", true}, {"v4", false}});
}

// A parent that the attacker has signed vouches for nothing, and a forged one is refused.
TEST_F(ForgedTree, OfAnotherKeyIsNotSigned) {
  Model model = model_;
  const auto evil = evil_page();
  const OpenSigned v3 = open_signed(*store_, "v3");
  TreeNodes nodes = nodes_of(*v3.source, 0, 0);
  nodes[50] = format::stored_leaf(std::span<const std::byte>(evil).first<kPageBytes>());
  TreeNodes top = nodes_of(*v3.source, 1, 0);
  top[0] = format::stored_subtree(nodes, 0);
  put_pages("v3", {tree_page(0, 0, nodes), tree_page(1, 0, top)});
  format::SnapshotRef forged = ref("v3");
  forged.signature->root = format::actual_node(format::stored_subtree(std::span(top).first(2), 7), 8);
  put_ref(forged);
  const auto sign_next = [&](const std::string& branch) {
    store_->create_branch_at(branch, ref("v3").version, "v3");
    writer_ = BranchWriter::open(*store_, branch);
    model.store64(51, 8, 77);
    snapshot(model, branch + "-v4");
  };
  writer_.reset();
  EXPECT_TRUE(contains(error_text(Errc::untrusted, [&] { sign_next("next"); }), "forged"));

  const base::Secret other = base::read_ed25519_private(other_file_);
  forged.signature->key = base::ed25519_public(other);
  forged.signature->signature = base::ed25519_sign(other, statement_of(*store_, forged));
  put_ref(forged);
  writer_.reset();
  model = model_;
  sign_next("again");
  expect_signed("again-v4", model);
}

// Pages between the old and the new end of a region: in a run that both versions share.
TEST_F(ForgedTree, PagesBehindTheOldEndAreRead) {
  model_.grow(400);
  model_.store64(399, 8, 7);
  snapshot(model_, "v4");
  expect_all({{"v3", true}, {"v4", true}});
  put_pages("v3", {{300, evil_page()}});
  expect_all({{"v3", true}});
  format::SnapshotRef forged = ref("v4");
  forged.version.runs = ref("v3").version.runs;
  put_ref(forged);
  std::vector<std::byte> last(kPageBytes);
  std::memcpy(last.data(), model_.bytes.data() + 399 * kPageBytes, kPageBytes);
  put_pages("v4", {{399, last}});
  expect_all({{"v3", true}, {"v4", false}});
}

// Zeros of a forged tree do not hide that pages have become zero.
TEST_F(ForgedTree, ZerosThereAreNotBelieved) {
  Model model(300);
  begin(model.pages(), "wide");
  for (PageNumber p = 0; p < 300; ++p) model.store64(p, 8, p + 1);
  snapshot(model, "w1");
  model.store64(290, 8, 5);
  snapshot(model, "w2");
  writer_.reset();
  put_pages("w1", {tree_page(0, 1, TreeNodes{})});
  std::vector<Page> zeros;
  for (PageNumber p = 128; p < 256; ++p) zeros.push_back({p, std::vector<std::byte>(kPageBytes)});
  format::SnapshotRef w2 = ref("w2");
  put_pages("w2", zeros);
  expect_all({{"w1", true}, {"w2", false}});
}

}  // namespace
}  // namespace vellum::store::test
