// Mappings of live files.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "format/wire/types.hpp"
#include "interfaces/mapped_io/map_requests.hpp"
#include "run/files/files.hpp"
#include "run/live/read_views.hpp"
#include "run/process/proc.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {

using format::kPageBytes;

void* Files::map(int fd, std::size_t length_bytes, int protection, int flags, off_t offset_bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t entry = entry_of(fd);
  Open& open = *opens_[(entry & kTarget) - 1U];
  const int type = flags & MAP_TYPE;
  const bool shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
  if (open.live == nullptr) return nullptr;
  const auto fail = [](int error) {
    errno = error;
    return MAP_FAILED;
  };
  const std::string& path = open.target.path;
  if (const int refused = mapped_io::refuse_map_flags(flags)) return fail(refused);
  if (!shared)
    return fail(complain(path, ENOTSUP, "cannot be mapped privately while it is open for writing"));
  if (offset_bytes < 0 || offset_bytes % static_cast<off_t>(kPageBytes) != 0 || length_bytes == 0)
    return fail(EINVAL);
  if ((protection & PROT_WRITE) != 0 && (entry & kWrites) == 0) return fail(EACCES);
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0)
    return fail(complain(path, ENOTSUP, "cannot be mapped at an address of the program's choice"));
  const auto offset = static_cast<std::uint64_t>(offset_bytes);
  if (offset > open.live->capacity_bytes() || length_bytes > open.live->capacity_bytes() - offset)
    return fail(complain(
        path, ENOMEM,
        "a mapping extends past its address space: files have more if fewer are open at once"));
  if ((protection & PROT_WRITE) != 0 && read_views().any_of(open.live->data()))
    return fail(complain(path, EBUSY,
                         "cannot be mapped for writing while a read-only mapping exists that is "
                         "older than the opening for writing"));
  if ((protection & PROT_WRITE) != 0) open.live->note_mapped_writable();
  std::byte* const begin = open.live->data() + offset;
  open.mappings.add(begin, length_bytes);
  return begin;
}

// Makes older read-only mappings show later writes (read_views.hpp).
int Files::keep_views(const Open& open) const {
  if (!used_.may_have(open.file.inode)) return 0;
  const auto mappings = kernel_mappings(open.file.inode, open.target.path);
  if (mappings.empty()) return 0;
  const int fd = VELLUM_REAL(open)(open.target.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  bool all = true;
  for (const KernelMapping& mapping : mappings)
    all = all && (!mapping.shared_to_read || read_views().add(open.live->data(), fd, mapping.begin,
                                                              mapping.end, mapping.offset_bytes));
  VELLUM_REAL(close)(fd);
  return all ? 0 : complain(open.target.path, EBUSY, "has too many read-only mappings");
}

std::size_t Files::find(const void* address) const {
  for (std::size_t i = 0; i < opens_.size(); ++i)
    if (opens_[i] != nullptr && opens_[i]->mappings.contains(address)) return i;
  return kTarget;
}

std::shared_ptr<LiveFile> Files::mapped_at(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at < lowest_ || at >= highest_ || !live_ranges().contains(address)) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::size_t number = find(address);
  return number != kTarget ? opens_[number]->live : nullptr;
}

// REQUIRES: mapped_at(address).
int Files::unmap(void* address, std::size_t length_bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = find(address);
  if (number == kTarget || length_bytes == 0) return EINVAL;
  opens_[number]->mappings.remove(static_cast<std::byte*>(address), length_bytes);
  close_unused(number);
  return 0;
}

int Files::remap(void* address, std::size_t old_bytes, std::size_t new_bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = find(address);
  if (number == kTarget || new_bytes == 0) return EINVAL;
  Open& open = *opens_[number];
  auto* const begin = static_cast<std::byte*>(address);
  const auto offset = static_cast<std::uint64_t>(begin - open.live->data());
  if (new_bytes > open.live->capacity_bytes() - offset) return ENOMEM;
  return open.mappings.resize(begin, old_bytes, new_bytes) ? 0 : EINVAL;
}

}  // namespace vellum::preload
