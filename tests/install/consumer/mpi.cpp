#include <cstdint>
#include <cstdio>
#include <vellum/mpi.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::uint64_t count = 0;
  {
    const std::string directory = argc > 1 ? argv[1] : ".";
    vellum::GroupOptions options;
    options.store = directory + "/store-{}";
    options.region_bytes = 1 << 20;
    vellum::Group group = vellum::Group::open(MPI_COMM_WORLD, directory + "/records", options);
    count = ++group.region().root<std::uint64_t>();
    group.commit();
  }
  std::printf("%lu\n", static_cast<unsigned long>(count));
  MPI_Finalize();
  return 0;
}
