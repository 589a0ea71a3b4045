#include "interfaces/atomic_file/file_journal.hpp"

#include <algorithm>
#include <cassert>
#include <random>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "interfaces/atomic_file/journal_file.hpp"

namespace vellum::atomic_file {
namespace {

constexpr std::uint64_t kFirstLogBytes = 1u << 20;

format::RedoHeader header_for(const base::File& file) {
  std::random_device random;
  const base::FileIdentity identity = file.identity();
  return {1, std::uint64_t{random()} << 32 | random(), identity.inode, identity.born_ns};
}

// The journal of another file would overwrite this one. False: it belongs to another file, and is
// empty.
bool belongs(const RedoJournal& journal, const base::File& journal_file, const base::File& file,
             const std::string& path) {
  const base::FileIdentity identity = file.identity();
  if (!journal_file.trusted_beside(file))
    fail(Errc::corrupted, "{}: belongs to another user than {}", journal_path(path), path);
  if (journal.header().inode == identity.inode && journal.header().born_ns == identity.born_ns)
    return true;
  if (!journal.has_records()) return false;
  fail(Errc::corrupted,
       "{}: belongs to another file than {}. If both were copied together, `vellum recover "
       "--copied` takes it; if the file is right without the journal, remove the journal",
       journal_path(path), path);
}

std::unique_ptr<MediumFile> journal_on(base::File& file, bool persistent_memory) {
  if (persistent_memory)
    if (auto mapped = pmem_file(file, true)) return mapped;
  return disk_file(file, Space::written);
}

}  // namespace

std::unique_ptr<MediumFile> image_of(base::File& file, Medium medium) {
  if (medium != Medium::disk)
    if (auto mapped = pmem_file(file, false)) return mapped;
  if (medium == Medium::persistent_memory)
    fail(Errc::unsupported,
         "{}: is not in persistent memory, or is empty, or Vellum was built without libpmem",
         file.path());
  return disk_file(file, Space::sparse);
}

// Reads the image with the lock held: before that another process may change the file's size.
FileJournal FileJournal::open(base::Fs& fs, const std::string& path, base::File& file,
                              Medium medium, std::uint64_t journal_bytes,
                              std::unique_ptr<MediumFile>& image) {
  if (auto left = open_journal(fs, path)) {
    image = image_of(file, medium);
    RedoJournal log = RedoJournal::open(journal_on(*left, image->byte_addressable()));
    if (belongs(log, *left, file, path)) {
      log.checkpoint(*image);
      return {std::move(left), std::move(log)};
    }
    remove_journal(fs, path);  // an empty one
  }
  const bool mapped = image_of(file, medium)->byte_addressable();
  FileJournal made = make(fs, path, file, mapped, journal_bytes);
  image = image_of(file, medium);
  return made;
}

FileJournal FileJournal::make(base::Fs& fs, const std::string& path, const base::File& file,
                              bool mapped, std::uint64_t journal_bytes) {
  auto made = start_journal(fs, path);
  try {
    made->take_access_of(file);
    if (mapped) made->truncate(format::kRedoLogBegin + journal_bytes);
    RedoJournal log =
        RedoJournal::create(journal_on(*made, mapped), header_for(file),
                            mapped ? journal_bytes : std::min(kFirstLogBytes, journal_bytes));
    made->sync_data();  // its size, which a fence does not make durable
    if (!finish_journal(fs, *made, path))
      fail(Errc::busy, "{}: another process is opening it", path);
    return {std::move(made), std::move(log)};
  } catch (...) {
    discard_journal(fs, *made);
    throw;
  }
}

RecoveryReport FileJournal::recover(base::Fs& fs, const std::string& path, base::File& file,
                                    const RecoveryOptions& options) {
  const auto left = open_journal(fs, path);
  if (left == nullptr) return {};
  const auto image = image_of(file, Medium::automatic);
  RedoJournal log = RedoJournal::open(journal_on(*left, image->byte_addressable()),
                                      options.corrupted ? Damage::keep : Damage::refuse);
  Replay replay;
  if (log.has_header() && (options.copied || belongs(log, *left, file, path)))
    replay = log.checkpoint(*image);
  RecoveryReport report{true, replay.commits, replay.bytes, log.damage(), "", replay.commits_lost};
  if (log.damage().empty()) {
    remove_journal(fs, path);
  } else {
    report.kept_as = rename_corrupted_journal(fs, path);
  }
  return report;
}

void FileJournal::remove(base::Fs& fs, const std::string& path) {
  assert(log_.empty());
  remove_journal(fs, path);
}

}  // namespace vellum::atomic_file
