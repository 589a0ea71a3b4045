// A thread may touch a page while another one fills its chunk: between the write to the memfd and
// UFFDIO_CONTINUE, the kernel maps the page by itself. Here ioctl() does what that thread does.
#include <linux/ioctl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>

#include "base/files/file.hpp"
#include "memory/engine/uffd_memory.hpp"
#include "memory/kernel/support.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

std::atomic<int> pages_touched_before_continue{-1};  // -1: none is to be touched

void touch_last_page_of(const uffdio_range& range) {
  *reinterpret_cast<volatile std::byte*>(range.start + range.len - 1);
  ++pages_touched_before_continue;
}

class TouchedFill : public testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 4 * region::kDefaultChunkBytes;
  TempDirectory directory_;
};

TEST_F(TouchedFill, AWriteToThePageIsFound) {
  if (!region::kernel_support().maps_armed) GTEST_SKIP() << "UFFDIO_CONTINUE cannot arm pages";
  const std::string path = directory_ / "store";
  {
    Region region = Store::create(path).create_region("main", kBytes);
    for (std::uint64_t at = 0; at < kBytes; at += kPage) word_at(region, at) = at + 1;
    region.commit();
  }
  const auto core = store::StoreDirectory::open(base::posix_fs(), path);
  const auto head = store::resolve_version(*core, "main");
  region::MemoryOptions options;
  options.size_bytes = kBytes;
  options.capacity_bytes = region::kTableBytes;
  options.writable = true;
  region::UffdMemory memory(options,
                            store::PageSource::open(*core, head.version, head.commits, "main"),
                            region::Tracking::synchronous);
  memory.start();
  pages_touched_before_continue = 0;
  const auto* const first = reinterpret_cast<volatile std::uint64_t*>(memory.data());
  EXPECT_EQ(*first, 1u);
  const int touched = pages_touched_before_continue.exchange(-1);
  ASSERT_GT(touched, 0);
  const std::uint64_t last_page = memory.chunk_pages() - 1;
  std::vector<format::PageNumber> dirty;
  memory.collect_dirty(dirty);
  EXPECT_TRUE(dirty.empty());
  *reinterpret_cast<std::uint64_t*>(memory.data() + last_page * kPage) = 0;
  memory.collect_dirty(dirty);
  EXPECT_EQ(dirty, std::vector<format::PageNumber>{last_page});
}

}  // namespace
}  // namespace vellum::test

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  using namespace vellum::test;
  if (request == UFFDIO_CONTINUE && pages_touched_before_continue >= 0)
    touch_last_page_of(static_cast<const uffdio_continue*>(argument)->range);
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}
