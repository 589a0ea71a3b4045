#include "remote/objects/remote_version.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes/codec.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::remote {
namespace {

using format::ByteReader;
using format::ByteWriter;

constexpr int kLevel = 9;
constexpr std::uint64_t kMaxNamesBytes = 64u << 20;  // before they are compressed
// A higher ratio is stored uncompressed, so that a small object never needs much memory.
constexpr std::uint64_t kMaxTimesPacked = 256;
constexpr std::uint8_t kSnapshotKind = 1, kBranchKind = 2;
// Flags next to the kind. The second one is a snapshot's: each branch has a writer.
constexpr std::uint8_t kHasBase = 4, kHasWriter = 8;
constexpr std::uint8_t kHasEmbedded = 16;   // a branch's
constexpr std::uint8_t kHasSignature = 32;  // a snapshot's
constexpr std::uint64_t kMaxEmbeddedEndBytes = 64u << 20;
constexpr std::size_t kMinEmbeddedBytes = 11;  // of an encoded one
constexpr std::size_t kMinNameBytes = 58;      // of an encoded name: bounds allocations

void write_object_name(ByteWriter& w, const ObjectName& object) {
  w.u32(object.content.generation);
  w.bytes(object.content.hash);
  w.varint(object.size_bytes);
}

void write_embedded(ByteWriter& w, const std::vector<EmbeddedObject>& objects) {
  assert(std::ranges::is_sorted(objects));
  w.varint(objects.size());
  std::uint64_t head = 0;
  for (const EmbeddedObject& object : objects) {
    w.varint(object.head - head);
    if (object.head != head) w.u64(object.head_id);
    w.varint(object.offset_bytes);
    w.varint(object.size_bytes);
    w.u64(object.hash_start);
    head = object.head;
  }
}

bool read_embedded(ByteReader& in, std::vector<EmbeddedObject>& out) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > kMaxEmbeddedObjects ||
      count > in.left() / kMinEmbeddedBytes) {
    return false;
  }
  std::uint64_t head = 0, head_id = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t step = in.varint();
    EmbeddedObject& object = out.emplace_back();
    if (step > UINT64_MAX - head) return false;
    object.head = head += step;
    if (step != 0) head_id = in.u64();
    object.head_id = head_id;
    object.offset_bytes = in.varint();
    object.size_bytes = in.varint();
    object.hash_start = in.u64();
    if (!in.ok() || object.head == 0 || object.offset_bytes == 0 || object.size_bytes == 0 ||
        object.size_bytes > kMaxEmbeddedEndBytes ||
        object.offset_bytes > kMaxEmbeddedEndBytes - object.size_bytes) {
      return false;
    }
    if (i > 0 && out[out.size() - 2] >= object) return false;
  }
  return true;
}

void write_name(ByteWriter& w, const RemoteVersion& name) {
  assert(name.is_branch || name.embedded.empty());
  assert(!name.is_branch || !name.ref.signature.has_value());
  const bool has_base = name.list.base.size_bytes != 0;
  const bool has_writer = name.writer != WriteId{};
  w.u8(static_cast<std::uint8_t>((name.is_branch ? kBranchKind : kSnapshotKind) |
                                 (has_base ? kHasBase : 0) |
                                 (!name.is_branch && has_writer ? kHasWriter : 0) |
                                 (name.embedded.empty() ? 0 : kHasEmbedded) |
                                 (name.ref.signature.has_value() ? kHasSignature : 0)));
  w.string(name.ref.name);
  w.string(name.ref.branch);
  w.u64(static_cast<std::uint64_t>(name.ref.created_ns));
  w.varint(name.ref.order);
  w.varint(name.epoch);
  if (name.is_branch || has_writer) w.bytes(name.writer);
  if (name.is_branch) w.bytes(name.write_id);
  w.u8(name.encoding.has_value() ? 1 : 0);
  if (name.encoding.has_value()) write_encoding(w, *name.encoding);
  const auto version = format::encode_version(name.ref.version);
  w.varint(version.size());
  w.bytes(version);
  write_object_name(w, name.list.own);
  if (has_base) write_object_name(w, name.list.base);
  if (name.ref.signature.has_value()) write_signature(w, *name.ref.signature);
  if (!name.embedded.empty()) write_embedded(w, name.embedded);
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

bool read_object_name(ByteReader& in, std::uint32_t generation, ObjectName& out) {
  out.content.generation = in.u32();
  read_bytes(in, out.content.hash);
  out.size_bytes = in.varint();
  return in.ok() && out.content.generation <= generation &&
         (out.size_bytes != 0 || out == ObjectName{});
}

bool read_list_name(ByteReader& in, std::uint32_t generation, bool has_base, ListName& out) {
  if (!read_object_name(in, generation, out.own)) return false;
  if (!has_base) return true;
  return read_object_name(in, generation, out.base) && out.own.size_bytes != 0 &&
         out.base.size_bytes != 0 && out.base.content != out.own.content;
}

// The fields that distinguish a branch from a snapshot.
bool kind_ok(const RemoteVersion& n) {
  if (!n.is_branch) {
    return n.epoch == 0 && !n.encoding.has_value() && n.ref.order >= 1 &&
           n.ref.order <= format::kMaxSnapshotOrder;
  }
  return n.epoch >= 1 && n.ref.order == 0 && n.ref.created_ns == 0 && n.ref.branch == n.ref.name;
}

bool read_name(ByteReader& in, std::uint32_t generation, RemoteVersion& out) {
  const std::uint8_t stated = in.u8();
  const bool has_base = (stated & kHasBase) != 0;
  const bool has_writer = (stated & kHasWriter) != 0;
  const bool has_embedded = (stated & kHasEmbedded) != 0;
  const bool has_signature = (stated & kHasSignature) != 0;
  const int kind = stated & ~(kHasBase | kHasWriter | kHasEmbedded | kHasSignature);
  if (kind != kSnapshotKind && kind != kBranchKind) return false;
  out.is_branch = kind == kBranchKind;
  if (out.is_branch ? has_writer || has_signature : has_embedded) return false;
  out.ref.name = in.string(format::kMaxNameBytes);
  out.ref.branch = in.string(format::kMaxNameBytes);
  out.ref.created_ns = static_cast<std::int64_t>(in.u64());
  out.ref.order = in.varint();
  out.epoch = in.varint();
  if (out.is_branch || has_writer) read_bytes(in, out.writer);
  if (has_writer && out.writer == WriteId{}) return false;
  if (out.is_branch) read_bytes(in, out.write_id);
  if (!read_own_encoding(in, out.encoding) || !read_version(in, out.ref.version)) return false;
  if (!read_list_name(in, generation, has_base, out.list)) return false;
  if (has_signature && !read_signature(in, out.ref.signature.emplace())) return false;
  if (has_embedded && !read_embedded(in, out.embedded)) return false;
  return format::name_problem(out.ref.name) == nullptr &&
         format::name_problem(out.ref.branch) == nullptr && kind_ok(out);
}

// False: the bytes do not decompress to the stated size.
bool unpack(ByteReader& in, std::vector<std::byte>& raw) {
  const auto codec = base::codec_from_byte(in.u8());
  const std::uint64_t raw_bytes = in.varint(), stored_bytes = in.varint();
  if (!in.ok() || raw_bytes > kMaxNamesBytes) return false;
  const auto stored = in.bytes(stored_bytes);
  if (!in.ok() || raw_bytes > stored_bytes * kMaxTimesPacked) return false;
  if (codec == base::Compression::none) {
    raw.assign(stored.begin(), stored.end());
    return raw.size() == raw_bytes;
  }
  if (codec != base::Compression::zstd) return false;
  raw.resize(static_cast<std::size_t>(raw_bytes));
  return base::Decompressor(0).decompress(base::Compression::zstd, stored, raw);
}

}  // namespace

std::uint64_t id_start(const WriteId& id) noexcept { return ByteReader(id).u64(); }

bool has_embedded(std::span<const RemoteVersion> names) noexcept {
  return std::ranges::any_of(names, [](const auto& name) { return !name.embedded.empty(); });
}

void write_names(ByteWriter& w, std::span<const RemoteVersion> names) {
  std::vector<std::byte> raw;
  ByteWriter names_writer(raw);
  names_writer.varint(names.size());
  for (const RemoteVersion& name : names) write_name(names_writer, name);
  std::vector<std::byte> packed(raw.size());
  base::Compressor compressor;
  packed.resize(compressor.compress(base::Compression::zstd, kLevel, raw, packed));
  const bool is_packed = !packed.empty() && raw.size() <= packed.size() * kMaxTimesPacked;
  w.u8(base::codec_byte(is_packed ? base::Compression::zstd : base::Compression::none));
  w.varint(raw.size());
  w.varint(is_packed ? packed.size() : raw.size());
  w.bytes(is_packed ? packed : raw);
}

bool read_names(ByteReader& in, std::uint32_t generation, std::vector<RemoteVersion>& out) {
  std::vector<std::byte> raw;
  if (!unpack(in, raw)) return false;
  ByteReader names(raw);
  const std::uint64_t count = names.varint();
  if (!names.ok() || count > names.left() / kMinNameBytes) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!read_name(names, generation, out.emplace_back())) return false;
    if (i > 0 && out[i - 1].ref.name >= out[i].ref.name) return false;
  }
  return names.done();
}

}  // namespace vellum::remote
