// A prefetch of ranges fetches all of their pieces concurrently.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/expect_error.hpp"
#include "remote/lazy_fixture.hpp"
#include "support/engines.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;

class RangesTest : public LazyTest, public testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override {
    if (!vellum::test::engine_available(GetParam())) GTEST_SKIP() << vellum::test::kNoUffd;
    region_options.engine = GetParam();
    fill();
  }
  // `t5`, whose pieces are from many pushes.
  virtual void fill() {
    line.begin();
    for (int i = 0; i < 6; ++i) {
      step("t" + std::to_string(i), 30);
      push_names(*store, {"t" + std::to_string(i)});
    }
  }
  // A part of each chunk, the last chunk first.
  static std::vector<vellum::ByteRange> some_of_all() {
    std::vector<vellum::ByteRange> out;
    for (std::size_t page = kRemotePages; page-- > 0;) {
      if (page % 3 == 0) out.push_back({page * format::kPageBytes + 7, 2 * format::kPageBytes});
    }
    return out;
  }
  int whole_pieces() { return interference->gets_of(kPiecePrefix); }
  void expect_each_once() {
    for (const auto& [key, count] : interference->gets()) {
      if (!key.starts_with(kPiecePrefix)) continue;
      EXPECT_EQ(count, 1) << key;
    }
  }
  // The number of sequential rounds of requests if each request takes `length`.
  int rounds_of_a_prefetch(std::chrono::milliseconds length) {
    std::mutex mutex;  // guards the members below
    int ended_rounds = 0, rounds = 0;
    interference->set_before([&](const std::string& key) {
      if (!key.starts_with(kPiecePrefix)) return;
      int round = 0;
      {
        const std::lock_guard lock(mutex);
        round = ended_rounds + 1;
        rounds = std::max(rounds, round);
      }
      std::this_thread::sleep_for(length);
      const std::lock_guard lock(mutex);
      ended_rounds = std::max(ended_rounds, round);
    });
    Store lazy = open_store(options());
    const Region region = lazy.open_version("t5", region_options);
    region.prefetch(some_of_all());
    EXPECT_GE(whole_pieces(), 5);
    expect_each_once();
    const int fetched = whole_pieces();
    interference->set_before([](const std::string&) { throw Error(Errc::io, "no requests"); });
    expect_bytes(region, contents["t5"]);
    region.prefetch(some_of_all());
    EXPECT_EQ(whole_pieces(), fetched);
    return rounds;
  }
  RegionOptions region_options;
};

// The pieces of the page map are fetched first, then all others. A late thread looks like another
// round, so a busy machine tries again with longer requests.
TEST_P(RangesTest, AllPiecesAreFetchedConcurrently) {
  int rounds = 3;
  for (std::chrono::milliseconds length = 100ms; rounds > 2 && length < 10s; length *= 4) {
    std::filesystem::remove_all(dir.path("cache"));
    interference = std::make_shared<Interference>();
    rounds = rounds_of_a_prefetch(length);
  }
  EXPECT_LE(rounds, 2);
}

TEST_P(RangesTest, WithoutACacheEachPieceIsFetchedOnce) {
  RemoteOptions alone = options();
  alone.cache_directory = "";
  Store lazy = open_store(alone);
  const Region region = lazy.open_version("t5", region_options);
  region.prefetch(some_of_all());
  expect_bytes(region, contents["t5"]);
  expect_each_once();
}

TEST_P(RangesTest, AnOutageThrowsAfterTheTimeout) {
  std::atomic<bool> out{true};
  interference->set_before([&](const std::string& key) {
    if (out && key.find(kPiecePrefix) != std::string::npos)
      throw Error(Errc::io, "the server is gone");
  });
  RemoteOptions impatient = options();
  impatient.longest_wait = 200ms;
  Store lazy = open_store(impatient);
  const Region region = lazy.open_version("t5", region_options);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_ERRC(region.prefetch(some_of_all()), Errc::io);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 6s);
  out = false;
  ASSERT_TRUE(comes_back(region));
  expect_bytes(region, contents["t5"]);
}

TEST_P(RangesTest, MissingAndDamagedPiecesAreNamed) {
  for (const bool missing : {false, true}) {
    for (const auto& path : pieces()) {
      if (missing) std::filesystem::remove(path);
      if (!missing) flip_byte(path, static_cast<std::streamoff>(file_size(path)) / 2);
    }
    Store lazy = open_store(options());
    const Region region = lazy.open_version("t5", region_options);
    try {
      region.prefetch(some_of_all());
      ADD_FAILURE() << "nothing is missed";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::corrupted);
      EXPECT_NE(std::string(e.what()).find(kPiecePrefix), std::string::npos) << e.what();
    }
  }
}

// A version of large pieces of which little is read; it has added few records.
class PartsTest : public RangesTest {
 protected:
  static constexpr std::size_t kPages = (28u << 20) / format::kPageBytes;
  static constexpr std::size_t kPagesBetween = (2u << 20) / format::kPageBytes;
  static constexpr int kPieces = 5;  // at least

  void fill() override {
    std::mt19937_64 random(5);
    large = Model(kPages);
    store->create_branch("large", large.bytes.size(), 0);
    for (std::size_t at = 0; at < large.bytes.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(large.bytes.data() + at, &word, 8);
    }
    for (format::PageNumber page = 0; page < kPages; ++page) large.store64(page, 0, random());
    const auto writer = BranchWriter::open(*store, "large");
    commit(*writer, large, true);
    writer->publish_snapshot("before", "");
    large.store64(kPages / 2, 8, 1);
    commit(*writer, large, true);
    push_names(*store, {"large"});
  }
  static std::vector<vellum::ByteRange> scattered() {
    std::vector<vellum::ByteRange> out;
    for (std::size_t page = 5; page < kPages; page += kPagesBetween) {
      out.push_back({page * format::kPageBytes, format::kPageBytes});
    }
    std::reverse(out.begin(), out.end());
    return out;
  }
  void expect_scattered(const Region& region) const {
    for (const vellum::ByteRange& range : scattered()) {
      const auto* const bytes = static_cast<const std::byte*>(region.data());
      EXPECT_EQ(std::memcmp(bytes + range.offset_bytes, large.bytes.data() + range.offset_bytes,
                            format::kPageBytes),
                0)
          << range.offset_bytes;
    }
  }
  int parts() { return interference->gets_of(kPartOf); }
};

TEST_P(PartsTest, OnlyPartsAreFetchedWhereLittleIsNeeded) {
  ASSERT_GE(pieces().size(), static_cast<std::size_t>(kPieces));
  Store lazy = open_store(options());
  const Region region = lazy.open_version("large", region_options);
  region.prefetch(scattered());
  const int whole = whole_pieces();
  EXPECT_LE(whole, 2) << "those of the page map and of what the version has changed";
  EXPECT_GE(parts(), 2 * kPieces) << "contents, and parts";
  EXPECT_LE(parts(), 3 * static_cast<int>(scattered().size()));
  const int before = parts();
  expect_scattered(region);
  region.prefetch(scattered());
  EXPECT_EQ(whole_pieces() + parts(), whole + before) << "it is all here";
  expect_bytes(region, large.bytes);
  expect_each_once();
}

TEST_P(PartsTest, DamagedPartsAreNotUsed) {
  std::mutex mutex;  // guards the members below
  std::map<std::string, int> seen;
  for (const int first_damaged : {0, 1}) {  // the index is the first part of each piece
    interference->set_after([&](const std::string& key, std::vector<std::byte>& bytes) {
      if (!key.starts_with(kPartOf)) return;
      const std::lock_guard lock(mutex);
      if (seen[key]++ >= first_damaged) bytes[bytes.size() / 2] ^= std::byte{1};
    });
    std::filesystem::remove_all(*options().cache_directory);
    seen.clear();
    const int before = whole_pieces();
    Store lazy = open_store(options());
    const Region region = lazy.open_version("large", region_options);
    region.prefetch(scattered());
    expect_scattered(region);
    EXPECT_GE(whole_pieces(), before + kPieces);
  }
}

TEST_P(PartsTest, MissingPartsAreReplacedByPieces) {
  interference->set_before([&](const std::string& key) {
    if (key.starts_with(kPartOf)) throw Error(Errc::io, "no parts today");
  });
  Store lazy = open_store(options());
  const Region region = lazy.open_version("large", region_options);
  region.prefetch(scattered());
  expect_scattered(region);
  expect_each_once();
}

// The requests for the indices succeed, and then all requests fail.
TEST_P(PartsTest, AnOutageIsMetOnce) {
  std::mutex mutex;  // guards the members below
  std::set<std::string> seen;
  interference->set_before([&](const std::string& key) {
    if (!key.starts_with(kPartOf)) return;
    {
      const std::lock_guard lock(mutex);
      if (seen.insert(key).second) return;
    }
    std::this_thread::sleep_for(20ms);
    throw Error(Errc::io, "the server is gone");
  });
  Store lazy = open_store(options());
  const Region region = lazy.open_version("large", region_options);
  region.prefetch(scattered());
  expect_scattered(region);
  EXPECT_GE(seen.size(), static_cast<std::size_t>(kPieces));
  EXPECT_LE(parts(), static_cast<int>(seen.size() + kConnections));
}

// Each request waits for the timeout on its own. After an outage of that length nothing waits
// again.
TEST_P(PartsTest, AnOutageIsWaitedForOnce) {
  constexpr auto kWait = 1000ms;
  std::atomic<bool> out{false};
  interference->set_before([&](const std::string& key) {
    if (!out || key.find(kPiecePrefix) == std::string::npos) return;
    std::this_thread::sleep_for(kWait);
    throw Error(Errc::io, "the server is gone");
  });
  RemoteOptions impatient = options();
  impatient.longest_wait = kWait;
  Store lazy = open_store(impatient);
  const Region region = lazy.open_version("large", region_options);
  region.prefetch(scattered().front());  // with the page map
  out = true;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_ERRC(region.prefetch(scattered()), Errc::io);
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, kWait);
  EXPECT_LT(waited, 2 * kWait);  // a second wait would double it
  out = false;
  ASSERT_TRUE(comes_back(region));
  expect_scattered(region);
}

// Two concurrent calls for parts of the same pieces.
TEST_P(PartsTest, ConcurrentCallsFetchTheSameParts) {
  interference->set_before([](const std::string&) { std::this_thread::sleep_for(3ms); });
  Store lazy = open_store(options());
  const Region region = lazy.open_version("large", region_options);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto ranges = scattered();
      for (vellum::ByteRange& range : ranges) range.offset_bytes += t * 64 * 1024;
      region.prefetch(ranges);
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_bytes(region, large.bytes);
}

INSTANTIATE_TEST_SUITE_P(, RangesTest, testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);
INSTANTIATE_TEST_SUITE_P(, PartsTest, testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);

}  // namespace
}  // namespace vellum::remote::test
