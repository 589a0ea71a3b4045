// A file that is held by a mapping reads like a file that is held by a descriptor.
#include "base/files/read_only_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"

namespace vellum::base {
namespace {

using Bytes = std::vector<std::byte>;

class MappedFileTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRoom = 1u << 20;

  MappedFileTest() {
    const auto file = fs_.open(path_, OpenMode::create_new);
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<std::byte>(i * i);
    file->pwrite(content_, 0);
  }
  std::unique_ptr<File> mapped(const std::string& path) {
    auto file = hold_by_mapping(fs_, fs_.open(path, OpenMode::read_only), kRoom);
    EXPECT_EQ(file->descriptor(), -1);
    return file;
  }
  Bytes read(const File& file, std::uint64_t at, std::size_t length) {
    Bytes out(length);
    file.pread(out, at);
    return out;
  }
  Bytes part(std::size_t at, std::size_t length) {
    const auto begin = content_.begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + static_cast<std::ptrdiff_t>(length)};
  }

  vellum::test::TempDirectory directory_;
  const std::string path_ = directory_ / "file", other_ = directory_ / "other";
  Fs& fs_ = posix_fs();
  Bytes content_ = Bytes(20'000);
};

TEST_F(MappedFileTest, AnyRangeReads) {
  const auto file = mapped(path_);
  EXPECT_EQ(file->size_bytes(), content_.size());
  EXPECT_EQ(file->path(), path_);
  EXPECT_FALSE(file->replaced());
  for (const std::size_t at : {0u, 1u, 4095u, 4096u, 8191u, 19'999u}) {
    for (const std::size_t length : {0u, 1u, 2u, 4097u, 20'000u}) {
      if (at + length > content_.size()) continue;
      EXPECT_EQ(read(*file, at, length), part(at, length)) << at << " " << length;
    }
  }
}

TEST_F(MappedFileTest, PastTheEndIsAnErrorAndNoSignal) {
  const auto file = mapped(path_);
  Bytes out(100);
  EXPECT_EQ(file->try_pread(out, 40'000), ENODATA);
  EXPECT_EQ(file->try_pread(out, kRoom - 50), ENODATA);
  EXPECT_EQ(file->try_pread(out, UINT64_MAX - 10), ENODATA);
  EXPECT_ERRC(file->pread(out, 40'000), Errc::corrupted);
  ASSERT_EQ(::truncate(path_.c_str(), 4096), 0);
  EXPECT_EQ(file->try_pread(out, 8192), ENODATA);
  EXPECT_EQ(read(*file, 0, 4096), part(0, 4096));
}

TEST_F(MappedFileTest, WhatIsAppendedIsSeen) {
  const auto file = mapped(path_);
  fs_.open(path_, OpenMode::read_write)->pwrite(part(0, 10'000), 30'000);
  EXPECT_EQ(file->size_bytes(), 40'000u);
  EXPECT_EQ(read(*file, 30'000, 10'000), part(0, 10'000));
}

TEST_F(MappedFileTest, TheFileIsHeldWhenItsNameIsNot) {
  const auto file = mapped(path_);
  fs_.open(other_, OpenMode::create_new)->pwrite(Bytes(100), 0);
  fs_.rename(other_, path_);
  EXPECT_TRUE(file->replaced());
  EXPECT_EQ(file->size_bytes(), content_.size());
  EXPECT_EQ(read(*file, 0, content_.size()), content_);
  EXPECT_ERRC(file->pin_byte(5), Errc::not_found);
  fs_.unlink(path_);
  EXPECT_TRUE(file->replaced());
  EXPECT_EQ(read(*file, 0, content_.size()), content_);
}

TEST_F(MappedFileTest, PinsStandUntilTheLastIsGone) {
  const auto file = mapped(path_);
  const auto look = fs_.open(path_, OpenMode::read_only);
  EXPECT_TRUE(file->pin_byte(7));
  EXPECT_TRUE(file->pin_byte(900));
  EXPECT_EQ(look->pinned_bytes(), (std::vector<std::uint64_t>{7, 900}));
  file->unpin_byte(7);
  EXPECT_EQ(look->pinned_bytes(), (std::vector<std::uint64_t>{900}));
  file->unpin_byte(900);
  EXPECT_TRUE(look->pinned_bytes().empty());
  EXPECT_TRUE(file->pin_byte(8)) << "again";
  EXPECT_EQ(look->pinned_bytes(), (std::vector<std::uint64_t>{8}));
}

TEST_F(MappedFileTest, ErrnoIsTheProgramsOwn) {
  const auto file = mapped(path_);
  Bytes out(10);
  errno = 77;
  EXPECT_NE(file->try_pread(out, 1u << 19), 0);
  EXPECT_EQ(errno, 77);
}

}  // namespace
}  // namespace vellum::base
