// bench signing: what a signature costs.
//
// Two plain stores with the same content take turns: snapshots after a store to 1 % of the pages, and
// after a store to one page, in one of them signed. Then one check of all signed versions, and a
// proof of one page. The ratio is that of the medians.
//
//   bench_signing [--json FILE] [--dir DIR] [--mib 256] [--snapshots 20]
#include <fmt/format.h>

#include <fstream>
#include <vellum/signature.hpp>
#include <vellum/store.hpp>

#include "lib/report.hpp"
#include "lib/side.hpp"
#include "lib/workload.hpp"

namespace {

std::string write_key(const std::string& file) {
  std::ofstream(file) << "-----BEGIN PRIVATE KEY-----\n"
                         "MC4CAQAwBQYDK2VwBCIEIJ9wW8wYGFVVtx6Ta9zqPhuVmScgjF42egHLIKVjO/3X\n"
                         "-----END PRIVATE KEY-----\n";
  return file;
}

void snapshot(bench::Side& side, const std::string& what, const std::string& name) {
  vellum::set_sign_key_file(side.key_file);
  side.measure(what, [&] { side.region->snapshot(name); });
}

void write_versions(std::span<bench::Side> sides, const bench::Options& options,
                    std::size_t bytes) {
  const std::size_t pages = bytes / bench::kPageBytes;
  for (bench::Side& side : sides) {
    side.region = std::make_unique<vellum::Region>(side.store.create_region("main", bytes));
    bench::fill_with_integers({static_cast<std::byte*>(side.region->data()), bytes}, 1);
    snapshot(side, "the first snapshot", "filled");
  }
  for (std::size_t i = 0; i < options.number("snapshots", 20); ++i) {
    for (const auto& [what, count] :
         {std::pair{"snapshot of 1 %", pages / 100}, {"snapshot of a page", std::size_t{1}}}) {
      for (bench::Side& side : sides) {
        std::mt19937_64 random(i);
        bench::store_into(static_cast<std::byte*>(side.region->data()),
                          bench::pick_pages(random, pages, count), random);
        snapshot(side, what, fmt::format("s{}-{}", i, count));
      }
    }
  }
  for (bench::Side& side : sides) side.region.reset();
}

void run(const bench::Options& options) {
  bench::prefer_this_process();
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::string key = write_key(options.scratch() + "/key");
  bench::Side sides[] = {{vellum::Store::create(options.scratch() + "/plain"), ""},
                         {vellum::Store::create(options.scratch() + "/signed"), key}};
  write_versions(sides, options, bytes);

  bench::Report report("signing");
  bench::Table table({"ms, p50", "not signed", "signed", "ratio"});
  const auto compare = [&](const std::string& name, double plain, double with) {
    table.row({name, bench::fixed(plain, 3), bench::fixed(with, 3), bench::fixed(with / plain, 3)});
    report.figure(name + ", not signed", plain);
    report.figure(name + ", signed", with);
  };
  for (const char* name : {"the first snapshot", "snapshot of 1 %", "snapshot of a page"}) {
    compare(name, bench::percentile(sides[0].ms[name], 50),
            bench::percentile(sides[1].ms[name], 50));
  }
  const auto mib = [](const bench::Side& side) {
    return static_cast<double>(side.store.stat().stored_bytes) / (1 << 20);
  };
  compare("MiB stored", mib(sides[0]), mib(sides[1]));
  bench::Side& with = sides[1];
  with.measure("check of all", [&] { with.store.check_signatures({vellum::public_key_of(key)}); });
  with.measure("proof of a page", [&] { with.store.prove("filled", {bytes / 2, 1}); });
  fmt::print("{} MiB\n\n", bytes >> 20);
  table.print();
  for (const char* name : {"check of all", "proof of a page"}) {
    fmt::print("{}: {} ms\n", name, bench::fixed(with.ms[name].front(), 3));
    report.figure(name, with.ms[name].front());
  }
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("signing", argc, argv, run); }
