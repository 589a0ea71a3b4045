#include "memory/memory.hpp"

#include <unistd.h>

#include <bit>
#include <cassert>
#include <cstring>
#include <span>
#include <utility>

#include "memory/kernel/racing_page.hpp"

namespace vellum::region {

RegionMemory::RegionMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
                           std::shared_ptr<Backing> base_copies)
    : options_(options),
      chunk_shift_(static_cast<unsigned>(std::countr_zero(options.chunk_bytes / kPageBytes))),
      size_bytes_(options.size_bytes),
      base_copies_(std::move(base_copies)),
      source_(std::move(source)),
      range_(options, options.shared ? options.shared->descriptor() : base_copies_->file()) {
  assert(base_copies_ != nullptr && options.size_bytes <= options.capacity_bytes);
  assert(options.capacity_bytes % kPageBytes == 0 && options.size_bytes % kPageBytes == 0);
  assert(std::has_single_bit(options.chunk_bytes) && options.chunk_bytes >= kPageBytes &&
         options.chunk_bytes <= kMaxChunkPages * kPageBytes);
}

void RegionMemory::make_private(PageNumber page) noexcept {
  assert(options_.writable);  // held: present, or claimed by another thread for a short time
  rewrite_racing_page(address_of(page));
}

void RegionMemory::read_committed(PageNumber page, std::byte* out) const {
  assert(out != nullptr);
  if (const auto& source = source_.shared(); source != nullptr) {
    source->read(page, 1, out);
  } else {
    std::memset(out, 0, kPageBytes);
  }
}

void RegionMemory::report(const store::ReadFailure& failure) const noexcept {
  char text[1024] = "vellum: ";
  const std::size_t used = std::strlen(text);
  const LiveSourceReader source(source_);
  if (source.get() != nullptr) {
    source->describe(failure, std::span(text).subspan(used, sizeof text - used - 1));
  } else {
    std::strncat(text, failure.reason, sizeof text - used - 2);
  }
  std::strncat(text, "\n", sizeof text - std::strlen(text) - 1);
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text, std::strlen(text));
}

}  // namespace vellum::region
