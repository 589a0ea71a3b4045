#include "power/shared_memory_lib.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace vellum::power {

namespace {

std::uint64_t size_of(int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0) fail_with_errno("fstat");
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace

void fail_with_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Descriptor::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Descriptor make_memory_file(const char* name, std::uint64_t size_bytes) {
  Descriptor file(memfd_create(name, 0));
  if (file.get() < 0) fail_with_errno("memfd_create");
  if (ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0) fail_with_errno("ftruncate");
  return file;
}

std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/{}/fd/{}", getpid(), file.get());
}

MappedMemory::MappedMemory(int fd, int flags, std::uint64_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  void* const data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (data == MAP_FAILED) fail_with_errno("mmap");
  data_ = static_cast<std::byte*>(data);
}

MappedMemory::MappedMemory(const Descriptor& file)
    : MappedMemory(file.get(), MAP_SHARED, size_of(file.get())) {}

MappedMemory::MappedMemory(std::uint64_t anonymous_bytes)
    : MappedMemory(-1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, anonymous_bytes) {}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

}  // namespace vellum::power
