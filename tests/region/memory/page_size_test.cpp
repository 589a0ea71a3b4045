// A kernel with larger pages: memory of versions is refused, as neighbouring stores would be lost
// silently. Versions can still be read.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <vellum/atomic_file.hpp>

#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

#if !VELLUM_TEST_TSAN  // its runtime calls sysconf() before it is ready for code that it watches

namespace {

long g_page_bytes = 0;  // 0: the kernel's

}  // namespace

// In front of the C library's, for all of this program.
extern "C" long sysconf(int name) noexcept {
  static const auto real = reinterpret_cast<long (*)(int)>(dlsym(RTLD_NEXT, "sysconf"));
  return name == _SC_PAGESIZE && g_page_bytes != 0 ? g_page_bytes : real(name);
}

namespace vellum::test {
namespace {

class PageSize : public StoreTest {
 protected:
  void TearDown() override { g_page_bytes = 0; }
};

TEST_P(PageSize, OtherPagesThanThoseOf4KiBAreRefused) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    word_at(region, 0) = 42;
    region.snapshot("s");
  }
  const std::string plain = directory_ / "plain";
  ASSERT_EQ(close(open(plain.c_str(), O_CREAT | O_RDWR, 0600)), 0);
  for (const long bytes : {16L << 10, 64L << 10}) {
    g_page_bytes = bytes;
    const std::string found = std::to_string(bytes >> 10) + " KiB";
    expect_error(Errc::unsupported, {"4 KiB", found},
                 [&] { (void)store.open_region("main", options()); });
    expect_error(Errc::unsupported, {found},
                 [&] { (void)store.create_region("b", kMiB, options()); });
    expect_error(Errc::unsupported, {found},
                 [&] { (void)store.open_version("s", RegionOptions()); });
    expect_error(Errc::unsupported, {found}, [&] { (void)AtomicFile::open(plain); });
    std::uint64_t word = 0;
    store.read("s", 0, &word, sizeof word);
    EXPECT_EQ(word, 42u);
    EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
  }
  g_page_bytes = 0;
  EXPECT_EQ(word_at(store.open_region("main", options()), 0), 42u);
}

VELLUM_BOTH_ENGINES(PageSize);

}  // namespace
}  // namespace vellum::test

#endif
