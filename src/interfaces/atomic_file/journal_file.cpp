#include "interfaces/atomic_file/journal_file.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/redo.hpp"

namespace vellum::atomic_file {
namespace {

// The offsets of a journal's headers.
constexpr std::array<std::uint64_t, 2> kHeaderPlaces = {0, format::kRedoHeaderCopyBytes};

}  // namespace

std::string journal_path(const std::string& file_path) { return file_path + ".vellum-journal"; }

// Its holder may be about to remove it: a lock on a file that has lost the name protects nothing.
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
      fail(Errc::busy, "{}: another process has it open: {} is locked", file_path, path);
    if (!file->replaced()) return file;
  }
  return nullptr;
}

namespace {

// False: there is a file of that name.
bool take_name(base::Fs& fs, const std::string& from, const std::string& to) {
  try {
    fs.rename_new(from, to);
  } catch (const Error& error) {
    if (error.code() != Errc::already_exists) throw;
    return false;
  }
  return true;
}

// Null: the file exists already.
std::unique_ptr<base::File> make_new(base::Fs& fs, const std::string& path) {
  try {
    return fs.open(path, base::OpenMode::create_new);
  } catch (const Error& error) {
    if (error.code() != Errc::already_exists) throw;
    return nullptr;
  }
}

// Removes a killed process's file that is not locked. False: it stays, locked or of another user.
bool remove_left(base::Fs& fs, const std::string& path) {
  try {
    const auto left = fs.open(path, base::OpenMode::read_write);
    if (!left->try_lock_exclusive()) return false;
    if (!left->replaced()) fs.unlink(path);
    return true;
  } catch (const Error& error) {
    return error.code() == Errc::not_found;
  }
}

bool begins_as_journal(const base::File& file) {
  std::array<std::byte, format::kRedoHeaderBytes> bytes;
  format::RedoHeader header;
  return std::any_of(kHeaderPlaces.begin(), kHeaderPlaces.end(), [&](std::uint64_t at) {
    return file.try_pread(bytes, at) == 0 && format::decode_redo_header(bytes, header) == nullptr;
  });
}

// FILE.vellum-journal.XXXXXXXXXXXXXXXX.new, with hexadecimal digits: the naming of earlier builds.
bool is_random_name(std::string_view name, std::string_view journal_name) {
  constexpr std::string_view kEnd = ".new";
  constexpr std::size_t kDigits = 16;
  if (name.size() != journal_name.size() + 1 + kDigits + kEnd.size()) return false;
  const std::string_view digits = name.substr(journal_name.size() + 1, kDigits);
  return name.starts_with(journal_name) && name[journal_name.size()] == '.' &&
         name.ends_with(kEnd) &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void remove_if_left(base::Fs& fs, const std::string& path) noexcept {
  try {
    const auto left = fs.open(path, base::OpenMode::read_write);
    if (begins_as_journal(*left) && left->try_lock_exclusive() && !left->replaced())
      fs.unlink(path);
  } catch (const std::exception&) {  // removed meanwhile, or of another user
  }
}

// Removes leftovers of killed earlier builds. Files that do not begin as a journal stay.
void remove_random_names(base::Fs& fs, const std::string& file_path) noexcept {
  try {
    const std::string path = journal_path(file_path), directory = base::parent_of(path);
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const auto& entry : fs.list(directory))
      if (entry.is_regular_file && is_random_name(entry.name, name))
        remove_if_left(fs, directory + "/" + entry.name);
  } catch (const std::exception&) {  // an unlistable directory may be writable
  }
}

// Returns the file locked, new and empty; null: another process uses it. A lock on a file that has
// lost the name protects nothing.
std::unique_ptr<base::File> claim(base::Fs& fs, const std::string& path) {
  do {
    auto file = make_new(fs, path);
    if (file != nullptr && file->try_lock_exclusive() && !file->replaced()) return file;
  } while (remove_left(fs, path));
  return nullptr;
}

}  // namespace

// The few names limit the number of leftovers: each process that starts a journal clears the names
// after its own.
std::unique_ptr<base::File> start_journal(base::Fs& fs, const std::string& file_path) {
  constexpr int kNames = 4;
  std::unique_ptr<base::File> started;
  for (int number = 0; number < kNames; ++number) {
    const std::string path = journal_path(file_path) + "." + std::to_string(number) + ".new";
    if (started == nullptr) {
      started = claim(fs, path);
    } else if (fs.exists(path)) {
      remove_left(fs, path);
    }
  }
  if (started == nullptr) fail(Errc::busy, "{}: another process is opening it", file_path);
  remove_random_names(fs, file_path);
  return started;
}

void discard_journal(base::Fs& fs, const base::File& journal) noexcept {
  try {
    fs.unlink(journal.path());
  } catch (const std::exception&) {  // it already has its name, or was removed
  }
}

bool finish_journal(base::Fs& fs, base::File& journal, const std::string& file_path) {
  if (!take_name(fs, journal.path(), journal_path(file_path))) return false;
  journal.renamed(journal_path(file_path));
  fs.sync_directory(base::parent_of(file_path));
  return true;
}

void remove_journal(base::Fs& fs, const std::string& file_path) {
  fs.unlink(journal_path(file_path));
  fs.sync_directory(base::parent_of(file_path));
}

std::string rename_corrupted_journal(base::Fs& fs, const std::string& file_path) {
  const std::string corrupted = journal_path(file_path) + ".corrupted";
  std::string kept_as = corrupted;
  for (int number = 2; !take_name(fs, journal_path(file_path), kept_as); ++number)
    kept_as = corrupted + "." + std::to_string(number);
  fs.sync_directory(base::parent_of(file_path));
  return kept_as;
}

}  // namespace vellum::atomic_file
