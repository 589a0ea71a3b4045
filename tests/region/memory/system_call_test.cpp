// read(2) and write(2) on region memory: the documented behaviour, and how pin() changes it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class SystemCalls : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    fd_ = memfd_create("data", MFD_CLOEXEC);
    fill(5);
  }
  void TearDown() override { close(fd_); }

  void fill(int value) const {
    const std::vector<std::byte> data(kMiB, static_cast<std::byte>(value));
    ASSERT_EQ(pwrite(fd_, data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  }
  // Bare calls: a sanitizer's wrapper would touch the memory itself first.
  long read_into(void* at, std::size_t length_bytes) const {
    return syscall(SYS_pread64, fd_, at, length_bytes, 0);
  }
  long write_from(const void* at, std::size_t length_bytes) const {
    return syscall(SYS_pwrite64, fd_, at, length_bytes, 0);
  }
  // A region of 4 MiB of ones, nothing of it in memory.
  Region cold(Store& store) const {
    {
      Region region = store.create_region("main", 4 * kMiB, options());
      std::memset(region.data(), 1, 4 * kMiB);
      region.commit();
    }
    return store.open_region("main", options());
  }

  int fd_ = -1;
};

// Every store that pages in by signals behaves so; Vellum documents it.
TEST_P(SystemCalls, ASystemCallOnAMissingPageIsEfault) {
  Store store = create();
  Region region = cold(store);
  if (GetParam() == Engine::mapped) {  // there the kernel pages in, for itself, too
    EXPECT_EQ(write_from(region.data(), 100), 100);
    EXPECT_EQ(read_into(bytes_of(region) + 2 * kMiB, 100), 100);
    return;
  }
  EXPECT_EQ(write_from(region.data(), 100), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(read_into(bytes_of(region) + 2 * kMiB, 100), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(bytes_of(region)[0], std::byte{1});  // user code loads it
  EXPECT_EQ(write_from(region.data(), 100), 100);
}

TEST_P(SystemCalls, SystemCallsWorkOnPinnedPages) {
  Store store = create();
  Region region = cold(store);
  const Pin pin = region.pin({100, kMiB});
  EXPECT_EQ(write_from(bytes_of(region) + 100, kMiB), static_cast<long>(kMiB));
  fill(5);
  EXPECT_EQ(read_into(bytes_of(region) + 100, kMiB), static_cast<long>(kMiB));
  EXPECT_EQ(bytes_of(region)[99], std::byte{1});
  EXPECT_EQ(bytes_of(region)[100], std::byte{5});
  EXPECT_EQ(bytes_of(region)[100 + kMiB - 1], std::byte{5});
  EXPECT_EQ(bytes_of(region)[100 + kMiB], std::byte{1});
}

TEST_P(SystemCalls, WritesOfSystemCallsAreInTheNextCommit) {
  Store store = create();
  {
    Region region = cold(store);
    const Pin pin = region.pin({0, kMiB});
    for (int round = 2; round < 6; ++round) {
      fill(round);
      ASSERT_EQ(read_into(region.data(), 100 * kPage), 100 * static_cast<long>(kPage))
          << strerror(errno);
      EXPECT_EQ(region.commit().pages_changed, 100u);
      Region head = store.open_version("main", options());
      EXPECT_EQ(bytes_of(head)[100 * kPage - 1], static_cast<std::byte>(round));
      EXPECT_EQ(bytes_of(head)[100 * kPage], std::byte{1});
    }
    EXPECT_EQ(region.commit().pages_changed, 0u);
  }
  Region region = store.open_region("main", options());
  EXPECT_EQ(bytes_of(region)[0], std::byte{5});
}

// This holds also where commits and rollbacks have passed over pages that were not in memory.
TEST_P(SystemCalls, SystemCallsWorkOnPinnedPagesOfASparseRegion) {
  Store store = create();
  Region region = store.create_region("main", 8 * kMiB, options());
  for (std::uint64_t chunk = 0; chunk < 128; chunk += 5) word_at(region, chunk << 16) = chunk + 1;
  region.commit();
  for (std::uint64_t chunk = 1; chunk < 128; chunk += 5) word_at(region, chunk << 16) = chunk + 1;
  region.rollback();
  region.commit();
  region.close();
  region = store.open_region("main", options());
  for (std::uint64_t chunk = 0; chunk < 128; chunk += 7) {
    EXPECT_EQ(word_at(region, chunk << 16), chunk % 5 == 0 ? chunk + 1 : 0);
    if (chunk % 3 == 0) region.commit();
    word_at(region, (chunk << 16) + 8) = 1;
    if (chunk % 2 == 0) region.rollback();
  }
  const Pin pin = region.pin(region.whole());
  for (std::uint64_t page = 0; page < 2048; ++page) {
    ASSERT_EQ(write_from(bytes_of(region) + page * kPage, kPage), static_cast<long>(kPage)) << page;
    ASSERT_EQ(read_into(bytes_of(region) + page * kPage, kPage), static_cast<long>(kPage)) << page;
  }
}

TEST_P(SystemCalls, PinsOfOneRangeAddUp) {
  Store store = create();
  Region region = cold(store);
  Pin first = region.pin({0, kPage});
  Pin second = region.pin({0, 10 * kPage});
  first.release();
  region.commit();
  EXPECT_EQ(read_into(region.data(), 10 * kPage), 10 * static_cast<long>(kPage));
  Pin moved = std::move(second);
  second = Pin();
  region.commit();
  EXPECT_EQ(read_into(region.data(), 10 * kPage), 10 * static_cast<long>(kPage));
  moved.release();
  moved.release();
  std::memset(region.data(), 9, kPage);
  EXPECT_EQ(region.commit().pages_changed, 1u);
}

TEST_P(SystemCalls, AVersionCanBePinnedForReading) {
  Store store = create();
  Region region = cold(store);
  region.snapshot("s");
  Region version = store.open_version("s", options());
  const Pin pin = version.pin(version.whole());
  EXPECT_EQ(write_from(bytes_of(version) + kMiB + 1, 2 * kMiB), 2 * static_cast<long>(kMiB));
  EXPECT_EQ(read_into(version.data(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST_P(SystemCalls, PrefetchedPagesServeSystemCalls) {
  Store store = create();
  Region region = cold(store);
  region.prefetch({kMiB, kMiB});
  EXPECT_EQ(write_from(bytes_of(region) + kMiB, kMiB), static_cast<long>(kMiB));
  EXPECT_EQ(write_from(region.data(), 1), GetParam() == Engine::mapped ? 1 : -1);
}

TEST_P(SystemCalls, RangesOutsideAreRefused) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  const auto refuse = [&](std::uint64_t offset, std::uint64_t length) {
    expect_error(Errc::invalid_argument, {"main"}, [&] { region.prefetch({offset, length}); });
    expect_error(Errc::invalid_argument, {"main"}, [&] { (void)region.pin({offset, length}); });
  };
  refuse(kMiB, 1);
  refuse(0, kMiB + 1);
  refuse(10, ~std::uint64_t{0} - 5);
  refuse(~std::uint64_t{0}, 2);
  region.prefetch({kMiB, 0});
  region.prefetch({0, kMiB});
  Pin nothing = region.pin({0, 0});
}

TEST_P(SystemCalls, RangeOfConvertsAddresses) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  const auto is = [](const ByteRange& range, std::uint64_t offset, std::uint64_t length) {
    return range.offset_bytes == offset && range.length_bytes == length;
  };
  EXPECT_TRUE(is(region.range_of(region.data(), kMiB), 0, kMiB));
  EXPECT_TRUE(is(region.range_of(bytes_of(region) + 5000, 7), 5000, 7));
  EXPECT_TRUE(is(region.range_of(bytes_of(region) + kMiB, 0), kMiB, 0));
  EXPECT_TRUE(is(region.whole(), 0, kMiB));
  const auto refuse = [&](const void* at, std::size_t length) {
    expect_error(Errc::invalid_argument, {"main"}, [&] { (void)region.range_of(at, length); });
  };
  refuse(bytes_of(region) - 1, 2);
  refuse(bytes_of(region) + kMiB, 1);
  refuse(region.data(), kMiB + 1);
  refuse(bytes_of(region) + 10, ~std::size_t{0} - 5);
  refuse(nullptr, 1);
  region.close();
  EXPECT_ERRC((void)region.range_of(nullptr, 0), Errc::invalid_argument);
}

VELLUM_BOTH_ENGINES(SystemCalls);

}  // namespace
}  // namespace vellum::test
