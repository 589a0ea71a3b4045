// vellum top: the counters of the regions of running processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>

#include <vellum/store.hpp>

#include "format/wire/types.hpp"
#include "memory/statistics/layout.hpp"
#include "run/run_lib.hpp"
#include "support/engines.hpp"

namespace vellum::cli_test {
namespace {

using format::kPageBytes;
constexpr std::size_t kChunk = 64u << 10;

class Top : public CliTest {
 protected:
  Arguments top(const Arguments& more) const {
    Arguments all{"top", store_, "--pid", std::to_string(::getpid())};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  nlohmann::json regions() const { return must(top({"--json"})).json().at("regions"); }

  std::string store_ = path("s");
  Store store = Store::create(store_);
};

TEST_F(Top, ARegionCountsItsFaultsAndCommits) {
  EXPECT_EQ(regions().size(), 0U);
  Region region = store.create_region("main", 64 * kChunk);
  auto* const bytes = static_cast<char*>(region.data());
  const auto before = regions();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].at("pid"), ::getpid());
  EXPECT_EQ(before[0].at("store"), store_);
  EXPECT_EQ(before[0].at("version"), "main");
  EXPECT_EQ(before[0].at("writable"), true);
  EXPECT_EQ(before[0].at("region_bytes"), 64 * kChunk);
  EXPECT_EQ(before[0].at("commits"), 0);
  for (std::size_t i = 0; i < 3; ++i) bytes[2 * i * kChunk] = 1;
  region.commit();
  bytes[1] = 2;
  region.commit();
  const auto now = regions();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].at("commits"), 2);
  EXPECT_EQ(now[0].at("pages_changed"), 4);
  // Engine sigsegv maps many zero pages at once: the next store finds its page present.
  const auto faults = now[0].at("faults");
  EXPECT_GE(faults.at("write"), 1);
  EXPECT_GE(faults.at("write").get<int>() + faults.at("present").get<int>(), 3);
  EXPECT_GE(now[0].at("chunks_in"), 3);
  EXPECT_GT(now[0].at("bytes_written"), 0);
  EXPECT_GT(now[0].at("backlog_bytes"), 0);
  EXPECT_GT(now[0].at("commit_ns"), 0);
  region.close();
  EXPECT_EQ(regions().size(), 0U);
}

TEST_F(Top, DirtyPagesAreCurrent) {
  for (const Engine engine : {Engine::uffd, Engine::sigsegv, Engine::mapped}) {
    if (!test::engine_available(engine)) continue;
    const std::string name = engine_name(engine);
    RegionOptions options;
    options.engine = engine;
    Region region = store.create_region(name, 64 * kChunk, options);
    const auto dirty_pages = [&] { return regions().at(0).at("dirty_pages"); };
    auto* const bytes = static_cast<char*>(region.data());
    if (test::finds_written_pages_again(engine)) {  // the kernel does not report it
      EXPECT_TRUE(dirty_pages().is_null());
      continue;
    }
    std::memset(bytes, 7, 64 * kChunk);
    region.commit();
    EXPECT_EQ(dirty_pages(), 0) << name;
    for (std::size_t i = 0; i < 3; ++i) bytes[2 * i * kChunk] = 1;
    bytes[7 * kChunk + kPageBytes] = 1;
    EXPECT_EQ(dirty_pages(), 4) << name;
    bytes[0] = 2;
    EXPECT_EQ(dirty_pages(), 4) << name;
    region.commit();
    EXPECT_EQ(dirty_pages(), 0) << name;
    EXPECT_EQ(static_cast<volatile char*>(bytes)[2 * kChunk], 1);
    bytes[2 * kChunk] = 3;
    EXPECT_EQ(dirty_pages(), 1) << name;
    region.rollback();
    EXPECT_EQ(dirty_pages(), 0) << name;
    region.grow(128 * kChunk);
    bytes[100 * kChunk] = 1;
    EXPECT_GE(dirty_pages(), 1) << name;  // new pages may come a few at a time
  }
}

TEST_F(Top, AnOpenVersionIsListed) {
  {
    Region region = store.create_region("main", 8 * kChunk);
    std::memset(region.data(), 7, 8 * kChunk);
    region.snapshot("v1");
  }
  RegionOptions options;
  options.working_set = false;
  Region version = store.open_version("v1", options);
  EXPECT_EQ(static_cast<const volatile char*>(version.data())[4 * kChunk], 7);
  const auto now = regions();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].at("version"), "v1");
  EXPECT_EQ(now[0].at("writable"), false);
  EXPECT_GE(now[0].at("faults").at("read"), 1);
  EXPECT_EQ(now[0].at("faults").at("write"), 0);
  EXPECT_GE(now[0].at("resident_bytes"), kPageBytes);
}

TEST_F(Top, EvictedMemoryIsCounted) {
  RegionOptions options;
  options.memory_limit_bytes = 2u << 20;
  Region region = store.create_region("main", 16u << 20, options);
  const std::string content = noise(16u << 20 >> 12, 5);
  std::memcpy(region.data(), content.data(), content.size());
  const auto now = regions();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_GT(now[0].at("chunks_out"), 0);
  EXPECT_GT(now[0].at("spilled_bytes"), 0);
  EXPECT_GT(now[0].at("spill_written_bytes"), 0);
  EXPECT_LT(now[0].at("resident_bytes"), 16u << 20);
}

TEST_F(Top, ATableAndMetrics) {
  Region region = store.create_region("main", kChunk);
  *static_cast<char*>(region.data()) = 1;
  region.commit();
  const auto lines = lines_of(must(top({"--once", "--interval", "0.1"})).out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(contains(lines[0], "commits/s")) << lines[0];
  EXPECT_TRUE(contains(lines[1], std::to_string(::getpid()))) << lines[1];
  const std::string metrics = must(top({"--metrics"})).out;
  EXPECT_TRUE(contains(metrics, "# TYPE vellum_commits counter\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "vellum_commits_total{pid=\"")) << metrics;
  EXPECT_TRUE(contains(metrics, "version=\"main\",mode=\"write\"} 1\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "mode=\"write\",kind=\"write\"} ")) << metrics;
  EXPECT_TRUE(metrics.ends_with("# EOF\n"));
  EXPECT_EQ(run(top({"--metrics", "--json"})).status, 2);
  EXPECT_EQ(run(top({"--interval", "0"})).status, 2);
}

TEST_F(Top, AStoreArgumentSelectsItsRegions) {
  Store other = Store::create(path("other"));
  Region here = store.create_region("main", kChunk), there = other.create_region("side", kChunk);
  EXPECT_EQ(regions().size(), 1U);
  const auto both = must({"top", "--pid", std::to_string(::getpid()), "--json"}).json();
  EXPECT_EQ(both.at("regions").size(), 2U);
}

TEST_F(Top, AForkedChildIsNotListed) {
  Region region = store.create_region("main", kChunk);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto all = must({"top", store_, "--json"}).json().at("regions");
  const auto childs = must({"top", "--pid", std::to_string(child), "--json"}).json().at("regions");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("pid"), ::getpid());
  EXPECT_EQ(childs.size(), 0U);
}

TEST_F(Top, RegionsBeyondTheSlotsOfThePageWork) {
  store.create_region("main", kChunk).snapshot("v1");
  std::vector<Region> open;
  for (std::size_t i = 0; i < region::statistics::kSlots + 6; ++i)
    open.push_back(store.open_version("v1"));
  EXPECT_EQ(*static_cast<const volatile char*>(open.back().data()), 0);
  EXPECT_EQ(regions().size(), region::statistics::kSlots);
}

// A page of an older library, which has zero where a region now says that it counts.
TEST_F(Top, AnOlderLibraryCountsTheDirtyPagesOfEngineSigsegv) {
  const int fd = ::memfd_create(region::statistics::kFileName, MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  auto page = std::make_unique<region::statistics::Page>();
  page->magic = region::statistics::kMagic;
  page->process = static_cast<std::uint32_t>(::getpid());
  page->slot_bytes = sizeof page->slot[0];
  page->slots = region::statistics::kSlots;
  page->slot[0].state = region::statistics::Slot::in_use;
  page->slot[0].writable = 1;
  page->slot[0].engine = static_cast<std::uint32_t>(Engine::sigsegv);
  page->slot[0].stripes[0].pages_opened = 5;
  page->slot[0].stripes[0].pages_closed = 2;
  EXPECT_EQ(::write(fd, page.get(), sizeof *page), static_cast<ssize_t>(sizeof *page));
  const Arguments all{"top", "--pid", std::to_string(::getpid()), "--json"};
  EXPECT_EQ(must(all).json().at("regions").at(0).at("dirty_pages"), 3);
  ::close(fd);
}

// A page as any process of the user may create it.
TEST_F(Top, AHostilePageIsHarmless) {
  using region::statistics::Page;
  using region::statistics::Slot;
  const int fd = ::memfd_create(region::statistics::kFileName, MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, sizeof(Page)), 0);
  void* const at = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(at, MAP_FAILED);
  std::memset(at, 0xff, sizeof(Page));
  auto& page = *static_cast<Page*>(at);
  page.magic = region::statistics::kMagic;
  page.process = static_cast<std::uint32_t>(::getpid());
  page.slot_bytes = sizeof(Slot);
  page.slots = region::statistics::kSlots;
  page.slot[0].state = Slot::in_use;
  page.slot[0].version.fill('\x1b');
  page.slot[0].store.fill('"');
  const Arguments any{"top", "--pid", std::to_string(::getpid())};
  const auto with = [&](const char* option) {
    Arguments all = any;
    all.insert(all.end(), {option, "--interval", "0.1"});
    return must(all).out;
  };
  EXPECT_FALSE(contains(with("--once"), "\x1b"));
  EXPECT_FALSE(contains(with("--metrics"), "\x1b"));
  EXPECT_TRUE(contains(with("--metrics"), "store=\"\\\"\\\"")) << "quotes are escaped";
  EXPECT_TRUE(contains(with("--json"), "\"engine\":\"unknown\""));
  // Another format, or another process's page: nothing is listed.
  page.slot_bytes = 8;
  EXPECT_TRUE(contains(with("--json"), "\"regions\":[]"));
  page.slot_bytes = sizeof(Slot);
  page.process += 1;
  EXPECT_TRUE(contains(with("--json"), "\"regions\":[]"));
  ASSERT_EQ(::ftruncate(fd, 100), 0);
  EXPECT_TRUE(contains(with("--json"), "\"regions\":[]"));
  ::munmap(at, sizeof(Page));
  ::close(fd);
}

}  // namespace
}  // namespace vellum::cli_test
