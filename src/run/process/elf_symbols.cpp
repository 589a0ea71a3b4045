#include "run/process/elf_symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <initializer_list>

namespace vellum::preload {
namespace {

// A sanitizer's library is loaded first, and calls dlsym(3) before its own functions work,
// including strcmp(3) and dl_iterate_phdr(3). Nothing on this path therefore calls the C library.
bool begins_with(const char* text, const char* part) noexcept {
  for (; *part != 0; ++text, ++part)
    if (*text != *part) return false;
  return true;
}
bool equal(const char* a, const char* b) noexcept {
  for (; *a == *b; ++a, ++b)
    if (*a == 0) return true;
  return false;
}
const char* last_part(const char* path) noexcept {
  const char* part = path;
  for (; *path != 0; ++path)
    if (*path == '/') part = path + 1;
  return part;
}

struct Symbols {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;  // DT_GNU_HASH
};

// The dynamic linker has made the addresses of most libraries absolute, but not the vDSO's.
const void* at(ElfW(Addr) base, ElfW(Addr) given) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as the dynamic linker has it
  return reinterpret_cast<const void*>(given < base ? base + given : given);
}

Symbols symbols_of(ElfW(Addr) base, const ElfW(Dyn) * entry) noexcept {
  Symbols out;
  out.base = base;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const void* const value = at(base, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) out.table = static_cast<const ElfW(Sym)*>(value);
    if (entry->d_tag == DT_STRTAB) out.names = static_cast<const char*>(value);
    if (entry->d_tag == DT_GNU_HASH) out.hash = static_cast<const std::uint32_t*>(value);
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
        equal(in.names + symbol.st_name, name))
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      return reinterpret_cast<void*>(in.base + symbol.st_value);
    if ((here & 1) != 0) break;
  }
  return nullptr;
}

// glibc before 2.34 has parts in separate libraries. libaio and liburing count as well: they make
// system calls.
bool is_c_library(const char* path) noexcept {
  if (path == nullptr) return false;
  const char* const name = last_part(path);
  for (const char* known : {"libc.so", "libc-", "libdl.so", "libdl-", "libpthread.so",
                            "libpthread-", "librt.so", "librt-", "libaio.so", "liburing.so"})
    if (begins_with(name, known)) return true;
  return false;
}

// The libraries that the program was started with are first, and are never unloaded.
const link_map* libraries() noexcept { return _r_debug.r_map; }

Symbols own_symbols() noexcept {
  for (const link_map* library = libraries(); library != nullptr; library = library->l_next)
    if (library->l_ld == _DYNAMIC) return symbols_of(library->l_addr, library->l_ld);
  return {};
}

}  // namespace

void* own_export(const char* name) noexcept {
  static const Symbols own = own_symbols();
  return find(own, name);
}

void* c_library_export(const char* name) noexcept {
  for (const link_map* library = libraries(); library != nullptr; library = library->l_next) {
    if (!is_c_library(library->l_name)) continue;
    if (void* const found = find(symbols_of(library->l_addr, library->l_ld), name)) return found;
  }
  return nullptr;
}

bool is_of_c_library(const void* address) noexcept {
  Dl_info where{};
  return dladdr(address, &where) != 0 && is_c_library(where.dli_fname);
}

}  // namespace vellum::preload
