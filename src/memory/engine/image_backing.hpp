// memory/engine/image_backing.hpp: base copies in the image of engine mapped.
//
// The alias is a private mapping: patches in it reach the image only when they are written to it.
// The pages are the page cache's, so no pager counts them.
#pragma once

#include "memory/copies/backing.hpp"

namespace vellum::region {

class ImageBacking final : public Backing {
 public:
  // The caller closes `image` after this object. Throws Errc::out_of_memory.
  ImageBacking(std::size_t capacity_bytes, int image);

  // A page that equals the image's stays the image's, so attaching a large file takes no memory.
  int write(format::PageNumber first, std::span<const std::byte> bytes) noexcept override;
  // Patches stay until show_image().
  void drop_base_copies(format::PageNumber first, std::size_t count) noexcept override {
    forget_base_copies(first, count);
  }
  // Forgets the base copies and their patches.
  void show_image(format::PageNumber first, std::size_t count) noexcept;

 private:
  void count(std::int64_t) noexcept override {}
};

}  // namespace vellum::region
