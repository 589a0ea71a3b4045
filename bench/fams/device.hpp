// bench/fams/device.hpp: the bytes written to the block device of a directory.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "lib/report.hpp"

namespace fams {

class Device {
 public:
  explicit Device(const std::string& directory) : directory_(directory) {
    struct stat of{};
    bench::check(::stat(directory.c_str(), &of) == 0, directory.c_str());
    stat_file_ = fmt::format("/sys/dev/block/{}:{}/stat", major(of.st_dev), minor(of.st_dev));
  }
  // Includes other programs' writes to the device. nullopt: no device, as for tmpfs.
  std::optional<std::uint64_t> bytes_written() const {
    std::ifstream in(stat_file_);
    std::uint64_t word = 0;
    for (int i = 0; i < 7; ++i) in >> word;  // sectors written
    return in ? std::optional(word * 512) : std::nullopt;
  }
  void sync() const {
    const int directory = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bench::check(directory >= 0 && ::syncfs(directory) == 0, "syncfs");
    ::close(directory);
  }

 private:
  std::string directory_, stat_file_;
};

}  // namespace fams
