#include "remote/lazy/shared_opening.hpp"

#include <unistd.h>

#include <array>
#include <cassert>
#include <chrono>
#include <cstring>
#include <future>

#include "base/boot_id.hpp"
#include "base/bytes/hex.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "base/threads/start_thread.hpp"
#include "base/try_to.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"
#include "remote/fetch/fetch_lock.hpp"

namespace vellum::remote {
namespace {

constexpr auto kOpeningLockTimeout = std::chrono::seconds(2);
// For this time, the number in a listing identifies a head that was read before. Afterwards, the
// remote may have been emptied and filled again.
constexpr std::int64_t kHeadStaysNs = 1'000'000'000;
constexpr std::uint32_t kMaxSharedBytes = 256u << 10;
constexpr format::WholeFileKind kShared{"VLMOPEN\n", kMaxSharedBytes, "not an opening",
                                        "too large for an opening"};

// The clock that all processes of this boot share.
std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Distinguishes this clock from that of another boot, machine or container. Nullopt: unknown.
std::optional<format::Uuid> clock_id() {
  std::string text = base::boot_id();
  if (text.empty()) return std::nullopt;
  std::array<char, 64> link{};
  const auto length = ::readlink("/proc/self/ns/time", link.data(), link.size());
  if (length > 0) text.append(link.data(), static_cast<std::size_t>(length));
  const base::Sha256 hash = base::sha256(std::as_bytes(std::span(text)));
  format::Uuid out{};
  std::memcpy(out.data(), hash.data(), out.size());
  return out;
}

// An opening and the times at which its listing and its head were requested.
struct Shared {
  std::int64_t listed_ns = 0, read_ns = 0;
  Opening opening;
};

std::vector<std::byte> encode_shared(const Shared& shared, const format::Uuid& clock) {
  assert(shared.opening.listed.has_value());
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.u64(static_cast<std::uint64_t>(shared.listed_ns));
  w.u64(static_cast<std::uint64_t>(shared.read_ns));
  w.u64(shared.opening.listed->number);
  w.varint(shared.opening.superblock.size());
  w.bytes(shared.opening.superblock);
  w.varint(shared.opening.head.size());
  w.bytes(shared.opening.head);
  return encode_whole_file(kShared, body, clock);
}

bool has_listed_head(const Opening& opening) {
  return opening.listed.has_value() && may_be_listed_head(*opening.listed, opening.head);
}

std::vector<std::byte> sized_bytes(format::ByteReader& in) {
  const auto bytes = in.bytes(in.varint());
  return {bytes.begin(), bytes.end()};
}

bool decode_shared(std::span<const std::byte> bytes, const format::Uuid& clock, Shared& out) {
  std::span<const std::byte> body;
  if (open_whole_file(kShared, bytes, clock, body) != nullptr) return false;
  format::ByteReader in(body);
  out.listed_ns = static_cast<std::int64_t>(in.u64());
  out.read_ns = static_cast<std::int64_t>(in.u64());
  const std::uint64_t number = in.u64();
  out.opening.superblock = sized_bytes(in);
  out.opening.head = sized_bytes(in);
  out.opening.listed = {number, out.opening.head.size()};
  format::Superblock superblock;
  const std::int64_t now = clock_ns();
  return in.done() && out.listed_ns <= now && out.read_ns <= out.listed_ns &&
         decode_superblock(out.opening.superblock, superblock) == format::SuperblockStatus::ok &&
         superblock.store_id == format::id_of_whole_file(out.opening.head) &&
         has_listed_head(out.opening);
}

// Three concurrent requests. Remote::newest_head() adds one if the copy is not the newest head.
Opening ask_all(ObjectStore& objects) {
  auto superblock = base::beside([&] { return read_superblock_bytes(objects); });
  auto copy = base::beside([&] { return newest_copy(objects); });
  Opening out;
  out.listed = newest_listed_at(objects);
  out.superblock = superblock.get();
  const auto copied = copy.get();
  if (!out.listed.has_value()) return out;
  NewestCopy newest = decode_newest_copy(copied, out.listed->size_bytes);
  out.head = std::move(newest.head);
  if (has_listed_head(out)) out.lists = std::move(newest.lists);
  return out;
}

// The same with the newest head in any case: the next process needs it.
Shared ask_all_to_share(ObjectStore& objects) {
  Shared out;
  out.listed_ns = out.read_ns = clock_ns();
  out.opening = ask_all(objects);
  if (!out.opening.listed.has_value() || has_listed_head(out.opening)) return out;
  RemoteSuperblock superblock;
  const bool is_encrypted = decode_remote_superblock(out.opening.superblock, superblock) ==
                                format::SuperblockStatus::ok &&
                            superblock.objects_key.has_value();
  if (is_encrypted) return out;  // its heads are not shared
  const ListedHead& listed = *out.opening.listed;
  base::try_to([&] { out.opening.head = objects.get(head_key(listed.number), listed.size_bytes); });
  return out;
}

// Whether the head that another process has read is still the newest, by a new listing.
bool ask_again(ObjectStore& objects, Shared& shared) {
  if (clock_ns() - shared.read_ns > kHeadStaysNs) return false;
  const std::int64_t begun_ns = clock_ns();
  if (newest_listed_at(objects) != shared.opening.listed) return false;
  shared.listed_ns = begun_ns;
  return true;
}

std::string opening_name(const std::string& url) {
  const base::Sha256 hash = base::sha256(std::as_bytes(std::span(url)));
  return "opening-" + base::hex(std::span(hash).first(16));
}

}  // namespace

Opening read_opening(base::Fs& any_fs, ObjectStore& objects, const std::string& cache_directory) {
  const auto beneath = base::beneath(any_fs, cache_directory);
  base::Fs& fs = *beneath;
  const std::int64_t came_ns = clock_ns();
  const auto clock = clock_id();
  const std::string openings = cache_directory + "/openings", tmp = cache_directory + "/tmp";
  const bool is_shared = clock.has_value() && !cache_directory.empty() && base::try_to([&] {
                           for (const std::string& path : {openings, tmp})
                             base::ensure_directories(fs, path);
                         });
  if (!is_shared) return ask_all(objects);
  const std::string name = opening_name(objects.url());
  const FetchLock lock =
      acquire_fetch_lock(fs, openings + "/" + name + ".turn", kOpeningLockTimeout);
  Shared shared;
  bool is_known = false;
  base::try_to([&] {
    is_known =
        decode_shared(base::read_whole(fs, openings + "/" + name, kMaxSharedBytes), *clock, shared);
  });
  if (is_known && shared.listed_ns >= came_ns) return std::move(shared.opening);
  if (!is_known || !ask_again(objects, shared)) shared = ask_all_to_share(objects);
  if (has_listed_head(shared.opening)) {
    base::try_to(
        [&] { base::replace_hint_file(fs, tmp, openings, name, encode_shared(shared, *clock)); });
  }
  return std::move(shared.opening);
}

}  // namespace vellum::remote
