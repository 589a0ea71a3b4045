#include "power/image_lib.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace vellum::power {

namespace {

constexpr std::size_t kChunkBytes = 64 << 10, kPageBytes = 4096;

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.front() == std::byte{} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Visits each chunk with data of a sparse file.
template <typename Visit>
void for_each_chunk(int fd, std::size_t size_bytes, const Visit& visit) {
  for (std::size_t at = 0; at < size_bytes;) {
    const off_t data = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0) return;
    const off_t hole = lseek(fd, data, SEEK_HOLE);
    const auto end = static_cast<std::size_t>(hole);
    std::size_t chunk = static_cast<std::size_t>(data) / kChunkBytes;
    for (; chunk * kChunkBytes < end; ++chunk) visit(chunk);
    at = chunk * kChunkBytes;
  }
}

}  // namespace

Image::Image(const Descriptor& disk)
    : image_file_(make_memory_file("image", MappedMemory(disk).bytes().size())),
      image_(image_file_),
      settled_(image_.bytes().size()),
      holds_data_(image_.bytes().size() / kChunkBytes) {
  const MappedMemory from(disk);
  for_each_chunk(disk.get(), from.bytes().size(), [&](std::size_t chunk) {
    const auto bytes = from.bytes().subspan(chunk * kChunkBytes, kChunkBytes);
    if (is_zero(bytes)) return;
    std::memcpy(image_.bytes().data() + chunk * kChunkBytes, bytes.data(), kChunkBytes);
    std::memcpy(settled_.bytes().data() + chunk * kChunkBytes, bytes.data(), kChunkBytes);
    holds_data_[chunk] = true;
  });
}

void Image::settle(const LogEntry& write) {
  const std::size_t at = write.header.at_bytes;
  std::memcpy(settled_.bytes().data() + at, write.bytes.data(), write.bytes.size());
  add(write);
  for (std::size_t chunk = at / kChunkBytes; chunk * kChunkBytes < at + write.bytes.size();
       ++chunk) {
    holds_data_[chunk] = true;
  }
}

void Image::add(const LogEntry& write) {
  std::memcpy(image_.bytes().data() + write.header.at_bytes, write.bytes.data(),
              write.bytes.size());
}

void Image::add(const LogEntry& write, const std::vector<bool>& sectors) {
  for (std::size_t i = 0; i * kSectorBytes < write.bytes.size(); ++i) {
    if (!sectors[i]) continue;
    const std::size_t from = i * kSectorBytes;
    std::memcpy(image_.bytes().data() + write.header.at_bytes + from, write.bytes.data() + from,
                std::min(kSectorBytes, write.bytes.size() - from));
  }
}

void Image::restore_chunk(std::size_t chunk) {
  for (std::size_t at = chunk * kChunkBytes; at < (chunk + 1) * kChunkBytes; at += kPageBytes) {
    std::byte* const image = image_.bytes().data() + at;
    const std::byte* const settled = settled_.bytes().data() + at;
    if (std::memcmp(image, settled, kPageBytes) != 0) std::memcpy(image, settled, kPageBytes);
  }
}

void Image::restore() {
  for_each_chunk(image_file_.get(), image_.bytes().size(), [&](std::size_t chunk) {
    if (holds_data_[chunk]) return;
    if (fallocate(image_file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(chunk * kChunkBytes), kChunkBytes) != 0) {
      fail_with_errno("fallocate");
    }
  });
  for (std::size_t chunk = 0; chunk < holds_data_.size(); ++chunk) {
    if (holds_data_[chunk]) restore_chunk(chunk);
  }
}

}  // namespace vellum::power
