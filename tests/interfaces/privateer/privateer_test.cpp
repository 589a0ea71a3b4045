// Privateer's interface, as a program that was written for it sees it.
#include <sys/mman.h>

#include <numeric>

#include "interfaces/privateer/fixture.hpp"
#include "support/child.hpp"

namespace vellum::test {
namespace {

TEST_F(PrivateerTest, CreatesWritesAndOpens) {
  {
    Privateer privateer(Privateer::CREATE, base().c_str());
    EXPECT_EQ(privateer.data(), nullptr);
    EXPECT_EQ(privateer.region_size(), 0u);
    EXPECT_EQ(privateer.get_block_size(), kBlock);
    EXPECT_FALSE(privateer.version_exists("v0"));
    void* const data = privateer.create(nullptr, "v0", 5 * kMiB, false);
    EXPECT_EQ(privateer.data(), data);
    EXPECT_EQ(privateer.region_size(), 6 * kMiB);  // whole blocks
    EXPECT_EQ(privateer.current_size(), 6 * kMiB);
    EXPECT_TRUE(privateer.version_exists("v0"));
    words(data)[0] = 1;
    words(data)[6 * kMiB / 8 - 1] = 2;
    privateer.msync();
  }
  EXPECT_EQ(Privateer::version_capacity(path_of("v0")), 6 * kMiB);
  EXPECT_EQ(Privateer::version_block_size(path_of("v0") + "/"), kBlock);
  Privateer privateer(Privateer::OPEN, base().c_str());
  auto* const data = words(privateer.open(nullptr, "v0"));
  EXPECT_EQ(privateer.region_size(), 6 * kMiB);
  EXPECT_EQ(data[0], 1u);
  EXPECT_EQ(data[6 * kMiB / 8 - 1], 2u);
  EXPECT_TRUE(store().verify({.read_data = true}).damages.empty());
}

// As in the papers: write, snapshot, continue to write, and every version exists afterwards.
TEST_F(PrivateerTest, ASnapshotAfterEachStep) {
  constexpr std::uint64_t kWords = 2 * kMiB / 8;
  {
    Privateer privateer(Privateer::CREATE, base().c_str());
    auto* const data = words(privateer.create(nullptr, "v0", 2 * kMiB, false));
    for (std::uint64_t step = 1; step <= 5; ++step) {
      for (std::uint64_t i = 1; i < kWords; i += 2) data[i] += 1;
      ASSERT_TRUE(privateer.snapshot(("v" + std::to_string(step)).c_str()));
    }
    data[1] = 99;
    privateer.msync();
    EXPECT_FALSE(privateer.snapshot("v3"));  // exists
    EXPECT_FALSE(privateer.snapshot("v0"));
  }
  for (std::uint64_t step = 1; step <= 5; ++step) {
    Privateer privateer(Privateer::OPEN, base().c_str());
    const std::string version = "v" + std::to_string(step);
    auto* const data = words(privateer.open_read_only(nullptr, version.c_str()));
    EXPECT_EQ(std::accumulate(data, data + kWords, std::uint64_t{0}), step * kWords / 2);
  }
  Privateer privateer(Privateer::OPEN, base().c_str());
  EXPECT_EQ(words(privateer.open(nullptr, "v0"))[1], 99u);
  EXPECT_EQ(words(privateer.open(nullptr, "v3"))[1], 3u);  // a snapshot, to write
  words(privateer.data())[1] = 33;
  privateer.msync();
  EXPECT_TRUE(privateer.snapshot("v3 on"));
  EXPECT_EQ(words(privateer.open_read_only(nullptr, "v4"))[1], 4u);
  EXPECT_EQ(words(privateer.open_read_only(nullptr, "v3 on"))[1], 33u);
  EXPECT_TRUE(store().verify({.read_data = true}).damages.empty());
}

TEST_F(PrivateerTest, TheDestructorSynchronises) {
  make("v0", 7);  // no msync()
  EXPECT_EQ(first_word("v0"), 7u);
}

TEST_F(PrivateerTest, StoresWithoutMsyncAreLostInACrash) {
  EXPECT_CHILD_SIGNAL(run_child([&] {
                        auto* const privateer = new Privateer(Privateer::CREATE, base().c_str());
                        auto* const data = words(privateer->create(nullptr, "v0", kBlock, false));
                        data[0] = 1;
                        privateer->msync();
                        data[0] = 2;
                        data[4096] = 2;
                        raise(SIGKILL);
                      }),
                      SIGKILL);
  Privateer privateer(Privateer::OPEN, base().c_str());
  // The commit is only in the journal, from which a branch cannot start.
  auto* const data = words(privateer.open_immutable(nullptr, "v0", "v1"));
  EXPECT_EQ(data[0], 1u);
  EXPECT_EQ(data[4096], 0u);
  EXPECT_EQ(store().versions().size(), 2u);
}

TEST_F(PrivateerTest, OpenImmutableKeepsItsOrigin) {
  make("v0", 1);
  Privateer one(Privateer::OPEN, base().c_str()), two(Privateer::OPEN, base().c_str());
  auto* const first = words(one.open_immutable(nullptr, "v0", "v1"));
  auto* const second = words(two.open_immutable(nullptr, "v0", "v2"));
  first[0] = 11;
  second[0] = 12;
  one.msync();
  two.msync();
  EXPECT_EQ(first_word("v0"), 1u);
  EXPECT_EQ(first_word("v1"), 11u);
  EXPECT_EQ(first_word("v2"), 12u);
  expect_error(Errc::already_exists, {path_of("v2")},
               [&] { one.open_immutable(nullptr, "v0", "v2"); });
  expect_error(Errc::not_found, {path_of("v9")}, [&] { one.open_immutable(nullptr, "v9", "v3"); });
  EXPECT_FALSE(one.version_exists("v3"));
  EXPECT_EQ(Privateer::version_block_size(path_of("v2")), kBlock);
}

TEST_F(PrivateerTest, SeveralVersionsAreOpenAtOnce) {
  for (std::uint64_t i = 0; i < 3; ++i) make("v" + std::to_string(i), i);
  Privateer reader(Privateer::OPEN, base().c_str());
  const auto* const v0 = words(reader.open_read_only(nullptr, "v0"));
  const auto* const v1 = words(reader.open_read_only(nullptr, "v1"));
  Privateer writer(Privateer::OPEN, base().c_str());
  words(writer.open(nullptr, "v2"))[0] = 22;
  EXPECT_EQ(v0[0], 0u);  // both, of one object
  EXPECT_EQ(v1[0], 1u);
  reader.msync();  // nothing to do
  expect_error(Errc::busy, {"v2"}, [&] { reader.open(nullptr, "v2"); });
  EXPECT_TRUE(reader.version_exists("v2"));
  // The version that it had open to write is synchronised, and free.
  EXPECT_EQ(words(writer.open(nullptr, "v0"))[0], 0u);
  EXPECT_EQ(words(reader.open(nullptr, "v2"))[0], 22u);
}

TEST_F(PrivateerTest, AVersionOpenToReadIsKeptAsItIs) {
  make("v0", 1);
  Privateer reader(Privateer::OPEN, base().c_str());
  reader.open_read_only(nullptr, "v0");
  ASSERT_TRUE(reader.snapshot("kept"));
  EXPECT_EQ(first_word("kept"), 1u);
  {
    Privateer writer(Privateer::OPEN, base().c_str());
    words(writer.open(nullptr, "v0"))[0] = 2;
  }
  expect_error(Errc::busy, {path_of("v0")}, [&] { reader.snapshot("late"); });
  EXPECT_FALSE(reader.version_exists("late"));
  EXPECT_FALSE(store().contains("late"));
}

// Address space of a caller, followed by a page of another owner.
class PrivateerReservation : public PrivateerTest {
 protected:
  PrivateerReservation() {
    start_ = mmap(nullptr, kBytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    EXPECT_EQ(mprotect(end(), kPage, PROT_READ | PROT_WRITE), 0);
    *end() = 42;
  }
  ~PrivateerReservation() override {
    EXPECT_EQ(*end(), 42);
    munmap(start_, kBytes + kPage);
  }
  char* end() const { return static_cast<char*>(start_) + kBytes; }

  static constexpr std::uint64_t kBytes = 3 * kBlock;
  void* start_ = nullptr;
};

TEST_F(PrivateerReservation, AVersionIsMappedOverAReservation) {
  {
    Privateer privateer(Privateer::CREATE, base().c_str());
    ASSERT_EQ(privateer.create(start_, "v0", kBytes - 1, false), start_);
    EXPECT_EQ(privateer.region_size(), kBytes);
    words(start_)[0] = 1;
    words(end() - 8)[0] = 2;
    EXPECT_THROW(privateer.resize(kBytes + 1), std::runtime_error);
    ASSERT_TRUE(privateer.snapshot("v1"));
    words(start_)[0] = 3;
  }
  Privateer privateer(Privateer::OPEN, base().c_str());
  for (const auto& [version, first] : {std::pair("v0", 3u), std::pair("v1", 1u)}) {
    ASSERT_EQ(privateer.open_read_only(start_, version), start_);  // over the one before
    EXPECT_EQ(words(start_)[0], first);
    EXPECT_EQ(words(end() - 8)[0], 2u);
  }
  ASSERT_EQ(privateer.open_immutable(start_, "v1", "v2"), start_);
  words(start_)[0] = 4;
  ASSERT_EQ(privateer.open(start_, "v0"), start_);
  EXPECT_EQ(words(start_)[0], 3u);
  EXPECT_EQ(first_word("v2"), 4u);
  EXPECT_ERRC(privateer.open(static_cast<char*>(start_) + 1, "v1"), Errc::invalid_argument);
}

TEST_F(PrivateerTest, ResizeGrowsInPlace) {
  {
    Privateer privateer(Privateer::CREATE, base().c_str());
    EXPECT_ERRC(privateer.resize(kBlock), Errc::invalid_argument);  // nothing is open
    auto* const data = words(privateer.create(nullptr, "v0", kBlock, false));
    EXPECT_TRUE(privateer.resize(kBlock + 1));
    EXPECT_EQ(privateer.region_size(), 2 * kBlock);
    EXPECT_EQ(privateer.data(), data);
    data[2 * kBlock / 8 - 1] = 5;
    expect_error(Errc::invalid_argument, {path_of("v0")}, [&] { privateer.resize(kBlock); });
  }
  EXPECT_EQ(Privateer::version_capacity(path_of("v0")), 2 * kBlock);
  Privateer privateer(Privateer::OPEN, base().c_str());
  EXPECT_EQ(words(privateer.open(nullptr, "v0"))[2 * kBlock / 8 - 1], 5u);
}

// As in Metall: 8 TiB by default, at an address of its own. NoSanitizer: it does not fit under
// them.
TEST_F(PrivateerTest, EightTebibytesWithFewUsedPages_NoSanitizer) {
  constexpr std::uint64_t kCapacity = 8ULL << 40;
  void* const start =
      mmap(nullptr, kCapacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(start, MAP_FAILED);
  {
    Privateer privateer(Privateer::CREATE, base().c_str());
    ASSERT_EQ(privateer.create(start, "v0", kCapacity, true), start);
    for (std::uint64_t i = 0; i < 8; ++i) words(start)[(i << 40) / 8 + i] = i + 1;
    words(start)[kCapacity / 8 - 1] = 9;
    ASSERT_TRUE(privateer.snapshot("v1"));
  }
  EXPECT_EQ(Privateer::version_capacity(path_of("v1")), kCapacity);
  Privateer privateer(Privateer::OPEN, base().c_str()), other(Privateer::OPEN, base().c_str());
  privateer.open(start, "v1");
  const auto* const beside = words(other.open(nullptr, "v0"));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(words(start)[(i << 40) / 8 + i], i + 1);
    EXPECT_EQ(beside[(i << 40) / 8 + i], i + 1);
  }
  EXPECT_EQ(beside[kCapacity / 8 - 1], 9u);
  EXPECT_LT(store().stat().stored_bytes, 8 * kMiB);
  EXPECT_EQ(munmap(start, kCapacity), 0);
}

// The interface of the first release: a store and directories anywhere.
TEST_F(PrivateerTest, TheFirstInterface) {
  const std::string blocks = directory_ / "store", versions = directory_ / "versions";
  const std::string v0 = versions + "/v0", v1 = versions + "/v1", v2 = versions + "/v2",
                    v3 = versions + "/v3";
  {
    Privateer privateer(blocks.c_str(), v0.c_str(), kBlock);
    words(privateer.data())[0] = 1;
    privateer.msync();
    EXPECT_EQ(privateer.current_size(), kBlock);
    EXPECT_TRUE(privateer.snapshot(v1.c_str()));
    EXPECT_FALSE(privateer.snapshot(v1.c_str()));
    EXPECT_TRUE(privateer.version_exists(v1.c_str()));
    words(privateer.data())[0] = 2;
  }
  EXPECT_EQ(words(Privateer(v1.c_str(), true).data())[0], 1u);
  EXPECT_EQ(words(Privateer(nullptr, v0.c_str(), true).data())[0], 2u);
  EXPECT_EQ(words(Privateer(nullptr, blocks.c_str(), v0.c_str()).data())[0], 2u);
  words(Privateer(v1.c_str(), v2.c_str()).data())[0] = 3;
  words(Privateer(nullptr, v1.c_str(), v3.c_str()).data())[0] = 4;
  words(Privateer(v1.c_str(), false).data())[1] = 5;
  EXPECT_EQ(words(Privateer(v2.c_str(), true).data())[0], 3u);
  EXPECT_EQ(words(Privateer(v3.c_str(), true).data())[0], 4u);
  EXPECT_EQ(words(Privateer(v1.c_str(), true).data())[1], 5u);
  EXPECT_EQ(Privateer::version_capacity(v3), kBlock);
  expect_error(Errc::already_exists, {v0},
               [&] { Privateer privateer(nullptr, blocks.c_str(), v0.c_str(), kBlock); });
  // Directories of one name, with one store.
  const std::string other = directory_ / "other/v0";
  words(Privateer(nullptr, blocks.c_str(), other.c_str(), kBlock, kBlock).data())[0] = 6;
  EXPECT_EQ(words(Privateer(other.c_str(), true).data())[0], 6u);
  // A version that has moved is a copy of its former state: it can be read, and continues under its
  // own name.
  const std::string moved = directory_ / "moved";
  std::filesystem::rename(other, moved);
  EXPECT_EQ(words(Privateer(moved.c_str(), true).data())[0], 6u);
  words(Privateer(moved.c_str(), false).data())[0] = 7;
  EXPECT_EQ(words(Privateer(moved.c_str(), true).data())[0], 7u);
  EXPECT_EQ(words(Privateer(v0.c_str(), true).data())[0], 2u);
}

// In the usual layout both interfaces mean the same version.
TEST_F(PrivateerTest, TheFirstInterfaceOnABase) {
  make("run/v0", 1);
  make("v0", 2);
  for (const char* version : {"run/v0", "v0"}) {
    Privateer privateer(path_of(version).c_str(), false);
    words(privateer.data())[0] += 10;
    EXPECT_TRUE(privateer.snapshot(path_of(std::string(version) + "-kept").c_str()));
  }
  EXPECT_EQ(first_word("run/v0"), 11u);
  EXPECT_EQ(first_word("v0"), 12u);
  EXPECT_EQ(first_word("run/v0-kept"), 11u);
  EXPECT_EQ(first_word("v0-kept"), 12u);
}

}  // namespace
}  // namespace vellum::test
