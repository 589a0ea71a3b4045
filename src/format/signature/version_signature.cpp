#include "format/signature/version_signature.hpp"

#include <cassert>
#include <string_view>

#include "format/wire/checks.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::format {
namespace {

constexpr std::string_view kStatementStart = "Vellum signed version 1\n";
constexpr std::string_view kContextStart = "Vellum context 1\n";

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A fixed width: a checker needs no varint.
void write_text(ByteWriter& w, std::string_view text) {
  w.u32(static_cast<std::uint32_t>(text.size()));
  w.bytes(bytes_of(text));
}

}  // namespace

void write_signature(ByteWriter& w, const VersionSignature& signature) {
  assert(signature.number >= 1 && signature.parent_name.size() <= kMaxNameBytes);
  w.bytes(signature.root);
  w.string(signature.parent_name);
  w.bytes(signature.parent);
  w.varint(signature.number);
  w.bytes(signature.key);
  w.bytes(signature.signature);
}

bool read_signature(ByteReader& in, VersionSignature& out) {
  read_bytes(in, out.root);
  out.parent_name = in.string(kMaxNameBytes);
  read_bytes(in, out.parent);
  out.number = in.varint();
  read_bytes(in, out.key);
  read_bytes(in, out.signature);
  const bool has_parent = !out.parent_name.empty();
  return in.ok() && has_parent == (out.number > 1) && out.number >= 1 &&
         has_parent == (out.parent != base::Sha256{}) &&
         (!has_parent || name_problem(out.parent_name) == nullptr);
}

base::Sha256 context_hash(const SignedFacts& facts, const VersionSignature& signature) {
  std::vector<std::byte> out;
  ByteWriter w(out);
  w.bytes(bytes_of(kContextStart));
  w.bytes(facts.store_id);
  w.bytes(signature.parent);
  w.u64(signature.number);
  w.u64(facts.sequence);
  w.u64(facts.file_bytes);
  w.u64(static_cast<std::uint64_t>(facts.time_ns));
  w.u64(static_cast<std::uint64_t>(facts.created_ns));
  write_text(w, facts.branch);
  write_text(w, signature.parent_name);
  write_text(w, facts.message);
  return base::sha256(out);
}

std::vector<std::byte> signed_statement(std::uint64_t region_bytes, const TreeHash& root,
                                        const std::string& name, const base::Sha256& context) {
  std::vector<std::byte> out;
  ByteWriter w(out);
  w.bytes(bytes_of(kStatementStart));
  w.u64(region_bytes);
  w.bytes(root);
  write_text(w, name);
  w.bytes(context);
  return out;
}

std::vector<std::byte> signed_statement(const SignedFacts& facts,
                                        const VersionSignature& signature) {
  return signed_statement(facts.region_bytes, signature.root, facts.name,
                          context_hash(facts, signature));
}

}  // namespace vellum::format
