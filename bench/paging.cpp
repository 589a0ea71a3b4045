// bench paging: regions larger than memory.
//
// A region of four times the memory limit; the peer is a plain MAP_SHARED mapping of a file of the
// same content. Each runs in a separate process under the same kernel limit (cgroup): words at
// random positions incremented, numbers sorted in place, breadth-first search of a graph; at the
// end everything is made durable (commit; msync). Seconds, bytes written, and the peak of memory.
// The page cache is empty when a process starts.
//
// The limit is the cgroup's, --limit-mib: for all memory of the process. The region uses a part of
// it (memory/paging/pager.hpp), and is therefore more than four times its own limit; the plain
// mapping uses all.
//
// The speed of a plain mapping depends on how much the kernel reads around a fault, a setting of
// the disk (printed). Therefore there is a second one, with MADV_RANDOM, which reads a page per
// fault. Sorting omits that one. The search runs only that one by default, since the other takes
// hours with much read-ahead; --sides plain selects it.
//
// With --threads, each thread updates or sorts its own part of the words; the search has one
// thread.
//
// Bytes written are the bytes that the process has dirtied (/proc/self/io), which other work on the
// machine does not change, minus those that it freed before they were written.
//
// Needs root, for the cgroup.
//
//   bench_paging [--json FILE] [--dir DIR] [--mib 512] [--limit-mib 128] [--updates 20000]
//                [--engine automatic|uffd|sigsegv] [--rounds 1] [--only update|sort|bfs]
//                [--threads 1]
//                [--sides vellum,plain,random] [--log DIR] [--fault-kib 64]
//                [--block-kib N]: blocks of that size, which do not grow
//
// DIR gets WORKLOAD-vellum.txt: seconds, and bytes of the region in memory, every 10 ms; with
// --json it is FILE-log, which bench/plot.py reads.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/memory_group.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

using Words = std::span<std::uint64_t>;

constexpr std::uint64_t kMib = 512, kLimitMib = 128;

struct Outcome {
  double seconds = 0, durable_seconds = 0;
  double written_bytes = 0, resident_bytes = 0;
  std::uint64_t answer = 0;  // the same for all
};

// A file of the same content.
class MappedFile {
 public:
  MappedFile(const std::string& path, int advice) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    bytes_ = std::filesystem::file_size(path);
    map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    if (madvise(map_, bytes_, advice) != 0) throw std::runtime_error("madvise");
  }
  ~MappedFile() { munmap(map_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  Words words() const { return {static_cast<std::uint64_t*>(map_), bytes_ / 8}; }
  // Of pages that the kernel may reclaim at any time.
  std::uint64_t resident_bytes() const { return 0; }
  void make_durable() const {
    if (msync(map_, bytes_, MS_SYNC) != 0) throw std::runtime_error("msync");
  }

 private:
  std::size_t bytes_ = 0;
  void* map_ = nullptr;
};

class OpenRegion {
 public:
  OpenRegion(const std::string& path, const vellum::RegionOptions& options)
      : store_(vellum::Store::open(path)), region_(store_.open_region("main", options)) {}
  Words words() const {
    return {static_cast<std::uint64_t*>(region_.data()), region_.size_bytes() / 8};
  }
  std::uint64_t resident_bytes() const { return region_.memory_use().resident_bytes; }
  void make_durable() { region_.commit(); }

 private:
  vellum::Store store_;
  vellum::Region region_;
};

// Queries every few milliseconds how much memory the region's pages use.
class Watch {
 public:
  template <typename Target>
  Watch(Target& target, const std::string& file)
      : thread_([this, &target, file] {
          std::ofstream out(file);
          const auto start = bench::Clock::now();
          while (!stop_) {
            const std::uint64_t bytes = target.resident_bytes();
            most_ = std::max(most_, bytes);
            out << bench::seconds_since(start) << ' ' << bytes << '\n';
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  ~Watch() {
    if (thread_.joinable()) thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  std::uint64_t stop() {
    stop_ = true;
    thread_.join();
    return most_;
  }

 private:
  std::atomic<bool> stop_{false};
  std::uint64_t most_ = 0;
  std::thread thread_;
};

// The workloads. Each prepares its content in a span of words, and processes it.

void prepare_integers(Words words) { bench::fill_with_integers(std::as_writable_bytes(words), 1); }

std::uint64_t update(Words words, std::uint64_t updates) {
  std::mt19937_64 random(5);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < updates; ++i) sum += ++words[random() % words.size()];
  return sum;
}

void prepare_random(Words words) {
  std::mt19937_64 random(2);
  for (auto& word : words) word = random();
}

std::uint64_t sort(Words words, std::uint64_t) {
  std::sort(words.begin(), words.end());
  return words[words.size() / 3];
}

// words: vertices, edges, offsets[vertices + 1], targets[edges], levels[vertices], queue[vertices].
constexpr std::uint64_t kDegree = 64;

void prepare_graph(Words words) {
  const std::uint64_t vertices = (words.size() - 3) / (3 + kDegree);
  std::mt19937_64 random(3);
  words[0] = vertices;
  words[1] = vertices * kDegree;
  std::uint64_t* const offsets = &words[2];
  std::uint64_t* const targets = offsets + vertices + 1;
  for (std::uint64_t v = 0; v <= vertices; ++v) offsets[v] = v * kDegree;
  // Most edges lead to near vertices, one in a thousand to any vertex: like graphs of the web with
  // ordered vertices.
  for (std::uint64_t e = 0; e < vertices * kDegree; ++e) {
    const std::uint64_t near = e / kDegree + random() % 128;
    targets[e] = (random() % 1024 == 0 ? random() : near) % vertices;
  }
}

std::uint64_t bfs(Words words, std::uint64_t) {
  const std::uint64_t vertices = words[0];
  const std::uint64_t* const offsets = &words[2];
  const std::uint64_t* const targets = offsets + vertices + 1;
  std::uint64_t* const levels = &words[2] + vertices + 1 + words[1];
  std::uint64_t* const queue = levels + vertices;
  std::uint64_t head = 0, tail = 0, sum = 0;
  levels[0] = 1;
  queue[tail++] = 0;
  while (head < tail) {
    const std::uint64_t v = queue[head++];
    sum += levels[v];
    for (std::uint64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
      const std::uint64_t to = targets[e];
      if (levels[to] != 0) continue;
      levels[to] = levels[v] + 1;
      queue[tail++] = to;
    }
  }
  return sum;
}

struct Workload {
  const char* name;
  void (*prepare)(Words);
  std::uint64_t (*work)(Words, std::uint64_t updates);
  const char* sides;
  bool by_parts;  // of the words, one for each thread
};
constexpr Workload kWorkloads[] = {
    {"update", prepare_integers, update, "vellum,plain,random", true},
    {"sort", prepare_random, sort, "vellum,plain", true},
    {"bfs", prepare_graph, bfs, "vellum,random", false}};

struct Load {
  std::uint64_t updates = 0, threads = 1;
};

std::uint64_t work_in_parts(const Workload& workload, Words words, const Load& load) {
  const std::uint64_t parts = workload.by_parts ? load.threads : 1;
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const Words part = words.subspan(words.size() / parts * i, words.size() / parts);
    threads.emplace_back([&, part] { sum += workload.work(part, load.updates / parts); });
  }
  for (auto& thread : threads) thread.join();
  return sum;
}

double written_by_process() {
  std::ifstream in("/proc/self/io");
  double written = 0, given_back = 0, value = 0;
  for (std::string field; in >> field >> value;) {
    if (field == "write_bytes:") written = value;
    if (field == "cancelled_write_bytes:") given_back = value;
  }
  return written - given_back;
}

// `open` returns the memory to process. In a separate process, under the limit.
template <typename Open>
Outcome measure(const bench::MemoryGroup& group, const Workload& workload, const Load& load,
                const std::string& data, const std::string& log, Open open) {
  bench::drop_from_cache(data);
  sync();
  return bench::in_child([&] {
    group.enter();
    Outcome o;
    const auto start = bench::Clock::now();
    auto target = open();
    Watch watch(*target, log);
    o.answer = work_in_parts(workload, target->words(), load);
    o.seconds = bench::seconds_since(start);
    target->make_durable();
    o.durable_seconds = bench::seconds_since(start);
    o.resident_bytes = static_cast<double>(watch.stop());
    o.written_bytes = written_by_process();
    return o;
  });
}

// Not in this process, which would keep the machine's memory size, as would its children.
void prepare(const Workload& workload, const std::string& path, std::size_t bytes,
             const vellum::StoreOptions& options) {
  bench::in_child([&] {
    auto store = vellum::Store::create(path, options);
    auto region = store.create_region("main", bytes);
    workload.prepare({static_cast<std::uint64_t*>(region.data()), bytes / 8});
    region.snapshot("0");
    store.export_file("0", path + "-file");
    return 0;
  });
}

// In rounds; empty: not requested.
struct Sides {
  std::vector<Outcome> vellum, plain, random;
};

std::string log_directory(const bench::Options& options) {
  const std::filesystem::path json(options.json_file());
  const std::string beside = (json.parent_path() / json.stem()).string() + "-log";
  const std::string out = options.text("log", json.empty() ? options.scratch() : beside);
  std::filesystem::create_directories(out);
  return out;
}

Sides compare(const bench::Options& options, const Workload& workload) {
  const std::size_t bytes = options.number("mib", kMib) << 20;
  const Load load{options.number("updates", 20'000), options.number("threads", 1)};
  vellum::RegionOptions region_options;
  region_options.engine = bench::engine_named(options.text("engine", "automatic"));
  region_options.fault_bytes = static_cast<std::uint32_t>(options.number("fault-kib", 64) << 10);
  vellum::StoreOptions store_options;
  const std::uint64_t block_kib = options.number("block-kib", 0);  // 0: the default, and they grow
  store_options.encoding.grow_blocks = block_kib == 0;
  if (block_kib != 0)
    store_options.encoding.block_bytes = static_cast<std::uint32_t>(block_kib << 10);
  const bench::MemoryGroup group(options.number("limit-mib", kLimitMib) << 20);
  const std::string sides = options.text("sides", workload.sides);
  const std::string path = options.scratch() + "/" + workload.name;
  const std::string log = log_directory(options) + "/" + workload.name;
  Sides out;
  std::optional<std::uint64_t> answer;
  const auto side = [&](const char* name, std::vector<Outcome>& outcomes, const std::string& data,
                        auto open) {
    if (sides.find(name) == std::string::npos) return;
    outcomes.push_back(
        measure(group, workload, load, data, fmt::format("{}-{}.txt", log, name), open));
    if (answer.value_or(outcomes.back().answer) != outcomes.back().answer) {
      throw std::runtime_error(fmt::format("{}: the answers differ", workload.name));
    }
    answer = outcomes.back().answer;
  };
  const auto plain_side = [&](const char* name, std::vector<Outcome>& outcomes, int advice) {
    if (sides.find(name) == std::string::npos) return;
    const std::string file = fmt::format("{}-{}", path, name);
    if (!std::filesystem::copy_file(path + "-file", file)) throw std::runtime_error("copy_file");
    side(name, outcomes, file, [&] { return std::make_unique<MappedFile>(file, advice); });
    std::filesystem::remove(file);
  };
  for (std::uint64_t round = 0; round < options.number("rounds", 1); ++round) {
    prepare(workload, path, bytes, store_options);
    answer.reset();
    plain_side("plain", out.plain, MADV_NORMAL);
    plain_side("random", out.random, MADV_RANDOM);
    side("vellum", out.vellum, path,
         [&] { return std::make_unique<OpenRegion>(path, region_options); });
    std::filesystem::remove_all(path);
    std::filesystem::remove(path + "-file");
  }
  return out;
}

void add(bench::Table& table, bench::Report& report, const char* name, const char* side,
         const std::vector<Outcome>& outcomes, double limit) {
  if (outcomes.empty()) return;
  const double seconds = bench::median_of(outcomes, &Outcome::durable_seconds);
  const double written = bench::median_of(outcomes, &Outcome::written_bytes);
  const double resident = bench::median_of(outcomes, &Outcome::resident_bytes);
  const bool counted = resident != 0;
  table.row({name, side, bench::fixed(bench::median_of(outcomes, &Outcome::seconds), 2),
             bench::fixed(seconds, 2), bench::human_bytes(written),
             counted ? bench::human_bytes(resident) : "",
             counted ? bench::fixed(resident / limit, 3) : ""});
  report.figure(fmt::format("{}, {}, seconds", name, side), seconds);
  report.figure(fmt::format("{}, {}, written_bytes", name, side), written);
  if (!counted) return;
  report.figure(fmt::format("{}, {}, resident_bytes", name, side), resident);
  report.target(fmt::format("{}: resident / limit of the region", name), resident / limit, 1.05);
}

void add(bench::Table& table, bench::Report& report, const char* name, const Sides& sides,
         double limit) {
  add(table, report, name, "vellum", sides.vellum, limit);
  add(table, report, name, "plain", sides.plain, limit);
  add(table, report, name, "random", sides.random, limit);
  const auto target = [&](const char* figure, const char* side, double Outcome::* of,
                          const std::vector<Outcome>& other, double bound) {
    if (sides.vellum.empty() || other.empty()) return;
    report.target(fmt::format("{}: {} / {}", name, figure, side),
                  bench::median_of(sides.vellum, of) / bench::median_of(other, of), bound);
  };
  const std::string workload = name;
  if (workload == "update") {
    target("seconds", "plain mmap", &Outcome::durable_seconds, sides.plain, 1);
    target("bytes written", "plain mmap", &Outcome::written_bytes, sides.plain, 0.1);
    target("seconds", "MADV_RANDOM", &Outcome::durable_seconds, sides.random, 1.3);
    target("bytes written", "MADV_RANDOM", &Outcome::written_bytes, sides.random, 0.1);
  } else if (workload == "sort") {
    target("seconds", "plain mmap", &Outcome::durable_seconds, sides.plain, 1.4);
  }
}

void run(const bench::Options& options) {
  const std::uint64_t limit = options.number("limit-mib", kLimitMib) << 20;
  // The default memory of a region in such a group (memory/paging/pager.hpp).
  const double own =
      static_cast<double>(limit / 4 * 3 - std::min<std::uint64_t>(limit / 4, 64u << 20));
  fmt::print(
      "{} MiB under a limit of {} MiB, of which the region takes {:.0f}; plain: MAP_SHARED, of "
      "which\n"
      "the kernel reads up to {} KiB around a fault; random: the same with MADV_RANDOM\n\n",
      options.number("mib", kMib), limit >> 20, own / (1 << 20),
      bench::read_ahead_kib(options.scratch()));
  bench::Table table(
      {"", "", "seconds", "with commit or msync", "written", "resident", "of limit"});
  bench::Report report("paging");
  report.figure("limit_bytes", own);
  const std::string only = options.text("only", "");
  for (const Workload& workload : kWorkloads) {
    if (!only.empty() && only != workload.name) continue;
    add(table, report, workload.name, compare(options, workload), own);
  }
  table.print();
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("paging", argc, argv, run); }
