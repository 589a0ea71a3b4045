#include "interfaces/mapped_io/map_requests.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "base/error_number.hpp"
#include "format/wire/types.hpp"

namespace vellum::mapped_io {
namespace {

// Linux's numbers, as older headers lack some.
constexpr int kMapAbove4G = 0x80;                       // MAP_ABOVE4G, Linux 6.6
constexpr int kHugeSize = 0x1f << 26;                   // MAP_HUGE_2MB | MAP_HUGE_1GB
constexpr int kDontneedLocked = 24;                     // MADV_DONTNEED_LOCKED, Linux 5.18
constexpr int kCollapse = 25;                           // MADV_COLLAPSE, Linux 6.1
constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // Linux 5.14

// The flags that the kernel accepts with MAP_SHARED_VALIDATE (linux/mman.h, LEGACY_MAP_MASK).
constexpr int kKnownMapFlags = MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | MAP_DENYWRITE |
                               MAP_EXECUTABLE | MAP_GROWSDOWN | MAP_LOCKED | MAP_NORESERVE |
                               MAP_POPULATE | MAP_NONBLOCK | MAP_STACK | MAP_HUGETLB | kHugeSize |
#ifdef MAP_32BIT
                               MAP_32BIT |
#endif
                               kMapAbove4G;

bool on_page(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % format::kPageBytes == 0;
}

}  // namespace

int refuse_map_flags(int flags) noexcept {
  const int type = flags & MAP_TYPE;
  if (type != MAP_SHARED && type != MAP_SHARED_VALIDATE && type != MAP_PRIVATE) return EINVAL;
  const int unknown = type == MAP_SHARED_VALIDATE ? flags & ~kKnownMapFlags : 0;
  if (unknown != 0 || (type == MAP_SHARED && (flags & MAP_SYNC) != 0)) return EOPNOTSUPP;
  return (flags & MAP_HUGETLB) != 0 ? EINVAL : 0;  // for files of hugetlbfs
}

int refuse_remap(const void* address, std::size_t old_bytes, std::size_t new_bytes,
                 int flags) noexcept {
  constexpr int kDontUnmap = 4;  // MREMAP_DONTUNMAP, Linux 5.7
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | kDontUnmap)) != 0 || !on_page(address) ||
      old_bytes == 0 || new_bytes == 0)
    return EINVAL;
  if ((flags & (MREMAP_FIXED | kDontUnmap)) == 0) return 0;
  return (flags & MREMAP_MAYMOVE) != 0 ? ENOTSUP : EINVAL;
}

int refuse_msync(const void* address, int flags) noexcept {
  const bool both = (flags & MS_ASYNC) != 0 && (flags & MS_SYNC) != 0;
  const bool unknown = (flags & ~(MS_ASYNC | MS_SYNC | MS_INVALIDATE)) != 0;
  return both || unknown || !on_page(address) ? EINVAL : 0;
}

Advice advice_for_file(int advice) noexcept {
  switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DOFORK:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case kPopulateRead:
    case kPopulateWrite:
    case kCollapse:
      return Advice::pass;
    case MADV_DONTNEED:
    case kDontneedLocked:
    case MADV_DONTFORK:  // a child of fork(2) may read the file nevertheless
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_KEEPONFORK:
      return Advice::nothing;
    case MADV_REMOVE:
      return Advice::hole;
    default:
      return Advice::refuse;  // MADV_FREE and MADV_WIPEONFORK, which are for private memory; guards
  }
}

int give_advice(const void* address, int advice, int (*pass)(void*, std::size_t, int),
                std::size_t length_bytes) noexcept {
  if (!on_page(address)) return base::as_result(EINVAL);
  switch (advice_for_file(advice)) {
    case Advice::pass:
      return pass(const_cast<void*>(address), length_bytes, advice);
    case Advice::nothing:
      return 0;
    case Advice::refuse:
      return base::as_result(EINVAL);
    case Advice::hole:
      return base::as_result(EOPNOTSUPP);
  }
  return 0;
}

ssize_t advise_pieces(const iovec* pieces, std::size_t count, int advice,
                      int (*one)(void*, std::size_t, int)) noexcept {
  ssize_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (one(pieces[i].iov_base, pieces[i].iov_len, advice) != 0) return total > 0 ? total : -1;
    total += static_cast<ssize_t>(pieces[i].iov_len);
  }
  return total;
}

}  // namespace vellum::mapped_io
