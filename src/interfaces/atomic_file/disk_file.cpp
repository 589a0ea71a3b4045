// A medium on a disk: pwrite(2) and fdatasync(2), through the seam.
#include <algorithm>
#include <cassert>
#include <vector>

#include "interfaces/atomic_file/medium.hpp"

namespace vellum::atomic_file {
namespace {

class DiskFile final : public MediumFile {
 public:
  DiskFile(base::File& file, Space space)
      : file_(file), space_(space), size_bytes_(file.size_bytes()) {}

  const std::string& path() const noexcept override { return file_.path(); }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  void read(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    assert(offset_bytes + out.size() <= size_bytes_);
    file_.pread(out, offset_bytes);
  }
  void write(std::span<const std::byte> bytes, std::uint64_t offset_bytes) override {
    assert(offset_bytes + bytes.size() <= size_bytes_);
    file_.pwrite(bytes, offset_bytes);
  }
  void barrier() override { file_.sync_data(); }
  void resize(std::uint64_t size_bytes) override {
    if (space_ == Space::sparse || size_bytes < size_bytes_) {
      file_.truncate(size_bytes);
    } else {
      write_zeros(size_bytes);
    }
    size_bytes_ = size_bytes;
  }
  bool byte_addressable() const noexcept override { return false; }

 private:
  void write_zeros(std::uint64_t end) {
    assert(end >= size_bytes_);
    constexpr std::uint64_t kStepBytes = 256u << 10;
    const std::vector<std::byte> zeros(std::min(kStepBytes, end - size_bytes_));
    for (std::uint64_t at = size_bytes_; at < end; at += zeros.size())
      file_.pwrite(std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), end - at)), at);
  }

  base::File& file_;
  Space space_;
  std::uint64_t size_bytes_;
};

}  // namespace

std::unique_ptr<MediumFile> disk_file(base::File& file, Space space) {
  return std::make_unique<DiskFile>(file, space);
}

}  // namespace vellum::atomic_file
