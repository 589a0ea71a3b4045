#include "remote/lazy/head_packs.hpp"

#include <algorithm>
#include <cassert>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "remote/fetch/fetch_lock.hpp"

namespace vellum::remote {
namespace {

constexpr std::uint64_t kMaxChangesFetched = 32u << 20, kMaxInUseFetched = 64u << 20;
constexpr auto kListLockTimeout = std::chrono::seconds(2);

std::string in_cache(const LazyOptions& options, const char* directory) {
  return options.cache_directory.empty() ? "" : options.cache_directory + directory;
}

}  // namespace

HeadPacks::HeadPacks(base::Fs& fs, std::shared_ptr<ObjectStore> objects,
                     const format::StoreSeal& seal, Head head, RemoteFiles& names,
                     const LazyOptions& options)
    : LazyPacks(fs, objects, seal, options,
                // Opened objects would be plain there.
                objects->objects_key() != nullptr ? "" : in_cache(options, "/lists"),
                in_cache(options, "/tmp")),
      fs_(fs),
      locks_(in_cache(options, "/openings")),
      head_(std::move(head)),
      names_(names),
      placeholder_(objects->url(), {}) {
  learn_embedded(head_);
}

const base::File* HeadPacks::find(std::uint64_t) const noexcept { return &placeholder_; }

// A version is identified by its runs; a snapshot and its branch's head have the same runs.
void HeadPacks::learn(const format::Version& version) {
  if (version.runs.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const RemoteVersion& name : head_.versions) {
    if (name.ref.version.runs != version.runs || name.list.own.size_bytes == 0) continue;
    if (learned_.contains(name.list.own.content)) return;
    const VersionPieces found = list_of(name);
    const auto pieces = add(found, remote().name_of(list_key(name.list.own.content)));
    learned_.insert(name.list.own.content);
    if (found.in_use.ranges.empty()) return fetch_changes(version, pieces);
    note_working_set(version, found.in_use);
    return fetch_pages_in_use(found.in_use, pieces);
  }
  fail(Errc::not_found, "{}: the remote has no such version", placeholder_.path());
}

// One process of the machine fetches a list, and the others find its copy.
VersionPieces HeadPacks::list_of(const RemoteVersion& name) {
  if (locks_.empty()) return remote().pieces_of(name.list);
  const std::string path = locks_ + "/" + base::hex(name.list.own.content.hash) + ".turn";
  const FetchLock lock = acquire_fetch_lock(fs_, path, kListLockTimeout);
  return remote().pieces_of(name.list);
}

void HeadPacks::note_working_set(const format::Version& version, const PagesInUse& in_use) {
  for (const RemoteVersion& name : head_.versions) {
    if (name.ref.version.runs == version.runs) names_.add_working_set(name, in_use.ranges);
  }
}

// In the order of first use.
void HeadPacks::fetch_pages_in_use(const PagesInUse& in_use, std::span<RemotePiece* const> pieces) {
  std::vector<RemotePiece*> pieces_to_fetch;
  std::uint64_t bytes = 0;
  for (const std::uint32_t number : in_use.pieces) {
    assert(number < pieces.size());
    bytes += pieces[number]->name().size_bytes;
    if (bytes > kMaxInUseFetched) break;
    pieces_to_fetch.push_back(pieces[number]);
  }
  fetch_ahead(pieces_to_fetch);
}

// The records that the version has added are before the root of its newest run.
void HeadPacks::fetch_changes(const format::Version& version,
                              std::span<RemotePiece* const> pieces) {
  const format::RecordRef& root = version.runs.front().root;
  const std::uint64_t most = std::min(version.bytes_added, kMaxChangesFetched);
  std::vector<RemotePiece*> pieces_to_fetch;
  std::uint64_t bytes = 0;
  for_pieces(root, [&](RemotePiece& piece) {
    const auto at = std::find(pieces.begin(), pieces.end(), &piece);
    for (auto i = at == pieces.end() ? 0 : at - pieces.begin() + 1; i > 0; --i) {
      pieces_to_fetch.push_back(pieces[static_cast<std::size_t>(i - 1)]);
      bytes += pieces_to_fetch.back()->name().size_bytes;
      if (bytes >= most) break;
    }
    return !pieces_to_fetch.empty();
  });
  fetch_ahead(pieces_to_fetch);
}

}  // namespace vellum::remote
