// interfaces/metall/version_files.cpp: see version_files.hpp.
#include "interfaces/metall/version_files.hpp"

#include <chrono>
#include <thread>

#include "base/fail.hpp"
#include "base/memory/zeros.hpp"
#include "interfaces/metall/files.hpp"
#include "interfaces/metall/stamp.hpp"

namespace vellum::datastore {
namespace {

using format::kPageBytes;

// How long readers wait for one another when all find files to restore after a crash.
constexpr std::chrono::milliseconds kMaxTrying{200};
constexpr std::chrono::milliseconds kBetweenTries{10};

// Reads without mapping the version. False: no commit yet.
bool read_index(const Store& store, const DatastorePlace& place, FileIndex& index) {
  const std::uint64_t at = segment_bytes_of(store, place) + kAreaBytes - kPageBytes;
  PageBytes page;
  store.read(place.version, at, page.data(), page.size());
  const char* const problem = decode_index(page, index);
  if (problem == nullptr) return true;
  if (base::is_zero(page)) return false;
  fail(Errc::corrupted, "{}: {}", label_of(place), problem);
}

}  // namespace

std::string label_of(const DatastorePlace& place) {
  return fmt::format("'{}' of {}", place.version, place.store);
}

std::uint64_t segment_bytes_of(const Store& store, const DatastorePlace& place) {
  const std::uint64_t region_bytes = store.version(place.version).region_bytes;
  if (region_bytes <= kAreaBytes) {
    fail(Errc::not_found, "{} is no version of a datastore", label_of(place));
  }
  return region_bytes - kAreaBytes;
}

bool has_commit(const Store& store, const DatastorePlace& place) {
  FileIndex index;
  return read_index(store, place, index);
}

Region keep_writers_out(Store& store, const DatastorePlace& place) {
  if (!store.version(place.version).is_branch) return {};
  try {
    return store.open_region(place.version);
  } catch (const Error& e) {
    if (e.code() != Errc::read_only) throw;
    return {};  // a read-only medium has no writers
  }
}

void put_files_back(const Store& store, const DatastorePlace& place,
                    const DatastoreOptions& options) {
  FileIndex index;
  if (!read_index(store, place, index)) {
    fail(Errc::not_found, "{} has no commit: its creation was cut off", label_of(place));
  }
  const VersionInfo version = store.version(place.version);
  if (is_stamped(place, version)) return;
  make_directory(place);
  const std::uint64_t area_at = segment_bytes_of(store, place);
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    store.read(place.version, area_at + offset, out.data(), out.size());
  };
  unpack_files(place.files(), index, read, options.own_files);
  stamp(place, version, Lasting::this_boot);
}

void settle_files(Store& store, const DatastorePlace& place, const DatastoreOptions& options) {
  const auto last_try = std::chrono::steady_clock::now() + kMaxTrying;
  for (;;) {
    // With a stamp there is no writer: a writer first removes the stamp.
    if (is_stamped(place, store.version(place.version))) return;
    try {
      const Region alone = keep_writers_out(store, place);
      put_files_back(store, place, options);
      return;
    } catch (const Error& e) {
      if (e.code() != Errc::busy || std::chrono::steady_clock::now() > last_try) throw;
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace vellum::datastore
