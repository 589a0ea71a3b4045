// Versions that are opened by URL: content, requests, outages, damage, the cache.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/expect_error.hpp"
#include "remote/lazy_fixture.hpp"
#include "support/child.hpp"
#include "support/engines.hpp"
#include "support/paging.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;

TEST_F(LazyTest, EveryVersionHasItsContent) {
  make(6);
  push_all(*store);
  const auto lazy = open_lazily(options());
  for (const auto& [name, bytes] : contents) {
    store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
  }
  EXPECT_EQ(store::snapshot_names(*lazy), store::snapshot_names(*store));
  EXPECT_EQ(lazy->branch_names(), store->branch_names());
}

TEST_F(LazyTest, VersionsShareTheirPieces) {
  make(6);
  push_all(*store);
  const auto lazy = open_lazily(options());
  for (const auto& [name, bytes] : contents) {
    store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
  }
  for (const auto& [key, count] : interference->gets()) EXPECT_EQ(count, 1) << key;
}

TEST_F(LazyTest, RewrittenPacksAndPiecesOfManyPushesAreRead) {
  line.begin();
  for (int i = 0; i < 12; ++i) {
    step("s" + std::to_string(i), 3);
    push_all(*store);
    if (i % 4 == 3) store::collect_garbage(*store, false, nullptr, 9);
  }
  for (const char* name : {"s2", "s5"}) {
    store->remove_snapshot(name);
    contents.erase(name);
  }
  store::collect_garbage(*store, false, nullptr, 9);
  add_remote_file(*store, "other", "file://" + dir.path("o"), false);
  {
    Session session(*store, "other");
    std::vector<std::string> names = store::snapshot_names(*store);
    push(session, {std::move(names), false}, nullptr);
  }
  for (const std::string from : {"r", "o"}) {
    const auto lazy = open_remote(base::posix_fs(), "file://" + dir.path(from), options());
    for (const auto& [name, bytes] : contents) {
      if (from == "o" && name == "main") continue;
      store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
    }
  }
}

TEST_F(LazyTest, OpeningReadsHeadAndListAndNoPieceThatIsNotPrefetched) {
  make(3);
  push_all(*store);
  interference->set_before([](const std::string& key) {
    if (key.starts_with(kPiecePrefix)) throw Error(Errc::io, "no pieces today");
  });
  const auto lazy = open_lazily(options());
  EXPECT_EQ(store::test::open_version(*lazy, "s1")->region_bytes(), contents["s1"].size());
  EXPECT_EQ(interference->gets_of(kNewestKey), 1);
  EXPECT_EQ(interference->gets_of(kHeadPrefix), 0);
  EXPECT_EQ(interference->gets_of(kListPrefix), 1);
}

// The list of the last version that a push has uploaded comes with the copy of the newest head.
TEST_F(LazyTest, AVersionThatWasPushedLastOpensWithoutAnotherRequest) {
  make(3);
  push_all(*store);
  const auto there = objects();
  const std::uint64_t head_bytes = newest_listed_at(*there)->size_bytes;
  const auto good = there->get(kNewestKey, kMaxNewestCopyBytes);
  const NewestCopy copy = decode_newest_copy(good, head_bytes);
  ASSERT_EQ(copy.lists.size(), 1u);
  EXPECT_EQ(encode_newest_copy(copy), good);
  RemoteOptions alone = options();
  alone.cache_directory = "";
  int lists_read = 0;
  const auto expect_lists = [&](int more) {
    const auto lazy = open_lazily(alone);
    store::test::expect_same(*store::test::open_version(*lazy, "s2"), contents["s2"]);
    lists_read += more;
    EXPECT_EQ(interference->gets_of(kListPrefix), lists_read);
    EXPECT_EQ(interference->gets_of(kHeadPrefix), 0);
  };
  expect_lists(0);
  // Another list than the version's, a cut one, a size beyond the end, and none.
  NewestCopy other = copy, cut = copy, none = copy;
  other.lists.front().back() ^= std::byte{1};
  cut.lists.front().pop_back();
  none.lists.clear();
  auto beyond = good;
  beyond.pop_back();
  for (const auto& bad :
       {encode_newest_copy(other), encode_newest_copy(cut), beyond, encode_newest_copy(none)}) {
    there->put(kNewestKey, bad);
    expect_lists(1);
  }
}

TEST_F(LazyTest, ListsThatAreMostOfAPushAreNotCopied) {
  make(1);
  push_all(*store);
  const auto there = objects();
  ASSERT_GT(there->get(kNewestKey, kMaxNewestCopyBytes).size(),
            newest_listed_at(*there)->size_bytes);
  step("s1", 0);
  push_all(*store);
  EXPECT_EQ(there->get(kNewestKey, kMaxNewestCopyBytes).size(),
            newest_listed_at(*there)->size_bytes);
}

// The copy of the newest head is only a hint: an old, damaged or missing one costs a request.
TEST_F(LazyTest, TheCopyOfTheNewestHeadIsOnlyAHint) {
  const auto there = objects();
  make(1);
  push_all(*store);
  const auto old = there->get(kNewestKey, 1u << 20);
  step("s1");
  push_all(*store);
  auto good = there->get(kNewestKey, 1u << 20);
  const auto head = there->get(head_key(*newest_number_at(*there)), 1u << 20);
  ASSERT_GE(good.size(), head.size());
  good.resize(head.size());  // without lists
  EXPECT_EQ(good, head);
  auto flipped = good, same_size = old;
  flipped[good.size() / 2] ^= std::byte{1};
  same_size.resize(good.size());
  const std::vector<std::byte> cut(good.begin(), good.end() - 1);
  int heads_read = 0;
  RemoteOptions alone = options();
  alone.cache_directory = "";
  const auto expect_newest = [&](bool is_read) {
    const auto lazy = open_lazily(alone);
    store::test::expect_same(*store::test::open_version(*lazy, "s1"), contents["s1"]);
    store::test::expect_same(*store::test::open_version(*lazy, "main"), contents["main"]);
    heads_read += is_read ? 1 : 0;
    EXPECT_EQ(interference->gets_of(kHeadPrefix), heads_read);
  };
  expect_newest(false);
  for (const auto& bad : {old, flipped, same_size, cut, std::vector<std::byte>()}) {
    there->put(kNewestKey, bad);
    expect_newest(true);
  }
  there->remove(kNewestKey);
  expect_newest(true);
  // A copy of a head that the listing does not have yet.
  there->put(kNewestKey, good);
  there->remove(head_key(*newest_number_at(*there)));
  const auto lazy = open_lazily(alone);
  EXPECT_ERRC(static_cast<void>(store::test::open_version(*lazy, "s1")), Errc::not_found);
}

constexpr const char* kListing = "list heads/";

// An opening soon after another only lists the heads, and finds every earlier push. The shared
// opening is valid for a second, so a slow machine tries again.
TEST_F(LazyTest, AnOpeningSharesAnothersHeadAndListsAgain) {
  using Requests = std::array<int, 4>;  // listings, superblocks, copies of the newest head, heads
  const auto requests = [&] {
    return Requests{interference->gets_of(kListing), interference->gets_of(kSuperblockKey),
                    interference->gets_of(kNewestKey), interference->gets_of(kHeadPrefix)};
  };
  make(1);
  push_all(*store);
  bool in_time = false;
  for (int attempt = 0; attempt < 100 && !in_time; ++attempt) {
    std::filesystem::remove_all(dir.path("cache"));
    interference = std::make_shared<Interference>();
    const std::string name = "n" + std::to_string(attempt);
    const auto start = std::chrono::steady_clock::now();
    open_lazily(options());
    const Requests first = requests();
    open_lazily(options());
    const Requests second = requests();
    step(name);
    push_all(*store);
    const auto lazy = open_lazily(options());
    in_time = std::chrono::steady_clock::now() - start < 900ms;
    store::test::expect_same(*store::test::open_version(*lazy, name), contents[name]);
    if (!in_time) continue;
    EXPECT_EQ(first, (Requests{1, 1, 1, 0}));
    EXPECT_EQ(second, (Requests{2, 1, 1, 0}));
    // The listing that shows a newer head, and then all requests.
    EXPECT_EQ(requests(), (Requests{4, 2, 2, 0}));
  }
  EXPECT_TRUE(in_time) << "this machine is too slow to tell";
}

TEST_F(LazyTest, SharedOpeningsAreChecked) {
  make(2);
  push_all(*store);
  open_lazily(options());
  for (const auto& entry : std::filesystem::directory_iterator(dir.path("cache") + "/openings")) {
    const auto size = static_cast<std::streamoff>(entry.file_size());
    for (std::streamoff at = 0; at < size; at += 7) {
      flip_byte(entry.path(), at);
      const auto lazy = open_lazily(options());
      EXPECT_EQ(store::snapshot_names(*lazy).size(), 2u) << at;
    }
    std::filesystem::resize_file(entry.path(), static_cast<std::uintmax_t>(size / 2));
    EXPECT_EQ(store::snapshot_names(*open_lazily(options())).size(), 2u);
    std::filesystem::resize_file(entry.path(), 0);
    EXPECT_EQ(store::snapshot_names(*open_lazily(options())).size(), 2u);
  }
}

// While the first opening waits for its listing, others begin. Its listing began before them, so
// one of them makes another listing, which all of them share.
TEST_F(LazyTest, ConcurrentOpeningsShareAListingThatBeganAfterThem) {
  make(1);
  push_all(*store);
  std::promise<void> first_lists, go_on;
  std::atomic<int> listings{0};
  interference->set_before([&](const std::string& what) {
    if (what != kListing || listings++ != 0) return;
    first_lists.set_value();
    go_on.get_future().wait();
  });
  std::vector<std::thread> threads;
  threads.emplace_back([&] { open_lazily(options()); });
  first_lists.get_future().wait();
  step("s1");
  push_all(*store);
  const std::size_t before = interference->threads_at_url();
  for (int i = 0; i < 7; ++i) {
    threads.emplace_back([&] {
      const auto lazy = open_lazily(options());
      EXPECT_EQ(store::snapshot_names(*lazy).size(), 2u);
    });
  }
  EXPECT_TRUE(
      vellum::test::comes_true([&] { return interference->threads_at_url() == before + 7; }));
  go_on.set_value();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(listings, 3);  // without sharing there would be 8
}

// The list of a large version has the records of its first pages.
TEST_F(LazyTest, TheFirstPagesOfALargeVersionNeedNoPiece) {
  make_large();
  push_names(*store, {"large"});
  interference->set_before([](const std::string& key) {
    if (key.starts_with(kPiecePrefix)) throw Error(Errc::io, "no pieces today");
  });
  RemoteOptions impatient = options();
  impatient.longest_wait = 50ms;
  const auto lazy = open_lazily(impatient);
  const auto source = store::test::open_version(*lazy, "large");
  constexpr std::size_t kFirst = 16;
  std::vector<std::byte> pages(kFirst * format::kPageBytes);
  source->read(0, kFirst, pages.data());
  EXPECT_EQ(std::memcmp(pages.data(), large.bytes.data(), pages.size()), 0);
  EXPECT_ERRC(source->read(large.pages() - 1, 1, pages.data()), Errc::io);
  interference->set_before(nullptr);
  store::test::expect_same(*store::test::open_version(*open_lazily(options()), "large"),
                           large.bytes);
}

TEST_F(LazyTest, AVersionIsExportedToAFile) {
  make(2);
  push_all(*store);
  const Store lazy = open_store(options());
  lazy.export_file("s1", dir.path("out"));
  const auto bytes = base::read_whole(base::posix_fs(), dir.path("out"), 1u << 30);
  EXPECT_EQ(bytes, contents["s1"]);
}

TEST_F(LazyTest, NothingIsWritten) {
  make(1);
  push_all(*store);
  Store lazy = open_store(options());
  EXPECT_ERRC(lazy.create_snapshot("x", "main"), Errc::read_only);
  EXPECT_ERRC(lazy.create_branch("x", "s0"), Errc::read_only);
  EXPECT_ERRC(lazy.remove_snapshot("s0"), Errc::read_only);
  EXPECT_ERRC(static_cast<void>(lazy.open_region("main")), Errc::read_only);
  EXPECT_ERRC(lazy.collect_garbage(), Errc::read_only);
  EXPECT_ERRC(lazy.stat(), Errc::unsupported);
  EXPECT_ERRC(lazy.verify(), Errc::unsupported);
  EXPECT_ERRC(static_cast<void>(lazy.open_version("none")), Errc::not_found);
}

class LazyRegionTest : public LazyTest, public testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override {
    if (!vellum::test::engine_available(GetParam())) GTEST_SKIP() << vellum::test::kNoUffd;
    region_options.engine = GetParam();
    make(4);
    push_all(*store);
  }
  RegionOptions region_options;
};

TEST_P(LazyRegionTest, ThreadsThatTouchPagesWaitForThem) {
  interference->set_before([](const std::string&) { std::this_thread::sleep_for(5ms); });
  Store lazy = open_store(options());
  const Region region = lazy.open_version("s2", region_options);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const auto* const bytes = static_cast<const std::byte*>(region.data());
      for (std::size_t p = 0; p < kRemotePages; ++p) {
        const std::size_t at = (p * 7 + t * 13) % kRemotePages * format::kPageBytes + p;
        if (bytes[at] != contents["s2"][at]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  expect_bytes(region, contents["s2"]);
  for (const auto& [key, count] : interference->gets()) EXPECT_EQ(count, 1) << key;
}

TEST_P(LazyRegionTest, AnOutageIsWaitedFor) {
  std::atomic<bool> out{false};
  interference->set_before([&](const std::string& key) {
    if (out && key.starts_with(kPiecePrefix)) throw Error(Errc::io, "the server is gone");
  });
  Store lazy = open_store(options());
  out = true;
  const auto start = std::chrono::steady_clock::now();
  const Region region = lazy.open_version("s1", region_options);  // waits for no page
  std::thread end([&] {
    std::this_thread::sleep_for(300ms);
    out = false;
  });
  expect_bytes(region, contents["s1"]);
  end.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST_P(LazyRegionTest, PinAndPrefetchThrowAfterTheTimeout) {
  std::atomic<bool> out{true};
  interference->set_before([&](const std::string& key) {
    if (out && key.starts_with(kPiecePrefix)) throw Error(Errc::io, "the server is gone");
  });
  RemoteOptions impatient = options();
  impatient.longest_wait = 200ms;
  Store lazy = open_store(impatient);
  const Region region = lazy.open_version("s1", region_options);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_ERRC(static_cast<void>(region.pin({0, region.size_bytes()})), Errc::io);
  EXPECT_ERRC(region.prefetch({0, 4096}), Errc::io);
  EXPECT_ERRC(lazy.read("s1", 0, std::vector<std::byte>(100).data(), 100), Errc::io);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 6s);  // each waits once
  out = false;
  ASSERT_TRUE(comes_back(region));
  expect_bytes(region, contents["s1"]);
}

// By URL, since the child is another program: arguments are URL, cache, engine.
const vellum::test::ChildProgram kTouch("touch lazily", [](const std::vector<std::string>& a) {
  RemoteOptions options;
  options.cache_directory = a[1];
  options.longest_wait = 200ms;
  Store lazy = Store::open(a[0], options);
  RegionOptions region_options;
  region_options.engine = vellum::test::engine_named(a[2]);
  const Region region = lazy.open_version("s1", region_options);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < region.size_bytes(); at += format::kPageBytes) {
    sum += static_cast<const unsigned char*>(region.data())[at];
  }
  _exit(sum == 0 ? 1 : 0);
});

// Sanitizers have handlers of their own for the signal.
class LazyTouchNoSanitizer : public LazyRegionTest {};

TEST_P(LazyTouchNoSanitizer, ATouchOfAMissingPieceIsASigbusWithItsName) {
  ASSERT_FALSE(pieces().empty());
  for (const auto& piece : pieces()) std::filesystem::remove(piece);
  const auto end = vellum::test::run_program("touch lazily",
                                             {url(), dir.path("cache"), engine_name(GetParam())});
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_NE(end.standard_error.find("snapshot 's1': page "), std::string::npos);
  EXPECT_NE(end.standard_error.find("pieces/"), std::string::npos) << end.standard_error;
  EXPECT_NE(end.standard_error.find("missing at the remote"), std::string::npos)
      << end.standard_error;
}

TEST_P(LazyTouchNoSanitizer, ATouchDuringAnOutageIsASigbusAfterTheTimeout) {
  std::filesystem::rename(dir.path("r") + "/pieces", dir.path("r") + "/gone");
  std::ofstream(dir.path("r") + "/pieces") << "no directory";
  const auto start = std::chrono::steady_clock::now();
  const auto end = vellum::test::run_program("touch lazily",
                                             {url(), dir.path("cache"), engine_name(GetParam())});
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 200ms);
  EXPECT_NE(end.standard_error.find("snapshot 's1': page "), std::string::npos);
  EXPECT_NE(end.standard_error.find("timed out"), std::string::npos) << end.standard_error;
}

TEST_P(LazyRegionTest, AKilledReaderDoesNoHarm) {
  for (int i = 0; i < 10; ++i) {
    auto child = vellum::test::start_program("touch lazily",
                                             {url(), dir.path("cache"), engine_name(GetParam())});
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));
    child.kill(SIGKILL);
    child.wait();
  }
  Store lazy = open_store(options());
  expect_bytes(lazy.open_version("s1", region_options), contents["s1"]);
}

INSTANTIATE_TEST_SUITE_P(, LazyRegionTest, testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);
INSTANTIATE_TEST_SUITE_P(, LazyTouchNoSanitizer, testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);

// Never wrong data: a damaged object is an error that names it.
TEST_F(LazyTest, EachDamagedPieceIsNamedAndTheOthersAreRead) {
  make(3);
  push_all(*store);
  for (const auto& piece : pieces()) {
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(piece));
    for (const std::streamoff at : {std::streamoff{40}, size / 2, size - 9}) {
      flip_byte(piece, at);
      RemoteOptions without = options();
      without.cache_directory = "";
      const auto lazy = open_lazily(without);
      int damaged = 0;
      for (const auto& [name, bytes] : contents) {
        const auto source = store::test::open_version(*lazy, name);
        std::vector<std::byte> page(format::kPageBytes);
        for (format::PageNumber p = 0; p < kRemotePages; ++p) {
          try {
            source->read(p, 1, page.data());
            ASSERT_EQ(std::memcmp(page.data(), &bytes[p * page.size()], page.size()), 0);
          } catch (const Error& e) {
            ++damaged;
            EXPECT_EQ(e.code(), Errc::corrupted);
            EXPECT_NE(std::string(e.what()).find(piece.filename().string()), std::string::npos)
                << e.what();
          }
        }
      }
      EXPECT_GT(damaged, 0);
      flip_byte(piece, at);
    }
  }
}

TEST_F(LazyTest, DamageInTransitIsReadAgain) {
  make(3);
  push_all(*store);
  std::mutex mutex;
  std::set<std::string> seen;
  interference->set_after([&](const std::string& key, std::vector<std::byte>& bytes) {
    const std::lock_guard lock(mutex);
    if (seen.insert(key).second) bytes[bytes.size() / 2] ^= std::byte{1};
  });
  const auto lazy = open_lazily(options());
  for (const auto& [name, bytes] : contents) {
    store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
  }
}

TEST_F(LazyTest, TheCacheServesOtherProcessesAndIsAlwaysChecked) {
  make(4);
  push_all(*store);
  const auto read_all = [&] {
    const auto lazy = open_lazily(options());
    for (const auto& [name, bytes] : contents) {
      store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
    }
  };
  read_all();
  const int fetched = interference->gets_of(kPiecePrefix);
  EXPECT_GT(fetched, 0);
  read_all();
  EXPECT_EQ(interference->gets_of(kPiecePrefix), fetched);
  for (const auto& copy : std::filesystem::directory_iterator(dir.path("cache") + "/pieces")) {
    const auto size = static_cast<std::streamoff>(copy.file_size());
    for (const std::streamoff at : {std::streamoff{40}, size / 2, size - 9}) {
      flip_byte(copy.path(), at);
      read_all();
      EXPECT_EQ(std::filesystem::file_size(copy.path()), static_cast<std::uintmax_t>(size));
    }
    std::filesystem::resize_file(copy.path(), static_cast<std::uintmax_t>(size / 2));
    read_all();
  }
  std::filesystem::remove_all(dir.path("cache"));
  read_all();
}

TEST_F(LazyTest, TheCacheKeepsItsLimit) {
  make(12);
  push_all(*store);
  RemoteOptions small = options();
  small.cache_bytes = 100u << 10;
  auto lazy = open_lazily(small);
  for (const auto& [name, bytes] : contents) {
    store::test::expect_same(*store::test::open_version(*lazy, name), bytes);
  }
  lazy = nullptr;  // while it may read ahead
  std::uintmax_t total = 0;
  for (const auto& copy : std::filesystem::directory_iterator(dir.path("cache") + "/pieces")) {
    total += copy.file_size();
  }
  EXPECT_LE(total, *small.cache_bytes + *small.cache_bytes / 16);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("cache") + "/turns"));
}

TEST_F(LazyTest, ConcurrentReadersFetchEachPieceOnce) {
  make(4);
  push_all(*store);
  interference->set_before([](const std::string&) { std::this_thread::sleep_for(10ms); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto lazy = open_lazily(options());
      store::test::expect_same(*store::test::open_version(*lazy, "s3"), contents["s3"]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [key, count] : interference->gets()) {
    if (!key.starts_with(kPiecePrefix) && !key.starts_with(kListPrefix)) continue;
    EXPECT_EQ(count, 1) << key;
  }
}

TEST_F(LazyTest, ASlowReaderKeepsWhatItsVersionsNeedDuringGc) {
  make(5);
  push_all(*store);
  const auto lazy = open_lazily(options());
  const auto source = store::test::open_version(*lazy, "s4");
  const auto gone = store::test::open_version(*lazy, "s0");
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  forget_names(remote, {"s0", "s1", "s2"});
  collect_remote(remote, false, nullptr);
  store::test::expect_same(*source, contents["s4"]);
  std::vector<std::byte> page(format::kPageBytes);
  for (format::PageNumber p = 0; p < kRemotePages; ++p) {
    try {
      gone->read(p, 1, page.data());
      ASSERT_EQ(std::memcmp(page.data(), &contents["s0"][p * page.size()], page.size()), 0);
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("missing at the remote"), std::string::npos);
    }
  }
}

// Fetched pieces stay readable; the others are reported as missing, and never have other content.
TEST_F(LazyTest, AForgottenOpenVersionKeepsItsFetchedPieces) {
  make(1);
  push_all(*store);
  RemoteOptions without = options();
  without.cache_directory = "";
  std::atomic<bool> out = false;
  interference->set_before([&](const std::string& key) {
    if (out && key.starts_with(kPiecePrefix)) throw Error(Errc::io, "the server is gone");
  });
  const auto reader = open_lazily(without);
  const auto read = store::test::open_version(*reader, "s0");
  store::test::expect_same(*read, contents["s0"]);
  out = true;
  const auto late = open_lazily(without);
  const auto unread = store::test::open_version(*late, "s0");
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  forget_names(remote, {"s0", "main"});
  EXPECT_GT(collect_remote(remote, false, nullptr).objects_removed, 0u);
  ASSERT_TRUE(pieces().empty());
  out = false;
  store::test::expect_same(*read, contents["s0"]);
  std::vector<std::byte> page(format::kPageBytes);
  for (int i = 0; i < 2; ++i) {
    try {
      unread->read(0, 1, page.data());
      ADD_FAILURE() << "a page of a piece that is gone";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
      EXPECT_NE(std::string(e.what()).find("missing at the remote"), std::string::npos) << e.what();
    }
  }
  EXPECT_ERRC(store::test::open_version(*open_lazily(without), "s0"), Errc::not_found);
}

TEST_F(LazyTest, AForkDoesNotWaitForThreadsThatItLacks) {
  make(2);
  push_all(*store);
  auto lazy = open_lazily(options());
  const auto source = store::test::open_version(*lazy, "s0");
  const auto end = vellum::test::run_child([&] {
    std::vector<std::byte> page(format::kPageBytes);
    try {
      for (format::PageNumber p = 0; p < kRemotePages; ++p) source->read(p, 1, page.data());
    } catch (const Error& e) {
      vellum::test::require(std::string(e.what()).find("fork") != std::string::npos, e.what());
    }
    lazy = nullptr;
  });
  EXPECT_CHILD_EXIT(end, 0);
}

}  // namespace
}  // namespace vellum::remote::test
