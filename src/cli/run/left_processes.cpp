#include "cli/run/run_program.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

fs::path process_directory(pid_t id) { return fs::path("/proc") / std::to_string(id); }

std::vector<fs::path> threads_of(pid_t id) {
  std::vector<fs::path> out;
  std::error_code problem;
  for (fs::directory_iterator entry(process_directory(id) / "task", problem), end;
       !problem && entry != end; entry.increment(problem))
    out.push_back(entry->path());
  return out;
}

// Each thread has its own children (proc(5)).
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const fs::path& thread : threads_of(parent)) {
    std::ifstream list(thread / "children");
    for (pid_t child; list >> child;) out.push_back(child);
  }
  return out;
}

std::string name_of_process(pid_t id) {
  std::ifstream in(process_directory(id) / "comm");
  std::string out;
  std::getline(in, out);
  return out;
}

bool has_open_below(pid_t id, const std::string& directory) {
  std::error_code problem;
  for (fs::directory_iterator entry(process_directory(id) / "fd", problem), end;
       !problem && entry != end; entry.increment(problem)) {
    std::error_code gone;
    if (fs::read_symlink(entry->path(), gone).string().starts_with(directory)) return true;
  }
  return false;
}

bool has_program(pid_t id) {
  std::error_code problem;
  return !fs::read_symlink(process_directory(id) / "exe", problem).empty();
}

// In a killed process, the first thread may have ended while others still have the files.
std::optional<LeftProcess> left_process(pid_t id, const std::string& held_below) {
  if (has_program(id)) return LeftProcess{id, name_of_process(id), has_open_below(id, held_below)};
  if (threads_of(id).size() > 1) return LeftProcess{id, name_of_process(id), true};
  return std::nullopt;
}

void add_descendants(pid_t of, const std::string& held_below, std::vector<LeftProcess>& to) {
  for (const pid_t id : children_of(of)) {
    if (auto process = left_process(id, held_below)) to.push_back(std::move(*process));
    add_descendants(id, held_below, to);
  }
}

}  // namespace

std::vector<LeftProcess> descendants(const std::string& held_below) {
  std::vector<LeftProcess> out;
  add_descendants(getpid(), held_below, out);
  return out;
}

}  // namespace vellum::cli
