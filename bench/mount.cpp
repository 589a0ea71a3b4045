// bench mount: versions read through `vellum mount`. The peers: open_version(), the exported plain
// file, and the mounts of restic and borg.
//
// A file of integers, stored twice: as it is, and with a word of 1 % of its pages changed. The
// newer version is read in order, by 1 MiB, and in random order, by 4 KiB: cold (mounted or opened
// again, no part of the store in the page cache) and again, warm. Every reader is a separate
// process, every sum is compared. Missing restic or borg is reported. The control is the exported
// file in /dev/shm: its pages are single in the page cache, like those of FUSE; ext4 has large
// folios, which are copied faster.
//
//   bench_mount [--json FILE] [--dir DIR] [--mib 256] [--random 2000] [--rounds 3]
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/memory_group.hpp"
#include "lib/report.hpp"
#include "lib/workload.hpp"

namespace {

using Words = std::vector<std::string>;
using ReadAt = std::function<void(std::uint64_t at, std::span<std::byte> out)>;

constexpr std::size_t kPieceBytes = 1u << 20;

pid_t start(const Words& words) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &quiet, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (error != 0) throw std::runtime_error("cannot start " + words.front());
  return child;
}

void run_program(const Words& words) {
  const pid_t child = start(words);
  int status = 1;
  if (waitpid(child, &status, 0) < 0 || status != 0) {
    throw std::runtime_error("failed: " + fmt::format("{}", fmt::join(words, " ")));
  }
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

// A program in the foreground that serves a directory.
class Mounted {
 public:
  Mounted(const Words& words, std::string directory, const std::string& file)
      : directory_(std::move(directory)), server_(start(words)) {
    while (!std::filesystem::exists(file)) {
      int status = 0;
      if (waitpid(server_, &status, WNOHANG) != 0) {
        throw std::runtime_error(words.front() + " does not mount");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  ~Mounted() {
    umount2(directory_.c_str(), MNT_DETACH);
    kill(server_, SIGKILL);  // SIGINT does not end borg here
    waitpid(server_, nullptr, 0);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

 private:
  std::string directory_;
  pid_t server_;
};

struct Times {
  double in_order_s = 0, random_s = 0;
  std::uint64_t sum = 0;
};

Times timed(const ReadAt& read, std::uint64_t bytes, const std::vector<std::uint64_t>* pages) {
  Times out;
  std::vector<std::byte> piece(pages == nullptr ? kPieceBytes : bench::kPageBytes);
  const auto start = bench::Clock::now();
  if (pages == nullptr) {
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
      read(at, piece);
      out.sum += bench::sum(piece);
    }
    out.in_order_s = bench::seconds_since(start);
  } else {
    for (const std::uint64_t page : *pages) {
      read(page * bench::kPageBytes, piece);
      out.sum += bench::sum(piece);
    }
    out.random_s = bench::seconds_since(start);
  }
  return out;
}

ReadAt reader_of(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  bench::check(fd >= 0, file.c_str());
  return [fd, file](std::uint64_t at, std::span<std::byte> out) {
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t n =
          pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(at + done));
      bench::check(n > 0, file.c_str());
      done += static_cast<std::size_t>(n);
    }
  };
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    bench::check(fd_ >= 0, path.c_str());
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Source {
  std::string name;
  std::string data;           // dropped from the page cache
  Words mount;                // empty: there is nothing to mount
  std::string file;           // to read; empty: open_version()
  bool is_in_memory = false;  // is never cold
  std::vector<Times> cold_order = {}, warm_order = {}, cold_random = {}, warm_random = {};
};

class Bench {
 public:
  explicit Bench(const bench::Options& options)
      : path_(std::filesystem::absolute(options.scratch())),
        scratch_(path_),
        bytes_(options.number("mib", 256) << 20),
        rounds_(options.number("rounds", 3)) {
    setenv("RESTIC_PASSWORD", "bench", 1);
    setenv("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes", 1);
    setenv("BORG_BASE_DIR", (path_ + "/borg-home").c_str(), 1);
    setenv("RESTIC_CACHE_DIR", (path_ + "/restic-cache").c_str(), 1);
    std::mt19937_64 random(5);
    pages_ =
        bench::pick_pages(random, bytes_ / bench::kPageBytes,
                          std::min(options.number("random", 2000), bytes_ / bench::kPageBytes));
    std::filesystem::create_directory(mounted());
    sources_.push_back({"exported file", file(), {}, file()});
    sources_.push_back({"open_version", store(), {}, ""});
    sources_.push_back(
        {"vellum mount", store(), {VELLUM_CLI, "mount", store(), mounted()}, mounted() + "/1"});
    sources_.push_back({"exported file, in /dev/shm", in_memory_, {}, in_memory_, true});
    prepare();
  }
  ~Bench() { std::filesystem::remove(in_memory_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run() {
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      for (Source& source : sources_) {
        measure(source, nullptr, source.cold_order, source.warm_order);
        measure(source, &pages_, source.cold_random, source.warm_random);
      }
    }
  }

  void report(bench::Report& report) const {
    bench::Table table({"", "in order, cold MiB/s", "warm MiB/s", "random, cold us", "warm us"});
    const double mib = static_cast<double>(bytes_ >> 20);
    const auto us = [&](const std::vector<Times>& times) {
      return bench::median_of(times, &Times::random_s) * 1e6 / static_cast<double>(pages_.size());
    };
    for (const Source& source : sources_) {
      const double cold = mib / bench::median_of(source.cold_order, &Times::in_order_s);
      const double warm = mib / bench::median_of(source.warm_order, &Times::in_order_s);
      const auto unless_in_memory = [&](const std::string& figure) {
        return source.is_in_memory ? std::string("-") : figure;
      };
      table.row({source.name, unless_in_memory(bench::fixed(cold, 0)), bench::fixed(warm, 0),
                 unless_in_memory(bench::fixed(us(source.cold_random), 1)),
                 bench::fixed(us(source.warm_random), 1)});
      report.figure(source.name + ", in order warm MiB/s", warm);
      report.figure(source.name + ", random warm us", us(source.warm_random));
      if (source.is_in_memory) continue;
      report.figure(source.name + ", in order cold MiB/s", cold);
      report.figure(source.name + ", random cold us", us(source.cold_random));
    }
    table.print();
    for (const std::string& name : missing_) fmt::print("{}: not installed\n", name);
    const auto warm_s = [](const Source& source) {
      return bench::median_of(source.warm_order, &Times::in_order_s);
    };
    const auto cold_s = [](const Source& source) {
      return bench::median_of(source.cold_order, &Times::in_order_s);
    };
    report.target("vellum mount, warm, in order: seconds / those of the exported file",
                  warm_s(sources_[2]) / warm_s(sources_[0]), 1.5);
    report.target("vellum mount, warm, in order: seconds / those of the file in /dev/shm",
                  warm_s(sources_[2]) / warm_s(sources_[kFirstPeer - 1]), 1.5);
    report.target("vellum mount, cold, in order: seconds / those of open_version",
                  cold_s(sources_[2]) / cold_s(sources_[1]), 2);
    for (std::size_t i = kFirstPeer; i < sources_.size(); ++i) {
      report.target("vellum mount, cold, in order: seconds / those of " + sources_[i].name,
                    cold_s(sources_[2]) / cold_s(sources_[i]), 1);
    }
  }

 private:
  std::string store() const { return path_ + "/store"; }
  std::string file() const { return path_ + "/file"; }
  std::string mounted() const { return path_ + "/mounted"; }

  void prepare() {
    const bool has_restic = is_installed("restic"), has_borg = is_installed("borg");
    const std::string restic = path_ + "/restic", borg = path_ + "/borg";
    auto store = vellum::Store::create(this->store());
    if (has_restic) run_program({"restic", "-q", "-r", restic, "init"});
    if (has_borg) run_program({"borg", "init", "-e", "none", borg});
    std::vector<std::byte> content(bytes_);
    bench::fill_with_integers(content, 1);
    bench::Updates updates(bench::Update::words, bytes_ / bench::kPageBytes,
                           bytes_ / bench::kPageBytes / 100);
    for (const char* name : {"0", "1"}) {
      if (*name == '1') updates.step(content.data());
      std::ofstream(file(), std::ios::binary)
          .write(reinterpret_cast<const char*>(content.data()),
                 static_cast<std::streamsize>(content.size()));
      store.import_file("main", file(), "");
      store.create_snapshot(name, "main");
      if (has_restic) run_program({"restic", "-q", "-r", restic, "backup", file()});
      if (has_borg) run_program({"borg", "create", borg + "::" + name, file()});
    }
    std::filesystem::remove(file());
    store.export_file("1", file());
    std::filesystem::copy_file(file(), in_memory_);
    if (!has_restic) missing_.emplace_back("restic mount");
    if (!has_borg) missing_.emplace_back("borg mount");
    if (has_restic) {
      sources_.push_back({"restic mount",
                          restic,
                          {"restic", "-q", "-r", restic, "mount", mounted()},
                          mounted() + "/snapshots/latest" + file()});
    }
    if (has_borg) {
      sources_.push_back({"borg mount",
                          borg,
                          {"borg", "mount", "-f", borg + "::1", mounted()},
                          mounted() + file()});
    }
  }

  void measure(const Source& source, const std::vector<std::uint64_t>* pages,
               std::vector<Times>& cold, std::vector<Times>& warm) {
    bench::check(syncfs(scratch_.get()) == 0, "syncfs");  // dirty pages cannot be dropped
    bench::drop_from_cache(source.data);
    if (source.file.empty()) return measure_region(pages, cold, warm);
    std::unique_ptr<Mounted> server;
    if (!source.mount.empty()) {
      server = std::make_unique<Mounted>(source.mount, mounted(), source.file);
    }
    for (std::vector<Times>* out : {&cold, &warm}) {
      out->push_back(bench::in_child([&] { return timed(reader_of(source.file), bytes_, pages); }));
      compare(*out, pages, source.name);
    }
  }

  // The region that was read is the warm one.
  void measure_region(const std::vector<std::uint64_t>* pages, std::vector<Times>& cold,
                      std::vector<Times>& warm) {
    struct Both {
      Times cold, warm;
    };
    const Both both = bench::in_child([&] {
      auto store = vellum::Store::open(this->store());
      const auto region = store.open_version("1");
      const auto* data = static_cast<const std::byte*>(region.data());
      const ReadAt read = [data](std::uint64_t at, std::span<std::byte> out) {
        std::copy_n(data + at, out.size(), out.data());
      };
      Both out;
      out.cold = timed(read, bytes_, pages);
      out.warm = timed(read, bytes_, pages);
      return out;
    });
    cold.push_back(both.cold);
    warm.push_back(both.warm);
    compare(cold, pages, "open_version");
  }

  void compare(const std::vector<Times>& times, const std::vector<std::uint64_t>* pages,
               const std::string& name) {
    std::uint64_t& wanted = pages == nullptr ? sum_ : sum_of_pages_;
    if (wanted == 0) wanted = times.back().sum;
    if (times.back().sum != wanted) throw std::runtime_error(name + ": other bytes");
  }

  static constexpr std::size_t kFirstPeer = 4;
  const std::string in_memory_ = fmt::format("/dev/shm/vellum-bench-{}", getpid());

  std::string path_;
  Descriptor scratch_;
  std::uint64_t bytes_, rounds_;
  std::vector<std::uint64_t> pages_;
  std::uint64_t sum_ = 0, sum_of_pages_ = 0;
  std::vector<Source> sources_;
  std::vector<std::string> missing_;
};

void run(const bench::Options& options) {
  bench::Report report("mount");
  Bench bench(options);
  bench.run();
  bench.report(report);
  report.finish(options.json_file());
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main("mount", argc, argv, run); }
