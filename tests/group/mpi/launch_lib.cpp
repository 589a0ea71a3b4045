#include "group/mpi/launch_lib.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vellum/group.hpp>

#include "group/mpi/programs/model.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Allows more ranks than processors, runs as root, and yields while waiting.
std::vector<std::string> launcher_arguments(const Mpi& mpi, int ranks) {
  std::vector<std::string> words = {mpi.launcher};
  if (mpi.name == "openmpi") {
    words.insert(words.end(), {"--oversubscribe", "--allow-run-as-root", "--mca",
                               "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader,tcp",
                               "--mca", "btl_vader_single_copy_mechanism", "none"});
  }
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  return words;
}

void exec(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
}

// Checks that all partitions have the content of the same number of steps.
std::uint64_t steps_of(const GroupVersion& version, std::uint32_t partitions) {
  EXPECT_EQ(version.partitions(), partitions);
  std::optional<std::uint64_t> steps;
  for (std::uint32_t p = 0; p < version.partitions(); ++p) {
    const Region region = version.open_partition(p);
    const std::uint64_t found = check_content(region.data(), region.size_bytes(), p);
    EXPECT_EQ(steps.value_or(found), found) << "partition " << p << " is at another step";
    steps = found;
  }
  return steps.value_or(0);
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

}  // namespace

const std::vector<Mpi>& all_mpis() {
  static const std::vector<Mpi> mpis = {
#ifdef VELLUM_RANKS_openmpi
      {"openmpi", VELLUM_LAUNCHER_openmpi, VELLUM_RANKS_openmpi, VELLUM_C_RANKS_openmpi,
       VELLUM_METALL_RANKS_openmpi},
#endif
#ifdef VELLUM_RANKS_mpich
      {"mpich", VELLUM_LAUNCHER_mpich, VELLUM_RANKS_mpich, VELLUM_C_RANKS_mpich,
       VELLUM_METALL_RANKS_mpich},
#endif
#ifdef VELLUM_RANKS_other
      {"other", VELLUM_LAUNCHER_other, VELLUM_RANKS_other, VELLUM_C_RANKS_other,
       VELLUM_METALL_RANKS_other},
#endif
  };
  return mpis;
}

void PrintTo(const Mpi& mpi, std::ostream* out) { *out << mpi.name; }

void PrintTo(const JobEnd& end, std::ostream* out) {
  *out << "status " << end.status << "\noutput: " << end.output << "\nerrors: " << end.errors;
}

JobPlace::JobPlace(const Mpi& mpi) : mpi_(mpi), directory_(memory_directory()) {
  fs::create_directory(records() + ".pids");
  const StepsOfJob none;
  std::ofstream(records() + ".steps").write(reinterpret_cast<const char*>(&none), sizeof none);
}

StepsOfJob JobPlace::progress() const {
  StepsOfJob steps;
  std::ifstream(records() + ".steps").read(reinterpret_cast<char*>(&steps), sizeof steps);
  return steps;
}

std::string JobPlace::store(std::uint32_t partition) const {
  return directory_ / ("store-" + std::to_string(partition));
}

Child JobPlace::launch(int ranks, const std::vector<std::string>& program) {
  auto words = launcher_arguments(mpi_, ranks);
  words.insert(words.end(), program.begin(), program.end());
  for (const auto& entry : fs::directory_iterator(records() + ".pids")) fs::remove(entry.path());
  const std::string output = file("output"), errors = file("errors");
  for (const std::string& said : {output, errors}) fs::remove(said);  // of the previous job
  return start_child([words, output, errors] {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDOUT_FILENO);
    dup2(open(errors.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), STDERR_FILENO);
    exec(words);
    throw std::runtime_error("cannot start " + words[0]);
  });
}

Child JobPlace::start(int ranks, const std::string& what,
                      const std::vector<std::string>& arguments) {
  std::vector<std::string> program = {mpi_.ranks, what, records(), stores()};
  program.insert(program.end(), arguments.begin(), arguments.end());
  return launch(ranks, program);
}

JobEnd JobPlace::wait(Child& job) {
  JobEnd end;
  end.status = job.wait().status;
  end.output = output();
  end.errors = text_of(file("errors"));
  return end;
}

JobEnd JobPlace::run(int ranks, const std::string& what,
                     const std::vector<std::string>& arguments) {
  Child job = start(ranks, what, arguments);
  return wait(job);
}

JobEnd JobPlace::run_c(int ranks) {
  fs::create_directory(file("remote"));
  Child job = launch(ranks, {mpi_.c_ranks, records(), stores(), "file://" + file("remote")});
  return wait(job);
}

std::string JobPlace::output() const { return text_of(file("output")); }

std::vector<pid_t> JobPlace::processes(int ranks) const {
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string text = text_of(records() + ".pids/" + std::to_string(rank));
    if (!text.empty()) pids.push_back(std::stoi(text));
  }
  return pids;
}

void JobPlace::bury(int ranks) {
  const auto pids = processes(ranks);
  const auto anyone = [&] { return std::any_of(pids.begin(), pids.end(), is_alive); };
  for (int i = 0; i < 300 && anyone(); ++i) usleep(10'000);
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  while (anyone()) usleep(1'000);
}

std::optional<std::uint64_t> JobPlace::steps(std::uint32_t partitions) const {
  if (!fs::exists(records() + "/vellum.group") || group_versions(records()).empty()) {
    return std::nullopt;
  }
  return steps_of(GroupVersion::open(records()), partitions);
}

std::uint64_t JobPlace::steps_at(const std::string& url, std::uint32_t partitions) {
  return steps_of(GroupVersion::open(url), partitions);
}

std::uint64_t last_number(const std::string& output, const std::string& word) {
  const std::size_t at = output.rfind(word + " ");
  const std::size_t end = output.find('\n', at == std::string::npos ? 0 : at);
  if (at == std::string::npos || end == std::string::npos) return 0;
  return std::stoull(output.substr(at + word.size() + 1));
}

}  // namespace vellum::test
