// The functions that the fault handler calls do not allocate. A sanitizer has its own malloc, hence
// the tests are skipped there (NoSanitizer).
#include <gtest/gtest.h>

#include <cstddef>

#include "base/bytes.hpp"
#include "base/bytes/checksum.hpp"
#include "base/bytes/codec.hpp"
#include "base/files/file.hpp"
#include "base/temp_directory.hpp"
#include "base/threads/handler_lock.hpp"
#include "support/count_allocations.hpp"

namespace vellum::base {
namespace {

using test::allocations;
using test::Bytes;

class NoAllocationNoSanitizer : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::kCountsAllocations) GTEST_SKIP() << "the sanitizer owns malloc";
  }
};

TEST_F(NoAllocationNoSanitizer, TheCounterCounts) {
  const std::size_t before = allocations;
  Decompressor decompressor;
  EXPECT_GT(allocations, before + 1);  // Impl, and zstd's context from within the shared library
}

TEST_F(NoAllocationNoSanitizer, Decompressor) {
  for (const Codec codec : {Compression::lz4, Compression::zstd}) {
    for (int level : {1, 3, 12, 19}) {
      const Bytes raw = test::compressible_bytes(1 << 20, 1);
      Bytes stored(compress_bound(codec, raw.size()));
      stored.resize(Compressor().compress(codec, level, raw, stored));
      Bytes back(raw.size());
      Bytes broken = stored;
      broken[broken.size() / 2] ^= std::byte{0xFF};
      Decompressor decompressor;

      const std::size_t before = allocations;
      const bool ok = decompressor.decompress(codec, stored, back);
      decompressor.decompress(codec, broken, back);
      EXPECT_EQ(allocations, before) << codec_name(codec) << " level " << level;
      EXPECT_TRUE(ok);
    }
  }
}

// The decoders of zstd's first formats, if the library has them, allocate.
TEST_F(NoAllocationNoSanitizer, DecompressorGivenFramesOfOldFormats) {
  Decompressor decompressor;
  Bytes back(4096);
  for (unsigned char version = 0x1E; version <= 0x28; ++version) {
    Bytes stored = test::random_bytes(100, version);
    stored[0] = std::byte{version};
    stored[1] = std::byte{0xB5};
    stored[2] = std::byte{0x2F};
    stored[3] = std::byte{0xFD};
    const std::size_t before = allocations;
    EXPECT_FALSE(decompressor.decompress(Compression::zstd, stored, back));
    EXPECT_EQ(allocations, before);
  }
}

TEST_F(NoAllocationNoSanitizer, TryPread) {
  const test::TempDirectory directory;
  const auto file = posix_fs().open(directory / "f", OpenMode::create_new);
  file->pwrite(test::random_bytes(10'000, 1), 0);
  Bytes out(10'000);
  const std::size_t before = allocations;
  EXPECT_EQ(file->try_pread(out, 0), 0);
  EXPECT_NE(file->try_pread(out, 1), 0);
  EXPECT_EQ(allocations, before);
}

TEST_F(NoAllocationNoSanitizer, ChecksumAndLock) {
  const Bytes bytes = test::random_bytes(10'000, 1);
  HandlerLock lock;
  const std::size_t before = allocations;
  lock.lock();
  const std::uint64_t sum = checksum64(bytes, bytes, checksum64(bytes));
  lock.unlock();
  EXPECT_EQ(allocations, before);
  EXPECT_NE(sum, 0u);
}

}  // namespace
}  // namespace vellum::base
