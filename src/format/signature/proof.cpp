#include "format/signature/proof.hpp"

#include <cassert>

#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::format {
namespace {

bool pages_ok(const PageProof& p) noexcept {
  const std::uint64_t pages = pages_in(p.region_bytes);
  return region_size_ok(p.region_bytes) && p.region_bytes <= kMaxSignedRegionBytes &&
         p.pages >= 1 && p.pages <= kMaxProvenPages && p.first_page < pages &&
         p.pages <= pages - p.first_page;
}

}  // namespace

std::vector<std::byte> encode_proof(const PageProof& proof) {
  assert(pages_ok(proof));
  std::vector<std::byte> out;
  ByteWriter w(out);
  w.u32(kProofMagic);
  w.u8(static_cast<std::uint8_t>(proof.name.size()));
  w.bytes(std::as_bytes(std::span(proof.name.data(), proof.name.size())));
  w.varint(proof.region_bytes / kPageBytes);
  w.varint(proof.first_page);
  w.varint(proof.pages);
  w.bytes(proof.context);
  w.bytes(proof.signature);
  for (const TreeHash& hash : proof.siblings) w.bytes(hash);
  return out;
}

const char* decode_proof(std::span<const std::byte> bytes, PageProof& out) {
  ByteReader in(bytes);
  if (in.u32() != kProofMagic || !in.ok()) return "not a proof of Vellum";
  PageProof proof;
  const auto name = in.bytes(in.u8());
  proof.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const std::uint64_t region_pages = in.varint();
  proof.first_page = in.varint();
  proof.pages = in.varint();
  read_bytes(in, proof.context);
  read_bytes(in, proof.signature);
  if (!in.ok()) return "truncated";
  if (region_pages > kMaxPages) return "malformed";
  proof.region_bytes = region_pages * kPageBytes;
  if (name_problem(proof.name) != nullptr || !pages_ok(proof)) return "malformed";
  proof.siblings.resize(sibling_places(proof.region_bytes, proof.first_page, proof.pages).size());
  for (TreeHash& hash : proof.siblings) read_bytes(in, hash);
  if (!in.ok()) return "truncated";
  if (!in.done()) return "malformed";
  out = std::move(proof);
  return nullptr;
}

std::vector<TreePlace> sibling_places(std::uint64_t region_bytes, PageNumber first,
                                      std::uint64_t pages) {
  assert(pages >= 1);
  std::vector<TreePlace> out;
  const unsigned depth = tree_depth(region_bytes);
  std::uint64_t last = first + pages - 1;
  for (unsigned height = 0; height < depth; ++height, first /= 2, last /= 2) {
    if (first % 2 == 1) out.push_back({height, first - 1});
    if (last % 2 == 0) out.push_back({height, last + 1});
  }
  return out;
}

TreeHash root_of_proof(const PageProof& proof, std::vector<TreeHash> leaves) {
  assert(leaves.size() == proof.pages);
  const unsigned depth = tree_depth(proof.region_bytes);
  std::uint64_t first = proof.first_page;
  std::size_t used = 0;
  for (unsigned height = 0; height < depth; ++height, first /= 2) {
    if (first % 2 == 1) leaves.insert(leaves.begin(), proof.siblings[used++]);
    if (leaves.size() % 2 == 1) leaves.push_back(proof.siblings[used++]);
    for (std::size_t i = 0; i < leaves.size(); i += 2) {
      leaves[i / 2] = node_hash(leaves[i], leaves[i + 1]);
    }
    leaves.resize(leaves.size() / 2);
  }
  assert(leaves.size() == 1 && used == proof.siblings.size());
  return leaves.front();
}

}  // namespace vellum::format
