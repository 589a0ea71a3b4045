// A store in a temporary directory, and plain files next to it for engine mapped.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/store_fixture.hpp"

namespace vellum::test {

using Bytes = std::vector<std::byte>;

inline Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  Bytes out(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
  return out;
}

// Writes like a program that does not use Vellum.
inline void write_at(const std::string& path, std::uint64_t at, const std::string& text) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(pwrite(fd, text.data(), text.size(), static_cast<off_t>(at)),
            static_cast<ssize_t>(text.size()));
  close(fd);
}

class Mapped : public testing::Test {
 protected:
  RegionOptions options(const std::string& image = "") const {
    RegionOptions options;
    options.engine = Engine::mapped;
    options.image.path = image;
    options.capacity_bytes = 256 * kMiB;
    return options;
  }
  std::string path() const { return directory_ / "store"; }
  std::string file() const { return directory_ / "plain"; }
  std::string in_store() const { return path() + "/branches/main/image"; }
  void make_file(std::uint64_t bytes, std::uint64_t seed = 1) const {
    std::mt19937_64 random(seed);
    std::ofstream out(file(), std::ios::binary);
    for (std::uint64_t at = 0; at < bytes; at += 8) {
      const std::uint64_t value = random() % 100;
      out.write(reinterpret_cast<const char*>(&value),
                static_cast<std::streamsize>(std::min<std::uint64_t>(8, bytes - at)));
    }
  }
  static void expect_head(const Store& store, const std::string& image) {
    auto held = read_file(image);
    const auto head = content_of(store, "main");
    ASSERT_LE(held.size(), head.size());
    held.resize(head.size());
    EXPECT_TRUE(held == head);
  }

  TempDirectory directory_;
};

}  // namespace vellum::test
