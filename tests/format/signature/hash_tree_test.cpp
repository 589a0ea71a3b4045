// The hash tree, statement and proof of signed versions, against plain computations.
#include "format/signature/hash_tree.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "format/signature/proof.hpp"
#include "format/version.hpp"

namespace vellum::format {
namespace {

using Pages = std::vector<std::array<std::byte, kPageBytes>>;

Pages random_pages(std::size_t count, std::uint32_t seed, unsigned zero_of = 3) {
  std::mt19937 random(seed);
  Pages out(count);
  for (auto& page : out) {
    page.fill(std::byte{0});
    if (random() % zero_of == 0) continue;
    for (auto& b : page) b = static_cast<std::byte>(random());
  }
  return out;
}

// All leaves, also those of zeros, level by level.
TreeHash plain_root(const Pages& pages) {
  std::vector<TreeHash> level;
  for (const auto& page : pages) level.push_back(leaf_hash(page));
  const std::array<std::byte, kPageBytes> zeros{};
  while ((level.size() & (level.size() - 1)) != 0) level.push_back(leaf_hash(zeros));
  while (level.size() > 1) {
    std::vector<TreeHash> above;
    for (std::size_t i = 0; i < level.size(); i += 2)
      above.push_back(node_hash(level[i], level[i + 1]));
    level = std::move(above);
  }
  return level.front();
}

PageProof proof_for(const Pages& pages, PageNumber first, std::uint64_t count) {
  PageProof out;
  out.name = "v1";
  out.region_bytes = pages.size() * kPageBytes;
  out.first_page = first;
  out.pages = count;
  for (const TreePlace& place : sibling_places(out.region_bytes, first, count)) {
    Pages below(std::size_t{1} << place.height);
    for (std::size_t i = 0; i < below.size(); ++i) {
      const std::size_t page = (place.index << place.height) + i;
      if (page < pages.size()) below[i] = pages[page];
    }
    out.siblings.push_back(plain_root(below));
  }
  return out;
}

std::vector<TreeHash> leaves_of(const Pages& pages, PageNumber first, std::uint64_t count) {
  std::vector<TreeHash> out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(leaf_hash(pages[first + i]));
  return out;
}

TEST(HashTree, ZeroSubtreesHaveTheirHashes) {
  EXPECT_EQ(zero_hash(0), plain_root(Pages(1)));
  EXPECT_EQ(zero_hash(5), plain_root(Pages(32)));
  EXPECT_EQ(actual_node(kZeroSubtree, 5), zero_hash(5));
  const std::vector<TreeHash> nodes(kNodesPerTreePage, kZeroSubtree);
  EXPECT_EQ(stored_subtree(nodes, 0), kZeroSubtree);
}

TEST(HashTree, ASubtreeIsThatOfAllItsLeaves) {
  for (const std::size_t count : {1u, 2u, 64u, 128u}) {
    const Pages pages = random_pages(count, static_cast<std::uint32_t>(count));
    std::vector<TreeHash> nodes;
    for (const auto& page : pages) nodes.push_back(stored_leaf(page));
    const unsigned height = tree_depth(count * kPageBytes);
    EXPECT_EQ(actual_node(stored_subtree(nodes, 0), height), plain_root(pages)) << count;
  }
}

TEST(HashTree, DepthAndPlacesFollowTheSize) {
  EXPECT_EQ(tree_depth(0), 0u);
  EXPECT_EQ(tree_depth(kPageBytes), 0u);
  EXPECT_EQ(tree_depth(2 * kPageBytes), 1u);
  EXPECT_EQ(tree_depth(129 * kPageBytes), 8u);
  EXPECT_EQ(tree_depth(1ull << 40), 28u);
  EXPECT_EQ(tree_depth(kMaxSignedRegionBytes), kMaxTreeDepth);
  EXPECT_EQ(top_level(0), 0u);
  EXPECT_EQ(top_level(7), 0u);
  EXPECT_EQ(top_level(8), 1u);
  EXPECT_EQ(top_level(kMaxTreeDepth), kStoredLevels - 1);
  std::set<PageNumber> pages;  // no two levels share a page
  for (unsigned level = 0; level < kStoredLevels; ++level) {
    const std::uint64_t last = ((kMaxSignedRegionBytes / kPageBytes - 1) >> (7 * level)) / 128;
    EXPECT_TRUE(pages.insert(tree_page(level, 0)).second);
    EXPECT_TRUE(last == 0 || pages.insert(tree_page(level, last)).second);
    EXPECT_LT(tree_page(level, last), kMaxRegionBytes / kPageBytes);
    if (level + 1 < kStoredLevels) {
      EXPECT_LT(tree_page(level, last), tree_page(level + 1, 0));
    }
  }
}

TEST(Proof, LeadsToTheRootForEveryRange) {
  for (const std::size_t count : {1u, 2u, 3u, 7u, 20u}) {
    const Pages pages = random_pages(count, 7);
    const TreeHash root = plain_root(pages);
    for (std::size_t first = 0; first < count; ++first) {
      for (std::size_t n = 1; first + n <= count; ++n) {
        const PageProof proof = proof_for(pages, first, n);
        EXPECT_EQ(root_of_proof(proof, leaves_of(pages, first, n)), root);
        PageProof again;
        ASSERT_EQ(decode_proof(encode_proof(proof), again), nullptr);
        EXPECT_EQ(again, proof);
      }
    }
  }
}

TEST(Proof, ChangesOfPagesOrSiblingsLeadToAnotherRoot) {
  const Pages pages = random_pages(20, 3);
  const TreeHash root = plain_root(pages);
  PageProof proof = proof_for(pages, 5, 2);
  auto leaves = leaves_of(pages, 5, 2);
  leaves[1][0] ^= std::byte{1};
  EXPECT_NE(root_of_proof(proof, leaves), root);
  for (auto& sibling : proof.siblings) {
    sibling[31] ^= std::byte{1};
    EXPECT_NE(root_of_proof(proof, leaves_of(pages, 5, 2)), root);
    sibling[31] ^= std::byte{1};
  }
  ASSERT_EQ(sibling_places(proof.region_bytes, 5, 2).size(), proof.siblings.size());
}

// The bound: one page of 1 TiB, in less than 1 KiB.
TEST(Proof, OfAPageOfATebibyteIsSmall) {
  PageProof proof;
  proof.name = "a-name-of-16-byt";
  proof.region_bytes = 1ull << 40;
  proof.first_page = proof.region_bytes / kPageBytes - 1;
  proof.siblings.resize(sibling_places(proof.region_bytes, proof.first_page, 1).size());
  EXPECT_EQ(proof.siblings.size(), 28u);
  EXPECT_LT(encode_proof(proof).size(), 1024u);
}

TEST(Proof, TruncatedAndMalformedOnesAreRefused) {
  const PageProof proof = proof_for(random_pages(20, 3), 5, 2);
  const auto bytes = encode_proof(proof);
  PageProof out;
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_NE(decode_proof(std::span(bytes).first(n), out), nullptr) << n;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_STREQ(decode_proof(longer, out), "malformed");
}

TEST(Signature, CoversEveryFact) {
  const SignedFacts facts{.store_id = {std::byte{1}},
                          .name = "v1",
                          .branch = "main",
                          .sequence = 7,
                          .region_bytes = 8192,
                          .file_bytes = 8000,
                          .time_ns = 5,
                          .created_ns = 6,
                          .message = "m"};
  VersionSignature signature;
  signature.number = 2;
  signature.parent_name = "v0";
  std::set<std::vector<std::byte>> seen{signed_statement(facts, signature)};
  const auto changed = [&](auto change) {
    SignedFacts f = facts;
    VersionSignature s = signature;
    change(f, s);
    EXPECT_TRUE(seen.insert(signed_statement(f, s)).second) << seen.size();
  };
  changed([](auto& f, auto&) { f.store_id[3] = std::byte{9}; });
  changed([](auto& f, auto&) { f.name = "v2"; });
  changed([](auto& f, auto&) { f.branch = "other"; });
  changed([](auto& f, auto&) { ++f.sequence; });
  changed([](auto& f, auto&) { f.region_bytes += kPageBytes; });
  changed([](auto& f, auto&) { ++f.file_bytes; });
  changed([](auto& f, auto&) { ++f.time_ns; });
  changed([](auto& f, auto&) { ++f.created_ns; });
  changed([](auto& f, auto&) { f.message += "x"; });
  changed([](auto&, auto& s) { s.root[5] ^= std::byte{1}; });
  changed([](auto&, auto& s) { s.parent[5] ^= std::byte{1}; });
  changed([](auto&, auto& s) { s.parent_name = "w"; });
  changed([](auto&, auto& s) { ++s.number; });
}

SnapshotRef signed_ref() {
  SnapshotRef ref{"v1", "main", 5, 3, {}, VersionSignature{}};
  ref.version.next_pack_number = 1;
  ref.signature->number = 2;
  ref.signature->parent_name = "v0";
  ref.signature->parent[0] = std::byte{1};
  return ref;
}

TEST(Signature, IsPartOfARef) {
  const Uuid id{std::byte{4}};
  const SnapshotRef ref = signed_ref();
  const auto bytes = encode_snapshot_ref(ref, id);
  SnapshotRef out;
  ASSERT_EQ(decode_snapshot_ref(bytes, id, out), nullptr);
  EXPECT_EQ(out, ref);
  SnapshotRef plain = ref;
  plain.signature.reset();
  EXPECT_NE(encode_snapshot_ref(plain, id)[6], bytes[6]);  // an older Vellum refuses the magic
}

TEST(Signature, WithAParentHasANumberAboveOneAndItsHash) {
  const Uuid id{std::byte{4}};
  const auto problem = [&](auto change) {
    SnapshotRef ref = signed_ref();
    change(*ref.signature);
    SnapshotRef out;
    return decode_snapshot_ref(encode_snapshot_ref(ref, id), id, out);
  };
  EXPECT_EQ(problem([](auto&) {}), nullptr);
  EXPECT_STREQ(problem([](auto& s) { s.number = 1; }), "malformed signature");
  EXPECT_STREQ(problem([](auto& s) { s.parent_name = ""; }), "malformed signature");
  EXPECT_STREQ(problem([](auto& s) { s.parent_name = "../x"; }), "malformed signature");
  EXPECT_STREQ(problem([](auto& s) { s.parent = {}; }), "malformed signature");
}

TEST(Signers, DecodeToWhatTheyWere) {
  const Uuid id{std::byte{4}};
  const Signers signers{7, {{std::byte{1}}, {std::byte{2}}}};
  const auto bytes = encode_signers(signers, id);
  Signers out;
  ASSERT_EQ(decode_signers(bytes, id, out), nullptr);
  EXPECT_EQ(out, signers);
  EXPECT_NE(decode_signers(std::span(bytes).first(bytes.size() - 1), id, out), nullptr);
  EXPECT_NE(decode_signers(bytes, Uuid{}, out), nullptr);
}

}  // namespace
}  // namespace vellum::format
