// bench files: the cost of turning a file into a version, and a version into a file.
//
// A file that does not compress and one that does; the first again with a byte changed, and
// exported; a sparse file of 1 TiB. Each call runs in a separate process, is durable at its end,
// and reports its peak of memory (VmHWM). The peers, in the same run: cp and a flush, zstd -1 and a
// flush, reading the file, and restic where it is installed. Files are in the page cache, as after
// they were written, unless --cold 1 drops it before each call (which needs root).
//
//   bench_files [--json FILE] [--dir DIR] [--mib 1024] [--rounds 3] [--cold 0]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <vellum/store.hpp>

#include "lib/child.hpp"
#include "lib/report.hpp"

namespace {

namespace fs = std::filesystem;

struct Call {
  double seconds = 0;
  double peak_mib = 0;
};

double peak_mib_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib / 1024;
  }
  throw std::runtime_error("/proc/self/status has no VmHWM");
}

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

class Files {
 public:
  explicit Files(const bench::Options& options)
      : directory_(options.scratch()),
        bytes_(options.number("mib", 1024) << 20),
        rounds_(options.number("rounds", 3)),
        cold_(options.number("cold", 0) != 0),
        restic_(installed("restic")) {
    if (!restic_) fmt::print("restic is not installed: its rows are left out\n");
  }

  void run(bench::Report& report);

 private:
  std::string at(const std::string& name) const { return directory_ + "/" + name; }
  void make_file(const std::string& name, bool compresses) const;
  void change_a_byte(const std::string& name, std::uint64_t round) const;

  template <typename Body>
  Call timed(Body body) const {
    ::sync();
    if (cold_) std::ofstream("/proc/sys/vm/drop_caches") << "3\n";
    return bench::in_child([&] {
      const auto start = bench::Clock::now();
      body();
      return Call{bench::seconds_since(start), peak_mib_of_this_process()};
    });
  }
  void note(const std::string& row, const Call& call) { calls_[row].push_back(call); }
  void shell(const std::string& row, const std::string& command) {
    note(row, timed([&] {
           if (std::system(command.c_str()) != 0) throw std::runtime_error(command + ": failed");
         }));
  }
  double seconds(const std::string& row) const {
    return bench::median_of(calls_.at(row), &Call::seconds);
  }
  double peak_mib(const std::string& row) const {
    double most = 0;
    for (const Call& call : calls_.at(row)) most = std::max(most, call.peak_mib);
    return most;
  }

  void import(const std::string& row, const std::string& store, const std::string& file);
  void export_to(const std::string& row, const std::string& store, const std::string& file);
  std::string restic(const std::string& command) const {
    return fmt::format(
        "RESTIC_PASSWORD=x restic --no-cache -q -r '{}' {} > /dev/null 2>&1 && sync -f '{}'",
        at("restic"), command, directory_);
  }
  void round(std::uint64_t number);
  void sparse();
  void print() const;

  const std::string& directory_;
  const std::uint64_t bytes_, rounds_;
  const bool cold_, restic_;
  std::map<std::string, std::vector<Call>> calls_;
};

void Files::make_file(const std::string& name, bool compresses) const {
  std::mt19937_64 random(compresses ? 1 : 2);
  std::ofstream out(at(name), std::ios::binary);
  std::vector<std::uint64_t> buffer(128u << 10);
  for (std::uint64_t done = 0; done < bytes_; done += buffer.size() * 8) {
    for (auto& word : buffer) word = compresses ? 1'000'000 + random() % 4096 : random();
    out.write(reinterpret_cast<const char*>(buffer.data()),
              static_cast<std::streamsize>(buffer.size() * 8));
  }
}

void Files::change_a_byte(const std::string& name, std::uint64_t round) const {
  std::fstream file(at(name), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(bytes_ / 2 + 4096 * round));
  file.put(static_cast<char>(round + 1));
}

void Files::import(const std::string& row, const std::string& store, const std::string& file) {
  note(row,
       timed([&] { vellum::Store::open_or_create(at(store)).import_file("main", at(file), ""); }));
}

void Files::export_to(const std::string& row, const std::string& store, const std::string& file) {
  note(row, timed([&] { vellum::Store::open(at(store)).export_file("main", at(file)); }));
  fs::remove(at(file));
}

void Files::round(std::uint64_t number) {
  const auto copy_and_flush = [&](const std::string& row, const std::string& file) {
    shell(row, fmt::format("cp '{0}' '{1}' && sync -d '{1}'", at(file), at("copy")));
    fs::remove(at("copy"));
  };
  const auto zstd_and_flush = [&](const std::string& row, const std::string& file) {
    shell(row, fmt::format("zstd -1 -q '{0}' -o '{1}' && sync -d '{1}'", at(file), at("packed")));
    fs::remove(at("packed"));
  };
  for (const std::string file : {"noise", "numbers"}) {
    copy_and_flush(file + ": cp, flush", file);
    zstd_and_flush(file + ": zstd -1, flush", file);
    fs::remove_all(at("store"));
    import(file + ": import", "store", file);
    if (restic_) {
      fs::remove_all(at("restic"));
      if (std::system(restic("init").c_str()) != 0) throw std::runtime_error("restic init failed");
      shell(file + ": restic backup", restic(fmt::format("backup '{}'", at(file))));
    }
    if (file == "numbers") continue;
    change_a_byte(file, number);
    shell("a byte changed: reading", fmt::format("cat '{}' > /dev/null", at(file)));
    import("a byte changed: import", "store", file);
    if (restic_) {
      shell("a byte changed: restic backup", restic(fmt::format("backup '{}'", at(file))));
    }
    copy_and_flush("export: cp, flush", file);
    export_to("export: export", "store", "copy");
    if (restic_) {
      shell("export: restic restore",
            restic(fmt::format("restore latest --target '{}'", at("restored"))));
      fs::remove_all(at("restored"));
    }
  }
}

// A word at each end and one in the middle.
void Files::sparse() {
  const std::uint64_t size = std::uint64_t{1} << 40;
  std::ofstream(at("sparse")).close();
  fs::resize_file(at("sparse"), size);
  for (const std::uint64_t offset : {std::uint64_t{0}, size / 2, size - 8}) {
    std::fstream file(at("sparse"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file << "a word..";
  }
  import("1 TiB sparse: import", "of-sparse", "sparse");
  import("1 TiB sparse: import again", "of-sparse", "sparse");
  export_to("1 TiB sparse: export", "of-sparse", "copy");
}

void Files::print() const {
  bench::Table table({"", "seconds", "MiB/s", "peak MiB"});
  for (const auto& [row, calls] : calls_) {
    const bool of_a_program = row.find("import") == std::string::npos &&
                              row.find("export: export") == std::string::npos &&
                              row.find("sparse") == std::string::npos;
    const bool sparse = row.find("sparse") != std::string::npos;
    table.row({row, bench::fixed(seconds(row), 3),
               sparse ? "-" : bench::fixed(static_cast<double>(bytes_ >> 20) / seconds(row), 0),
               of_a_program ? "-" : bench::fixed(peak_mib(row), 0)});
  }
  table.print();
}

void Files::run(bench::Report& report) {
  make_file("noise", false);
  make_file("numbers", true);
  for (std::uint64_t i = 0; i < rounds_; ++i) round(i);
  sparse();
  print();
  double most_mib = 0;
  for (const auto& [row, calls] : calls_) {
    report.figure(row + " s", seconds(row));
    most_mib = std::max(most_mib, peak_mib(row));
  }
  for (const std::string file : {"noise", "numbers"}) {
    report.target("import of " + file + ", to the slower of cp and zstd -1",
                  seconds(file + ": import") /
                      std::max(seconds(file + ": cp, flush"), seconds(file + ": zstd -1, flush")),
                  1.6);
  }
  report.target("import of a changed byte, to reading",
                seconds("a byte changed: import") / seconds("a byte changed: reading"), 1.3);
  report.target("export, to cp and a flush",
                seconds("export: export") / seconds("export: cp, flush"), 1.3);
  report.target("peak memory, MiB", most_mib, 256);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main("files", argc, argv, [](const bench::Options& options) {
    if (!installed("zstd")) throw std::runtime_error("zstd is not installed");
    bench::Report report("files");
    Files(options).run(report);
    report.finish(options.json_file());
  });
}
