#include "run/elf_lib.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <vector>

namespace vellum::cli_test {
namespace {

class Elf {
 public:
  explicit Elf(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw std::runtime_error(path);
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      sections_.emplace(section.sh_type, section);
      all_.push_back(section);
    }
  }

  const Elf64_Shdr* section(unsigned type) const {
    const auto found = sections_.find(type);
    return found != sections_.end() ? &found->second : nullptr;
  }
  std::string text(const Elf64_Shdr& of, std::size_t offset) const {
    return bytes_.data() + all_.at(of.sh_link).sh_offset + offset;
  }
  template <typename T>
  T at(std::size_t offset) const {
    if (offset + sizeof(T) > bytes_.size()) throw std::runtime_error("a truncated ELF file");
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }

 private:
  std::vector<char> bytes_;
  std::map<unsigned, Elf64_Shdr> sections_;
  std::vector<Elf64_Shdr> all_;
};

// The number of a symbol version; 0: there is none of this name.
unsigned number_of_version(const Elf& elf, const std::string& name) {
  const Elf64_Shdr* const versions = elf.section(SHT_GNU_verdef);
  std::size_t offset = versions != nullptr ? versions->sh_offset : 0;
  for (unsigned i = 0; versions != nullptr && i < versions->sh_info; ++i) {
    const auto version = elf.at<Elf64_Verdef>(offset);
    const auto first = elf.at<Elf64_Verdaux>(offset + version.vd_aux);
    if (elf.text(*versions, first.vda_name) == name) return version.vd_ndx;
    offset += version.vd_next;
  }
  return 0;
}

}  // namespace

std::set<std::string> exported_names(const std::string& library) {
  const Elf elf(library);
  const Elf64_Shdr* const symbols = elf.section(SHT_DYNSYM);
  const Elf64_Shdr* const numbers = elf.section(SHT_GNU_versym);
  if (symbols == nullptr) throw std::runtime_error(library + " exports nothing");
  const unsigned hidden = number_of_version(elf, "GLIBC_PRIVATE");
  std::set<std::string> out;
  for (std::size_t i = 1; i < symbols->sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = elf.at<Elf64_Sym>(symbols->sh_offset + i * sizeof(Elf64_Sym));
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
    const unsigned version =
        numbers != nullptr
            ? elf.at<Elf64_Half>(numbers->sh_offset + i * sizeof(Elf64_Half)) & 0x7fffU
            : 0;
    if (hidden == 0 || version != hidden) out.insert(elf.text(*symbols, symbol.st_name));
  }
  return out;
}

}  // namespace vellum::cli_test
