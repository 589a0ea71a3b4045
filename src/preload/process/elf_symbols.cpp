#include "preload/process/elf_symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace vellum::preload {
namespace {

struct Symbols {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;  // DT_GNU_HASH
};

// The dynamic linker has made the addresses of most libraries absolute, but not the vDSO's.
const void* at(ElfW(Addr) base, ElfW(Addr) given) noexcept {
  return reinterpret_cast<const void*>(given < base ? base + given : given);
}

Symbols symbols_of(const dl_phdr_info& library) noexcept {
  Symbols out;
  out.base = library.dlpi_addr;
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    if (library.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(out.base + library.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const void* const value = at(out.base, entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) out.table = static_cast<const ElfW(Sym)*>(value);
      if (entry->d_tag == DT_STRTAB) out.names = static_cast<const char*>(value);
      if (entry->d_tag == DT_GNU_HASH) out.hash = static_cast<const std::uint32_t*>(value);
    }
  }
  return out;
}

std::uint32_t gnu_hash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// The layout of DT_GNU_HASH: 4 words of header, a Bloom filter, buckets, and chains whose last hash
// is odd.
void* find(const Symbols& in, const char* name) noexcept {
  if (in.table == nullptr || in.names == nullptr || in.hash == nullptr) return nullptr;
  const std::uint32_t buckets = in.hash[0], first = in.hash[1], words = in.hash[2];
  const std::uint32_t* const bucket =
      in.hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* const chain = bucket + buckets;
  const std::uint32_t hash = gnu_hash(name);
  for (std::uint32_t i = buckets != 0 ? bucket[hash % buckets] : 0; i >= first && i != 0; ++i) {
    const ElfW(Sym)& symbol = in.table[i];
    const std::uint32_t here = chain[i - first];
    if ((here | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        std::strcmp(in.names + symbol.st_name, name) == 0)
      return reinterpret_cast<void*>(in.base + symbol.st_value);
    if ((here & 1) != 0) break;
  }
  return nullptr;
}

// glibc before 2.34 has parts of it in libraries of their own. libaio and liburing are of its kind:
// they make system calls.
bool is_c_library(const char* path) noexcept {
  if (path == nullptr) return false;
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  for (const char* known : {"libc.so", "libc-", "libdl.so", "libdl-", "libpthread.so",
                            "libpthread-", "librt.so", "librt-", "libaio.so", "liburing.so"})
    if (std::strncmp(name, known, std::strlen(known)) == 0) return true;
  return false;
}

bool holds(const dl_phdr_info& library, const void* address) noexcept {
  const auto wanted = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library.dlpi_phdr[i];
    const ElfW(Addr) begin = library.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && wanted >= begin && wanted < begin + part.p_memsz) return true;
  }
  return false;
}

const Symbols& own_symbols() noexcept {
  static const Symbols own = [] {
    Symbols found;
    dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* out) {
          if (!holds(*library, reinterpret_cast<const void*>(&own_symbols))) return 0;
          *static_cast<Symbols*>(out) = symbols_of(*library);
          return 1;
        },
        &found);
    return found;
  }();
  return own;
}

}  // namespace

void* own_export(const char* name) noexcept { return find(own_symbols(), name); }

void* c_library_export(const char* name) noexcept {
  struct Wanted {
    const char* name;
    void* found;
  } wanted{name, nullptr};
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* given) {
        auto& all = *static_cast<Wanted*>(given);
        if (is_c_library(library->dlpi_name)) all.found = find(symbols_of(*library), all.name);
        return all.found != nullptr ? 1 : 0;
      },
      &wanted);
  return wanted.found;
}

bool is_of_c_library(const void* address) noexcept {
  Dl_info where{};
  return dladdr(address, &where) != 0 && is_c_library(where.dli_fname);
}

}  // namespace vellum::preload
