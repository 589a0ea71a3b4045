// bench/fams/peer_memory.cpp: the structures in memory without durability, and in a shared mapping
// of a file with msync(2), which is durable but not atomic.
//
//   volatile                        plain memory, compiled plainly
//   instrumented                    the same, compiled by vellum-clang++; outside of the window
//   instrumented-window             the same in the window; its marks are never collected
//   msync                           one call over all of the file: the kernel knows the dirty pages
//   msync-pages                     a call for each range of touched pages
//   msync-folios                    as msync, of a file that the page cache has in large folios, as
//                                   most files, not in 4 KiB pages
#include <algorithm>
#include <optional>

#include "arena.hpp"
#include "mapping.hpp"
#include "memory/cards/tracked_range.hpp"
#include "store_reports.hpp"
#include "structures.hpp"

namespace fams {

std::vector<std::uint64_t> touched_pages;

namespace {

constexpr std::uint64_t kAddress = 0x100000000000;

class Volatile final : public Store {
 public:
  explicit Volatile(const Setting& setting) {
    const std::uint64_t bytes = arena_bytes(setting.size);
    const bool window = setting.name == "instrumented-window";
    if (window) {
      tracked_.emplace((bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
      bench::check(::mprotect(tracked_->data(), bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
    } else {
      memory_.emplace(kAddress, bytes, -1);
    }
    const MakeStructure make = setting.name == "volatile" ? plain_structure
#ifdef FAMS_INSTRUMENTED
                                                          : instrumented_structure;
#else
                                                          : nullptr;
    if (make == nullptr) unsupported("no vellum-clang++ has compiled " + setting.name);
#endif
    structure_ = make(window ? tracked_->data() : memory_->data(), bytes, setting.size);
  }
  Structure& structure() override { return *structure_; }
  void commit() override {}
  void close() override {}
  void open() override {}

 private:
  std::optional<Mapping> memory_;
  std::optional<vellum::cards::TrackedRange> tracked_;
  std::unique_ptr<Structure> structure_;
};

class Msync final : public Store {
 public:
  explicit Msync(const Setting& setting) : setting_(setting) {
    if (setting.fresh) {
      make_dense_file(path(), arena_bytes(setting.size),
                      setting.name == "msync-folios" ? 1 << 20 : kPageBytes);
    }
    open();
  }
  Structure& structure() override { return *structure_; }

  void commit() override {
    const bool pages = setting_.name == "msync-pages";
    if (!pages) return sync(static_cast<char*>(memory_->data()), arena_bytes(setting_.size));
    std::sort(touched_pages.begin(), touched_pages.end());
    for (std::size_t i = 0; i < touched_pages.size();) {
      const std::uint64_t first = touched_pages[i];
      std::uint64_t end = first + 1;
      while (++i < touched_pages.size() && touched_pages[i] <= end) end = touched_pages[i] + 1;
      sync(reinterpret_cast<char*>(first * kPageBytes), (end - first) * kPageBytes);
    }
    touched_pages.clear();
  }

  void close() override {
    structure_.reset();
    memory_.reset();
  }
  void open() override {
    const int file = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    bench::check(file >= 0, path().c_str());
    const std::uint64_t bytes = arena_bytes(setting_.size);
    memory_.emplace(kAddress, bytes, file);
    ::close(file);
    const MakeStructure make = setting_.name == "msync-pages" ? noted_structure : plain_structure;
    structure_ = make(memory_->data(), bytes, setting_.size);
  }

 private:
  std::string path() const { return setting_.directory + "/arena"; }
  static void sync(void* address, std::uint64_t bytes) {
    bench::check(::msync(address, bytes, MS_SYNC) == 0, "msync");
  }

  Setting setting_;
  std::optional<Mapping> memory_;
  std::unique_ptr<Structure> structure_;
};

}  // namespace

std::unique_ptr<Store> make_volatile(const Setting& setting) {
  return std::make_unique<Volatile>(setting);
}
std::unique_ptr<Store> make_msync(const Setting& setting) {
  return std::make_unique<Msync>(setting);
}

}  // namespace fams
