// Engine mapped with a file that may have been created again: ImageOptions::is_content, and memory
// that outlives its region.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "support/child.hpp"
#include "support/mapped_fixture.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

class ImageContent : public Mapped {
 protected:
  RegionOptions as_it_is() const {
    RegionOptions out = options(file());
    out.image.is_content = true;
    return out;
  }
  // Committed, and closed or killed.
  void leave_behind(std::uint64_t bytes, bool exact, bool killed) {
    const auto work = [&] {
      Store store = Store::create(path());
      make_file(bytes);
      Region region = store.create_region("main", 1, options(file()));
      if (exact) region.resize_file(bytes);
      region.commit();
      if (killed) kill(getpid(), SIGKILL);
      region.close();
    };
    const ChildEnd end = run_child(work);
    if (killed) {
      EXPECT_CHILD_SIGNAL(end, SIGKILL);
    } else {
      EXPECT_CHILD_EXIT(end, 0);
    }
  }
  void expect_opens_as(const std::string& content) {
    Store store = Store::open(path());
    Region region = store.open_region("main", as_it_is());
    EXPECT_EQ(content.size(), region.file_bytes());
    EXPECT_EQ(0, std::memcmp(region.data(), content.data(), content.size()));
    region.commit("found");
    EXPECT_EQ(content.size(), fs::file_size(file()));
    region.close();
    store.export_file("main", directory_ / "out");
    const Bytes out = read_file(directory_ / "out");
    EXPECT_TRUE(out == read_file(file()));
    EXPECT_EQ(content.size(), out.size());
    EXPECT_EQ(2U, store.version("main").sequence);
  }
};

// The current file of the name counts, also when it is empty, shorter, longer, or was created after
// a crash.
TEST_F(ImageContent, ARegionOpensWithTheContentOfTheFile) {
  for (const std::uint64_t was : {kMiB, std::uint64_t{100}})
    for (const bool exact : {false, true})
      for (const bool killed : {false, true})
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, 2 * kPage}) {
          SCOPED_TRACE(testing::Message() << was << " " << exact << killed << " " << bytes);
          fs::remove_all(path());
          fs::remove_all(directory_ / "out");
          leave_behind(was, exact, killed);
          const std::string content(bytes, 'n');
          fs::rename(file(), directory_ / "old");  // its inode stays taken
          std::ofstream(file(), std::ios::binary) << content;
          expect_opens_as(content);
        }
}

TEST_F(ImageContent, AMissingFileIsCreatedFromTheBranch) {
  leave_behind(3 * kPage, true, false);
  const Bytes was = read_file(file());
  fs::remove(file());
  Store store = Store::open(path());
  store.open_region("main", as_it_is()).close();
  EXPECT_TRUE(was == read_file(file()));
}

TEST_F(ImageContent, MemoryStaysMappedWithItsContent) {
  Store store = Store::create(path());
  Region region = store.create_region("main", 2 * kPage, options(file()));
  auto* const at = static_cast<char*>(region.data());
  const std::uint64_t capacity = region.capacity_bytes();
  std::strcpy(at, "committed");
  std::strcpy(at + kPage, "written");
  region.commit();
  region.close_and_leave_memory();
  EXPECT_FALSE(region.valid());
  EXPECT_STREQ("committed", at);
  EXPECT_STREQ("written", at + kPage);
  std::strcpy(at, "stored to");
  Region again = store.open_region("main", options(file()));  // branch and file are not locked
  EXPECT_STREQ("committed", static_cast<char*>(again.data()));
  EXPECT_EQ(0, munmap(at, capacity));
  RegionOptions served;
  served.engine = Engine::sigsegv;
  Region other = store.create_region("other", kPage, served);
  expect_error(Errc::unsupported, {"other"}, [&] { other.close_and_leave_memory(); });
  EXPECT_TRUE(other.valid());
}

}  // namespace
}  // namespace vellum::test
