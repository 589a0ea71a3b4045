#include "lib/whole_versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <span>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/copies.hpp"
#include "lib/memory_group.hpp"
#include "lib/open_version.hpp"
#include "lib/processor_seconds.hpp"
#include "lib/workload.hpp"

namespace bench {
namespace {

constexpr std::size_t kChunkBytes = 64u << 10;

struct Pattern {
  Update update;
  std::size_t percent;
};

struct Times {
  double cold_s = 0, warm_s = 0, again_s = 0, prefetch_s = 0, processor_s = 0;
};

std::uint64_t sum_in_random_order(std::span<const std::byte> bytes) {
  std::vector<std::size_t> chunks(bytes.size() / kChunkBytes);
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  std::shuffle(chunks.begin(), chunks.end(), std::mt19937_64(11));
  std::uint64_t total = 0;
  for (const std::size_t chunk : chunks) {
    total += sum(bytes.subspan(chunk * kChunkBytes, kChunkBytes));
  }
  return total;
}

struct Read {
  double first_s = 0, again_s = 0, processor_s = 0;
  std::uint64_t total = 0;
};

// `Source`: OpenVersion or MappedCopy.
template <typename Source, typename... Name>
Read read_in_child(const Name&... name) {
  return in_child([&] {
    Read out;
    const double processor = processor_seconds();
    auto start = Clock::now();
    const Source source(name...);
    out.total = sum_in_random_order(source.bytes());
    out.first_s = seconds_since(start);
    out.processor_s = processor_seconds() - processor;
    start = Clock::now();
    if (sum_in_random_order(source.bytes()) != out.total) throw std::runtime_error("not the same");
    out.again_s = seconds_since(start);
    return out;
  });
}

template <typename Source, typename... Name>
Times cold_and_warm(const std::string& files, std::uint64_t& total, const Name&... name) {
  Times out;
  drop_from_cache(files);
  out.cold_s = read_in_child<Source>(name...).first_s;
  const Read warm = read_in_child<Source>(name...);
  out.warm_s = warm.first_s;
  out.again_s = warm.again_s;
  out.processor_s = warm.processor_s;
  total = warm.total;
  return out;
}

double prefetch_in_child(const std::string& path, const std::string& version) {
  return in_child([&] {
    const auto start = Clock::now();
    const OpenVersion source(path, version);
    source.region.prefetch(source.region.whole());
    return seconds_since(start);
  });
}

void report_version(Table& table, Report& report, const std::string& name,
                    const std::vector<Times>& vellum, const std::vector<Times>& copy) {
  const auto of = [&](double Times::* field) { return median_of(vellum, field); };
  const auto copied = [&](double Times::* field) { return median_of(copy, field); };
  const double cold = of(&Times::cold_s) / copied(&Times::cold_s);
  const double warm = of(&Times::warm_s) / copied(&Times::warm_s);
  const auto ms = [](double seconds) { return fixed(seconds * 1e3, 1); };
  table.row({name, ms(of(&Times::cold_s)), ms(copied(&Times::cold_s)), fixed(cold, 2),
             ms(of(&Times::warm_s)), ms(copied(&Times::warm_s)), fixed(warm, 2),
             ms(of(&Times::processor_s)), ms(of(&Times::again_s)), ms(copied(&Times::again_s)),
             ms(of(&Times::prefetch_s))});
  for (const auto& [field, at] : {std::pair{"cold_s", &Times::cold_s},
                                  {"warm_s", &Times::warm_s},
                                  {"again_s", &Times::again_s},
                                  {"prefetch_s", &Times::prefetch_s}}) {
    report.figure(fmt::format("{}, chunks at random, {}", name, field), of(at));
    report.figure(fmt::format("{}, chunks at random, full copy, {}", name, field), copied(at));
  }
  report.target(name + ": all chunks at random, cold / copy", cold, 2);
  report.target(name + ": all chunks at random, warm / copy", warm, 3);
}

void run_pattern(const Options& options, const Pattern& pattern, Table& table, Report& report) {
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::size_t snapshots = options.number("snapshots", 40);
  const std::string path = options.scratch() + "/whole";
  make_history(path,
               {pattern.update, bytes, bytes / kPageBytes * pattern.percent / 100, snapshots});
  for (const std::size_t version : {snapshots, snapshots / 2}) {
    const std::string name = std::to_string(version), copy = path + "-copy";
    vellum::Store::open(path).export_file(name, copy);
    std::vector<Times> vellum, copies;
    for (std::uint64_t round = 0; round < options.number("rounds", 3); ++round) {
      std::uint64_t total = 0, copied = 0;
      vellum.push_back(cold_and_warm<OpenVersion>(path, total, path, name));
      vellum.back().prefetch_s = prefetch_in_child(path, name);
      copies.push_back(cold_and_warm<MappedCopy>(copy, copied, copy));
      if (total != copied) throw std::runtime_error("the version and its copy differ");
    }
    report_version(
        table, report,
        fmt::format("{} ({} %), version {}", update_name(pattern.update), pattern.percent, version),
        vellum, copies);
    std::filesystem::remove(copy);
  }
  std::filesystem::remove_all(path);
}

}  // namespace

void run_whole_versions(const Options& options, Report& report) {
  Table table({"all chunks at random, ms", "cold", "copy", "ratio", "warm", "copy", "ratio",
               "processor", "again", "copy", "prefetch()"});
  for (const auto& pattern : {Pattern{Update::words, 1}, Pattern{Update::words, 25},
                              Pattern{Update::pages, 1}, Pattern{Update::pages, 25}}) {
    run_pattern(options, pattern, table, report);
  }
  fmt::print("\n");
  table.print();
}

}  // namespace bench
