// read(2), write(2) and related calls on a file in memory, compared with the kernel's on a file on
// disk. The calls themselves, through each of the two libraries: tests/cli and
// tests/compiler/plugin.
#include "interfaces/mapped_io/descriptor_io.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <string>
#include <vector>

#include "interfaces/mapped_io/call_arguments.hpp"

namespace vellum::mapped_io {
namespace {

// A file of limited size, with at most `most` bytes per call.
class TextFile final : public MappedDescriptor {
 public:
  bool reads() const override { return may_read; }
  bool writes() const override { return may_write; }
  bool appends() const override { return appending; }
  std::size_t most_bytes() const override { return most; }
  off_t seek(off_t offset_bytes, int whence) const override {
    if (whence == SEEK_SET) offset = offset_bytes;
    return offset;
  }
  ssize_t read_at(void* to, std::size_t length_bytes, std::uint64_t at) override {
    if (at >= text.size()) return 0;
    return static_cast<ssize_t>(text.copy(static_cast<char*>(to), length_bytes, at));
  }
  ssize_t write_at(const void* from, std::size_t length_bytes, std::uint64_t& at,
                   bool append) override {
    if (append) at = text.size();
    if (at >= room) return errno = ENOSPC, -1;
    const auto count = std::min<std::size_t>(length_bytes, room - at);
    text.resize(std::max<std::size_t>(text.size(), at + count));
    text.replace(at, count, static_cast<const char*>(from), count);
    return static_cast<ssize_t>(count);
  }

  std::string text = "0123456789";
  bool may_read = true, may_write = true, appending = false;
  std::size_t room = 20, most = 100;
  mutable off_t offset = 0;
};

class DescriptorIo : public testing::Test {
 protected:
  // -errno after a failure.
  static ssize_t told(ssize_t result) { return result < 0 ? -errno : result; }
  ssize_t read(const std::vector<std::size_t>& lengths, off_t at, int flags = 0) {
    std::vector<iovec> pieces;
    char* to = buffer_.data();
    buffer_.fill('.');
    for (const std::size_t n : lengths) pieces.push_back({to, n}), to += n + 1;
    return told(read_pieces(file_, pieces.data(), pieces.size(), at, flags));
  }
  ssize_t write(const std::vector<std::string>& texts, off_t at, int flags = 0) {
    std::vector<iovec> pieces;
    for (const auto& text : texts) pieces.push_back(one_piece(text.data(), text.size()));
    return told(write_pieces(file_, pieces.data(), pieces.size(), at, flags));
  }
  std::string got(std::size_t bytes) const { return {buffer_.data(), bytes}; }

  TextFile file_;
  std::array<char, 64> buffer_{};
};

TEST_F(DescriptorIo, PiecesFollowOneAnother) {
  EXPECT_EQ(5, read({2, 3}, 1));
  EXPECT_EQ("12.345.", got(7));
  EXPECT_EQ(0, file_.offset) << "a given offset moves nothing";
  EXPECT_EQ(5, write({"ab", "", "cde"}, 3));
  EXPECT_EQ("012abcde89", file_.text);
}

TEST_F(DescriptorIo, AShortPieceEndsTheCall) {
  EXPECT_EQ(3, read({2, 4, 4}, 7));
  EXPECT_EQ("78.9...", got(7));
  EXPECT_EQ(0, read({2}, 10));
  file_.room = 12;
  EXPECT_EQ(4, write({"abc", "def", "g"}, 8));
  EXPECT_EQ("01234567abcd", file_.text);
  EXPECT_EQ(-ENOSPC, write({"x"}, 12));
  EXPECT_EQ(2, write({"yz", "x"}, 10)) << "what came before a failure counts";
}

TEST_F(DescriptorIo, OwnOffsetFollowsTheBytes) {
  file_.offset = 4;
  EXPECT_EQ(3, read({3}, kOwnOffset));
  EXPECT_EQ(7, file_.offset);
  EXPECT_EQ(2, write({"a", "b"}, kOwnOffset));
  EXPECT_EQ(9, file_.offset);
  EXPECT_EQ("0123456ab9", file_.text);
  EXPECT_EQ(1, read({5}, kOwnOffset));
  EXPECT_EQ(0, read({5}, kOwnOffset));
  EXPECT_EQ(10, file_.offset);
}

TEST_F(DescriptorIo, AppendIgnoresTheOffset) {
  file_.appending = true;
  EXPECT_EQ(2, write({"a", "b"}, 3));
  EXPECT_EQ("0123456789ab", file_.text);
  EXPECT_EQ(0, file_.offset);
  EXPECT_EQ(1, write({"c"}, kOwnOffset));
  EXPECT_EQ(13, file_.offset);
  EXPECT_EQ(1, write({"d"}, 0, kNoAppend));
  EXPECT_EQ("d123456789abc", file_.text);
  file_.appending = false;
  EXPECT_EQ(1, write({"e"}, 0, RWF_APPEND));
  EXPECT_EQ("d123456789abce", file_.text);
}

TEST_F(DescriptorIo, ABadArgumentCopiesNoByte) {
  const std::string before = file_.text;
  EXPECT_EQ(-EINVAL, write({"a"}, given_offset(-1)));
  EXPECT_EQ(-EINVAL, read({1}, given_offset(-7)));
  EXPECT_EQ(-EOPNOTSUPP, read({1}, 0, 1 << 30));
  const std::vector<iovec> too_many(IOV_MAX + 1, iovec{});
  EXPECT_EQ(-EINVAL, told(read_pieces(file_, too_many.data(), too_many.size(), 0)));
  const iovec too_much[] = {{buffer_.data(), 1}, {buffer_.data(), SSIZE_MAX}};
  EXPECT_EQ(-EINVAL, told(write_pieces(file_, too_much, 2, 0)));
  EXPECT_EQ(static_cast<std::size_t>(SSIZE_MAX), one_piece(buffer_.data(), SIZE_MAX).iov_len);
  file_.may_read = file_.may_write = false;
  EXPECT_EQ(-EBADF, read({1}, -7));
  EXPECT_EQ(-EBADF, write({"a"}, 0));
  EXPECT_EQ(before, file_.text);
}

TEST_F(DescriptorIo, OneCallHasALimit) {
  file_.most = 4;
  EXPECT_EQ(4, read({3, 3, 3}, 0));
  EXPECT_EQ("012.3..", got(7));
  EXPECT_EQ(4, write({"abcdefg"}, 0));
  EXPECT_EQ("abcd456789", file_.text);
}

void* new_address(int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* const address = new_address_of(flags, arguments);
  va_end(arguments);
  return address;
}
mode_t mode(int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t found = mode_of(flags, arguments);
  va_end(arguments);
  return found;
}

TEST(CallArguments, OptionalArgumentsFollowTheFlags) {
  int there = 0;
  EXPECT_EQ(&there, new_address(MREMAP_MAYMOVE | MREMAP_FIXED, &there));
  EXPECT_EQ(nullptr, new_address(MREMAP_MAYMOVE, &there));
  EXPECT_EQ(0640U, mode(O_CREAT | O_RDWR, 0640));
  EXPECT_EQ(0600U, mode(O_TMPFILE | O_RDWR, 0600));
  EXPECT_EQ(0U, mode(O_DIRECTORY, 0640)) << "one bit of O_TMPFILE";
}

}  // namespace
}  // namespace vellum::mapped_io
