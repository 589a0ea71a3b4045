#include "memory/engine/image_backing.hpp"

#include <sys/mman.h>

#include <cstring>

#include "memory/kernel/racing_page.hpp"

namespace vellum::region {

ImageBacking::ImageBacking(std::size_t capacity_bytes, int image)
    : Backing(capacity_bytes, image, MAP_PRIVATE) {}

int ImageBacking::write(format::PageNumber first, std::span<const std::byte> bytes) noexcept {
  std::byte page[kPageBytes];
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
    copy_racing_page(page, bytes.data() + at);
    std::byte* const to = base_copy(first) + at;
    if (std::memcmp(to, page, kPageBytes) != 0) std::memcpy(to, page, kPageBytes);
  }
  return 0;
}

void ImageBacking::show_image(format::PageNumber first, std::size_t count_pages) noexcept {
  forget_base_copies(first, count_pages);
  madvise(base_copy(first), count_pages * kPageBytes, MADV_DONTNEED);
}

}  // namespace vellum::region
