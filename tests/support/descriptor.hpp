// An open file with the lifetime of a test or a part of one.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace vellum::test {

class Descriptor {
 public:
  Descriptor(const std::string& file, int flags) : fd_(open(file.c_str(), flags | O_CLOEXEC)) {
    EXPECT_GE(fd_, 0) << file << ": " << std::strerror(errno);
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace vellum::test
