#include "remote/objects/head.hpp"

#include <algorithm>
#include <cstring>

#include "format/checks.hpp"
#include "format/superblock.hpp"
#include "format/whole_file.hpp"
#include "format/wire.hpp"

namespace vellum::remote {
namespace {

using format::ByteReader;
using format::ByteWriter;

constexpr format::WholeFileKind kHead{"VLMHEAD\n", kMaxHeadBytes, "not a head of a remote",
                                      "too large for a head"};
constexpr std::uint8_t kSnapshotKind = 1, kBranchKind = 2;
constexpr std::size_t kMinNameBytes = 90;  // of an encoded name: bounds what is allocated

template <typename Bytes>
void read_bytes(ByteReader& in, Bytes& out) {
  const auto bytes = in.bytes(out.size());
  if (bytes.size() == out.size()) std::memcpy(out.data(), bytes.data(), out.size());
}

void write_name(ByteWriter& w, const RemoteName& name) {
  w.u8(name.is_branch ? kBranchKind : kSnapshotKind);
  w.string(name.ref.name);
  w.string(name.ref.branch);
  w.u64(static_cast<std::uint64_t>(name.ref.created_ns));
  w.varint(name.ref.order);
  w.varint(name.epoch);
  w.bytes(name.writer);
  w.bytes(name.write_id);
  w.u8(name.encoding.has_value() ? 1 : 0);
  if (name.encoding.has_value()) write_encoding(w, *name.encoding);
  const auto version = format::encode_version(name.ref.version);
  w.varint(version.size());
  w.bytes(version);
  w.u32(name.list.name.generation);
  w.bytes(name.list.name.hash);
  w.varint(name.list.size_bytes);
}

bool read_own_encoding(ByteReader& in, std::optional<format::Encoding>& out) {
  const std::uint8_t has = in.u8();
  if (has > 1) return false;
  if (has == 1 && !read_encoding(in, out.emplace())) return false;
  return in.ok();
}

bool read_version(ByteReader& in, format::Version& out) {
  const std::uint64_t bytes = in.varint();
  return bytes <= format::kMaxVersionBytes && format::decode_version(in.bytes(bytes), out);
}

bool read_list_name(ByteReader& in, std::uint32_t generation, ListName& out) {
  out.name.generation = in.u32();
  read_bytes(in, out.name.hash);
  out.size_bytes = in.varint();
  return in.ok() && out.name.generation <= generation && (out.size_bytes != 0 || out == ListName{});
}

// What tells a branch from a snapshot.
bool kind_ok(const RemoteName& n) {
  if (!n.is_branch) {
    return n.epoch == 0 && n.writer == WriteId{} && !n.encoding.has_value() && n.ref.order >= 1 &&
           n.ref.order <= format::kMaxSnapshotOrder;
  }
  return n.epoch >= 1 && n.ref.order == 0 && n.ref.created_ns == 0 && n.ref.branch == n.ref.name;
}

bool read_name(ByteReader& in, std::uint32_t generation, RemoteName& out) {
  const std::uint8_t kind = in.u8();
  if (kind != kSnapshotKind && kind != kBranchKind) return false;
  out.is_branch = kind == kBranchKind;
  out.ref.name = in.string(format::kMaxNameBytes);
  out.ref.branch = in.string(format::kMaxNameBytes);
  out.ref.created_ns = static_cast<std::int64_t>(in.u64());
  out.ref.order = in.varint();
  out.epoch = in.varint();
  read_bytes(in, out.writer);
  read_bytes(in, out.write_id);
  if (!read_own_encoding(in, out.encoding) || !read_version(in, out.ref.version)) return false;
  if (!read_list_name(in, generation, out.list)) return false;
  return format::name_problem(out.ref.name) == nullptr &&
         format::name_problem(out.ref.branch) == nullptr && kind_ok(out);
}

}  // namespace

const RemoteName* Head::find(const std::string& name) const noexcept {
  const auto at = std::lower_bound(
      names.begin(), names.end(), name,
      [](const RemoteName& n, const std::string& wanted) { return n.ref.name < wanted; });
  return at != names.end() && at->ref.name == name ? &*at : nullptr;
}

std::vector<std::byte> encode_head(const Head& head, const format::Uuid& store_id) {
  std::vector<std::byte> body;
  ByteWriter w(body);
  w.u64(head.number);
  w.u32(head.generation);
  w.bytes(head.write_id);
  w.bytes(head.before);
  w.bytes(head.only_writer);
  w.varint(head.names.size());
  for (const RemoteName& name : head.names) write_name(w, name);
  return encode_whole_file(kHead, body, store_id);
}

const char* decode_head(std::span<const std::byte> bytes, const format::Uuid& store_id, Head& out) {
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kHead, bytes, store_id, body)) return problem;
  out = {};
  ByteReader in(body);
  out.number = in.u64();
  out.generation = in.u32();
  read_bytes(in, out.write_id);
  read_bytes(in, out.before);
  read_bytes(in, out.only_writer);
  const std::uint64_t count = in.varint();
  if (!in.ok() || out.number == 0 || count > in.left() / kMinNameBytes) return "malformed";
  out.names.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    RemoteName& name = out.names.emplace_back();
    if (!read_name(in, out.generation, name)) return "malformed";
    if (i > 0 && out.names[i - 1].ref.name >= name.ref.name) return "malformed";
  }
  return in.done() ? nullptr : "malformed";
}

}  // namespace vellum::remote
