#include "compiler/runtime/mapped_calls.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error_number.hpp"
#include "interfaces/atomic_file/mapped_files.hpp"
#include "interfaces/mapped_io/durable.hpp"

namespace vellum::msync {
namespace {

using atomic_file::MappedFiles;

class AtomicDescriptor final : public mapped_io::MappedDescriptor {
 public:
  explicit AtomicDescriptor(int fd) noexcept : fd_(fd), flags_(fcntl(fd, F_GETFL)) {}

  bool reads() const override { return (flags_ & O_ACCMODE) != O_WRONLY; }
  bool writes() const override { return (flags_ & O_ACCMODE) != O_RDONLY; }
  bool appends() const override { return (flags_ & O_APPEND) != 0; }
  // A longer write is refused for lack of space. The kernel would write the accessible part of the
  // caller's memory, whose end cannot be found without the fault handlers that only regions
  // install.
  std::size_t most_bytes() const override { return SIZE_MAX; }
  bool synchronous() const noexcept { return mapped_io::descriptor_is_synchronous(flags_); }
  off_t seek(off_t offset_bytes, int whence) const override {
    return lseek(fd_, offset_bytes, whence);
  }
  ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) override {
    return MappedFiles::instance().read_at(fd_, to, length_bytes, offset_bytes);
  }
  ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                   bool append) override {
    return MappedFiles::instance().write_at(fd_, from, length_bytes, offset_bytes, append);
  }

 private:
  const int fd_, flags_;
};

}  // namespace

bool any_atomic_files() {
  static const bool any = [] {
    const char* patterns = std::getenv("VELLUM_ATOMIC_FILES");
    return patterns != nullptr && *patterns != '\0';
  }();
  return any;
}

bool is_mapped(int fd) { return any_atomic_files() && MappedFiles::instance().mapped(fd); }

ssize_t mapped_read(int fd, const iovec* pieces, std::size_t count, off_t at, int flags) {
  AtomicDescriptor file(fd);
  return mapped_io::read_pieces(file, pieces, count, at, flags);
}

ssize_t mapped_write(int fd, const iovec* pieces, std::size_t count, off_t at, int flags) {
  AtomicDescriptor file(fd);
  const ssize_t done = mapped_io::write_pieces(file, pieces, count, at, flags);
  if (done <= 0 || !(file.synchronous() || mapped_io::write_is_synchronous(flags))) return done;
  return base::as_result(MappedFiles::instance().sync_file(fd)) == 0 ? done : -1;
}

}  // namespace vellum::msync
