#include "lib/workload.hpp"

#include <vellum/cards.h>
#include <cstring>
#include <stdexcept>
#include <unordered_set>
#include <vellum/store.hpp>

namespace bench {

void fill_with_integers(std::span<std::byte> bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const std::uint64_t value = random() >> 42;
    std::memcpy(bytes.data() + i, &value, sizeof value);
  }
}

std::vector<std::uint64_t> pick_pages(std::mt19937_64& random, std::uint64_t pages,
                                      std::size_t count) {
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::uint64_t> picked;
  while (picked.size() < count) {
    const std::uint64_t page = random() % pages;
    if (seen.insert(page).second) picked.push_back(page);
  }
  return picked;
}

void store_into(std::byte* base, std::span<const std::uint64_t> pages, std::mt19937_64& random) {
  for (const std::uint64_t page : pages) {
    const std::uint64_t value = random();
    const std::size_t offset = (value >> 55) * 8;
    std::memcpy(base + page * kPageBytes + offset, &value, sizeof value);
  }
}

void store_and_mark(std::byte* base, std::span<const std::uint64_t> pages,
                    std::mt19937_64& random) {
  for (const std::uint64_t page : pages) {
    const std::uint64_t value = random();
    std::byte* const at = base + page * kPageBytes + (value >> 55) * 8;
    std::memcpy(at, &value, sizeof value);
    vellum_mark(at, sizeof value);
  }
}

const char* update_name(Update update) noexcept {
  switch (update) {
    case Update::words:
      return "a word of random pages";
    case Update::counters:
      return "the same words";
    case Update::same_lines:
      return "the same 512 bytes of pages";
    case Update::pages:
      return "random pages, whole";
    case Update::same_pages:
      return "the same pages, whole";
    case Update::moved:
      return "random pages, by content that moves";
  }
  return "?";
}

namespace {

void count_up(std::byte* at) {
  std::uint64_t count;
  std::memcpy(&count, at, sizeof count);
  ++count;
  std::memcpy(at, &count, sizeof count);
}

}  // namespace

// Receive the content of the picked pages; each gets a different end.
void Updates::move_to(std::byte* base, std::span<const std::uint64_t> pages) {
  constexpr std::size_t kMoveBytes = 1000;
  std::vector<std::byte> content(picked_.size() * kPageBytes);
  for (std::size_t i = 0; i < picked_.size(); ++i) {
    std::memcpy(content.data() + i * kPageBytes, base + picked_[i] * kPageBytes, kPageBytes);
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::byte* const at = base + pages[i] * kPageBytes;
    std::memcpy(at, content.data() + i * kPageBytes + kMoveBytes, kPageBytes - kMoveBytes);
    fill_with_integers({at + kPageBytes - kMoveBytes, kMoveBytes}, random_());
  }
}

void Updates::step(std::byte* base) {
  if (update_ == Update::moved && !picked_.empty()) {
    auto pages = pick_pages(random_, region_pages_, pages_a_step_);
    move_to(base, pages);
    picked_ = std::move(pages);
    return;
  }
  const bool same =
      update_ == Update::counters || update_ == Update::same_lines || update_ == Update::same_pages;
  if (!same || picked_.empty()) picked_ = pick_pages(random_, region_pages_, pages_a_step_);
  if (update_ == Update::words) return store_into(base, picked_, random_);
  for (const std::uint64_t page : picked_) {
    std::byte* const at = base + page * kPageBytes;
    if (update_ == Update::counters) {
      count_up(at + page % 512 * 8);
    } else {
      fill_with_integers({at, update_ == Update::same_lines ? 512 : kPageBytes}, random_());
    }
  }
}

void make_history(const std::string& path, const History& history) {
  auto store = vellum::Store::create(path);
  auto region = store.create_region("main", history.bytes);
  auto* const base = static_cast<std::byte*>(region.data());
  fill_with_integers({base, history.bytes}, 1);
  region.snapshot("0");
  Updates updates(history.update, history.bytes / kPageBytes, history.pages_a_step);
  for (std::size_t step = 1; step <= history.steps; ++step) {
    updates.step(base);
    if (step % history.snapshot_every == 0) region.snapshot(std::to_string(step));
  }
}

vellum::Engine engine_named(const std::string& name) {
  for (const auto engine : {vellum::Engine::automatic, vellum::Engine::uffd,
                            vellum::Engine::sigsegv, vellum::Engine::mapped}) {
    if (name == vellum::engine_name(engine)) return engine;
  }
  throw std::runtime_error("no engine '" + name + "': automatic, uffd, sigsegv or mapped");
}

std::vector<vellum::Engine> engines_named(const std::string& name) {
  if (name != "all") return {engine_named(name)};
  return {vellum::Engine::uffd, vellum::Engine::sigsegv, vellum::Engine::mapped};
}

std::uint64_t sum(std::span<const std::byte> bytes) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    total += value;
  }
  return total;
}

}  // namespace bench
