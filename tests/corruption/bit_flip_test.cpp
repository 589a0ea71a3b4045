// Flips the bits of a store one at a time: every bit with VELLUM_LONG=1 in the environment,
// otherwise a sample.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "corruption/flip_lib.hpp"
#include "store/gc/recompress_support.hpp"
#include "support/sanitizers.hpp"

namespace vellum::corruption {
namespace {

bool long_run() {
  const char* value = std::getenv("VELLUM_LONG");
  return value != nullptr && *value == '1';
}

void report(const char* what, const FlipLab& lab, const FlipCounts& c) {
  const auto share = [&](std::uint64_t n) {
    return 100.0 * static_cast<double>(n) / static_cast<double>(c.flips);
  };
  std::printf(
      "%s: store of %llu bytes, %llu bits flipped: detected %.3f %%, harmless %.3f %% (%llu never "
      "read, %llu "
      "read), silent %llu; verify run on %llu, missed %llu; file not named %llu\n",
      what, static_cast<unsigned long long>(lab.total_bytes()),
      static_cast<unsigned long long>(c.flips), share(c.detected),
      share(c.harmless_read + c.harmless_unread),
      static_cast<unsigned long long>(c.harmless_unread),
      static_cast<unsigned long long>(c.harmless_read), static_cast<unsigned long long>(c.silent),
      static_cast<unsigned long long>(c.verified), static_cast<unsigned long long>(c.verify_missed),
      static_cast<unsigned long long>(c.detected_unnamed));
  for (const auto& line : c.complaints) std::printf("  %s\n", line.c_str());
}

void expect_nothing_silent(const FlipCounts& c) {
  EXPECT_EQ(c.silent, 0u);
  EXPECT_EQ(c.verify_missed, 0u);
  EXPECT_EQ(c.detected_unnamed, 0u);
  EXPECT_EQ(c.detected + c.harmless_read + c.harmless_unread, c.flips);
  EXPECT_GT(c.detected, 0u);
}

// About 1 MiB. In the short run a random share of the bits: every second one from the small files
// (refs, journals, the superblock); otherwise the packs would outnumber them.
TEST(BitFlip, BitsOfASmallStore) {
  FlipLab lab(make_sample(long_run() ? 1400 : 400, 1));
  FlipCounts counts;
  const auto files = lab.files();
  if (long_run()) {
    for (const auto& [path, bytes] : files) {
      for (std::uint64_t bit = 0; bit < bytes * 8; ++bit) {
        lab.flip(path, bit / 8, static_cast<unsigned>(bit % 8), bit % 4099 == 0, counts);
      }
      report(("up to " + path).c_str(), lab, counts);
      std::fflush(stdout);
    }
  } else {
    std::mt19937_64 random(7);
    for (int i = 0; i < test::rounds(4000, 1000); ++i) {
      const auto& [path, bytes] = files[random() % files.size()];
      // The front half of the file most of the time: the frames are there.
      const std::uint64_t end = i % 2 == 0 ? bytes : std::min<std::uint64_t>(bytes, 8192);
      lab.flip(path, random() % end, static_cast<unsigned>(random() % 8), i % 64 == 0, counts);
    }
  }
  report("small store", lab, counts);
  expect_nothing_silent(counts);
}

// In the last frames of a journal that was not closed, corruption looks most like a crash.
TEST(BitFlip, EveryBitOfAnOpenJournal) {
  FlipLab lab(make_sample(64, 3));
  FlipCounts counts;
  const std::string path = std::string(kStorePath) + "/branches/open/journal";
  for (const auto& [file, bytes] : lab.files()) {
    if (file != path) continue;
    for (std::uint64_t at = 0; at < bytes; ++at) {
      if (at % 16384 > 6000 && !long_run()) continue;
      lab.flip(path, at, static_cast<unsigned>(at * 7 % 8), false, counts);
    }
  }
  report("open journal", lab, counts);
  expect_nothing_silent(counts);
}

TEST(BitFlip, LargeStoreAtRandom) {
  FlipLab lab(make_sample(long_run() ? 6000 : 2500, 2));
  FlipCounts counts;
  std::mt19937_64 random(8);
  const auto files = lab.files();
  const int flips = long_run() ? 20000 : test::rounds(150, 50);
  for (int i = 0; i < flips; ++i) {
    std::uint64_t at = random() % lab.total_bytes();
    for (const auto& [path, bytes] : files) {
      if (at >= bytes) {
        at -= bytes;
        continue;
      }
      lab.flip(path, at, static_cast<unsigned>(random() % 8), i % 50 == 0, counts);
      break;
    }
  }
  report("large store", lab, counts);
  expect_nothing_silent(counts);
}

// The same with recompressed packs: headers, tables, records.
TEST(BitFlip, RecompressedPacks) {
  Sample sample = make_sample(long_run() ? 1400 : 400, 4);
  const auto store = store::StoreDirectory::open(*sample.fs, kStorePath);
  store->remove_snapshot("snap-1");
  sample.contents.erase("snap-1");
  ASSERT_GT(store::test::translate_all(*store, 15), 0u);
  FlipLab lab(std::move(sample));
  FlipCounts counts;
  std::mt19937_64 random(9);
  const int flips = long_run() ? 20000 : test::rounds(1500, 400);
  for (const auto& [path, bytes] : lab.files()) {
    if (!path.ends_with(".pack")) continue;
    for (int i = 0; i < flips; ++i) {
      // Both ends now and then: header, translation, index, trailer.
      const std::uint64_t end = i % 8 == 0 ? 64 : bytes;
      const std::uint64_t from = i % 8 == 1 ? bytes - std::min<std::uint64_t>(bytes, 1024) : 0;
      lab.flip(path, from + random() % (end - from), static_cast<unsigned>(random() % 8),
               i % 64 == 0, counts);
    }
  }
  report("translated packs", lab, counts);
  expect_nothing_silent(counts);
}

}  // namespace
}  // namespace vellum::corruption
