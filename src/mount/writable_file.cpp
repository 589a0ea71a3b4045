// mount/writable_file.cpp: see writable_file.hpp.
#include "mount/writable_file.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "format/wire/types.hpp"
#include "mount/version_file.hpp"
#include "mount/versions.hpp"
#include "region/api/store_impl.hpp"

namespace vellum::mount {
namespace {

void require_one_file(const Store& store, const std::string& branch) {
  const Versions versions(StoreAccess::core_of(store));
  if (files_of(versions, versions.find(branch)).front().path.empty()) return;
  fail(Errc::unsupported, "branch '{}' is a datastore's: a mount cannot write its files", branch);
}

Region open_or_make(Store& store, const std::string& branch) {
  if (branch == kCommits) {
    fail(Errc::invalid_argument, "a branch named '{}' cannot be shown in a mounted store", branch);
  }
  if (store.contains(branch)) {
    require_one_file(store, branch);
    return store.open_region(branch);
  }
  Region region = store.create_region(branch, format::kPageBytes);
  region.resize_file(0);
  region.commit();
  return region;
}

}  // namespace

WritableFile::WritableFile(Store store, const std::string& branch)
    : store_(std::move(store)),
      branch_(branch),
      region_(open_or_make(store_, branch)),
      changed_ns_(base::nanoseconds_of(store_.version(branch).committed_at)) {}

std::uint64_t WritableFile::size_bytes() const { return region_.file_bytes(); }

void WritableFile::note_change() noexcept {
  ++changes_;
  changed_ns_ = base::wall_clock_ns();
}

// With the pin, an unreadable page is an error of the call; without it, the process would end.
std::size_t WritableFile::read(std::uint64_t at, std::span<std::byte> out) const {
  const std::shared_lock lock(mutex_);
  const std::uint64_t size = region_.file_bytes();
  if (at >= size || out.empty()) return 0;
  const std::size_t count = std::min<std::uint64_t>(out.size(), size - at);
  const Pin pin = region_.pin({at, count});
  std::memcpy(out.data(), static_cast<const std::byte*>(region_.data()) + at, count);
  return count;
}

void WritableFile::store_bytes(std::uint64_t at, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const Pin pin = region_.pin({at, bytes.size()});
  std::memcpy(static_cast<std::byte*>(region_.data()) + at, bytes.data(), bytes.size());
  note_change();
}

void WritableFile::write(std::uint64_t at, std::span<const std::byte> bytes) {
  const std::uint64_t end = at + bytes.size();
  std::shared_lock shared(mutex_);
  if (end <= region_.file_bytes()) return store_bytes(at, bytes);
  shared.unlock();
  const std::unique_lock alone(mutex_);
  const std::uint64_t before = region_.file_bytes();
  // The last page may be unreadable. Both changes of the size would touch it.
  std::optional<Pin> last;
  if (before > 0) {
    const std::uint64_t from = std::min(at, before - 1);
    last.emplace(region_.pin({from, before - from}));
  }
  if (end > before) set_size(end);
  try {
    store_bytes(at, bytes);
  } catch (...) {
    if (end > before) set_size(before);
    throw;
  }
}

void WritableFile::write_back(std::uint64_t at, std::span<const std::byte> bytes) {
  const std::shared_lock shared(mutex_);
  const std::uint64_t size = region_.file_bytes();
  if (at >= size) return;
  store_bytes(at, bytes.first(std::min<std::uint64_t>(bytes.size(), size - at)));
}

void WritableFile::resize(std::uint64_t bytes) {
  const std::unique_lock alone(mutex_);
  set_size(bytes);
}

// Grows the region in larger steps, so that small appends seldom have to grow it.
void WritableFile::set_size(std::uint64_t bytes) {
  constexpr std::uint64_t kMinRoomBytes = 1u << 20, kMaxRoomBytes = 16u << 20;
  if (bytes == region_.file_bytes()) return;
  region_.resize_file(bytes, std::clamp(bytes / 8, kMinRoomBytes, kMaxRoomBytes));
  note_change();
}

// A caller that waited for another commit often finds that it included everything.
void WritableFile::commit() {
  const std::lock_guard committing(commit_mutex_);
  std::unique_lock alone(mutex_);
  std::uint64_t changes = changes_;
  if (changes == committed_) return;
  std::future<CommitReport> done = region_.commit_async();
  alone.unlock();
  try {
    done.get();
  } catch (const Error& error) {
    if (error.code() != Errc::no_space) throw;
    // A collection may have freed space.
    alone.lock();
    changes = changes_;
    region_.commit();
  }
  committed_ = changes;
}

void WritableFile::close() {
  commit();
  region_.close();
}

}  // namespace vellum::mount
