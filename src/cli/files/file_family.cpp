#include "cli/files/file_family.hpp"

#include <fcntl.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "interfaces/atomic_file/journal_file.hpp"

namespace vellum::cli {
namespace {

using Start = std::array<std::byte, 4>;

// SQLite's write-ahead log: 0x377f0682 or 0x377f0683, big-endian.
bool begins_wal(const Start& s) {
  return s[0] == std::byte{0x37} && s[1] == std::byte{0x7f} && s[2] == std::byte{0x06} &&
         (s[3] == std::byte{0x82} || s[3] == std::byte{0x83});
}

// SQLite's rollback journal. If it is kept after use, its header is zeroed.
bool begins_journal(const Start& s) {
  return s == Start{std::byte{0xd9}, std::byte{0xd5}, std::byte{0x05}, std::byte{0xf9}};
}

bool is_anything(const Start&) { return true; }

struct CompanionKind {
  std::string_view end;  // of its name
  bool (*holds_content)(const Start&);
  std::uint64_t least_bytes;
  const char* what;
  const char* way_out;
};

constexpr CompanionKind kMembers[] = {
    {"-wal", begins_wal, 33, "SQLite's write-ahead log has transactions that are not in it yet",
     "close the programs that use it, or let SQLite apply the log: sqlite3 {} 'PRAGMA "
     "wal_checkpoint(TRUNCATE)'"},
    {"-journal", begins_journal, 28,
     "SQLite's rollback journal shows that a transaction is in progress or was interrupted",
     "end the transaction, or after a crash open it once: sqlite3 {} 'PRAGMA integrity_check'"},
    {".wal", is_anything, 1, "DuckDB's write-ahead log has transactions that are not in it yet",
     "close the programs that use it, or let DuckDB apply the log: CHECKPOINT, in {}"},
};

// Removed together with the others: it is the index of pages in the log.
constexpr std::string_view kIndexOfLog = "-shm";

bool is_duckdb(const std::string& path) {
  std::array<std::byte, 12> bytes;
  return base::posix_fs().open(path, base::OpenMode::read_only)->try_pread(bytes, 0) == 0 &&
         std::memcmp(bytes.data() + 8, "DUCK", 4) == 0;
}

bool holds_content(const std::string& path, const CompanionKind& member) {
  namespace fs = std::filesystem;
  const std::string file = path + std::string(member.end);
  std::error_code problem;
  if (!fs::is_regular_file(file, problem)) return false;
  const auto opened = base::posix_fs().open(file, base::OpenMode::read_only);
  if (opened->size_bytes() < member.least_bytes) return false;
  if (member.holds_content == is_anything)
    return fs::is_regular_file(path, problem) && is_duckdb(path);
  Start start;
  return opened->try_pread(start, 0) == 0 && member.holds_content(start);
}

[[noreturn]] void refuse(const std::string& path, const CompanionKind& member,
                         const char* further) {
  const std::string way_out = fmt::format(fmt::runtime(member.way_out), path);
  fail(Errc::busy, "{}{}: {}; {}{}", path, member.end, member.what, way_out, further);
}

}  // namespace

void require_no_companions(const std::string& path) {
  for (const CompanionKind& member : kMembers) {
    if (holds_content(path, member)) refuse(path, member, "");
  }
}

void require_replaceable(const std::string& path, const std::set<std::string>& replaced) {
  for (const CompanionKind& member : kMembers) {
    if (replaced.contains(path + std::string(member.end)) || !holds_content(path, member)) continue;
    refuse(path, member,
           ". With --force it is removed, with its content: it belongs to the content that is "
           "replaced");
  }
}

std::vector<std::string> remove_companions(const std::string& path) {
  std::vector<std::string> removed;
  auto& files = base::posix_fs();
  for (const CompanionKind& member : kMembers) {
    if (holds_content(path, member)) removed.push_back(path + std::string(member.end));
  }
  if (removed.empty()) return removed;
  if (const std::string index = path + std::string(kIndexOfLog); files.exists(index)) {
    removed.push_back(index);
  }
  for (const std::string& file : removed) files.unlink(file);
  files.sync_directory(base::parent_of(path));
  return removed;
}

bool is_open_in_other_process(const base::File& file, FileUse use) {
  // A process that opens the file during the lease waits, and this process gets a signal.
  std::signal(SIGIO, SIG_IGN);
  const int lease = use == FileUse::writing ? F_RDLCK : F_WRLCK;
  if (::fcntl(file.descriptor(), F_SETLEASE, lease) != 0) return errno == EAGAIN;
  ::fcntl(file.descriptor(), F_SETLEASE, F_UNLCK);
  return false;
}

void require_no_journal(const std::string& path) {
  const std::string journal = atomic_file::journal_path(path);
  if (!base::posix_fs().exists(journal)) return;
  fail(Errc::busy, "{}: a program uses {}, or has crashed; after a crash, run vellum recover {}",
       journal, path, path);
}

}  // namespace vellum::cli
