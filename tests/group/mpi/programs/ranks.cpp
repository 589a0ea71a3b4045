// The ranks of a job, for group_test.cpp and kill_test.cpp:
//   ranks WHAT RECORDS STORES [ARGUMENTS]
// Rank 0 prints a line for each completed version. Exits with 0 on success.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <thread>
#include <vellum/mpi.hpp>

#include "crash/syscall_seam_lib.hpp"
#include "group/mpi/programs/model.hpp"

namespace vellum::test {
namespace {

struct Arguments {
  std::string records, stores;
  std::vector<std::string> more;
  std::uint64_t number(std::size_t i) const { return std::stoull(more.at(i)); }
};

int my_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so on rank " + std::to_string(my_rank()) + ": " + what);
}

void say(const char* format, std::uint64_t number) {
  if (my_rank() != 0) return;
  std::printf(format, static_cast<unsigned long>(number));
  std::printf("\n");
  std::fflush(stdout);
}

GroupOptions options_for(const Arguments& a) {
  GroupOptions options;
  options.store = a.stores;
  options.region_bytes = kPartitionBytes;
  options.new_store.journal_half_bytes = 64u << 10;
  options.new_store.pack_bytes = 1u << 20;
  options.region.encode_threads = 0;
  options.region.capacity_bytes = 64u << 20;
  return options;
}

std::uint64_t* words_of(Group& group, std::uint32_t partition) {
  return static_cast<std::uint64_t*>(group.region(partition).data());
}

// All partitions are at the same step.
std::uint64_t check_memory(Group& group) {
  std::optional<std::uint64_t> steps;
  for (const std::uint32_t p : group.mine()) {
    const Region& region = group.region(p);
    const std::uint64_t found = check_content(region.data(), region.size_bytes(), p);
    require(steps.value_or(found) == found, "all partitions are at the same step");
    steps = found;
  }
  const std::uint64_t mine = steps.value_or(0);  // a rank without partitions does not matter
  std::uint64_t most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  require(steps.value_or(most) == most, "all ranks are at the same step");
  return most;
}

void store_all(Group& group, std::uint64_t step) {
  for (const std::uint32_t p : group.mine()) store_step(words_of(group, p), p, step);
}

// Stores of every kind.
void make_version(Group& group, std::uint64_t step) {
  const std::string name = step % 5 == 0 ? "step-" + std::to_string(step) : std::string();
  if (step % 3 == 0) {
    group.snapshot_async(name).wait();
  } else if (name.empty()) {
    group.commit("step " + std::to_string(step));
  } else {
    group.snapshot(name);
  }
}

// Records the process for the test.
void note_process(const Arguments& a) {
  std::ofstream(a.records + ".pids/" + std::to_string(my_rank())) << getpid();
}

Errc code_of(const std::function<void()>& body, const std::string& part_of_text) {
  try {
    body();
  } catch (const Error& e) {
    require(std::string(e.what()).find(part_of_text) != std::string::npos,
            std::string("the error says '") + part_of_text + "': " + e.what());
    return e.code();
  }
  return Errc::ok;
}

volatile StepsOfJob* map_steps(const Arguments& a) {
  const int fd = open((a.records + ".steps").c_str(), O_RDWR);
  void* const at = mmap(nullptr, sizeof(StepsOfJob), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  require(at != MAP_FAILED, "the file of steps can be mapped");
  close(fd);
  return static_cast<volatile StepsOfJob*>(at);
}

// Continues from the existing version for some steps: STEPS [RANK CALL MOMENT]: there that rank
// dies.
void work(const Arguments& a) {
  note_process(a);
  static crash::KillReport report;
  if (a.more.size() > 1 && static_cast<int>(a.number(1)) == my_rank()) {
    crash::kill_at_call(
        a.number(2),
        a.more.at(3) == "before" ? crash::KillMoment::before_call : crash::KillMoment::after_call,
        crash::KillCalls::all, &report);
  }
  volatile StepsOfJob* const steps = map_steps(a);
  Group group = Group::open(MPI_COMM_WORLD, a.records, options_for(a));
  std::uint64_t step = check_memory(group);
  say("found %lu", step);
  for (const std::uint64_t last = step + a.number(0); step < last;) {
    if (my_rank() == 0) steps->begun = step + 1;
    store_all(group, step + 1);
    make_version(group, step + 1);
    ++step;
    if (my_rank() == 0) steps->made = step;
    say("made %lu", step);
  }
  group.close();
}

// Prints its open group, and continues when the file GO exists.
void wait(const Arguments& a) {
  note_process(a);
  Group group = Group::open(MPI_COMM_WORLD, a.records, options_for(a));
  say("open %lu", group.number());
  while (access(a.more.at(0).c_str(), F_OK) != 0) usleep(10'000);
  const std::uint64_t step = check_memory(group);
  store_all(group, step + 1);
  group.commit();
  say("made %lu", step + 1);
}

// Rank 2's disk is full; BYTES do not fit on it.
void full_disk(const Arguments& a) {
  Group group = Group::open(MPI_COMM_WORLD, a.records, options_for(a));
  store_all(group, 1);
  group.commit();
  const std::uint64_t before = group.number();
  store_all(group, 2);
  Region& mine = group.region();
  if (my_rank() == 2) {
    mine.grow(kPartitionBytes + a.number(0));
    auto* const words = words_of(group, 2);
    for (std::uint64_t i = kWords; i < mine.size_bytes() / 8; ++i) words[i] = mixed(i);
  }
  require(code_of([&] { group.snapshot("too-large"); }, "rank 2 on ") == Errc::no_space,
          "a full disk on one rank is the same error on all");
  require(code_of([&] { group.commit(); }, "rank 2 on ") == Errc::no_space, "once more");
  require(group.number() == before, "the last version stays");
  const GroupVersion newest = group.open_version();
  require(newest.info().number == before, "the record stays");
  // The other ranks have committed locally, and roll back, too.
  group.rollback();
  require(check_content(mine.data(), kPartitionBytes, static_cast<std::uint64_t>(my_rank())) == 1,
          "all are back at the last version");
  for (std::uint64_t i = kWords; i < mine.size_bytes() / 8; ++i) {
    require(words_of(group, group.mine()[0])[i] == 0, "what has grown is zero");
  }
  store_all(group, 2);
  group.snapshot("fits");
  require(group.number() == before + 1, "the next version is made");
  say("made %lu", 2);
}

// A rank is late.
void slow(const Arguments& a) {
  Group group = Group::open(MPI_COMM_WORLD, a.records, options_for(a));
  for (std::uint64_t step = 1; step <= 3; ++step) {
    store_all(group, step);
    if (my_rank() == 1) usleep(200'000);
    group.commit();
  }
  require(check_memory(group) == 3, "all steps are there");
  say("made %lu", 3);
}

void errors(const Arguments& a) {
  GroupOptions bad = options_for(a);
  bad.store.clear();
  require(code_of([&] { Group::open(MPI_COMM_WORLD, a.records, bad).close(); }, "store is empty") ==
              Errc::invalid_argument,
          "a store has to be named");
  // One rank's mistake is an error on all ranks, and the group can still be opened.
  bad = options_for(a);
  if (my_rank() == 1) bad.store = "/nowhere/at/all-{}";
  require(code_of([&] { Group::open(MPI_COMM_WORLD, a.records, bad).close(); }, "rank 1 on ") ==
              Errc::not_found,
          "a store that cannot be made");
  bad = options_for(a);
  bad.mine = std::vector<std::uint32_t>{0};
  require(code_of([&] { Group::open(MPI_COMM_WORLD, a.records, bad).close(); }, "") != Errc::ok,
          "one partition on all ranks");

  Group group = Group::open(MPI_COMM_WORLD, a.records, options_for(a));
  store_all(group, 1);
  group.snapshot("first");
  const std::uint64_t number = group.number();
  require(code_of([&] { group.snapshot("first"); }, "already") == Errc::already_exists, "a name");
  require(code_of([&] { group.snapshot("-x"); }, "") == Errc::invalid_argument, "a bad name");
  const std::string other = my_rank() == 1 ? "other" : "one";
  require(code_of([&] { group.snapshot(other); }, "rank 1 creates another version") ==
              Errc::invalid_argument,
          "ranks that make different versions");
  require(group.number() == number, "nothing was made");
  require(code_of([&] { (void)group.region(17); }, "partition 17") == Errc::invalid_argument,
          "a partition of nobody");
  require(code_of([&] { (void)group.open_version("absent"); }, "absent") == Errc::not_found,
          "a version that is not there");
  store_all(group, 2);
  group.snapshot("one");
  const GroupVersion first = group.open_version("first");
  // Any rank reads any partition.
  const auto p = static_cast<std::uint32_t>((my_rank() + 1) % static_cast<int>(group.partitions()));
  const Region old = first.open_partition(p);
  require(check_content(old.data(), old.size_bytes(), p) == 1, "an old version is what it was");
  say("made %lu", 2);
}

// Stores after the call are not in the version.
void asynchronous(const Arguments& a) {
  Group group = Group::open(MPI_COMM_WORLD, a.records, options_for(a));
  store_all(group, 1);
  PendingGroupVersion pending = group.snapshot_async("one");
  store_all(group, 2);
  require(pending.wait().number == group.number(), "it is the last version");
  require(pending.wait().number == group.number(), "it can be asked again");
  PendingGroupVersion dropped = group.snapshot_async("two");
  store_all(group, 3);
  group.commit();  // completes the version of step 2 first
  require(dropped.wait().number + 1 == group.number(), "it was made by the next call");
  const std::uint32_t p = group.mine()[0];
  for (const auto& [name, step] : {std::pair("one", 1), std::pair("two", 2), std::pair("", 3)}) {
    const Region old = group.open_version(name).open_partition(p);
    require(check_content(old.data(), old.size_bytes(), p) == static_cast<std::uint64_t>(step),
            std::string("version ") + name);
  }
  PendingGroupVersion late = group.snapshot_async("three");
  group.close();
  require(code_of([&] { late.wait(); }, "closed") == Errc::invalid_argument, "too late");
  say("made %lu", 3);
}

// Continues from an older version: VERSION STEP.
void go_back(const Arguments& a) {
  GroupOptions options = options_for(a);
  options.version = a.more.at(0);
  Group group = Group::open(MPI_COMM_WORLD, a.records, options);
  require(check_memory(group) == a.number(1), "it is the version that was asked for");
  store_all(group, a.number(1) + 1);
  group.commit();
  say("made %lu", a.number(1) + 1);
}

// Like work, with a push of each version: URL STEPS [RANK CALL MOMENT].
void push(const Arguments& a) {
  note_process(a);
  static crash::KillReport report;
  if (a.more.size() > 2 && static_cast<int>(a.number(2)) == my_rank()) {
    crash::kill_at_call(
        a.number(3),
        a.more.at(4) == "before" ? crash::KillMoment::before_call : crash::KillMoment::after_call,
        crash::KillCalls::all, &report);
  }
  volatile StepsOfJob* const steps = map_steps(a);
  GroupOptions options = options_for(a);
  options.remote = a.more.at(0);
  Group group = Group::open(MPI_COMM_WORLD, a.records, options);
  std::uint64_t step = check_memory(group);
  say("found %lu", step);
  for (const std::uint64_t last = step + a.number(1); step < last; ++step) {
    if (my_rank() == 0) steps->begun = step + 1;
    store_all(group, step + 1);
    make_version(group, step + 1);
    if (my_rank() == 0) steps->made = step + 1;
    PendingGroupPush pending = group.push_async();
    if (step % 2 == 0) {  // superseded by a version while it is being pushed
      group.commit("the same");
    }
    require(pending.wait().number != 0, "the version has a number");
    if (my_rank() == 0) steps->pushed = step + 1;
    say("pushed %lu", step + 1);
  }
  group.close();
}

// Restores the newest version of the remote, bit for bit: URL.
void restore(const Arguments& a) {
  GroupOptions options = options_for(a);
  options.remote = a.more.at(0);
  const GroupRestoreReport report = Group::restore(MPI_COMM_WORLD, a.records, options);
  say("fetched %lu", report.partitions_fetched);
  Group group = Group::open(MPI_COMM_WORLD, a.records, options);
  require(group.number() == report.number + 1, "the job goes on from what was restored");
  const std::uint64_t step = check_memory(group);
  say("found %lu", step);
  store_all(group, step + 1);
  group.commit();
  group.push();
  say("pushed %lu", step + 1);
}

// Rank 2's remote cannot be reached for some time: DIRECTORY, that of the group's remote.
void outage(const Arguments& a) {
  const std::string there = a.more.at(0) + "/partition-2", moved = there + "-moved";
  GroupOptions options = options_for(a);
  options.remote = "file://" + a.more.at(0);
  Group group = Group::open(MPI_COMM_WORLD, a.records, options);
  store_all(group, 1);
  group.commit();
  group.push();
  if (my_rank() == 2) {
    require(rename(there.c_str(), moved.c_str()) == 0, "rename");
    std::ofstream(there.c_str()) << "no directory";
  }
  MPI_Barrier(MPI_COMM_WORLD);
  store_all(group, 2);
  group.snapshot("two");
  require(code_of([&] { group.push(); }, "rank 2 on ") != Errc::ok, "an error on all ranks");
  store_all(group, 3);
  group.commit();  // the job continues
  require(code_of([&] { group.push("absent"); }, "absent") == Errc::not_found, "no such version");
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank() == 2) {
    require(remove(there.c_str()) == 0 && rename(moved.c_str(), there.c_str()) == 0, "it is back");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  group.push("two");
  say("pushed %lu", 2);
  PendingGroupPush late = group.push_async();
  group.close();
  require(code_of([&] { late.wait(); }, "closed") == Errc::invalid_argument, "too late");
}

const std::map<std::string, std::function<void(const Arguments&)>> kPrograms = {
    {"work", work},       {"wait", wait},     {"full_disk", full_disk},
    {"slow", slow},       {"errors", errors}, {"asynchronous", asynchronous},
    {"go_back", go_back}, {"push", push},     {"restore", restore},
    {"outage", outage}};

}  // namespace
}  // namespace vellum::test

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    if (argc < 4) throw std::runtime_error("ranks WHAT RECORDS STORES [ARGUMENTS]");
    const vellum::test::Arguments arguments{argv[2], argv[3],
                                            std::vector<std::string>(argv + 4, argv + argc)};
    vellum::test::kPrograms.at(argv[1])(arguments);
  } catch (const std::exception& e) {
    vellum::abort_job(MPI_COMM_WORLD, e.what());
  }
  MPI_Finalize();
  return 0;
}
