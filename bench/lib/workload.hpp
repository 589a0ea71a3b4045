// bench/lib/workload.hpp: content and stores that the benchmarks share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>
#include <vellum/region.hpp>

namespace bench {

inline constexpr std::size_t kPageBytes = 4096;

// 64-bit integers below 2^22, like ids and counters; zstd compresses them to about a third.
void fill_with_integers(std::span<std::byte> bytes, std::uint64_t seed);

// `count` different pages out of `pages`, in random order.
std::vector<std::uint64_t> pick_pages(std::mt19937_64& random, std::uint64_t pages,
                                      std::size_t count);

// One 8-byte store at a random aligned offset of each page.
void store_into(std::byte* base, std::span<const std::uint64_t> pages, std::mt19937_64& random);
// The same, and each store is marked (vellum/cards.h), as code of vellum-clang does.
void store_and_mark(std::byte* base, std::span<const std::uint64_t> pages, std::mt19937_64& random);

// One step's stores to some pages of a region: an 8-byte store each, at random offsets; the same
// words of the same pages incremented; the same 512 bytes of the same pages written; random pages
// written whole; the same pages written whole; random pages that get the content of the previous
// step's pages, slightly shifted.
enum class Update { words, counters, same_lines, pages, same_pages, moved };
const char* update_name(Update update) noexcept;

// Steps of one kind. Equal arguments give equal steps.
class Updates {
 public:
  Updates(Update update, std::uint64_t region_pages, std::size_t pages_a_step)
      : update_(update), region_pages_(region_pages), pages_a_step_(pages_a_step) {}
  void step(std::byte* base);

 private:
  void move_to(std::byte* base, std::span<const std::uint64_t> pages);

  Update update_;
  std::uint64_t region_pages_;
  std::size_t pages_a_step_;
  std::mt19937_64 random_{7};
  std::vector<std::uint64_t> picked_;
};

// A new store, branch `main`: integers, snapshot "0", and then `steps` updates with a snapshot,
// called by its step's number, after every `snapshot_every` of them.
struct History {
  Update update;
  std::size_t bytes;
  std::size_t pages_a_step;
  std::size_t steps;
  std::size_t snapshot_every = 1;
};
void make_history(const std::string& path, const History& history);

// automatic, uffd, sigsegv or mapped; anything else throws.
vellum::Engine engine_named(const std::string& name);
// "all", or one of uffd, sigsegv and mapped; anything else throws.
std::vector<vellum::Engine> engines_named(const std::string& name);

// Reads all of it; the sum prevents the compiler from dropping the reads.
std::uint64_t sum(std::span<const std::byte> bytes);

}  // namespace bench
