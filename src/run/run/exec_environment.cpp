#include "run/run/exec_environment.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "run/process/real.hpp"
#include "run/run/config.hpp"

namespace vellum::preload {
namespace {

constexpr std::string_view kOurs = "VELLUM_RUN_", kPreload = "LD_PRELOAD=";
constexpr std::size_t kMaxKept = 16;
// With the usual stack size, the kernel takes 2 MiB of arguments and environment. An array of this
// many words takes a quarter of a MiB of the caller's stack.
constexpr std::size_t kMaxWords = 32768;

// "NAME=value" lines in the library's own memory: a program may overwrite its environment.
std::array<char*, kMaxKept> kept;
std::size_t kept_count = 0;
char* own_preload = nullptr;  // "LD_PRELOAD=" and this library's path

std::string_view library_path() noexcept {
  Dl_info here;
  return dladdr(reinterpret_cast<const void*>(&keep_environment), &here) != 0 ? here.dli_fname : "";
}

std::string_view name_of(std::string_view line) noexcept {
  return line.substr(0, line.find('=') + 1);
}

const char* find(char* const* environment, std::string_view name) noexcept {
  if (environment == nullptr) return nullptr;
  for (; *environment != nullptr; ++environment)
    if (std::strncmp(*environment, name.data(), name.size()) == 0) return *environment;
  return nullptr;
}

std::size_t count(char* const* environment) noexcept {
  std::size_t n = 0;
  while (environment != nullptr && environment[n] != nullptr) ++n;
  return n;
}

char* put(char*& room, std::string_view first, std::string_view second = {}) noexcept {
  char* const line = room;
  room += first.copy(room, first.size());
  room += second.copy(room, second.size());
  *room++ = '\0';
  return line;
}

bool is_ours(const char* line) noexcept { return std::string_view(line).starts_with(kOurs); }

// Whether the line "LD_PRELOAD=..." names this library.
bool names_library(const char* line) noexcept {
  return line != nullptr && std::strstr(line, own_preload + kPreload.size()) != nullptr;
}

}  // namespace

void keep_environment() noexcept {
  if (getenv(kStoreVariable) == nullptr) return;
  const std::string_view library = library_path();
  std::size_t bytes = kPreload.size() + library.size() + 1;
  for (char** line = environ; *line != nullptr; ++line)
    if (is_ours(*line)) bytes += std::strlen(*line) + 1;
  void* const at =
      VELLUM_REAL(mmap)(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;
  char* room = static_cast<char*>(at);
  own_preload = put(room, kPreload, library);
  for (char** line = environ; *line != nullptr && kept_count < kMaxKept; ++line)
    if (is_ours(*line)) kept[kept_count++] = put(room, *line);
}

bool environment_is_kept() noexcept { return kept_count != 0; }

MissingVariables missing_from(char* const* environment) noexcept {
  MissingVariables out;
  if (kept_count == 0) return out;
  std::size_t missing = 0;
  for (std::size_t i = 0; i < kept_count; ++i)
    if (find(environment, name_of(kept[i])) == nullptr) ++missing;
  const char* const preload = find(environment, kPreload);
  if (!names_library(preload)) {
    ++missing;
    if (preload != nullptr) out.preload_bytes = std::strlen(own_preload) + std::strlen(preload);
  }
  if (missing == 0) return out;
  out.words = count(environment) + missing + 1;
  if (out.words <= kMaxWords) return out;
  std::fputs("vellum run: an environment is too large: a program starts without the library\n",
             stderr);
  return {};
}

// The library's lines are first: getenv(3) returns the first of two.
void add_missing(char* const* environment, char** words, char* preload) noexcept {
  for (std::size_t i = 0; i < kept_count; ++i)
    if (find(environment, name_of(kept[i])) == nullptr) *words++ = kept[i];
  const char* const theirs = find(environment, kPreload);
  if (!names_library(theirs)) {
    *words++ = own_preload;
    if (theirs != nullptr && theirs[kPreload.size()] != '\0') {
      words[-1] = put(preload, own_preload, ":");
      --preload;  // over the line's terminating zero
      put(preload, theirs + kPreload.size());
    }
  }
  for (std::size_t i = 0; i < count(environment); ++i)
    if (environment[i] != theirs || names_library(theirs)) *words++ = environment[i];
  *words = nullptr;
}

void restore_environment() noexcept {
  for (std::size_t i = 0; i < kept_count; ++i)
    if (find(environ, name_of(kept[i])) == nullptr) putenv(kept[i]);
  const char* const theirs = kept_count != 0 ? find(environ, kPreload) : nullptr;
  if (kept_count == 0 || names_library(theirs)) return;
  const char* const library = own_preload + kPreload.size();
  if (theirs == nullptr || theirs[kPreload.size()] == '\0') {
    setenv("LD_PRELOAD", library, 1);
    return;
  }
  char* both = nullptr;
  if (asprintf(&both, "%s:%s", library, theirs + kPreload.size()) < 0) return;
  setenv("LD_PRELOAD", both, 1);
  free(both);
}

}  // namespace vellum::preload
