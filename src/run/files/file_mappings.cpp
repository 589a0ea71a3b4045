#include "run/files/file_mappings.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "format/wire/types.hpp"
#include "interfaces/mapped_io/map_requests.hpp"
#include "run/live/read_views.hpp"

namespace vellum::preload {

using format::kPageBytes;

void* FileMappings::map(int fd, std::size_t length_bytes, int protection, int flags,
                        off_t offset_bytes) {
  const std::lock_guard lock(states_.mutex());
  OpenFile& open = states_.files()[Descriptors::target(fd)];
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
  if ((protection & PROT_WRITE) != 0 && !Descriptors::writes(fd)) return fail(EACCES);
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

std::shared_ptr<LiveFile> FileMappings::live_at(const void* address) {
  if (!states_.files().may_contain(address) || !live_ranges().contains(address)) return nullptr;
  const std::lock_guard lock(states_.mutex());
  const std::size_t number = states_.files().find(address);
  return number != OpenFiles::kNone ? states_.files()[number].live : nullptr;
}

int FileMappings::unmap(void* address, std::size_t length_bytes) {
  const std::lock_guard lock(states_.mutex());
  const std::size_t number = states_.files().find(address);
  if (number == OpenFiles::kNone || length_bytes == 0) return EINVAL;
  states_.files()[number].mappings.remove(static_cast<std::byte*>(address), length_bytes);
  states_.close_unused(number);
  return 0;
}

int FileMappings::remap(void* address, std::size_t old_bytes, std::size_t new_bytes) {
  const std::lock_guard lock(states_.mutex());
  const std::size_t number = states_.files().find(address);
  if (number == OpenFiles::kNone || new_bytes == 0) return EINVAL;
  OpenFile& open = states_.files()[number];
  auto* const begin = static_cast<std::byte*>(address);
  const auto offset = static_cast<std::uint64_t>(begin - open.live->data());
  if (new_bytes > open.live->capacity_bytes() - offset) return ENOMEM;
  return open.mappings.resize(begin, old_bytes, new_bytes) ? 0 : EINVAL;
}

}  // namespace vellum::preload
