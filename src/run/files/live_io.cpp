// Reading and writing a live file through a descriptor.
#include "run/files/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "interfaces/mapped_io/descriptor_io.hpp"
#include "interfaces/mapped_io/durable.hpp"
#include "run/live/live_file.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

class LiveDescriptor final : public mapped_io::MappedDescriptor {
 public:
  LiveDescriptor(LiveFile& live, int fd) noexcept : live_(live), fd_(fd) {}

  bool reads() const override { return Descriptors::reads(fd_); }
  bool writes() const override { return Descriptors::writes(fd_); }
  bool appends() const override {
    return Descriptors::may_append(fd_) && (fcntl(fd_, F_GETFL) & O_APPEND) != 0;
  }
  // Not this library's lseek(2), which handles live files.
  off_t seek(off_t offset_bytes, int whence) const override {
    return VELLUM_REAL(lseek)(fd_, offset_bytes, whence);
  }
  ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t offset_bytes) override {
    return live_.read_at(to, length_bytes, offset_bytes);
  }
  ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t& offset_bytes,
                   bool append) override {
    return live_.write_at(from, length_bytes, offset_bytes, append);
  }

 private:
  LiveFile& live_;
  const int fd_;
};

}  // namespace

ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                  int flags) {
  LiveDescriptor file(live, fd);
  return mapped_io::read_pieces(file, pieces, count, at, flags);
}

ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                   int flags) {
  LiveDescriptor file(live, fd);
  const ssize_t done = mapped_io::write_pieces(file, pieces, count, at, flags);
  const bool flushes = mapped_io::write_is_synchronous(flags) || Descriptors::synchronous(fd);
  if (done <= 0 || !flushes) return done;
  const int error = Files::instance().commit_in_order(live, &LiveFile::flush);
  if (error == 0) return done;
  errno = error;
  return -1;
}

}  // namespace vellum::preload
