// The golden stores: small stores that a release has left, which every later 1.x has to read,
// extend, collect and verify (docs/format.md, "The promise"). tests/golden/<format>/<name>.tar.gz;
// golden_make makes them.
//
// What they hold follows from the tables of golden_lib.cpp: a version's content is made by the same
// steps once more, in memory. Tables and fills of a format that was released never change; the next
// minor adds its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>
#include <vellum/encoding.hpp>

namespace vellum::golden {

inline constexpr const char* kFormat = "1.0";
inline constexpr std::size_t kPageBytes = 4096;

using Bytes = std::vector<std::byte>;

// What a step puts into pages.
enum class Fill {
  zeros,
  noise,     // nothing compresses it
  text,      // best compressed as it is
  numbers,   // words whose high bytes are alike: planes
  nodes,     // what an allocator lays out: differences
  fields,    // structures with two links that are alike: fields
  touch,     // a few words of each page: deltas
  speckles,  // more of them
  further    // what they hold, 1,000 bytes further on: based pages
};

// One commit of a branch, and a snapshot of it if that has a name.
struct Step {
  const char* branch;
  Fill fill;
  std::size_t page, pages;
  std::uint64_t seed;
  const char* snapshot;  // or nullptr
};

struct Branch {
  const char* name;
  const char* from;  // a snapshot; nullptr: made empty, with `pages`
  std::size_t pages;
  Encoding encoding;
};

// Stores whose whole history is a table.
struct History {
  const char* name;  // of the archive
  std::span<const Branch> branches;
  std::span<const Step> steps;
};
std::span<const History> histories();

void put(const Step& step, std::span<std::byte> region);
// Every snapshot and every branch, by name.
std::map<std::string, Bytes> contents(const History& history);

// The others: a datastore's segment and its file, an atomic file, and the changes of its last
// commits.
inline constexpr std::size_t kSegmentBytes = 64 << 10;
inline constexpr std::size_t kAtomicBytes = 40'000;
inline constexpr const char* kMetadata = "books/count";
Bytes segment(std::uint64_t seed);
std::string metadata(std::uint64_t seed);
Bytes atomic_content(std::uint64_t commits);  // after so many
inline constexpr std::uint64_t kAtomicCommits = 5;

}  // namespace vellum::golden
