#include "golden/golden_lib.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "base/crypto/bech32.hpp"
#include "base/crypto/x25519.hpp"

namespace vellum::golden {
namespace {

Encoding encoded(Encoding::Compression compression, bool filters = true) {
  Encoding out;
  out.compression = compression;
  out.filters = filters;
  return out;
}
Encoding hashed() {
  Encoding out;
  out.hash = Encoding::Hash::sha256;
  return out;
}

constexpr auto kNone = Encoding::Compression::none;
constexpr auto kLz4 = Encoding::Compression::lz4;
constexpr auto kZstd = Encoding::Compression::zstd;

// A block in each of its forms, and records with a hash.
const Branch kCodecBranches[] = {
    {"none", nullptr, 16, encoded(kNone)},
    {"lz4", nullptr, 64, encoded(kLz4)},
    {"zstd", nullptr, 64, encoded(kZstd)},
    {"plain-lz4", nullptr, 32, encoded(kLz4, false)},
    {"plain-zstd", nullptr, 32, encoded(kZstd, false)},
    {"sha256", nullptr, 32, hashed()},
};
const GoldenStep kCodecSteps[] = {
    {"none", Fill::text, 0, 8, 1, "none-1"},
    {"lz4", Fill::text, 0, 16, 2, "lz4-1"},
    {"lz4", Fill::numbers, 16, 16, 3, "lz4-2"},
    {"lz4", Fill::nodes, 32, 16, 4, "lz4-3"},
    {"lz4", Fill::fields, 48, 16, 5, "lz4-4"},
    {"zstd", Fill::text, 0, 16, 6, "zstd-1"},
    {"zstd", Fill::numbers, 16, 16, 7, "zstd-2"},
    {"zstd", Fill::nodes, 32, 16, 8, "zstd-3"},
    {"zstd", Fill::fields, 48, 16, 9, "zstd-4"},
    {"plain-lz4", Fill::numbers, 0, 16, 10, "plain-lz4-1"},
    {"plain-zstd", Fill::numbers, 0, 16, 11, "plain-zstd-1"},
    {"sha256", Fill::text, 0, 16, 12, "sha256-1"},
    {"sha256", Fill::touch, 0, 8, 13, "sha256-2"},
};

// Chains of deltas, sealed packs, pages that become zero again, two branches from a snapshot, a
// commit that is large enough to look up its pages; and commits after the last snapshot, which only
// journals contain.
const Branch kHistoryBranches[] = {
    {"main", nullptr, 128, {}},
    {"side", "second", 0, {}},
    {"many", nullptr, 640, {}},
};
const GoldenStep kHistorySteps[] = {
    {"main", Fill::text, 0, 64, 20, "first"},
    {"main", Fill::noise, 64, 12, 21, nullptr},
    {"main", Fill::touch, 0, 40, 22, "second"},
    {"main", Fill::touch, 8, 24, 23, "third"},
    {"main", Fill::zeros, 4, 8, 0, nullptr},
    {"main", Fill::touch, 12, 12, 24, "fourth"},
    {"main", Fill::text, 100, 20, 20, "again"},
    {"side", Fill::text, 30, 10, 25, nullptr},
    {"side", Fill::touch, 0, 20, 26, "aside"},
    {"many", Fill::speckles, 0, 300, 40, "many-1"},
    {"many", Fill::speckles, 320, 300, 40, "many-2"},
    {"main", Fill::text, 90, 6, 27, nullptr},
    {"main", Fill::touch, 0, 6, 28, nullptr},
    {"main", Fill::zeros, 70, 3, 0, nullptr},
    {"side", Fill::touch, 40, 5, 29, nullptr},
};

// Recompressed packs, without pages that no version uses.
const Branch kSpaceBranches[] = {{"main", nullptr, 96, {}}};
const GoldenStep kSpaceSteps[] = {
    {"main", Fill::text, 0, 96, 30, "kept"},    {"main", Fill::text, 0, 40, 31, "removed"},
    {"main", Fill::touch, 0, 50, 32, nullptr},  {"main", Fill::text, 0, 37, 33, "late"},
    {"main", Fill::noise, 40, 10, 34, nullptr}, {"main", Fill::touch, 40, 30, 35, "later"},
    {"main", Fill::numbers, 0, 8, 36, "last"},
};

// Commits during the last checkpoint, which its base frame carries; and one more.
const Branch kBesideBranches[] = {{"main", nullptr, 96, {}}};
const GoldenStep kBesideSteps[] = {
    {"main", Fill::text, 0, 96, 50, "start"},      {"main", Fill::speckles, 0, 30, 51, nullptr},
    {"main", Fill::speckles, 20, 30, 52, nullptr}, {"main", Fill::speckles, 40, 30, 53, nullptr},
    {"main", Fill::speckles, 60, 30, 54, nullptr}, {"main", Fill::zeros, 90, 3, 0, nullptr},
    {"main", Fill::text, 91, 1, 57, nullptr},      {"main", Fill::touch, 7, 40, 58, nullptr},
};

// Content that moves within its pages, and to other pages.
const Branch kMovedBranches[] = {{"main", nullptr, 64, {}}};
const GoldenStep kMovedSteps[] = {
    {"main", Fill::noise, 0, 6, 60, "before"},
    {"main", Fill::further, 0, 6, 0, "moved"},
    {"main", Fill::further, 0, 6, 0, "again"},
    {"main", Fill::touch, 2, 3, 61, "touched"},
};

const History kHistories[] = {
    {"codecs", kCodecBranches, kCodecSteps},   {"history", kHistoryBranches, kHistorySteps},
    {"packs", kSpaceBranches, kSpaceSteps},    {"tiers", kSpaceBranches, kSpaceSteps},
    {"beside", kBesideBranches, kBesideSteps}, {"moved", kMovedBranches, kMovedSteps},
};

void put_text(std::span<std::byte> out, std::mt19937_64& random) {
  static constexpr const char* kWords[] = {"page ",    "block ",  "delta ",
                                           "journal ", "commit ", "of "};
  for (std::size_t at = 0; at < out.size();) {
    const char* word = kWords[random() % 6];
    for (; *word != '\0' && at < out.size(); ++word, ++at) out[at] = static_cast<std::byte>(*word);
  }
}

// Calls `word` for every word of 8 bytes, in order.
template <typename Word>
void put_words(std::span<std::byte> out, Word&& word) {
  for (std::size_t i = 0; i * 8 + 8 <= out.size(); ++i) {
    const auto value = static_cast<std::uint64_t>(word(i));
    std::memcpy(out.data() + i * 8, &value, sizeof value);
  }
}

std::uint64_t node_word(std::uint64_t i) {
  const std::uint64_t node = i / 6, field = i % 6;
  return field == 5 ? 1 : field == 4 ? node * 7919 : (node * 3 + field) << 20;
}

void put_fields(std::span<std::byte> out, std::mt19937_64& random) {
  std::uint64_t chance = 0;
  put_words(out, [&](std::size_t i) {
    if (i % 3 == 0) chance = random() % 256;
    return i % 3 == 0   ? 0x1234567000 + chance * 8
           : i % 3 == 1 ? 0xfedcba9000 - chance * chance
                        : random();
  });
}

void touch(std::span<std::byte> out, std::mt19937_64& random, int words) {
  for (std::size_t page = 0; page * kPageBytes < out.size(); ++page) {
    for (int k = 0; k < words; ++k) {
      const std::uint64_t at = random() % (kPageBytes / 8), value = random();
      std::memcpy(out.data() + page * kPageBytes + at * 8, &value, sizeof value);
    }
  }
}

}  // namespace

std::span<const History> histories() { return kHistories; }

void put(const GoldenStep& step, std::span<std::byte> region) {
  const auto out = region.subspan(step.page * kPageBytes, step.pages * kPageBytes);
  std::mt19937_64 random(step.seed);
  switch (step.fill) {
    case Fill::zeros:
      return put_words(out, [](std::size_t) { return 0; });
    case Fill::noise:
      return put_words(out, [&](std::size_t) { return random(); });
    case Fill::text:
      return put_text(out, random);
    case Fill::numbers:
      return put_words(out, [&](std::size_t) { return random() % 1'000'000; });
    case Fill::nodes:
      return put_words(out, [](std::size_t i) { return node_word(i); });
    case Fill::fields:
      return put_fields(out, random);
    case Fill::touch:
      return touch(out, random, 6);
    case Fill::speckles:
      return touch(out, random, 36);
    case Fill::further:
      std::rotate(out.begin(), out.begin() + 1000, out.end());
      return;
  }
}

std::map<std::string, Bytes> contents(const History& history) {
  std::map<std::string, Bytes> out;
  for (const GoldenStep& step : history.steps) {
    for (const Branch& branch : history.branches) {
      if (branch.name != std::string(step.branch)) continue;
      const Bytes start =
          branch.from != nullptr ? out.at(branch.from) : Bytes(branch.pages * kPageBytes);
      Bytes& now = out.try_emplace(branch.name, start).first->second;
      put(step, now);
      if (step.snapshot != nullptr) out[step.snapshot] = now;
    }
  }
  return out;
}

Bytes segment(std::uint64_t seed) {
  Bytes out(kSegmentBytes);
  std::mt19937_64 random(seed);
  put_text(out, random);
  return out;
}

std::string metadata(std::uint64_t seed) { return "objects " + std::to_string(seed * 17) + "\n"; }

Bytes atomic_content(std::uint64_t commits) {
  Bytes out(kAtomicBytes);
  for (std::uint64_t i = 1; i <= commits; ++i) {
    std::mt19937_64 random(i);
    const auto part = std::span(out).subspan(i * 4000, 6000);
    put_text(part, random);
  }
  return out;
}

namespace {

void put_identity(const std::string& path, KeySource& out) {
  base::Secret identity(base::kKeyBytes);
  std::ranges::fill(identity.bytes(), std::byte{'i'});
  out.recipient = base::bech32_encode("age", base::x25519_public(identity));
  out.identity_file = path;
  std::ofstream(path) << base::bech32_encode("age-secret-key-", identity.bytes()) << "\n";
}

}  // namespace

KeySource secret(KeySlot::Kind kind, const std::string& directory) {
  KeySource out;
  switch (kind) {
    case KeySlot::Kind::key_file:
      out.key_file = directory + "/key";
      std::ofstream(out.key_file) << std::string(40, 'k') << "\n";
      return out;
    case KeySlot::Kind::passphrase:
      out.passphrase_file = directory + "/passphrase";
      std::ofstream(out.passphrase_file) << "a golden passphrase\n";
      return out;
    case KeySlot::Kind::recipient:
      put_identity(directory + "/identity", out);
      return out;
    case KeySlot::Kind::command:
      out.command = "echo from a keyring";
      return out;
  }
  return out;
}

}  // namespace vellum::golden
