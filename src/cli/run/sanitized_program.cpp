#include "cli/run/run_program.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::cli {
namespace {

template <typename T>
std::optional<T> read_at(std::ifstream& in, std::uint64_t offset) {
  T out{};
  in.clear();
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(&out), sizeof out);
  return in ? std::optional(out) : std::nullopt;
}

// The names of dynamic symbols; the same section has the names of needed libraries.
std::string dynamic_strings(const std::string& program) {
  constexpr std::uint64_t kMaxBytes = 256u << 20;
  std::ifstream in(program, std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(in, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_shentsize != sizeof(Elf64_Shdr))
    return {};
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(in, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || section->sh_type != SHT_DYNSYM || section->sh_link >= header->e_shnum) continue;
    const auto strings =
        read_at<Elf64_Shdr>(in, header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    if (!strings || strings->sh_size > kMaxBytes) return {};
    std::string out(strings->sh_size, '\0');
    in.seekg(static_cast<std::streamoff>(strings->sh_offset));
    in.read(out.data(), static_cast<std::streamsize>(out.size()));
    return in ? out : std::string();
  }
  return {};
}

// The first name with this beginning; empty: none.
std::string name_from(const std::string& names, std::string_view beginning) {
  for (std::size_t at = 0; at < names.size(); at += std::strlen(names.c_str() + at) + 1)
    if (std::string_view(names.c_str() + at).starts_with(beginning)) return names.c_str() + at;
  return {};
}

}  // namespace

std::string sanitizer_library(const std::string& program) {
  const std::string names = dynamic_strings(program);
  if (!name_from(names, "__tsan_init").empty())
    fail(Errc::unsupported,
         "{}: built with ThreadSanitizer, which does not start together with another library that "
         "replaces the C library's functions",
         program);
  return name_from(names, "libasan.so");
}

}  // namespace vellum::cli
