// bench versions: the cost of old versions and of differences between versions.
//
// Old versions: a region full of integers and a snapshot after each step; a step changes 1 % of the
// pages, by one 8-byte store each or all of their bytes, new ones or those of other pages before,
// or 25 %, which gives every page a chain of deltas. New processes open the newest of these
// snapshots, a middle one, the oldest, and the one before the first step; their files are in the
// page cache. Each reads words at random positions, the same words again, and, in a separate
// process, all of the version. The peer: a full copy of the same version, opened by mmap.
//
// Whole versions: all 64 KiB chunks of a version in random order, cold and warm, compared with a
// full copy in the same order (lib/whole_versions.hpp).
//
// Readers of one version: eight processes read all of it, with and without sharing its pages
// (lib/shared_versions.hpp).
//
// Differences: neighbours that differ in 26 pages, in 1 % of the region, and in all pages (one
// 8-byte store each), and the same numbers of pages in a region of a quarter of the size. The peer:
// memcmp, page by page, of two full copies in memory.
//
//   bench_versions [--json FILE] [--dir DIR] [--mib 256] [--snapshots 40] [--reads 100000]
//                  [--rounds 3] [--only reads|whole|shared|differences]
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/copies.hpp"
#include "lib/open_version.hpp"
#include "lib/report.hpp"
#include "lib/shared_versions.hpp"
#include "lib/whole_versions.hpp"
#include "lib/workload.hpp"

namespace {

struct Size {
  std::size_t bytes;
  std::size_t pages() const { return bytes / bench::kPageBytes; }
};

struct Times {
  double open_us = 0, read_us = 0, again_us = 0, scan_s = 0;
};

double seconds_of_reads(std::span<const std::byte> bytes, std::size_t reads) {
  std::mt19937_64 random(3);
  std::uint64_t total = 0;
  const auto start = bench::Clock::now();
  for (std::size_t i = 0; i < reads; ++i) {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + random() % (bytes.size() / 8) * 8, sizeof value);
    total += value;
  }
  const double seconds = bench::seconds_since(start);
  volatile std::uint64_t kept = total;
  (void)kept;
  return seconds;
}

double seconds_of_scan(std::span<const std::byte> bytes) {
  const auto start = bench::Clock::now();
  volatile std::uint64_t total = bench::sum(bytes);
  (void)total;
  return bench::seconds_since(start);
}

// `Source`: bench::OpenVersion or MappedCopy.
template <typename Source, typename... Name>
Times read_in_children(std::size_t reads, const Name&... name) {
  Times times = bench::in_child([&] {
    Times out;
    const auto start = bench::Clock::now();
    const Source source(name...);
    volatile std::byte first = source.bytes().front();
    (void)first;
    out.open_us = bench::seconds_since(start) * 1e6;
    const auto of_reads = static_cast<double>(reads);
    out.read_us = seconds_of_reads(source.bytes(), reads) / of_reads * 1e6;
    out.again_us = seconds_of_reads(source.bytes(), reads) / of_reads * 1e6;
    return out;
  });
  times.scan_s = bench::in_child([&] { return seconds_of_scan(Source(name...).bytes()); });
  return times;
}

struct Pattern {
  bench::Update update;
  std::size_t percent;
  std::string name() const { return fmt::format("{} ({} %)", bench::update_name(update), percent); }
};

struct Read {
  std::string version;
  std::vector<Times> vellum, copy;
  double median(double Times::* field) const { return bench::median_of(vellum, field); }
  double copied(double Times::* field) const { return bench::median_of(copy, field); }
};

// The newest first.
std::vector<Read> read_versions(const bench::Options& options, Size size, const Pattern& pattern) {
  const std::size_t snapshots = options.number("snapshots", 40);
  const std::size_t reads = options.number("reads", 100'000);
  const std::string path = options.scratch() + "/store";
  bench::make_history(
      path, {pattern.update, size.bytes, size.pages() * pattern.percent / 100, snapshots});
  std::vector<Read> out;
  const auto file_of = [&](const Read& read) { return path + "-copy-" + read.version; };
  for (const std::size_t i : {snapshots, snapshots / 2, std::size_t{1}, std::size_t{0}}) {
    out.push_back({std::to_string(i), {}, {}});
    vellum::Store::open(path).export_file(out.back().version, file_of(out.back()));
  }
  // Alternating, to expose all to the same disturbances.
  for (std::uint64_t round = 0; round < options.number("rounds", 3); ++round) {
    for (Read& read : out) {
      read.vellum.push_back(read_in_children<bench::OpenVersion>(reads, path, read.version));
      read.copy.push_back(read_in_children<bench::MappedCopy>(reads, file_of(read)));
    }
  }
  for (const Read& read : out) std::filesystem::remove(file_of(read));
  std::filesystem::remove_all(path);
  return out;
}

// `reads`: of all versions, the newest first, the one before the first step last.
void report_read(bench::Table& table, bench::Report& report, const std::string& pattern,
                 const Read& read, const std::vector<Read>& reads) {
  const double read_us = read.median(&Times::read_us);
  const double copy_us = read.copied(&Times::read_us);
  const std::string name = fmt::format("{}, version {}", pattern, read.version);
  table.row(
      {name, bench::fixed(read.median(&Times::open_us), 0), bench::fixed(read_us, 3),
       bench::fixed(read.median(&Times::again_us), 3), bench::fixed(read.median(&Times::scan_s), 3),
       bench::fixed(read.copied(&Times::open_us), 0), bench::fixed(copy_us, 3),
       bench::fixed(read.copied(&Times::again_us), 3), bench::fixed(read.copied(&Times::scan_s), 3),
       bench::fixed(read_us / reads.front().median(&Times::read_us), 2),
       bench::fixed(read_us / reads.back().median(&Times::read_us), 2),
       bench::fixed(read_us / copy_us, 1)});
  for (const auto& [field, of] : {std::pair{"open_us", &Times::open_us},
                                  {"read_us", &Times::read_us},
                                  {"again_us", &Times::again_us},
                                  {"scan_s", &Times::scan_s}}) {
    report.figure(fmt::format("{}, {}", name, field), read.median(of));
    report.figure(fmt::format("{}, full copy, {}", name, field), read.copied(of));
  }
}

void run_old_versions(const bench::Options& options, Size size, bench::Report& report) {
  bench::Table table({"changed by each snapshot", "open us", "us a read", "again", "scan s",
                      "full copy: open us", "us a read", "again", "scan s", "read / newest",
                      "/ version 0", "/ copy"});
  for (const auto& pattern : {Pattern{bench::Update::words, 1}, Pattern{bench::Update::words, 25},
                              Pattern{bench::Update::counters, 1}, Pattern{bench::Update::pages, 1},
                              Pattern{bench::Update::moved, 1}}) {
    const std::vector<Read> reads = read_versions(options, size, pattern);
    double worst = 0;
    for (const Read& read : reads) {
      report_read(table, report, pattern.name(), read, reads);
      worst = std::max(worst, read.median(&Times::read_us) / reads[0].median(&Times::read_us));
    }
    report.target(pattern.name() + ": random reads, old version / newest", worst, 2);
  }
  table.print();
}

struct DiffTimes {
  double first_s = 0, again_s = 0, pages = 0;
};

DiffTimes diff_in_child(const std::string& path, const std::string& a, const std::string& b) {
  return bench::in_child([&] {
    DiffTimes out;
    const auto store = vellum::Store::open(path);
    auto start = bench::Clock::now();
    out.pages = static_cast<double>(store.diff(a, b, nullptr).pages_different);
    out.first_s = bench::seconds_since(start);
    start = bench::Clock::now();
    store.diff(a, b, nullptr);
    out.again_s = bench::seconds_since(start);
    return out;
  });
}

std::size_t pages_different(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::size_t different = 0;
  for (std::size_t at = 0; at < a.size(); at += bench::kPageBytes) {
    if (std::memcmp(a.data() + at, b.data() + at, bench::kPageBytes) != 0) ++different;
  }
  return different;
}

DiffTimes compare_in_child(const std::string& a, const std::string& b) {
  return bench::in_child([&] {
    DiffTimes out;
    const bench::MappedCopy copy_a(a), copy_b(b);
    auto start = bench::Clock::now();
    out.pages = static_cast<double>(pages_different(copy_a.bytes(), copy_b.bytes()));
    out.first_s = bench::seconds_since(start);
    start = bench::Clock::now();
    volatile std::size_t again = pages_different(copy_a.bytes(), copy_b.bytes());
    (void)again;
    out.again_s = bench::seconds_since(start);
    return out;
  });
}

struct Difference {
  std::size_t pages = 0;
  std::vector<DiffTimes> vellum, copies;
};

// One after the other, each from the version before it.
std::vector<Difference> diff_neighbours(const bench::Options& options, Size size,
                                        const std::vector<std::size_t>& page_counts) {
  const std::string path = options.scratch() + "/diffs";
  std::vector<Difference> out;
  {
    auto store = vellum::Store::create(path);
    auto region = store.create_region("main", size.bytes);
    auto* const base = static_cast<std::byte*>(region.data());
    bench::fill_with_integers({base, size.bytes}, 1);
    region.snapshot("0");
    std::mt19937_64 random(5);
    for (const std::size_t pages : page_counts) {
      bench::store_into(base, bench::pick_pages(random, size.pages(), pages), random);
      out.push_back({pages, {}, {}});
      region.snapshot(std::to_string(out.size()));
    }
  }
  const auto file_of = [&](std::size_t version) { return fmt::format("{}-{}", path, version); };
  const auto export_version = [&](std::size_t version) {
    vellum::Store::open(path).export_file(std::to_string(version), file_of(version));
  };
  export_version(0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    export_version(i + 1);
    for (std::uint64_t round = 0; round < options.number("rounds", 3); ++round) {
      out[i].vellum.push_back(diff_in_child(path, std::to_string(i), std::to_string(i + 1)));
      out[i].copies.push_back(compare_in_child(file_of(i), file_of(i + 1)));
      if (out[i].vellum.back().pages != out[i].copies.back().pages) {
        throw std::runtime_error("diff and memcmp do not agree");
      }
    }
    std::filesystem::remove(file_of(i));
  }
  std::filesystem::remove(file_of(out.size()));
  std::filesystem::remove_all(path);
  return out;
}

// Returns the seconds of the first diff.
double report_difference(bench::Table& table, bench::Report& report, Size size,
                         const Difference& d) {
  const double first = bench::median_of(d.vellum, &DiffTimes::first_s);
  const double again = bench::median_of(d.vellum, &DiffTimes::again_s);
  const double copies = bench::median_of(d.copies, &DiffTimes::again_s);
  const std::string name = fmt::format("{} of {} pages", d.pages, size.pages());
  table.row({name, bench::fixed(first * 1e3, 2),
             bench::fixed(first / static_cast<double>(d.pages) * 1e6, 1),
             bench::fixed(again * 1e3, 2), bench::fixed(copies * 1e3, 2),
             fmt::format("{:.3g}", first / copies)});
  report.figure(name + ", diff_s", first);
  report.figure(name + ", diff_again_s", again);
  report.figure(name + ", memcmp_s", copies);
  return first;
}

void run_differences(const bench::Options& options, Size size, bench::Report& report) {
  const Size quarter{size.bytes / 4};
  const std::size_t one_percent = size.pages() / 100;
  bench::Table table(
      {"pages that differ", "diff ms", "us a page", "again ms", "memcmp ms", "diff / memcmp"});
  const auto in_large = diff_neighbours(options, size, {26, one_percent, size.pages()});
  const auto in_quarter = diff_neighbours(options, quarter, {26, one_percent, quarter.pages()});
  for (std::size_t i = 0; i < in_large.size(); ++i) {
    const double small_s = report_difference(table, report, quarter, in_quarter[i]);
    const double large_s = report_difference(table, report, size, in_large[i]);
    if (in_large[i].pages != in_quarter[i].pages) continue;
    report.target(fmt::format("diff of {} pages: region / a quarter of it", in_large[i].pages),
                  large_s / small_s, 1.5);
  }
  fmt::print("\n");
  table.print();
}

void run(const bench::Options& options) {
  const Size size{options.number("mib", 256) << 20};
  if (size.pages() < 10'400) throw std::runtime_error("--mib: 41 or more");
  bench::Report report("versions");
  const std::string only = options.text("only", "");
  if (only.empty() || only == "reads") run_old_versions(options, size, report);
  if (only.empty() || only == "whole") bench::run_whole_versions(options, report);
  if (only.empty() || only == "shared") bench::run_shared_versions(options, report);
  if (only.empty() || only == "differences") run_differences(options, size, report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("versions", argc, argv, run); }
