// bench mpi: the cost of a global version beyond that of the local versions in it.
//
//   bench/mpi/table.py [--ranks 4] [--json FILE] [--dir DIR] [--mib 256] [--rounds 12]
//
// Each rank has a region of integers. Per round 1 % of its pages, picked at random, is dirtied by
// one 8-byte store each; then all ranks start at once to keep a version, in one way after the
// other: each its own snapshot (Region::snapshot()); a global snapshot (Group::snapshot()); a small
// file that rank 0 publishes durably, the minimal cost of a record; a file that each rank copies
// whole and syncs; and, where installed (METALL_ROOT, VELOC_PREFIX), Metall with its own adaptor,
// Metall with Vellum's, and VELOC in file mode. Metall and VELOC sync no copy. A time is that of
// the slowest rank. Coordination is the time from when the last rank's own commit is durable to the
// last return of a call. All ranks run on one machine, and therefore share its clock.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <random>
#include <vellum/mpi.hpp>

#include "lib/report.hpp"
#include "peer.hpp"

namespace {

constexpr std::uint64_t kPage = 4096;

struct Setup {
  char directory[1024] = {};
  std::uint64_t bytes = 0, rounds = 0;
};

int my_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

double slowest(double seconds) {
  double most = 0;
  MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

// Of all ranks, by the machine's clock.
double last_moment(bench::Clock::time_point mine) {
  return slowest(std::chrono::duration<double>(mine.time_since_epoch()).count());
}

double total(double value) {
  double sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

void dirty(void* data, std::uint64_t bytes, std::mt19937_64& random) {
  auto* const words = static_cast<std::uint64_t*>(data);
  const std::uint64_t pages = bytes / kPage;
  for (std::uint64_t i = 0; i < pages / 100; ++i) {
    words[random() % pages * (kPage / 8) + random() % (kPage / 8)] = random();
  }
}

void fill(void* data, std::uint64_t bytes) {
  auto* const words = static_cast<std::uint64_t*>(data);
  for (std::uint64_t i = 0; i < bytes / 8; ++i) words[i] = i * 7;
}

// All ranks begin together; the time of the slowest.
template <typename Body>
double timed(Body body) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = bench::Clock::now();
  body();
  return slowest(bench::seconds_since(start));
}

struct Figures {
  std::vector<double> local_ms, global_ms, coordination_ms, publish_ms, copy_ms;
  double local_bytes = 0, global_bytes = 0, copy_bytes = 0;
  std::vector<double> metall_ms, metall_on_vellum_ms, veloc_ms;  // empty: not built
};

// A mapped file, and whole copies of it.
class MappedFile {
 public:
  MappedFile(std::string path, std::uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {
    fd_ = ::open(path_.c_str(), O_CREAT | O_RDWR, 0600);
    bench::check(fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "make a file");
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    bench::check(data_ != MAP_FAILED, "mmap");
  }
  ~MappedFile() {
    munmap(data_, bytes_);
    ::close(fd_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  void* data() const { return data_; }
  void copy() const {
    bench::check(msync(data_, bytes_, MS_SYNC) == 0, "msync");
    const std::string to = path_ + "-copy";
    std::filesystem::remove(to);
    std::filesystem::copy_file(path_, to);
    const int fd = ::open(to.c_str(), O_RDWR);
    bench::check(fd >= 0 && fdatasync(fd) == 0, "fdatasync");
    ::close(fd);
  }

 private:
  std::string path_;
  std::uint64_t bytes_;
  int fd_ = -1;
  void* data_ = nullptr;
};

// The disk's time for a small file that appears whole under its name, as a group's record does.
void publish_file(const std::string& directory, std::uint64_t round) {
  const std::string name = directory + "/published-" + std::to_string(round);
  const std::string made = name + ".tmp";
  const std::array<char, 1024> content{};
  const int fd = ::open(made.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  bench::check(fd >= 0 && ::write(fd, content.data(), content.size()) == 1024, "write a file");
  bench::check(fdatasync(fd) == 0 && std::rename(made.c_str(), name.c_str()) == 0, "publish it");
  ::close(fd);
  const int parent = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY);
  bench::check(parent >= 0 && fsync(parent) == 0, "sync a directory");
  ::close(parent);
}

Figures measure(const Setup& setup) {
  const std::string directory = setup.directory;
  vellum::GroupOptions options;
  options.store = directory + "/store-{}";
  options.region_bytes = setup.bytes;
  auto group = vellum::Group::open(MPI_COMM_WORLD, directory + "/records", options);
  vellum::Region& region = group.region();
  fill(region.data(), region.size_bytes());
  group.commit();
  const MappedFile file(directory + "/file-" + std::to_string(my_rank()), setup.bytes);
  fill(file.data(), setup.bytes);

  Figures figures;
  std::mt19937_64 random(static_cast<std::uint64_t>(my_rank()) + 1);
  for (std::uint64_t round = 0; round < setup.rounds; ++round) {
    dirty(region.data(), setup.bytes, random);
    vellum::CommitReport local;
    figures.local_ms.push_back(
        1e3 * timed([&] { local = region.snapshot("local-" + std::to_string(round)); }));
    figures.local_bytes += total(static_cast<double>(local.bytes_written));

    dirty(region.data(), setup.bytes, random);
    vellum::GroupReport global;
    bench::Clock::time_point began, ended;
    figures.global_ms.push_back(1e3 * timed([&] {
                                  began = bench::Clock::now();
                                  global = group.snapshot("global-" + std::to_string(round));
                                  ended = bench::Clock::now();
                                }));
    figures.coordination_ms.push_back(1e3 *
                                      (last_moment(ended) - last_moment(began + global.own_time)));
    figures.global_bytes += static_cast<double>(global.bytes_written);

    figures.publish_ms.push_back(1e3 * timed([&] {
                                   if (my_rank() == 0) publish_file(directory, round);
                                 }));

    dirty(file.data(), setup.bytes, random);
    figures.copy_ms.push_back(1e3 * timed([&] {
                                file.copy();
                                int mine = 1, all = 0;
                                MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
                              }));
    figures.copy_bytes += total(static_cast<double>(setup.bytes));
  }
  group.close();
  return figures;
}

using MakePeer = std::unique_ptr<bench::Peer> (*)(const std::string&, std::uint64_t);

std::vector<double> measure_peer(const Setup& setup, const char* name, MakePeer make) {
  const std::string directory = std::string(setup.directory) + "/" + name;
  if (my_rank() == 0) std::filesystem::create_directory(directory);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<double> ms;
  const auto peer = make(directory, setup.bytes);
  if (peer == nullptr) return ms;
  fill(peer->data(), setup.bytes);
  const auto keep = [&](std::uint64_t round) {
    if (!peer->keep(round)) throw std::runtime_error(std::string(name) + " keeps no version");
  };
  keep(0);
  std::mt19937_64 random(static_cast<std::uint64_t>(my_rank()) + 1);
  for (std::uint64_t round = 1; round <= setup.rounds; ++round) {
    dirty(peer->data(), setup.bytes, random);
    ms.push_back(1e3 * timed([&] { keep(round); }));
    peer->remove(round - 1);
  }
  return ms;
}

void report(const Setup& setup, const Figures& figures, const std::string& json_file) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto rounds = static_cast<double>(setup.rounds);
  const auto p50 = [](const std::vector<double>& samples) {
    return bench::percentile(samples, 50);
  };
  bench::Table table({fmt::format("{} ranks, 1 % changed", ranks), "p50 ms", "least ms", "bytes"});
  const auto row = [&](const char* name, const std::vector<double>& ms, double bytes) {
    table.row({name, bench::fixed(p50(ms), 2),
               bench::fixed(*std::min_element(ms.begin(), ms.end()), 2),
               bytes == 0 ? "" : bench::human_bytes(bytes / rounds)});
  };
  row("a snapshot on each rank", figures.local_ms, figures.local_bytes);
  row("a global snapshot", figures.global_ms, figures.global_bytes);
  row("beyond the slowest rank", figures.coordination_ms, 0);
  row("a file published by rank 0", figures.publish_ms, 0);
  row("file copied on each rank", figures.copy_ms, figures.copy_bytes);
  const double whole_bytes = figures.copy_bytes;
  const auto peer_row = [&](const char* name, const std::vector<double>& ms, double bytes) {
    if (ms.empty()) {
      table.row({name, "not installed", "", ""});
    } else {
      row(name, ms, bytes);
    }
  };
  peer_row("Metall, its adaptor", figures.metall_ms, whole_bytes);
  peer_row("Metall, Vellum's adaptor", figures.metall_on_vellum_ms, 0);
  peer_row("VELOC, file mode", figures.veloc_ms, 2 * whole_bytes);  // scratch, and persistent
  table.print();
  bench::Report out("mpi");
  out.figure("local_ms", p50(figures.local_ms));
  out.figure("global_ms", p50(figures.global_ms));
  out.figure("publish_ms", p50(figures.publish_ms));
  out.figure("copy_ms", p50(figures.copy_ms));
  if (!figures.metall_ms.empty()) out.figure("metall_ms", p50(figures.metall_ms));
  if (!figures.metall_on_vellum_ms.empty()) {
    out.figure("metall_on_vellum_ms", p50(figures.metall_on_vellum_ms));
  }
  if (!figures.veloc_ms.empty()) out.figure("veloc_ms", p50(figures.veloc_ms));
  out.figure("global_bytes", figures.global_bytes / rounds);
  out.target("coordination beyond the slowest rank, ms", p50(figures.coordination_ms), 1);
  out.target("global snapshot / copy", p50(figures.global_ms) / p50(figures.copy_ms), 1);
  out.finish(json_file);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Setup setup;
  int status = 0;
  const auto run = [&](const std::string& json_file) {
    MPI_Bcast(&setup, sizeof setup, MPI_BYTE, 0, MPI_COMM_WORLD);
    Figures figures = measure(setup);
    figures.metall_ms = measure_peer(setup, "metall", bench::make_metall);
    figures.metall_on_vellum_ms =
        measure_peer(setup, "metall-vellum", bench::make_metall_on_vellum);
    figures.veloc_ms = measure_peer(setup, "veloc", bench::make_veloc);
    if (my_rank() == 0) report(setup, figures, json_file);
    MPI_Barrier(MPI_COMM_WORLD);  // rank 0 removes the directory
  };
  if (my_rank() == 0) {
    status = bench::run_main("mpi", argc, argv, [&](const bench::Options& options) {
      options.scratch().copy(setup.directory, sizeof setup.directory - 1);
      setup.bytes = options.number("mib", 256) << 20;
      setup.rounds = options.number("rounds", 12);
      run(options.json_file());
    });
  } else {
    run("");
  }
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
