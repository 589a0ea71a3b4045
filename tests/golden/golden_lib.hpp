// The golden stores: small stores from a release, which every later 1.x has to read, extend,
// collect and verify (docs/format.md, "The promise"). tests/golden/<format>/<name>.tar.gz;
// golden_make creates them.
//
// The tables of golden_lib.cpp determine their content: the same steps, repeated in memory, give a
// version's content. Tables and fills of a released format never change; the next minor format adds
// its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>
#include <vellum/encoding.hpp>
#include <vellum/key.hpp>

namespace vellum::golden {

// The formats of plain and of encrypted stores. The latter have the same histories, without an image.
inline constexpr const char* kFormat = "1.0";
inline constexpr const char* kSealedFormat = "1.1";
inline constexpr std::size_t kPageBytes = 4096;

using Bytes = std::vector<std::byte>;

// The content that a step writes into pages.
enum class Fill {
  zeros,
  noise,     // incompressible
  text,      // compresses best as it is
  numbers,   // words with equal high bytes: planes
  nodes,     // the layout of an allocator: differences
  fields,    // structures with two similar links: fields
  touch,     // a few words of each page: deltas
  speckles,  // more words than touch
  further    // their content, shifted by 1,000 bytes: based pages
};

// One commit of a branch, and a snapshot of it if that has a name.
struct GoldenStep {
  const char* branch;
  Fill fill;
  std::size_t page, pages;
  std::uint64_t seed;
  const char* snapshot;  // or nullptr
};

struct Branch {
  const char* name;
  const char* from;  // a snapshot; nullptr: created empty, with `pages`
  std::size_t pages;
  Encoding encoding;
};

// Stores whose whole history is in a table.
struct History {
  const char* name;  // of the archive
  std::span<const Branch> branches;
  std::span<const GoldenStep> steps;
};
std::span<const History> histories();

void put(const GoldenStep& step, std::span<std::byte> region);
// Every snapshot and every branch, by name.
std::map<std::string, Bytes> contents(const History& history);

// The other stores: a datastore's segment and its file, an atomic file, and the changes of its last
// commits.
inline constexpr std::size_t kSegmentBytes = 64 << 10;
inline constexpr std::size_t kAtomicBytes = 40'000;
inline constexpr const char* kMetadata = "books/count";
Bytes segment(std::uint64_t seed);
std::string metadata(std::uint64_t seed);
Bytes atomic_content(std::uint64_t commits);  // after that many commits
inline constexpr std::uint64_t kAtomicCommits = 5;

// The secret of an encrypted store's slot of this kind; each has one of each kind. The files are made
// in `directory`.
inline constexpr KeySlot::Kind kSlotKinds[] = {KeySlot::Kind::key_file, KeySlot::Kind::passphrase,
                                               KeySlot::Kind::recipient, KeySlot::Kind::command};
KeySource secret(KeySlot::Kind kind, const std::string& directory);

}  // namespace vellum::golden
