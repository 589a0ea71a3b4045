// A store with signed snapshots, and one that an attacker changes.
#pragma once

#include <fstream>

#include "base/crypto/ed25519.hpp"
#include "base/files/new_file.hpp"
#include "store/branch/checkpoint/checkpoint.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/check/check.hpp"
#include "store/signature/sign_key.hpp"
#include "store/signature/signed_versions.hpp"
#include "store/signature/tree_update.hpp"
#include "store/support.hpp"

namespace vellum::store::test {

using format::TreeHash;

// Without zero subtrees, stored nodes or earlier versions.
inline TreeHash plain_root(const std::vector<std::byte>& bytes) {
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
  void snapshot(Model& model, const std::string& name, const CommittedPages* committed = nullptr) {
    thread_local base::Compressor compressor;
    const NameLock claim = claim_name(*store_, name);
    auto c = writer_->begin();
    c->add(model.take(4, compressor));
    c->finish_as(claim, meta_for(model), committed);
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

}  // namespace vellum::store::test
