#include "remote/objects/head.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "format/wire/checks.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::remote {
namespace {

using format::ByteReader;
using format::ByteWriter;

constexpr format::WholeFileKind kHead{"VLMHED2\n", kMaxHeadBytes, "not a head of a remote",
                                      "too large for a head",
                                      kHeadStartBytes - format::kWholeFileHeaderBytes};
// With embedded objects, which follow the frame: an older Vellum does not know them.
constexpr format::WholeFileKind kHeadOfEmbedded{"VLMHED3\n", kMaxHeadBytes,
                                                "not a head of a remote", "too large for a head",
                                                kHeadStartBytes - format::kWholeFileHeaderBytes};
// By an older Vellum: without witnesses.
constexpr format::WholeFileKind kOldHead{"VLMHEAD\n", kMaxHeadBytes, "not a head of a remote",
                                         "too large for a head"};
constexpr std::uint8_t kWitnessFlag = 1, kContinuesAtFlag = 2;
constexpr std::size_t kMinGoneBytes = 2;  // of an encoded forgotten name

bool says_it_embeds(std::span<const std::byte> bytes) noexcept {
  return bytes.size() >= format::kWholeFileHeaderBytes && has_magic(kHeadOfEmbedded, bytes);
}

bool read_gone(ByteReader& in, std::vector<std::string>& out) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.left() / kMinGoneBytes) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    out.push_back(in.string(format::kMaxNameBytes));
    if (format::name_problem(out.back()) != nullptr) return false;
    if (i > 0 && out[i - 1] >= out[i]) return false;
  }
  return in.ok();
}

bool read_witness(ByteReader& in, Head& out) {
  const std::uint8_t flags = in.u8();
  out.is_witness = (flags & kWitnessFlag) != 0;
  out.earlier_witness.number = in.u64();
  read_bytes(in, out.earlier_witness.write_id);
  const bool continues = (flags & kContinuesAtFlag) != 0;
  if (continues) out.continues_at = in.u64();
  const HeadId& earlier = out.earlier_witness;
  return in.ok() && flags <= (kWitnessFlag | kContinuesAtFlag) &&
         (earlier.number != 0 || earlier == HeadId{}) && earlier.number < out.number &&
         (!continues || out.continues_at > out.number);
}

}  // namespace

const RemoteVersion* Head::find(const std::string& name) const noexcept {
  const auto at = std::lower_bound(
      versions.begin(), versions.end(), name,
      [](const RemoteVersion& n, const std::string& wanted) { return n.ref.name < wanted; });
  return at != versions.end() && at->ref.name == name ? &*at : nullptr;
}

std::vector<std::byte> encode_head(const Head& head, const format::FileSeal& seal) {
  assert(head.number != 0);
  assert(head.continues_at == 0 || head.continues_at > head.number);
  assert(std::ranges::is_sorted(head.gone));
  std::vector<std::byte> body;
  ByteWriter w(body);
  w.u64(head.number);
  w.u32(head.generation);
  w.bytes(head.write_id);
  w.bytes(head.before);
  w.u8(static_cast<std::uint8_t>((head.is_witness ? kWitnessFlag : 0) |
                                 (head.continues_at != 0 ? kContinuesAtFlag : 0)));
  w.u64(head.earlier_witness.number);
  w.bytes(head.earlier_witness.write_id);
  if (head.continues_at != 0) w.u64(head.continues_at);
  w.bytes(head.only_writer);
  w.u32(head.table.content.generation);
  w.bytes(head.table.content.hash);
  w.varint(head.table.size_bytes);
  write_names(w, head.versions);
  w.varint(head.gone.size());
  for (const std::string& name : head.gone) w.string(name);
  const bool embeds = has_embedded(head.versions);
  return encode_whole_file(embeds ? kHeadOfEmbedded : kHead, body, seal);
}

std::vector<std::byte> encode_head_with(Head& head, std::span<const std::byte> objects,
                                        const format::FileSeal& seal) {
  if (objects.empty()) return encode_head(head, seal);
  const auto move_by = [&](std::uint64_t bytes) {
    for (RemoteVersion& version : head.versions) {
      for (EmbeddedObject& object : version.embedded) {
        if (object.head == head.number) object.offset_bytes += bytes;
      }
    }
  };
  // Offsets are in the compressed part of the head, whose size depends on them.
  constexpr std::size_t kStep = 64;
  std::size_t at = 0;
  std::vector<std::byte> out;
  do {
    const std::size_t next = (encode_head(head, seal).size() / kStep + 1) * kStep;
    move_by(next - at);
    at = next;
    out = encode_head(head, seal);
  } while (out.size() > at);
  out.resize(at);
  out.insert(out.end(), objects.begin(), objects.end());
  return out;
}

bool has_sound_objects(const Head& head, std::span<const std::byte> bytes) {
  for (const RemoteVersion& version : head.versions) {
    for (const EmbeddedObject& object : version.embedded) {
      if (object.head != head.number) continue;
      if (end_of(object) > bytes.size()) return false;
      const auto part = bytes.subspan(static_cast<std::size_t>(object.offset_bytes),
                                      static_cast<std::size_t>(object.size_bytes));
      if (hash_start(base::sha256(part)) != object.hash_start) return false;
    }
  }
  return true;
}

std::span<const std::byte> frame_of_head(std::span<const std::byte> bytes) noexcept {
  if (!says_it_embeds(bytes)) return bytes;
  ByteReader in(bytes);
  in.bytes(format::kWholeFileMagicBytes);
  in.u32();  // the format's version
  const std::size_t length = in.u32();
  const bool has_frame = length >= format::kWholeFileHeaderBytes && length <= bytes.size();
  return has_frame ? bytes.first(length) : bytes;
}

HeadId head_id_at_start(std::span<const std::byte> bytes) {
  assert(bytes.size() == kHeadStartBytes);
  ByteReader in(bytes.subspan(format::kWholeFileHeaderBytes));
  HeadId out;
  out.number = in.u64();
  in.u32();  // the generation
  read_bytes(in, out.write_id);
  return out;
}

const char* decode_head(std::span<const std::byte> bytes, const format::FileSeal& seal, Head& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  const bool is_old = open_whole_file(kOldHead, bytes, seal, opened, body) == nullptr;
  const bool may_embed = !is_old && says_it_embeds(bytes);
  const char* const problem = is_old ? nullptr
                                     : open_whole_file(may_embed ? kHeadOfEmbedded : kHead,
                                                       frame_of_head(bytes), seal, opened, body);
  if (problem != nullptr) return problem;
  out = {};
  ByteReader in(body);
  out.number = in.u64();
  out.generation = in.u32();
  read_bytes(in, out.write_id);
  read_bytes(in, out.before);
  if (!is_old && !read_witness(in, out)) return "malformed";
  read_bytes(in, out.only_writer);
  out.table.content.generation = in.u32();
  read_bytes(in, out.table.content.hash);
  out.table.size_bytes = in.varint();
  if (!in.ok() || out.number == 0 || out.table.content.generation > out.generation ||
      (out.table.size_bytes == 0 && out.table != ObjectName{}) ||
      !read_names(in, out.generation, out.versions) || !read_gone(in, out.gone) ||
      has_embedded(out.versions) != may_embed) {
    return "malformed";
  }
  for (const RemoteVersion& version : out.versions) {
    if (!version.embedded.empty() && version.embedded.back().head > out.number) return "malformed";
  }
  return in.done() ? nullptr : "malformed";
}

std::vector<std::byte> encode_newest_copy(const NewestCopy& copy) {
  std::vector<std::byte> out;
  format::ByteWriter w(out);
  w.bytes(copy.head);
  for (const auto& list : copy.lists) {
    w.varint(list.size());
    w.bytes(list);
  }
  return out;
}

NewestCopy decode_newest_copy(std::span<const std::byte> bytes, std::uint64_t head_bytes) {
  NewestCopy out;
  format::ByteReader in(bytes);
  const auto take = [&](std::uint64_t size) {
    const auto part = in.bytes(size);
    return std::vector<std::byte>(part.begin(), part.end());
  };
  out.head = take(head_bytes);
  while (in.ok() && !in.done() && out.lists.size() < kMaxCopiedLists) {
    auto list = take(in.varint());
    if (list.empty()) break;
    out.lists.push_back(std::move(list));
  }
  return out;
}

}  // namespace vellum::remote
