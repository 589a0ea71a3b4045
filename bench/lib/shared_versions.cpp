#include "lib/shared_versions.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vellum/store.hpp>

#include "lib/copies.hpp"
#include "lib/processor_seconds.hpp"
#include "lib/workload.hpp"

namespace bench {
namespace {

constexpr std::size_t kReadBytes = 64u << 10;
constexpr std::size_t kMaxReaders = 64;

// The results of one round's readers, in memory that all of them share.
struct Board {
  std::atomic<std::size_t> ready{0}, done{0}, measured{0}, failed{0};
  std::uint64_t total[kMaxReaders] = {};
  double pss_bytes[kMaxReaders] = {}, processor_s[kMaxReaders] = {};
};

struct Round {
  double pss_bytes = 0, processor_s = 0, wall_s = 0;
};

double pss_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Pss:")) return std::stod(line.substr(4)) * 1024;
  }
  throw std::runtime_error("no /proc/self/smaps_rollup");
}

void wait_for(const std::atomic<std::size_t>& count, std::size_t readers, const Board& board) {
  while (count < readers && board.failed == 0) usleep(200);
}

std::uint64_t sum_of_chunks(std::span<const std::byte> bytes, std::size_t reader) {
  std::vector<std::size_t> chunks(bytes.size() / kReadBytes);
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  std::shuffle(chunks.begin(), chunks.end(), std::mt19937_64(reader));
  std::uint64_t total = 0;
  for (const std::size_t chunk : chunks)
    total += sum(bytes.subspan(chunk * kReadBytes, kReadBytes));
  return total;
}

// `open` returns a pointer to an object with bytes().
template <typename Open>
void read_as_one_of(Board& board, std::size_t reader, std::size_t readers, const Open& open) {
  const double pss_before = pss_bytes();
  ++board.ready;
  wait_for(board.ready, readers, board);
  const double processor = processor_seconds();
  const auto source = open();
  board.total[reader] = sum_of_chunks(source->bytes(), reader);
  ++board.done;
  wait_for(board.done, readers, board);
  board.processor_s[reader] = processor_seconds() - processor;
  board.pss_bytes[reader] = pss_bytes() - pss_before;
  ++board.measured;
  wait_for(board.measured, readers, board);
}

template <typename Open>
Round read_by(std::size_t readers, std::uint64_t& total, const Open& open) {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  auto& board = *new (memory) Board;
  std::fflush(nullptr);
  for (std::size_t reader = 0; reader < readers; ++reader) {
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child != 0) continue;
    try {
      read_as_one_of(board, reader, readers, open);
    } catch (const std::exception& e) {
      fmt::print(stderr, "a reader: {}\n", e.what());
      ++board.failed;
    }
    _exit(0);
  }
  wait_for(board.ready, readers, board);
  const auto start = Clock::now();
  wait_for(board.done, readers, board);
  Round out;
  out.wall_s = seconds_since(start);
  while (wait(nullptr) > 0) {
  }
  if (board.failed != 0) throw std::runtime_error("a reader failed");
  out.pss_bytes = std::accumulate(board.pss_bytes, board.pss_bytes + readers, 0.0);
  out.processor_s = std::accumulate(board.processor_s, board.processor_s + readers, 0.0);
  total = board.total[0];
  if (std::any_of(board.total, board.total + readers, [&](auto t) { return t != total; }))
    throw std::runtime_error("the readers differ");
  munmap(memory, sizeof(Board));
  return out;
}

struct ReadVersion {
  ReadVersion(const std::string& path, const std::string& version, bool share)
      : store(vellum::Store::open(path)) {
    vellum::RegionOptions options;
    options.share = share;
    region = store.open_version(version, options);
  }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(region.data()), region.size_bytes()};
  }
  vellum::Store store;
  vellum::Region region;
};

struct Row {
  std::string name;
  std::vector<Round> rounds;
  double of(double Round::* field) const { return median_of(rounds, field); }
};

void report_readers(const std::string& name, const std::vector<Row>& rows, Table& table,
                    Report& report) {
  for (const Row& row : rows) {
    table.row({name + ", " + row.name, human_bytes(row.of(&Round::pss_bytes)),
               fixed(row.of(&Round::processor_s), 2), fixed(row.of(&Round::wall_s), 2)});
    report.figure(name + ", " + row.name + ", pss_bytes", row.of(&Round::pss_bytes));
    report.figure(name + ", " + row.name + ", processor_s", row.of(&Round::processor_s));
  }
  // In the order of run_shared_pattern().
  const Row &one = rows[0], &one_copy = rows[1], &copies = rows[2], &shared = rows[4];
  const auto beyond = [](const Row& row, const Row& copy) {
    return row.of(&Round::processor_s) - copy.of(&Round::processor_s);
  };
  report.target(name + ": memory of the readers that share / of one",
                shared.of(&Round::pss_bytes) / one.of(&Round::pss_bytes), 1.3);
  report.target(name + ": their processor time / of one",
                shared.of(&Round::processor_s) / one.of(&Round::processor_s), 1.3);
  report.target(name + ": the same, beyond reading mapped copies",
                beyond(shared, copies) / beyond(one, one_copy), 1.3);
}

void run_shared_pattern(const Options& options, Update update, std::size_t percent, Table& table,
                        Report& report) {
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::size_t snapshots = options.number("snapshots", 40);
  const std::size_t readers = std::min<std::size_t>(options.number("readers", 8), kMaxReaders);
  const std::string path = options.scratch() + "/shared", copy = path + "-copy";
  const std::string version = std::to_string(snapshots);
  make_history(path, {update, bytes, bytes / kPageBytes * percent / 100, snapshots});
  vellum::Store::open(path).export_file(version, copy);
  const auto alone = [&] { return std::make_unique<ReadVersion>(path, version, false); };
  const auto shared = [&] { return std::make_unique<ReadVersion>(path, version, true); };
  const auto mapped = [&] { return std::make_unique<MappedCopy>(copy); };
  std::vector<Row> rows = {{"1 reader", {}},
                           {"1 of a mapped copy", {}},
                           {fmt::format("{} of a mapped copy", readers), {}},
                           {fmt::format("{} that do not share", readers), {}},
                           {fmt::format("{} that share", readers), {}}};
  for (std::uint64_t round = 0; round < options.number("rounds", 3); ++round) {
    std::uint64_t totals[5] = {};
    rows[0].rounds.push_back(read_by(1, totals[0], alone));
    rows[1].rounds.push_back(read_by(1, totals[1], mapped));
    rows[2].rounds.push_back(read_by(readers, totals[2], mapped));
    rows[3].rounds.push_back(read_by(readers, totals[3], alone));
    rows[4].rounds.push_back(read_by(readers, totals[4], shared));
    if (std::any_of(totals, totals + 5, [&](std::uint64_t t) { return t != totals[0]; }))
      throw std::runtime_error("the readers differ");
  }
  report_readers(fmt::format("{} ({} %)", update_name(update), percent), rows, table, report);
  std::filesystem::remove(copy);
  std::filesystem::remove_all(path);
}

}  // namespace

void run_shared_versions(const Options& options, Report& report) {
  Table table({"readers of all of a version", "memory", "processor s", "s"});
  run_shared_pattern(options, Update::words, 1, table, report);
  run_shared_pattern(options, Update::words, 25, table, report);
  fmt::print("\n");
  table.print();
}

}  // namespace bench
