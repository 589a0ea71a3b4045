// bench paging: regions larger than memory.
//
// A region larger than the memory limit, and beside it a plain MAP_SHARED mapping of a
// file of the same content, each in a process of its own under the same limit of the kernel's
// (cgroup): words at random places counted up, numbers sorted in place, breadth-first search of a
// graph; at the end everything is made durable (commit; msync). Seconds, bytes written to the disk,
// and how much memory was held at most. Nothing is in the page cache when a process starts.
//
// Needs root, for the cgroup.
//
//   bench_paging [--json FILE] [--dir DIR] [--mib 256] [--limit-mib 96] [--updates 30000]
//                [--engine automatic|uffd|sigsegv] [--rounds 1] [--only update|sort|bfs]
//                [--log DIR]
//
// DIR gets WORKLOAD-vellum.txt: seconds, and bytes of the region in memory, every 10 ms; with
// --json it is FILE-log, where bench/plot.py looks for it.
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
#include <thread>
#include <vellum/store.hpp>

#include "child_lib.hpp"
#include "memory_group_lib.hpp"
#include "report_lib.hpp"
#include "workload_lib.hpp"

namespace {

using Words = std::span<std::uint64_t>;

struct Outcome {
  double seconds = 0, durable_seconds = 0;
  double written_bytes = 0, resident_bytes = 0;
  std::uint64_t answer = 0;  // the same for all
};

// A file of the same content.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    bytes_ = std::filesystem::file_size(path);
    map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  }
  ~MappedFile() { munmap(map_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  Words words() const { return {static_cast<std::uint64_t*>(map_), bytes_ / 8}; }
  // Of pages that the kernel may take away when it wants.
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
  OpenRegion(const std::string& path, vellum::Engine engine) : store_(vellum::Store::open(path)) {
    vellum::RegionOptions options;
    options.engine = engine;
    region_ = store_.open_region("main", options);
  }
  Words words() const {
    return {static_cast<std::uint64_t*>(region_.data()), region_.size_bytes() / 8};
  }
  std::uint64_t resident_bytes() const { return region_.memory_use().resident_bytes; }
  void make_durable() { region_.commit(); }

 private:
  vellum::Store store_;
  vellum::Region region_;
};

// Looks every few milliseconds how much memory the region has, by asking the kernel about its
// pages.
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

// The workloads. Each prepares its content in a span of words, and works on it.

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
constexpr std::uint64_t kDegree = 16;

void prepare_graph(Words words) {
  const std::uint64_t vertices = (words.size() - 3) / (3 + kDegree);
  std::mt19937_64 random(3);
  words[0] = vertices;
  words[1] = vertices * kDegree;
  std::uint64_t* const offsets = &words[2];
  std::uint64_t* const targets = offsets + vertices + 1;
  for (std::uint64_t v = 0; v <= vertices; ++v) offsets[v] = v * kDegree;
  // Most edges lead near, some anywhere: what graphs look like after ordering their vertices.
  for (std::uint64_t e = 0; e < vertices * kDegree; ++e) {
    const std::uint64_t near = e / kDegree + random() % 4096;
    targets[e] = (random() % 8 == 0 ? random() : near) % vertices;
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
};
constexpr Workload kWorkloads[] = {{"update", prepare_integers, update},
                                   {"sort", prepare_random, sort},
                                   {"bfs", prepare_graph, bfs}};

// `open` gives what to work on. In a process of its own, under the limit.
template <typename Open>
Outcome measure(const bench::MemoryGroup& group, const Workload& workload, std::uint64_t updates,
                const std::string& data, const std::string& log, Open open) {
  bench::drop_from_cache(data);
  sync();
  const std::uint64_t before = bench::disk_written_bytes(data);
  Outcome out = bench::in_child([&] {
    group.enter();
    Outcome o;
    const auto start = bench::Clock::now();
    auto target = open();
    Watch watch(*target, log);
    o.answer = workload.work(target->words(), updates);
    o.seconds = bench::seconds_since(start);
    target->make_durable();
    o.durable_seconds = bench::seconds_since(start);
    o.resident_bytes = static_cast<double>(watch.stop());
    return o;
  });
  sync();
  out.written_bytes = static_cast<double>(bench::disk_written_bytes(data) - before);
  return out;
}

// Not in this process, which would know the machine's memory from then on, and its children with
// it.
void prepare(const Workload& workload, const std::string& path, std::size_t bytes) {
  bench::in_child([&] {
    auto store = vellum::Store::create(path);
    auto region = store.create_region("main", bytes);
    workload.prepare({static_cast<std::uint64_t*>(region.data()), bytes / 8});
    region.snapshot("0");
    store.export_file("0", path + "-file");
    return 0;
  });
}

struct Both {
  std::vector<Outcome> vellum, plain;
};

std::string log_directory(const bench::Options& options) {
  const std::filesystem::path json(options.json_file());
  const std::string beside = (json.parent_path() / json.stem()).string() + "-log";
  const std::string out = options.text("log", json.empty() ? options.scratch() : beside);
  std::filesystem::create_directories(out);
  return out;
}

Both compare(const bench::Options& options, const Workload& workload) {
  const std::size_t bytes = options.number("mib", 256) << 20;
  const std::uint64_t limit = options.number("limit-mib", 96) << 20;
  const std::uint64_t updates = options.number("updates", 30'000);
  const auto engine = bench::engine_named(options.text("engine", "automatic"));
  const bench::MemoryGroup group(limit);
  Both both;
  for (std::uint64_t round = 0; round < options.number("rounds", 1); ++round) {
    const std::string path = options.scratch() + "/" + workload.name;
    prepare(workload, path, bytes);
    const std::string log = log_directory(options) + "/" + workload.name;
    both.plain.push_back(measure(group, workload, updates, path + "-file", log + "-plain.txt",
                                 [&] { return std::make_unique<MappedFile>(path + "-file"); }));
    both.vellum.push_back(measure(group, workload, updates, path, log + "-vellum.txt",
                                  [&] { return std::make_unique<OpenRegion>(path, engine); }));
    if (both.plain.back().answer != both.vellum.back().answer) {
      throw std::runtime_error(fmt::format("{}: the answers differ", workload.name));
    }
    std::filesystem::remove_all(path);
    std::filesystem::remove(path + "-file");
  }
  return both;
}

void add(bench::Table& table, bench::Report& report, const char* name, const Both& both,
         double limit) {
  const auto median = [](const std::vector<Outcome>& v, double Outcome::* of) {
    return bench::median_of(v, of);
  };
  const double seconds = median(both.vellum, &Outcome::durable_seconds);
  const double plain = median(both.plain, &Outcome::durable_seconds);
  const double written = median(both.vellum, &Outcome::written_bytes);
  const double plain_written = median(both.plain, &Outcome::written_bytes);
  const double resident = median(both.vellum, &Outcome::resident_bytes);
  table.row({name, bench::fixed(median(both.vellum, &Outcome::seconds), 2),
             bench::fixed(seconds, 2), bench::fixed(median(both.plain, &Outcome::seconds), 2),
             bench::fixed(plain, 2), bench::fixed(seconds / plain, 2), bench::human_bytes(written),
             bench::human_bytes(plain_written), bench::fixed(written / plain_written, 2),
             bench::human_bytes(resident), bench::fixed(resident / limit, 2)});
  for (const auto& [field, of] : {std::pair{"seconds", &Outcome::durable_seconds},
                                  {"written_bytes", &Outcome::written_bytes},
                                  {"resident_bytes", &Outcome::resident_bytes}}) {
    report.figure(fmt::format("{}, vellum, {}", name, field), median(both.vellum, of));
    report.figure(fmt::format("{}, plain, {}", name, field), median(both.plain, of));
  }
  report.target(fmt::format("{}: resident / limit of the region", name), resident / limit, 1.05);
  if (std::string(name) != "update") return;
  report.target("update: seconds / plain mmap", seconds / plain, 1);
  report.target("update: bytes written / plain mmap", written / plain_written, 0.5);
}

void run(const bench::Options& options) {
  const std::uint64_t limit = options.number("limit-mib", 96) << 20;
  // What a region allows itself by default in such a group (region/pager.hpp).
  const double own =
      static_cast<double>(limit / 4 * 3 - std::min<std::uint64_t>(limit / 4, 64u << 20));
  fmt::print("{} MiB under a limit of {} MiB; plain: MAP_SHARED, msync at the end\n\n",
             options.number("mib", 256), limit >> 20);
  bench::Table table({"", "seconds", "+ commit", "plain", "+ msync", "ratio", "written", "plain",
                      "ratio", "resident", "of limit"});
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
