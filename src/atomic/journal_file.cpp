#include "atomic/journal_file.hpp"

#include <cstdio>
#include <random>
#include <vellum/error.hpp>

namespace vellum::atomic {
namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::string journal_path(const std::string& file_path) { return file_path + ".vellum-journal"; }

// Who holds it may be about to remove it: a lock on a file without the name is worth nothing.
std::unique_ptr<base::File> open_journal(base::Fs& fs, const std::string& file_path) {
  const std::string path = journal_path(file_path);
  while (fs.exists(path)) {
    std::unique_ptr<base::File> file;
    try {
      file = fs.open(path, base::OpenMode::read_write);
    } catch (const Error& error) {
      if (error.code() == Errc::not_found) continue;
      throw;
    }
    if (!file->try_lock_exclusive())
      throw Error(Errc::busy, file_path + ": is open elsewhere: " + path + " is locked");
    if (!file->replaced()) return file;
  }
  return nullptr;
}

// A name that no other process takes, nor one of another machine or container.
std::unique_ptr<base::File> start_journal(base::Fs& fs, const std::string& file_path) {
  std::random_device random;
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".%08x%08x.new", random(), random());
  auto file = fs.open(journal_path(file_path) + suffix, base::OpenMode::create_new);
  file->try_lock_exclusive();
  return file;
}

void discard_journal(base::Fs& fs, const base::File& journal) noexcept {
  try {
    fs.unlink(journal.path());
  } catch (const std::exception&) {  // it has its name already, or is gone
  }
}

bool finish_journal(base::Fs& fs, base::File& journal, const std::string& file_path) {
  try {
    fs.rename_new(journal.path(), journal_path(file_path));
  } catch (const Error& error) {
    if (error.code() == Errc::already_exists) return false;
    throw;
  }
  journal.renamed(journal_path(file_path));
  fs.sync_directory(directory_of(file_path));
  return true;
}

void remove_journal(base::Fs& fs, const std::string& file_path) {
  fs.unlink(journal_path(file_path));
  fs.sync_directory(directory_of(file_path));
}

}  // namespace vellum::atomic
