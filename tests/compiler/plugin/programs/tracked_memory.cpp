// The tracked memory of the test programs, and the code that checks it. Nothing here is
// instrumented.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "memory/cards/tracked_range.hpp"
#include "tracked.h"

namespace {

constexpr std::size_t kBytes = 128 << 10;
constexpr std::size_t kCards = kBytes / 64;

class Tracked {
 public:
  Tracked() : range_(kBytes), before_(kBytes) {
    if (mprotect(range_.data(), kBytes, PROT_READ | PROT_WRITE) != 0) std::abort();
  }

  char* begin() const { return reinterpret_cast<char*>(range_.data()); }

  void commit(const char* what, bool exact) {
    ++checks_;
    const std::vector<bool> marked = take();
    for (std::size_t card = 0; card < kCards; ++card) {
      const char* now = begin() + card * 64;
      const bool changed = std::memcmp(now, before_.data() + card * 64, 64) != 0;
      if (changed && !marked[card]) complain(what, "changed and not marked", card);
      if (!changed && marked[card] && exact) complain(what, "marked and not changed", card);
      if (changed) std::memcpy(before_.data() + card * 64, now, 64);
    }
  }
  void clear() {
    for (std::size_t card = 0; card < kCards; ++card) {
      if (std::memcmp(before_.data() + card * 64, zeros_, 64) == 0) continue;
      std::memset(begin() + card * 64, 0, 64);
      std::memset(before_.data() + card * 64, 0, 64);
    }
  }
  int end() const {
    std::printf("%zu checks, %zu complaints\n", checks_, complaints_);
    return complaints_ == 0 ? 0 : 1;
  }

 private:
  std::vector<bool> take() {
    std::vector<vellum::cards::MarkedPage> pages;
    range_.take(pages);
    std::vector<bool> marked(kCards);
    for (const auto& page : pages)
      for (std::size_t card = 0; card < 64; ++card)
        if ((page.cards >> card & 1) != 0) marked.at(page.page * std::size_t{64} + card) = true;
    return marked;
  }
  void complain(const char* what, const char* how, std::size_t card) {
    ++complaints_;
    if (++said_[std::string(what) + how] == 1) std::printf("%s: card %zu: %s\n", what, card, how);
  }

  vellum::cards::TrackedRange range_;
  std::vector<char> before_;
  std::map<std::string, int> said_;
  std::size_t checks_ = 0;
  std::size_t complaints_ = 0;
  char zeros_[64] = {};
};

Tracked& tracked() {
  static Tracked memory;
  return memory;
}

}  // namespace

char* tracked_begin() { return tracked().begin(); }
size_t tracked_bytes() { return kBytes; }
void tracked_commit(const char* what) { tracked().commit(what, false); }
void tracked_check(const char* what, int exact) {
  tracked().commit(what, exact != 0);
  tracked().clear();
}
int tracked_end() { return tracked().end(); }
unsigned tracked_random(unsigned limit) {
  static std::mt19937 random(1);  // NOLINT: the same run each time
  return static_cast<unsigned>(random() % limit);
}
