// The manager's files are packed into the region and unpacked unchanged, and an invalid file list
// is refused.
#include "interfaces/metall/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/expect_error.hpp"
#include "base/memory/reserve.hpp"
#include "base/temp_directory.hpp"

namespace vellum::datastore {
namespace {

namespace fs = std::filesystem;
using format::kPageBytes;

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& file, const std::string& text) {
  fs::create_directories(fs::path(file).parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

class Files : public testing::Test {
 protected:
  std::string in() const { return directory_ / "in"; }
  std::string out() const { return directory_ / "out"; }
  void pack() { pack_files(in(), area_.data(), index_); }
  void unpack(const std::vector<std::string>& own = {}) {
    fs::create_directories(out());
    FileIndex index;
    ASSERT_EQ(decode_index(area_.bytes().subspan(kAreaBytes - kPageBytes), index), nullptr);
    unpack_files(
        out(), index,
        [&](std::uint64_t at, std::span<std::byte> to) {
          std::memcpy(to.data(), area_.data() + at, to.size());
        },
        own);
  }

  test::TempDirectory directory_;
  base::Reservation area_{kAreaBytes};
  FileIndex index_;
};

TEST_F(Files, FilesAreUnpackedUnchanged) {
  write(in() + "/metadata/names", "first\nsecond\n");
  write(in() + "/metadata/empty", "");
  write(in() + "/mark", std::string(3'000'000, 'x'));
  pack();
  unpack();
  EXPECT_EQ(text_of(out() + "/metadata/names"), "first\nsecond\n");
  EXPECT_EQ(text_of(out() + "/mark"), std::string(3'000'000, 'x'));
  EXPECT_TRUE(fs::exists(out() + "/metadata/empty"));
  EXPECT_EQ(fs::file_size(out() + "/metadata/empty"), 0u);
}

TEST_F(Files, ChangedSizesAndRemovalsArePacked) {
  write(in() + "/a", std::string(10'000, 'a'));
  write(in() + "/b", "b");
  pack();
  write(in() + "/a", "short");
  fs::remove(in() + "/b");
  write(in() + "/c", std::string(5'000, 'c'));
  pack();
  unpack();
  EXPECT_EQ(text_of(out() + "/a"), "short");
  EXPECT_EQ(text_of(out() + "/c"), std::string(5'000, 'c'));
  EXPECT_FALSE(fs::exists(out() + "/b"));
  clear_files(area_.data(), index_);
  const auto all_zero = [&](std::uint64_t at) {
    const auto bytes = area_.bytes().subspan(at, 12'288);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  };
  for (std::uint64_t place = 0; place < kFiles; ++place) EXPECT_TRUE(all_zero(place * kFileBytes));
}

TEST_F(Files, OwnFilesAreWrittenOnlyIfMissing) {
  write(in() + "/uuid", "the datastore's");
  write(in() + "/note", "the datastore's");
  write(in() + "/names", "the datastore's");
  pack();
  write(out() + "/uuid", "the snapshot's");
  write(out() + "/note", "");  // as after a power failure
  write(out() + "/names", "older");
  unpack({"uuid", "note"});
  EXPECT_EQ(text_of(out() + "/uuid"), "the snapshot's");
  EXPECT_EQ(text_of(out() + "/note"), "the datastore's");
  EXPECT_EQ(text_of(out() + "/names"), "the datastore's");
}

TEST_F(Files, EqualFilesAreNotWritten) {
  write(in() + "/a", std::string(100'000, 'a'));
  pack();
  unpack();
  const auto before = fs::last_write_time(out() + "/a");
  unpack();
  EXPECT_EQ(fs::last_write_time(out() + "/a"), before);
}

TEST_F(Files, TooManyOrTooLargeFilesAreNamed) {
  for (std::uint64_t i = 0; i < kFiles; ++i) write(in() + "/" + std::to_string(i), "x");
  pack();
  write(in() + "/one-more", "x");
  EXPECT_ERRC(pack(), Errc::invalid_argument);
  fs::remove(in() + "/one-more");
  fs::resize_file(in() + "/3", kFileBytes + 1);  // sparse
  EXPECT_ERRC(pack(), Errc::invalid_argument);
  fs::resize_file(in() + "/3", 1);
  write(in() + "/" + std::string(120, 'n'), "x");
  EXPECT_ERRC(pack(), Errc::invalid_argument);
}

TEST_F(Files, FilesAreNotWrittenThroughAnUntrustedLink) {
  write(in() + "/metadata/names", "x");
  pack();
  fs::create_directories(directory_ / "outside");
  fs::create_directories(out());
  fs::create_directory_symlink(directory_ / "outside", out() + "/metadata");
  EXPECT_ERRC(unpack(), Errc::corrupted);
  EXPECT_TRUE(fs::is_empty(directory_ / "outside"));
}

TEST(FileIndexBytes, AHostileIndexIsRefused) {
  FileIndex index;
  index[3] = {"metadata/names", 17};
  const PageBytes good = encode_index(index);
  FileIndex found;
  ASSERT_EQ(decode_index(good, found), nullptr);
  EXPECT_EQ(found[3].name, "metadata/names");
  EXPECT_EQ(found[3].length_bytes, 17u);
  for (const char* name : {"/etc/passwd", "../x", "a/../b", "a/", "a//b", "./a", ".."}) {
    index[3].name = name;
    EXPECT_NE(decode_index(encode_index(index), found), nullptr) << name;
  }
  index[3] = {"a", kFileBytes + 1};
  EXPECT_NE(decode_index(encode_index(index), found), nullptr);
  index[3] = {"", 5};
  EXPECT_NE(decode_index(encode_index(index), found), nullptr);
  index[3] = {"twice", 5};
  index[9] = {"twice", 5};
  EXPECT_NE(decode_index(encode_index(index), found), nullptr);
  PageBytes endless = good;
  std::memset(endless.data() + 64, 'n', 112);
  EXPECT_NE(decode_index(endless, found), nullptr);
  PageBytes other = good;
  other[0] = std::byte{'X'};
  EXPECT_NE(decode_index(other, found), nullptr);
  for (const auto& entry : found) EXPECT_TRUE(entry.name.empty());
}

}  // namespace
}  // namespace vellum::datastore
