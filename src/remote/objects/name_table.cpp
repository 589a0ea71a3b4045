#include "remote/objects/name_table.hpp"

#include <algorithm>
#include <cassert>

#include "format/wire/whole_file.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kTable{
    "VLMNAME\n", kMaxNameTableBytes, "not a table of names", "too large for a table of names", 0,
    true};
// With embedded objects: an older Vellum does not know them.
constexpr format::WholeFileKind kTableOfEmbedded{
    "VLMNAM2\n", kMaxNameTableBytes, "not a table of names", "too large for a table of names", 0,
    true};
constexpr std::size_t kMinNames = 16;  // of a head's own before it gets a table

bool by_name(const RemoteVersion& a, const RemoteVersion& b) { return a.ref.name < b.ref.name; }

}  // namespace

std::vector<std::byte> encode_name_table(std::span<const RemoteVersion> names,
                                         std::uint32_t generation, const format::FileSeal& seal) {
  assert(std::ranges::is_sorted(names, by_name));
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.u32(generation);
  write_names(w, names);
  return encode_whole_file(has_embedded(names) ? kTableOfEmbedded : kTable, body, seal);
}

const char* decode_name_table(std::span<const std::byte> bytes, const format::FileSeal& seal,
                              std::vector<RemoteVersion>& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  const bool may_embed =
      bytes.size() >= format::kWholeFileHeaderBytes && has_magic(kTableOfEmbedded, bytes);
  const char* const problem =
      open_whole_file(may_embed ? kTableOfEmbedded : kTable, bytes, seal, opened, body);
  if (problem != nullptr) return problem;
  out.clear();
  format::ByteReader in(body);
  const std::uint32_t generation = in.u32();
  const bool is_sound = read_names(in, generation, out) && in.done();
  return is_sound && has_embedded(out) == may_embed ? nullptr : "malformed";
}

std::vector<RemoteVersion> all_names(const Head& head, const std::vector<RemoteVersion>& table) {
  std::vector<RemoteVersion> out;
  out.reserve(head.versions.size() + table.size());
  std::set_union(head.versions.begin(), head.versions.end(), table.begin(), table.end(),
                 std::back_inserter(out), by_name);  // of equal names, the head's
  std::erase_if(out, [&](const RemoteVersion& name) {
    return std::ranges::binary_search(head.gone, name.ref.name) &&
           head.find(name.ref.name) == nullptr;
  });
  return out;
}

void set_names(Head& head, const std::vector<RemoteVersion>& names,
               const std::vector<RemoteVersion>& table) {
  assert(std::ranges::is_sorted(names, by_name) && std::ranges::is_sorted(table, by_name));
  std::vector<RemoteVersion> own;
  for (const RemoteVersion& name : names) {
    const auto at = std::ranges::lower_bound(table, name, by_name);
    if (at == table.end() || *at != name) own.push_back(name);
  }
  head.gone.clear();
  for (const RemoteVersion& name : table) {
    if (!std::ranges::binary_search(names, name, by_name)) head.gone.push_back(name.ref.name);
  }
  head.versions = std::move(own);
}

bool wants_new_table(const Head& head, const std::vector<RemoteVersion>& table) noexcept {
  const std::size_t own = head.versions.size() + head.gone.size();
  return own >= kMinNames && own * own > 2 * table.size();
}

}  // namespace vellum::remote
