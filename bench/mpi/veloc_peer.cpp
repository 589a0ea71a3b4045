// VELOC (https://github.com/ECP-VeloC/VELOC) in file mode: each rank writes its memory to the file
// that VELOC names, and VELOC copies it to the persistent directory. Synchronous, without erasure
// codes: all ranks are on one machine.
#include "peer.hpp"

#ifdef BENCH_VELOC
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <veloc.h>
#include <filesystem>
#include <fstream>

#include "lib/report.hpp"
#endif

namespace bench {

#ifdef BENCH_VELOC

namespace {

class Veloc final : public Peer {
 public:
  Veloc(const std::string& given, std::uint64_t bytes)
      : directory_(std::filesystem::absolute(given).string()), bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(data_ != MAP_FAILED, "mmap");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    const std::string config = directory_ + "/veloc.cfg";
    if (rank_ == 0) {
      std::ofstream(config) << "scratch = " << directory_ << "/scratch\n"
                            << "persistent = " << directory_ << "/persistent\n"
                            << "log_prefix = " << directory_ << "/log\n"
                            << "mode = sync\nec_interval = -1\n"
                            << "max_versions = 2\nscratch_versions = 2\n";
    }
    MPI_Barrier(MPI_COMM_WORLD);
    require(VELOC_Init(MPI_COMM_WORLD, config.c_str()));
  }
  ~Veloc() override {
    VELOC_Finalize(0);
    munmap(data_, bytes_);
  }
  Veloc(const Veloc&) = delete;
  Veloc& operator=(const Veloc&) = delete;

  void* data() override { return data_; }
  bool keep(std::uint64_t round) override {
    const int version = static_cast<int>(round) + 1;
    require(VELOC_Checkpoint_begin("bench", version));
    char routed[VELOC_MAX_NAME] = {};
    require(VELOC_Route_file(file_of(round).c_str(), routed));
    write(routed);
    return VELOC_Checkpoint_end(1) == VELOC_SUCCESS;
  }
  // Its own limit of versions is for the files that it names itself.
  void remove(std::uint64_t round) override { std::filesystem::remove(file_of(round)); }

 private:
  // The copy of the file from VELOC's scratch directory.
  std::string file_of(std::uint64_t round) const {
    return directory_ + "/rank-" + std::to_string(rank_) + "-" + std::to_string(round);
  }
  static void require(int result) {
    if (result != VELOC_SUCCESS) throw std::runtime_error("VELOC has failed: its log says why");
  }
  void write(const char* path) const {
    const int fd = ::open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    check(fd >= 0, "open");
    for (std::uint64_t at = 0; at < bytes_;) {
      const ssize_t done = ::write(fd, static_cast<const char*>(data_) + at, bytes_ - at);
      check(done > 0, "write");
      at += static_cast<std::uint64_t>(done);
    }
    ::close(fd);
  }

  const std::string directory_;
  const std::uint64_t bytes_;
  void* data_ = nullptr;
  int rank_ = 0;
};

}  // namespace

std::unique_ptr<Peer> make_veloc(const std::string& directory, std::uint64_t bytes) {
  return std::make_unique<Veloc>(directory, bytes);
}

#else

std::unique_ptr<Peer> make_veloc(const std::string&, std::uint64_t) { return nullptr; }

#endif

}  // namespace bench
