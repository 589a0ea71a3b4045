#include "format/newest_snapshots.hpp"

#include <cassert>
#include <tuple>

#include "format/version.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kNewestFile{kNewestSnapshotsMagic, kMaxNewestSnapshotsBytes,
                                    "not the newest snapshots", "larger than it can be"};
constexpr std::uint8_t kHasAll = 1, kHasLatestMembers = 2;
static_assert(kWholeFileHeaderBytes + 64 + kMaxNewestSnapshots * (kMaxNameBytes + 12) +
                  kSealBytes <=
              kMaxNewestSnapshotsBytes);

bool entry_ok(const NewestSnapshots::Entry& entry) noexcept {
  return entry.order != 0 && entry.order <= kMaxSnapshotOrder &&
         name_problem(entry.name) == nullptr;
}

}  // namespace

bool comes_before(const NewestSnapshots::Entry& a, const NewestSnapshots::Entry& b) noexcept {
  return std::tie(b.order, a.name) < std::tie(a.order, b.name);
}

std::vector<std::byte> encode_newest_snapshots(const NewestSnapshots& newest,
                                               const FileSeal& seal) {
  assert(newest.entries.size() <= kMaxNewestSnapshots);
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.u64(newest.last_order);
  b.u64(static_cast<std::uint64_t>(newest.refs.modified_ns));
  b.u64(static_cast<std::uint64_t>(newest.refs.changed_ns));
  b.u64(newest.refs.inode);
  b.u8(static_cast<std::uint8_t>((newest.has_all ? kHasAll : 0) |
                                 (newest.has_latest_members ? kHasLatestMembers : 0)));
  b.varint(newest.entries.size());
  for (const auto& entry : newest.entries) {
    b.varint(entry.order);
    b.string(entry.name);
  }
  return encode_whole_file(kNewestFile, body, seal);
}

const char* decode_newest_snapshots(std::span<const std::byte> bytes, const FileSeal& seal,
                                    NewestSnapshots& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kNewestFile, bytes, seal, opened, body)) return problem;
  ByteReader in(body);
  NewestSnapshots newest;
  newest.last_order = in.u64();
  newest.refs.modified_ns = static_cast<std::int64_t>(in.u64());
  newest.refs.changed_ns = static_cast<std::int64_t>(in.u64());
  newest.refs.inode = in.u64();
  const std::uint8_t flags = in.u8();
  const std::uint64_t count = in.varint();
  if (!in.ok() || newest.last_order > kMaxSnapshotOrder || flags > (kHasAll | kHasLatestMembers) ||
      count > kMaxNewestSnapshots) {
    return "malformed";
  }
  newest.has_all = (flags & kHasAll) != 0;
  newest.has_latest_members = (flags & kHasLatestMembers) != 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    NewestSnapshots::Entry entry{in.varint(), in.string(kMaxNameBytes)};
    if (!in.ok() || !entry_ok(entry)) return "malformed";
    if (i != 0 && !comes_before(newest.entries.back(), entry)) return "not in order";
    newest.entries.push_back(std::move(entry));
  }
  if (!in.done()) return "malformed";
  out = std::move(newest);
  return nullptr;
}

}  // namespace vellum::format
