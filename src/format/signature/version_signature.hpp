// format/signature/version_signature.hpp: the signature of a version, and the bytes that it signs.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/crypto/ed25519.hpp"
#include "format/signature/hash_tree.hpp"
#include "format/wire/types.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

// Part of a snapshot's ref.
struct VersionSignature {
  TreeHash root{};  // over the pages of the version
  // The signed version before it, on the same line: its name then, and the hash of its statement.
  // Empty and zeros: none.
  std::string parent_name;
  base::Sha256 parent{};
  std::uint64_t number = 1;  // 1 without a parent; else that of the parent plus 1
  base::Ed25519Public key{};
  base::Ed25519Signature signature{};
  bool operator==(const VersionSignature&) const = default;
};

void write_signature(ByteWriter& w, const VersionSignature& signature);
// False: the bytes end early, or a field is out of range.
bool read_signature(ByteReader& in, VersionSignature& out);

// The facts that are signed besides those of the signature itself.
struct SignedFacts {
  Uuid store_id{};
  std::string name, branch;
  std::uint64_t sequence = 0, region_bytes = 0, file_bytes = 0;
  std::int64_t time_ns = 0, created_ns = 0;
  std::string message;
};

// SHA-256 of the facts that a proof need not show.
base::Sha256 context_hash(const SignedFacts& facts, const VersionSignature& signature);

// The signed bytes: a fixed text, region bytes, root, name, context hash.
std::vector<std::byte> signed_statement(std::uint64_t region_bytes, const TreeHash& root,
                                        const std::string& name, const base::Sha256& context);
std::vector<std::byte> signed_statement(const SignedFacts& facts,
                                        const VersionSignature& signature);

}  // namespace vellum::format
