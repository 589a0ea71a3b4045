#include "soak/resources_lib.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/sanitizers.hpp"

namespace vellum::test {
namespace {

std::uint64_t entries_of(const char* directory) {
  return static_cast<std::uint64_t>(
      std::distance(std::filesystem::directory_iterator(directory), {}));
}

std::uint64_t lines_of(const char* file) {
  std::ifstream in(file);
  return static_cast<std::uint64_t>(
      std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}

std::uint64_t resident_kib() {
  std::ifstream in("/proc/self/smaps_rollup");
  std::string word;
  std::uint64_t kib = 0;
  while (in >> word) {
    if (word == "Rss:" && in >> kib) return kib;
  }
  return 0;
}

std::uint64_t heap_kib() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  if (kSanitizer) return 0;
  const auto info = mallinfo2();
  return (info.uordblks + info.hblkhd) / 1024;
#else
  return 0;
#endif
}

struct Field {
  const char* name;
  std::uint64_t Resources::* of;
  double Tolerance::* tolerance;
  bool by_share;
};
constexpr Field kFields[] = {
    {"resident KiB", &Resources::resident_kib, &Tolerance::resident_kib, true},
    {"heap KiB", &Resources::heap_kib, &Tolerance::heap_kib, false},
    {"mappings", &Resources::mappings, &Tolerance::mappings, true},
    {"descriptors", &Resources::descriptors, &Tolerance::descriptors, true},
    {"threads", &Resources::threads, &Tolerance::threads, false},
    {"KiB of the store", &Resources::store_kib, &Tolerance::store_kib, true}};

}  // namespace

Resources Resources::now() {
  Resources out;
  out.resident_kib = ::vellum::test::resident_kib();
  out.heap_kib = ::vellum::test::heap_kib();
  out.mappings = lines_of("/proc/self/maps");
  out.descriptors = entries_of("/proc/self/fd");
  out.threads = entries_of("/proc/self/task");
  return out;
}

Resources Resources::now(const std::string& store_directory) {
  Resources out = now();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store_directory)) {
    struct stat status{};
    if (stat(entry.path().c_str(), &status) != 0) continue;
    out.store_kib += static_cast<std::uint64_t>(status.st_blocks) / 2;
  }
  return out;
}

std::string Resources::to_string() const {
  const auto mib = [](std::uint64_t kib) { return static_cast<double>(kib) / 1024; };
  std::string out =
      fmt::format("{:.1f} MiB resident, {:.1f} MiB heap, {} mappings, {} descriptors, {} threads",
                  mib(resident_kib), mib(heap_kib), mappings, descriptors, threads);
  if (store_kib > 0) out += fmt::format(", {:.1f} MiB on the disk", mib(store_kib));
  return out;
}

void Trend::add(const Resources& sample) {
  if (seen_++ % step_ != 0) return;
  if (kept_.size() == kMax) {
    for (std::size_t i = 0; i < kMax / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(kMax / 2);
    step_ *= 2;
    if ((seen_ - 1) % step_ != 0) return;
  }
  kept_.push_back(sample);
}

Resources Trend::median(std::size_t quarter) const {
  const auto at = [&](std::size_t which) {
    return kept_.begin() + static_cast<std::ptrdiff_t>(kept_.size() * which / 4);
  };
  const std::vector<Resources> kept(at(quarter), at(quarter + 1));
  Resources out;
  for (const Field& field : kFields) {
    std::vector<std::uint64_t> values;
    values.reserve(kept.size());
    for (const Resources& sample : kept) values.push_back(sample.*field.of);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    out.*field.of = *middle;
  }
  return out;
}

std::vector<std::string> Trend::growth(const Tolerance& tolerance) const {
  std::vector<std::string> out;
  if (kept_.size() < 4) return {"not tested: fewer than four samples"};
  const Resources before = median(1), after = median(3);
  for (const Field& field : kFields) {
    const auto was = static_cast<double>(before.*field.of);
    const double limit =
        was + tolerance.*field.tolerance + (field.by_share ? was * tolerance.share : 0);
    if (static_cast<double>(after.*field.of) > limit) {
      out.push_back(fmt::format("{}: {} in the second quarter, {} in the last (more than {:.0f})",
                                field.name, before.*field.of, after.*field.of, limit));
    }
  }
  return out;
}

std::string Trend::to_string() const {
  std::string out;
  for (std::size_t quarter = 0; quarter < 4 && kept_.size() >= 4; ++quarter) {
    out += fmt::format("  quarter {}: {}\n", quarter + 1, median(quarter).to_string());
  }
  return out;
}

}  // namespace vellum::test
