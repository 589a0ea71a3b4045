#include "run/run/program_kind.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

constexpr int kMaxInterpreters = 5;       // the kernel's limit
constexpr unsigned kMaxParts = 128;       // of a program's header; a real one has about ten
constexpr std::size_t kNoteBytes = 4096;  // the build ID is in the first of these bytes

bool read_at(int fd, void* to, std::size_t bytes, std::uint64_t at) noexcept {
  return VELLUM_REAL(pread)(fd, to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

// Finds the note "Go", type 4: the build ID that Go's linker writes (cmd/internal/buildid).
bool has_go_note(int fd, const Elf64_Phdr& part) noexcept {
  alignas(Elf64_Nhdr) char notes[kNoteBytes];
  const std::size_t bytes = std::min<std::uint64_t>(part.p_filesz, sizeof notes);
  if (!read_at(fd, notes, bytes, part.p_offset)) return false;
  const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note;
    if (note.n_namesz > bytes || note.n_descsz > bytes) return false;
    if (note.n_type == 4 && note.n_namesz == 4 && name + 4 <= bytes &&
        std::memcmp(notes + name, "Go\0", 4) == 0)
      return true;
    at = name + padded(note.n_namesz) + padded(note.n_descsz);
  }
  return false;
}

// Decides by whether the kernel would start the dynamic linker first (elf(5)).
ProgramKind kind_of_elf(int fd, const Elf64_Ehdr& header) noexcept {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return ProgramKind::other_machine;
  bool dynamic = false, go = false;
  for (unsigned i = 0; i < std::min<unsigned>(header.e_phnum, kMaxParts); ++i) {
    Elf64_Phdr part;
    if (!read_at(fd, &part, sizeof part, header.e_phoff + i * sizeof part))
      return ProgramKind::unknown;
    dynamic = dynamic || part.p_type == PT_INTERP;
    go = go || (part.p_type == PT_NOTE && has_go_note(fd, part));
  }
  if (!dynamic) return ProgramKind::statically_linked;
  return go ? ProgramKind::go : ProgramKind::preloadable;
}

// Parses "#!interpreter argument". False: there is no interpreter.
bool take_interpreter(char* line, char (&path)[PATH_MAX]) noexcept {
  char* const begin = line + std::strspn(line, " \t");
  const std::size_t length = std::strcspn(begin, " \t\r\n");
  if (length == 0 || length >= PATH_MAX) return false;
  std::memcpy(path, begin, length);
  path[length] = '\0';
  return true;
}

ProgramKind kind_of_elf_file(int fd, const struct stat& status, const Elf64_Ehdr& header) noexcept {
  const bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  const bool changes_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  return changes_user || changes_group ? ProgramKind::other_user : kind_of_elf(fd, header);
}

// Checks only this file. No value: it is a script, and `path` is its interpreter.
std::optional<ProgramKind> kind_of_file(int fd, char (&path)[PATH_MAX]) noexcept {
  char begin[512] = {};
  static_assert(sizeof(Elf64_Ehdr) < sizeof begin);
  struct stat status;
  if (VELLUM_REAL(fstat)(fd, &status) != 0 || !S_ISREG(status.st_mode)) return ProgramKind::unknown;
  const ssize_t got = VELLUM_REAL(pread)(fd, begin, sizeof begin - 1, 0);
  if (got >= static_cast<ssize_t>(sizeof(Elf64_Ehdr)) && std::memcmp(begin, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    std::memcpy(&header, begin, sizeof header);
    return kind_of_elf_file(fd, status, header);
  }
  if (got > 2 && std::memcmp(begin, "#!", 2) == 0 && take_interpreter(begin + 2, path))
    return std::nullopt;
  return ProgramKind::unknown;
}

}  // namespace

ProgramKind kind_of_program(int fd, char (&path)[PATH_MAX]) noexcept {
  const auto kind = kind_of_file(fd, path);
  return kind ? *kind : kind_of_program(path);
}

ProgramKind kind_of_program(char (&path)[PATH_MAX]) noexcept {
  for (int i = 0; i < kMaxInterpreters; ++i) {
    const int fd = VELLUM_REAL(open)(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return ProgramKind::unknown;
    const auto kind = kind_of_file(fd, path);
    VELLUM_REAL(close)(fd);
    if (kind) return *kind;
  }
  return ProgramKind::unknown;
}

const char* what_it_means(ProgramKind kind) noexcept {
  switch (kind) {
    case ProgramKind::statically_linked:
      return "is statically linked: its C library cannot be intercepted";
    case ProgramKind::other_machine:
      return "is not a 64-bit program: the library cannot be loaded into it";
    case ProgramKind::other_user:
      return "runs as another user, and the dynamic linker ignores this user's libraries";
    case ProgramKind::go:
      return "is a Go program, which makes its system calls without the C library";
    case ProgramKind::preloadable:
    case ProgramKind::unknown:
      break;
  }
  return "";
}

}  // namespace vellum::preload
