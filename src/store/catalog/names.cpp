#include "store/catalog/names.hpp"

#include <fmt/format.h>

#include <random>
#include <string_view>

#include "base/fail.hpp"
#include "base/files/lock_holders.hpp"
#include "format/wire/superblock.hpp"
#include "store/catalog/snapshots/snapshot_note.hpp"

namespace vellum::store {

namespace {
constexpr std::string_view kStagingPrefix = "vellum-snapshot-";
constexpr std::size_t kStagingDigits = 16;
}  // namespace

bool has_branch(const PackStore& store, const std::string& name) {
  if (format::name_problem(name) != nullptr) return false;
  // A link does not count: it could lead out of the store.
  return store.fs().exists(store.journal_path(name)) &&
         store.fs().is_directory(store.branch_directory(name));
}

void remove_image_files(const PackStore& store, const std::string& branch) {
  for (const char* name : {kImageStateName, kTouchedName, kImageTailName, kImageName,
                           kSnapshotNoteName, kSignersName}) {
    const std::string file = store.branch_directory(branch) + "/" + name;
    if (store.fs().exists(file)) store.fs().unlink(file);
  }
}

// Between open and lock, another process may have removed the branch, and even created it again.
// The lock is then on a file without a name.
std::unique_ptr<base::File> try_lock_branch(PackStore& store, const std::string& branch) {
  for (;;) {
    if (!has_branch(store, branch)) {
      fail(Errc::not_found, "no branch '{}' in {}", branch, store.path());
    }
    std::unique_ptr<base::File> file;
    try {
      file = store.fs().open(store.journal_path(branch), base::OpenMode::read_write);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      continue;  // removed just now
    }
    const bool locked = file->try_lock_exclusive();
    if (!file->replaced()) return locked ? std::move(file) : nullptr;
  }
}

std::unique_ptr<base::File> lock_branch(PackStore& store, const std::string& branch) {
  auto journal = try_lock_branch(store, branch);
  if (journal == nullptr) {
    fail(Errc::busy, "branch '{}' of {} has a writer{}: close it", branch, store.path(),
         base::lock_holders(store.journal_path(branch)));
  }
  return journal;
}

std::string random_staging_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kStagingPrefix, random(), random());
}

bool is_staging_name(const std::string& name) noexcept {
  return name.size() == kStagingPrefix.size() + kStagingDigits &&
         name.starts_with(kStagingPrefix) &&
         name.find_first_not_of("0123456789abcdef", kStagingPrefix.size()) == std::string::npos;
}

}  // namespace vellum::store
