#include "remote/fetch/piece_cache.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <tuple>
#include <vector>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "base/try_to.hpp"
#include "remote/fetch/bytes_file.hpp"
#include "remote/seal/sealed_object.hpp"

namespace vellum::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto kLockTimeout = 10s;
constexpr std::uint64_t kShareBetweenScans = 16;  // of the limit
constexpr std::uint64_t kFreedShare = 10;         // of the limit; leaves room for the next copies

// What sealed copies and their names are authenticated with.
constexpr std::string_view kSealedName = "cache/";

std::string plain_name_of(const PieceName& piece) { return base::hex(piece.content.hash); }
std::string sealed_as(const PieceName& piece) {
  return std::string(kSealedName) + plain_name_of(piece);
}

}  // namespace

PieceCache::PieceCache(base::Fs& fs, std::string directory, std::uint64_t limit_bytes,
                       std::shared_ptr<const base::ObjectKeys> keys)
    : beneath_(base::beneath(fs, directory)),
      fs_(*beneath_),
      directory_(limit_bytes == 0 ? "" : std::move(directory)),
      pieces_(directory_ + "/pieces"),
      tmp_(directory_ + "/tmp"),
      locks_(directory_ + "/turns"),
      limit_bytes_(limit_bytes),
      keys_(std::move(keys)),
      unaccounted_bytes_(limit_bytes) {}  // the first copy causes a scan

// Without the generation: several remotes may have the piece in different generations.
std::string PieceCache::name_of(const PieceName& piece) const {
  if (keys_ == nullptr) return plain_name_of(piece);
  return base::hex(keys_->seal_name(std::as_bytes(std::span(kSealedName)), piece.content.hash));
}

std::string PieceCache::path_of(const PieceName& piece) const {
  return pieces_ + "/" + name_of(piece);
}

bool PieceCache::make_directories() {
  return base::try_to([&] {
    for (const std::string& path : {pieces_, tmp_, locks_}) base::ensure_directories(fs_, path);
  });
}

std::unique_ptr<base::File> PieceCache::open(const PieceName& piece) {
  std::unique_ptr<base::File> out;
  if (directory_.empty()) return out;
  if (keys_ != nullptr) return open_sealed(piece);
  base::try_to([&] {
    auto file = fs_.open(path_of(piece), base::OpenMode::read_only);
    if (file->size_bytes() == piece.size_bytes) out = std::move(file);
  });
  return out;
}

std::unique_ptr<base::File> PieceCache::put(const PieceName& piece,
                                            std::span<const std::byte> bytes) {
  assert(bytes.size() == piece.size_bytes);
  if (directory_.empty() || bytes.size() > limit_bytes_) return nullptr;
  if (keys_ != nullptr) {
    put_sealed(piece, bytes);
    return nullptr;
  }
  std::unique_ptr<base::File> out;
  base::try_to([&] {
    if (!make_directories()) return;
    base::replace_hint_file(fs_, tmp_, pieces_, name_of(piece), bytes);
    out = fs_.open(path_of(piece), base::OpenMode::read_only);
  });
  note_written(bytes.size());
  return out;
}

std::unique_ptr<base::File> PieceCache::open_sealed(const PieceName& piece) {
  std::unique_ptr<base::File> out;
  base::try_to([&] {
    const std::string path = path_of(piece);
    const auto sealed = base::read_whole(fs_, path, sealed_bytes(piece.size_bytes));
    std::vector<std::byte> bytes;
    if (open_object(*keys_, sealed_as(piece), sealed, bytes) != nullptr) return;
    if (bytes.size() == piece.size_bytes) out = std::make_unique<BytesFile>(path, std::move(bytes));
  });
  return out;
}

void PieceCache::put_sealed(const PieceName& piece, std::span<const std::byte> bytes) {
  base::try_to([&] {
    if (!make_directories()) return;
    const auto sealed = seal_object(*keys_, sealed_as(piece), bytes);
    base::replace_hint_file(fs_, tmp_, pieces_, name_of(piece), sealed);
  });
  note_written(bytes.size());
}

void PieceCache::note_written(std::uint64_t bytes) {
  if (unaccounted_bytes_.fetch_add(bytes) + bytes >= limit_bytes_ / kShareBetweenScans) {
    evict_oldest();
  }
}

void PieceCache::drop(const PieceName& piece) {
  if (!directory_.empty()) base::unlink_quietly(fs_, path_of(piece));
}

// Removes the oldest copies. A process that has one open can still read it.
void PieceCache::evict_oldest() {
  const std::lock_guard lock(evicting_);
  unaccounted_bytes_ = 0;
  base::try_to([&] {
    std::vector<std::tuple<std::int64_t, std::string, std::uint64_t>> copies;
    std::uint64_t total_bytes = 0;
    for (const base::DirEntry& entry : fs_.list(pieces_)) {
      const std::string path = pieces_ + "/" + entry.name;
      base::try_to([&] {
        const auto identity = fs_.open(path, base::OpenMode::read_only)->identity();
        copies.emplace_back(identity.modified_ns, path, identity.size_bytes);
        total_bytes += identity.size_bytes;
      });
    }
    if (total_bytes <= limit_bytes_) return;
    std::sort(copies.begin(), copies.end());
    const std::uint64_t wanted_bytes = limit_bytes_ - limit_bytes_ / kFreedShare;
    for (const auto& [modified_ns, path, bytes] : copies) {
      if (total_bytes <= wanted_bytes) return;
      base::unlink_quietly(fs_, path);
      total_bytes -= bytes;
    }
  });
  base::try_to([&] {
    for (const base::DirEntry& entry : fs_.list(tmp_)) {
      base::remove_unpublished(fs_, tmp_ + "/" + entry.name);
    }
  });
}

PieceCache::FetchLock PieceCache::acquire_fetch_lock(const PieceName& piece) {
  if (directory_.empty() || !make_directories()) return {fs_, nullptr};
  return remote::acquire_fetch_lock(fs_, locks_ + "/" + name_of(piece), kLockTimeout);
}

}  // namespace vellum::remote
