// The ranks of a job with Metall datastores, for metall_adaptor_test.cpp:
//   metall_ranks WHAT ROOT PIDS [ARGUMENTS]
// Exits with 0 on success. Rank 0 prints each completed step.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

// The name in programs for plain Metall, too: the test is compiled as such a program.
#define VELLUM_METALL_MANAGER
#include <vellum/metall_mpi.hpp>
#include <vellum/mpi.hpp>

#include <metall/container/vector.hpp>
#include <metall/utility/metall_mpi_adaptor.hpp>

namespace {

using Adaptor = metall::utility::metall_mpi_adaptor;
using Vector =
    metall::container::vector<std::uint64_t, Adaptor::manager_type::allocator_type<std::uint64_t>>;

constexpr std::uint64_t kPerStep = 500;

struct Arguments {
  std::string root, pids;
  std::vector<std::string> more;
};

int my_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void require(bool holds, const std::string& what) {
  if (holds) return;
  throw std::runtime_error("not so on rank " + std::to_string(my_rank()) + ": " + what + " (" +
                           vellum::metall_last_error() + ")");
}

void say(const char* word, std::uint64_t number) {
  if (my_rank() != 0) return;
  std::printf("%s %lu\n", word, static_cast<unsigned long>(number));
  std::fflush(stdout);
}

std::uint64_t value_of(std::uint64_t i) {
  return (i * 0x9e3779b97f4a7c15) ^ static_cast<std::uint64_t>(my_rank());
}

void begin(Adaptor& adaptor) {
  auto& manager = adaptor.get_local_manager();
  manager.construct<Vector>("values")(manager.get_allocator<>());
}

// Adds values, and creates and destroys objects: Metall's metadata changes, too.
void step(Adaptor& adaptor) {
  auto& manager = adaptor.get_local_manager();
  Vector& values = *manager.find<Vector>("values").first;
  for (std::uint64_t i = 0; i < kPerStep; ++i) values.push_back(value_of(values.size()));
  const std::string name = "object-" + std::to_string(values.size() / kPerStep % 7);
  if (!manager.destroy<Vector>(name.c_str())) {
    manager.construct<Vector>(name.c_str())(values.size() % 999, manager.get_allocator<>());
  }
}

// The group's number of steps, the same on all ranks.
std::uint64_t steps_of(const Adaptor& adaptor) {
  const auto& manager = adaptor.get_local_manager();
  const Vector* const values = manager.find<Vector>("values").first;
  const std::uint64_t count = values == nullptr ? 0 : values->size();
  for (std::uint64_t i = 0; i < count; ++i) require((*values)[i] == value_of(i), "a value");
  std::uint64_t most = 0;
  MPI_Allreduce(&count, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  require(count == most && count % kPerStep == 0, "all ranks are at the same step");
  return count / kPerStep;
}

std::uint64_t steps_at(const std::string& path) {
  const Adaptor adaptor(metall::open_read_only, path);
  return steps_of(adaptor);
}

vellum::Errc code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const vellum::Error& e) {
    return e.code();
  }
  return vellum::Errc::ok;
}

// Every call of the interface, once.
void interface(const Arguments& a) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string one = a.root + "@one", link = a.root + "-two", copy = a.root + "-copy";
  require(!Adaptor::consistent(a.root), "nothing is there");
  require(Adaptor::remove(a.root), "nothing is removed");
  {
    Adaptor adaptor(metall::create_only, a.root, std::size_t{1} << 30);
    require(adaptor.local_dir_path() == Adaptor::local_dir_path(a.root, my_rank()), "its path");
    begin(adaptor);
    step(adaptor);
    require(adaptor.snapshot(one), "a version");
    step(adaptor);
    require(adaptor.snapshot(link), "a version with a directory of its own");
    require(!adaptor.snapshot(link), "no second one there");
    step(adaptor);
    require(Adaptor::consistent(link), "consistent, while the group is open");
    require(!Adaptor::remove(a.root), "it is open");
  }
  require(Adaptor::partitions(a.root) == ranks, "partitions");
  require(Adaptor::consistent(a.root) && Adaptor::consistent(one), "consistent");
  require(!Adaptor::consistent(a.root + "@three"), "no such version");
  require(steps_at(a.root) == 3 && steps_at(one) == 1 && steps_at(link) == 2, "the versions");
  require(code_of([&] { Adaptor(metall::open_only, one); }) == vellum::Errc::invalid_argument,
          "a version is read-only");
  require(code_of([&] { Adaptor(metall::create_only, a.root); }) == vellum::Errc::already_exists,
          "a group is there");
  {
    Adaptor adaptor(metall::open_only, a.root);
    require(steps_of(adaptor) == 3, "it goes on");
    step(adaptor);
    require(adaptor.flush(), "flush");
    require(adaptor.snapshot(link, true), "in place of the version there");
    require(adaptor.snapshot(one, true), "and of this");
  }
  require(steps_at(link) == 4 && steps_at(one) == 4, "the versions that came in place");
  require(Adaptor::copy(link, copy) && !Adaptor::copy(link, copy), "a copy, once");
  require(Adaptor::copy(link, copy, MPI_COMM_WORLD, true), "once more");
  require(Adaptor::remove(link) && !Adaptor::consistent(link), "a version goes");
  {
    Adaptor adaptor(metall::open_only, copy);
    step(adaptor);
  }
  require(steps_at(copy) == 5 && steps_at(a.root) == 4, "a copy stands alone");
  require(Adaptor::remove(a.root) && !Adaptor::consistent(a.root), "the group goes");
  require(steps_at(copy) == 5, "and not the copy");
  {
    Adaptor adaptor(metall::create_only, copy, MPI_COMM_WORLD, true);
    begin(adaptor);
  }
  require(steps_at(copy) == 0, "an empty one in its place");
}

// Rank 1 cannot make its datastore.
void failed_creation(const Arguments& a) {
  const std::size_t capacity = std::size_t{1} << (my_rank() == 1 ? 62 : 28);
  require(code_of([&] { Adaptor(metall::create_only, a.root, capacity); }) != vellum::Errc::ok,
          "no group");
  require(!Adaptor::consistent(a.root), "nor half of one");
  Adaptor adaptor(metall::create_only, a.root);
  begin(adaptor);
  step(adaptor);
  require(adaptor.snapshot(a.root + "@one"), "once it can");
}

void make(const Arguments& a) {
  Adaptor adaptor(metall::create_only, a.root);
  begin(adaptor);
  step(adaptor);
}

// BYTES do not fit on rank 2's disk.
void full_disk(const Arguments& a) {
  const std::uint64_t words = std::stoull(a.more.at(0)) / 8;
  {
    Adaptor adaptor(metall::open_only, a.root);
    step(adaptor);
    if (my_rank() == 2) {
      auto& manager = adaptor.get_local_manager();
      auto* const large = manager.construct<Vector>("large")(manager.get_allocator<>());
      for (std::uint64_t i = 0; i < words; ++i) large->push_back(value_of(i * i));
    }
    require(!adaptor.snapshot(a.root + "@large"), "no version on any rank");
    const std::string& error = vellum::metall_last_error();
    require(error.find("rank 2 on ") != std::string::npos, "the error names the rank");
    require(!adaptor.flush(), "still none");
    require(steps_at(a.root) == 1, "the last one stays");
    if (my_rank() == 2) adaptor.get_local_manager().destroy<Vector>("large");
    require(adaptor.flush(), "once it fits");
  }
  require(steps_at(a.root) == 2, "the version that fitted");
}

// Continues from the existing version until it is killed; creates versions of each kind.
void work(const Arguments& a) {
  std::ofstream(a.pids + "/" + std::to_string(my_rank())) << getpid();
  Adaptor adaptor(metall::open_only, a.root);
  std::uint64_t steps = steps_of(adaptor);
  say("found", steps);
  for (const std::uint64_t last = steps + std::stoull(a.more.at(0)); steps < last;) {
    step(adaptor);
    if (steps % 3 == 0) adaptor.get_local_manager().flush();  // only of this rank
    say("begun", steps + 1);
    require(steps % 4 == 0 ? adaptor.snapshot(a.root + "@last", true) : adaptor.flush(), "made");
    say("made", ++steps);
  }
}

void look(const Arguments& a) {
  require(Adaptor::consistent(a.root), "consistent");
  say("found", steps_at(a.root));
}

const std::map<std::string, std::function<void(const Arguments&)>> kPrograms = {
    {"interface", interface}, {"failed_creation", failed_creation},
    {"make", make},           {"full_disk", full_disk},
    {"work", work},           {"look", look}};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  vellum::metall_options().store.journal_half_bytes = 64u << 10;  // a small disk has room for it
  vellum::metall_options().store.pack_bytes = 1u << 20;
  try {
    if (argc < 4) throw std::runtime_error("metall_ranks WHAT ROOT PIDS [ARGUMENTS]");
    kPrograms.at(argv[1])({argv[2], argv[3], std::vector<std::string>(argv + 4, argv + argc)});
  } catch (const std::exception& e) {
    vellum::abort_job(MPI_COMM_WORLD, e.what());
  }
  MPI_Finalize();
  return 0;
}
