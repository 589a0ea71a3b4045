// bench keys: what encryption costs in a local store.
//
// A plain and an encrypted store (one key slot, a key file) with the same content take turns: an
// import of a file of integers; commits of 64 8-byte stores; snapshots after a store to 1 % of the
// pages; and, in a new process each time, opening the last snapshot and reading all of it, with the
// store's files in the page cache. The ratio is that of the medians.
//
//   bench_keys [--json FILE] [--dir DIR] [--mib 256] [--rounds 200] [--snapshots 20] [--readers 7]
#include <fmt/format.h>

#include <fstream>
#include <vellum/key.hpp>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/report.hpp"
#include "lib/side.hpp"
#include "lib/workload.hpp"

namespace {

struct Opened {
  double open_ms = 0, read_ms = 0;
};

Opened open_and_read(const std::string& store_path, const std::string& version) {
  Opened out;
  auto start = bench::Clock::now();
  auto store = vellum::Store::open(store_path);
  const auto region = store.open_version(version);
  const std::span bytes(static_cast<const std::byte*>(region.data()), region.size_bytes());
  volatile std::byte first = bytes.front();
  static_cast<void>(first);
  out.open_ms = bench::seconds_since(start) * 1e3;
  start = bench::Clock::now();
  volatile std::uint64_t total = bench::sum(bytes);
  static_cast<void>(total);
  out.read_ms = bench::seconds_since(start) * 1e3;
  return out;
}

bench::Side make_side(const bench::Options& options, bool encrypted) {
  vellum::StoreOptions how;
  how.encrypt = encrypted;
  if (encrypted) how.key = vellum::key_source();
  const std::string path = options.scratch() + (encrypted ? "/encrypted" : "/plain");
  return {vellum::Store::create(path, how)};
}

void use_a_key_file(const std::string& path) {
  std::ofstream(path) << std::string(64, 'k');
  vellum::KeySource source;
  source.key_file = path;
  vellum::set_key_source(source);
}

void import_files(std::span<bench::Side> sides, const bench::Options& options, std::size_t bytes) {
  const std::string file = options.scratch() + "/integers";
  std::vector<std::byte> content(bytes);
  bench::fill_with_integers(content, 2);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
  for (int i = 0; i < 3; ++i) {
    for (bench::Side& side : sides) {
      side.measure("import", [&] { side.store.import_file("file" + std::to_string(i), file, ""); });
    }
  }
}

void write_versions(std::span<bench::Side> sides, const bench::Options& options,
                    std::size_t bytes) {
  const std::size_t pages = bytes / bench::kPageBytes;
  for (bench::Side& side : sides) {
    side.region = std::make_unique<vellum::Region>(side.store.create_region("main", bytes));
    bench::fill_with_integers({static_cast<std::byte*>(side.region->data()), bytes}, 1);
    side.region->snapshot("filled");
  }
  const auto store_into = [&](bench::Side& side, std::size_t round, std::size_t count) {
    std::mt19937_64 random(round);
    bench::store_into(static_cast<std::byte*>(side.region->data()),
                      bench::pick_pages(random, pages, count), random);
  };
  for (std::size_t i = 0; i < options.number("rounds", 200); ++i) {
    for (bench::Side& side : sides) {
      store_into(side, i, 64);
      side.measure("commit of 64 stores", [&] { side.region->commit(); });
    }
  }
  for (std::size_t i = 0; i < options.number("snapshots", 20); ++i) {
    for (bench::Side& side : sides) {
      store_into(side, 1000 + i, pages / 100);
      side.measure("snapshot of 1 %", [&] { side.region->snapshot("s" + std::to_string(i)); });
    }
  }
  for (bench::Side& side : sides) side.region.reset();
}

void read_versions(std::span<bench::Side> sides, const bench::Options& options) {
  const std::string last = "s" + std::to_string(options.number("snapshots", 20) - 1);
  for (std::size_t i = 0; i < options.number("readers", 7); ++i) {
    for (bench::Side& side : sides) {
      const auto opened = bench::in_child([&] { return open_and_read(side.store.path(), last); });
      side.ms["open"].push_back(opened.open_ms);
      side.ms["read all"].push_back(opened.read_ms);
    }
  }
}

void run(const bench::Options& options) {
  bench::prefer_this_process();
  const std::size_t bytes = options.number("mib", 256) << 20;
  use_a_key_file(options.scratch() + "/key");
  bench::Side sides[] = {make_side(options, false), make_side(options, true)};
  import_files(sides, options, bytes);
  write_versions(sides, options, bytes);
  read_versions(sides, options);

  bench::Report report("keys");
  bench::Table table({"ms, p50", "plain", "encrypted", "ratio"});
  const auto compare = [&](const std::string& name, double plain, double encrypted, double target) {
    const double ratio = encrypted / plain;
    table.row({name, bench::fixed(plain, 3), bench::fixed(encrypted, 3), bench::fixed(ratio, 3)});
    report.figure(name + ", plain", plain);
    report.figure(name + ", encrypted", encrypted);
    if (target > 0) report.target(name + ", encrypted / plain", ratio, target);
  };
  for (const auto& [name, target] : {std::pair{"import", 0.0},
                                     {"commit of 64 stores", 1.03},
                                     {"snapshot of 1 %", 1.05},
                                     {"open", 0.0},
                                     {"read all", 1.10}}) {
    compare(name, bench::percentile(sides[0].ms[name], 50),
            bench::percentile(sides[1].ms[name], 50), target);
  }
  const auto mib = [](const bench::Side& side) {
    return static_cast<double>(side.store.stat().stored_bytes) / (1 << 20);
  };
  compare("MiB stored", mib(sides[0]), mib(sides[1]), 1.02);
  fmt::print("{} MiB\n\n", bytes >> 20);
  table.print();
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("keys", argc, argv, run); }
