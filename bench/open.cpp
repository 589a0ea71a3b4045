// bench open: the time from a version in a store to its first byte, and to all of its bytes.
//
// A region of integers, then a word of 1 % of its pages changed: two snapshots. The newer one is
// opened (engine mapped: the branch, whose image exists), its first byte read, then all of it by
// one thread, each in a separate process; cold (no part of the store in the page cache) and warm.
// The peers: `cp` of a full copy and mmap of the result; and mmap of the full copy itself.
//
// Then the same with a part of it: a word of each page of some chunks of 64 KiB, in random order,
// which the last use of the version touched, too; with and without RegionOptions::working_set,
// immediately and when the program needs it a second later (which is not counted).
//
//   bench_open [--json FILE] [--dir DIR] [--mib 1024] [--rounds 1] [--part-percent 5]
//              [--engine all|uffd|sigsegv|mapped]
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/copies.hpp"
#include "lib/memory_group.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

struct Times {
  double copy_s = 0;   // before it can be opened
  double first_s = 0;  // opening, and the first byte
  double scan_s = 0;   // the rest
  std::uint64_t sum = 0;
  double to_first_s() const { return copy_s + first_s; }
  double total_s() const { return copy_s + first_s + scan_s; }
};

// `open` returns an object with bytes().
template <typename Open>
Times timed(const Open& open) {
  Times out;
  auto start = bench::Clock::now();
  const auto source = open();
  volatile std::byte first = source->bytes().front();
  (void)first;
  out.first_s = bench::seconds_since(start);
  start = bench::Clock::now();
  out.sum = bench::sum(source->bytes());
  out.scan_s = bench::seconds_since(start);
  return out;
}

constexpr std::size_t kChunkBytes = 64u << 10;

std::uint64_t sum_of_words(std::span<const std::byte> bytes, std::size_t chunk) {
  std::uint64_t sum = 0;
  for (std::size_t at = chunk * kChunkBytes; at < (chunk + 1) * kChunkBytes;
       at += bench::kPageBytes) {
    sum += *reinterpret_cast<const volatile std::uint64_t*>(bytes.data() + at);
  }
  return sum;
}

template <typename Open>
Times timed_part(const Open& open, const std::vector<std::uint64_t>& chunks,
                 std::chrono::milliseconds pause) {
  Times out;
  auto start = bench::Clock::now();
  const auto source = open();
  out.first_s = bench::seconds_since(start);
  std::this_thread::sleep_for(pause);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (i == 0) start = bench::Clock::now();
    out.sum += sum_of_words(source->bytes(), chunks[i]);
    if (i != 0) continue;
    out.first_s += bench::seconds_since(start);
    start = bench::Clock::now();
  }
  out.scan_s = bench::seconds_since(start);
  return out;
}

class OpenVersion {
 public:
  OpenVersion(const std::string& path, vellum::Engine engine, bool working_set = false)
      : store_(vellum::Store::open(path)) {
    vellum::RegionOptions options;
    options.engine = engine;
    options.working_set = working_set;
    region_ = engine == vellum::Engine::mapped ? store_.open_region("main", options)
                                               : store_.open_version("1", options);
  }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(region_.data()), region_.size_bytes()};
  }

 private:
  vellum::Store store_;
  vellum::Region region_;
};

// The usual program.
double seconds_of_cp(const std::string& from, const std::string& to) {
  const std::vector<std::string> words = {"cp", "--reflink=never", "--sparse=never", from, to};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto start = bench::Clock::now();
  pid_t child = 0;
  int status = 1;
  if (posix_spawnp(&child, "cp", nullptr, nullptr, arguments.data(), environ) != 0 ||
      waitpid(child, &status, 0) < 0 || status != 0) {
    throw std::runtime_error("cp " + from);
  }
  return bench::seconds_since(start);
}

struct Source {
  std::string name;
  std::vector<std::string> files;  // its input: files or directories
  std::function<Times()> run;
  std::string of_what = "all";  // those with the same value are compared; the first is the peer
  std::vector<Times> cold = {}, warm = {};
};

class Bench {
 public:
  explicit Bench(const bench::Options& options)
      : path_(options.scratch() + "/store"),
        bytes_(options.number("mib", 1024) << 20),
        rounds_(options.number("rounds", 1)) {
    std::mt19937_64 random(11);
    const std::size_t chunks = bytes_ / kChunkBytes;
    part_ = bench::pick_pages(random, chunks, chunks * options.number("part-percent", 5) / 100);
    if (part_.empty()) throw std::runtime_error("--part-percent is no chunk at all");
    prepare();
    add_peers();
    const auto engines = bench::engines_named(options.text("engine", "all"));
    for (const auto one : engines) add_engine(one);
    add_peers_of_part();
    for (const auto one : engines) {
      if (one != vellum::Engine::mapped) add_engine_of_part(one);
    }
  }

  void run() {
    if (made_image_s_ > 0)
      fmt::print("making the image of engine mapped: {:.1f} s\n\n", made_image_s_);
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      for (Source& source : sources_) {
        for (const auto& file : source.files) bench::drop_from_cache(file);
        source.cold.push_back(run_once(source));
        source.warm.push_back(run_once(source));
      }
    }
  }

  void report(bench::Report& report) const {
    bench::Table table({"", "to the first byte ms", "all of it s", "together s", "/ cp + mmap",
                        "first byte / cp + mmap"});
    const auto state_of = [](const Source& source, bool cold) -> const std::vector<Times>& {
      return cold ? source.cold : source.warm;
    };
    for (const bool cold : {true, false}) {
      std::map<std::string, const Source*> peers;
      for (const Source& source : sources_) {
        const Source* const first_of = peers.try_emplace(source.of_what, &source).first->second;
        const auto& peer = state_of(*first_of, cold);
        const double peer_s = bench::median_of(peer, &Times::total_s);
        const double peer_first_s = bench::median_of(peer, &Times::to_first_s);
        const auto& times = state_of(source, cold);
        const std::string name = (cold ? "cold, " : "warm, ") + source.name;
        const double first = bench::median_of(times, &Times::to_first_s);
        const double total = bench::median_of(times, &Times::total_s);
        const double scan = bench::median_of(times, &Times::scan_s);
        table.row({name, bench::fixed(first * 1e3, 2), bench::fixed(scan, 3),
                   bench::fixed(total, 3), bench::fixed(total / peer_s, 3),
                   fmt::format("{:.2g}", first / peer_first_s)});
        report.figure(name + ", first_byte_s", first);
        report.figure(name + ", scan_s", scan);
        report.figure(name + ", seconds", total);
      }
    }
    if (made_image_s_ > 0) report.figure("mapped, image creation, seconds", made_image_s_);
    table.print();
  }

 private:
  std::string copy() const { return path_ + "-copy"; }

  // This uses a file: a region of that size would exceed the memory.
  void prepare() const {
    auto store = vellum::Store::create(path_);
    {
      std::ofstream out(copy(), std::ios::binary);
      std::vector<std::byte> piece(std::size_t{16} << 20);
      for (std::size_t at = 0; at < bytes_; at += piece.size()) {
        bench::fill_with_integers(piece, at + 1);
        out.write(reinterpret_cast<const char*>(piece.data()),
                  static_cast<std::streamsize>(std::min(piece.size(), bytes_ - at)));
      }
      if (!out.flush()) throw std::runtime_error("cannot write " + copy());
    }
    store.import_file("main", copy(), "integers");
    std::filesystem::remove(copy());
    store.create_snapshot("0", "main");
    auto region = store.open_region("main");
    bench::Updates updates(bench::Update::words, bytes_ / bench::kPageBytes,
                           bytes_ / bench::kPageBytes / 100);
    updates.step(static_cast<std::byte*>(region.data()));
    region.snapshot("1");
    region.close();
    store.export_file("1", copy());
  }

  // The peer is the first.
  void add_peers() {
    const std::string file = copy(), made = path_ + "-cp";
    sources_.push_back({"cp + mmap", {file}, [file, made] {
                          const double copy_s = seconds_of_cp(file, made);
                          Times out =
                              timed([&] { return std::make_unique<bench::MappedCopy>(made); });
                          out.copy_s = copy_s;
                          std::filesystem::remove(made);
                          return out;
                        }});
    sources_.push_back({"mmap of the full copy", {file}, [file] {
                          return timed([&] { return std::make_unique<bench::MappedCopy>(file); });
                        }});
  }

  void add_peers_of_part() {
    const std::string file = copy(), made = path_ + "-cp";
    const auto run = [this](const std::string& of) {
      return timed_part([&] { return std::make_unique<bench::MappedCopy>(of); }, part_, {});
    };
    sources_.push_back({"part, cp + mmap",
                        {file},
                        [file, made, run] {
                          const double copy_s = seconds_of_cp(file, made);
                          Times out = run(made);
                          out.copy_s = copy_s;
                          std::filesystem::remove(made);
                          return out;
                        },
                        "part"});
    sources_.push_back(
        {"part, mmap of the full copy", {file}, [file, run] { return run(file); }, "part"});
  }

  // Each engine records its own last use.
  void add_engine_of_part(vellum::Engine engine) {
    using std::chrono::milliseconds;
    const auto run = [this, engine](bool working_set, milliseconds pause) {
      const auto open = [&] { return std::make_unique<OpenVersion>(path_, engine, working_set); };
      return timed_part(open, part_, pause);
    };
    bench::in_child([run] { return run(true, milliseconds(0)); });
    for (const bool working_set : {false, true}) {
      for (const auto pause : {milliseconds(0), milliseconds(1000)}) {
        if (!working_set && pause.count() != 0) continue;
        const std::string name = fmt::format("part, {}{}{}", vellum::engine_name(engine),
                                             working_set ? ", working_set" : "",
                                             pause.count() != 0 ? ", a second later" : "");
        sources_.push_back(
            {name, {path_}, [run, working_set, pause] { return run(working_set, pause); }, "part"});
      }
    }
  }

  void add_engine(vellum::Engine engine) {
    const std::string path = path_;
    const auto open = [path, engine] { return std::make_unique<OpenVersion>(path, engine); };
    if (engine == vellum::Engine::mapped) {
      const auto start = bench::Clock::now();
      open();
      made_image_s_ = bench::seconds_since(start);
    }
    sources_.push_back({vellum::engine_name(engine), {path}, [open] { return timed(open); }});
  }

  Times run_once(const Source& source) {
    const Times out = bench::in_child(source.run);
    const std::uint64_t sum = sums_.try_emplace(source.of_what, out.sum).first->second;
    if (out.sum != sum) throw std::runtime_error(source.name + ": other bytes");
    return out;
  }

  std::string path_;
  std::size_t bytes_;
  std::uint64_t rounds_;
  double made_image_s_ = 0;
  std::vector<std::uint64_t> part_;  // chunks
  std::map<std::string, std::uint64_t> sums_;
  std::vector<Source> sources_;
};

void run(const bench::Options& options) {
  bench::Report report("open");
  Bench bench(options);
  fmt::print("{} MiB, all of it read by one thread; part: {} % of the chunks of 64 KiB\n",
             options.number("mib", 1024), options.number("part-percent", 5));
  bench.run();
  bench.report(report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("open", argc, argv, run); }
