// format/signature/proof.hpp: a proof that pages belong to a signed version.
//
// A program without Vellum checks it from the pages, the proof and the public key
// (examples/check_proof.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/signature/version_signature.hpp"

namespace vellum::format {

inline constexpr std::uint64_t kMaxProvenPages = std::uint64_t{1} << 18;  // 1 GiB

struct PageProof {
  std::string name;  // of the version
  std::uint64_t region_bytes = 0;
  PageNumber first_page = 0;
  std::uint64_t pages = 1;
  base::Sha256 context{};
  base::Ed25519Signature signature{};
  // The hashes beside the path from the pages to the root, from the leaves up; of a level, the left
  // one first.
  std::vector<TreeHash> siblings;
  bool operator==(const PageProof&) const = default;
};

std::vector<std::byte> encode_proof(const PageProof& proof);
// nullptr, or a description of the error.
const char* decode_proof(std::span<const std::byte> bytes, PageProof& out);

// A node beside the path: node `index` of the level whose subtrees have 2^height pages.
struct TreePlace {
  unsigned height = 0;
  std::uint64_t index = 0;
};
std::vector<TreePlace> sibling_places(std::uint64_t region_bytes, PageNumber first,
                                      std::uint64_t pages);
// REQUIRES: as many leaves as pages, and as many siblings as places.
TreeHash root_of_proof(const PageProof& proof, std::vector<TreeHash> leaves);

}  // namespace vellum::format
