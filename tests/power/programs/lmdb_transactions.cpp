// lmdb_transactions FILE MODE SEED COUNT PROGRESS: runs COUNT transactions, each flushed. Reports
// its progress in the memory of PROGRESS, a file descriptor (power/block_log_lib.hpp).
//
// MODE: `safe` is LMDB's default, `unsafe` (MDB_NOSYNC with MDB_WRITEMAP) the fastest, in which
// LMDB itself promises nothing after a power cut, with a flush after each transaction;
// `unflushed` the same without a flush.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "power/block_log_lib.hpp"
#include "power/programs/lmdb_database.hpp"

int main(int argc, char** argv) {
  using vellum::power::Progress;
  if (argc != 6) return 2;
  try {
    const bool is_safe = std::strcmp(argv[2], "safe") == 0;
    const bool is_flushed = std::strcmp(argv[2], "unsafe") == 0;
    const std::uint64_t seed = std::stoull(argv[3]), count = std::stoull(argv[4]);
    void* const memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, std::stoi(argv[5]), 0);
    if (memory == MAP_FAILED) return 2;
    auto& progress = *static_cast<Progress*>(memory);
    vellum::power::LmdbDatabase database(argv[1], is_safe ? 0 : MDB_NOSYNC | MDB_WRITEMAP);
    for (std::uint64_t n = 1; n <= count; ++n) {
      progress.begun = n;
      database.transaction(seed + n, is_flushed);
      progress.returned = n;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
