#include "base/files/lock_holders.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace vellum::base {

namespace {

namespace proc = std::filesystem;

// A line of /proc/PID/fdinfo/FD, which lists the locks of this open file only:
// lock:  1: OFDLCK  ADVISORY  READ -1 fe:01:1234 FIRST LAST
bool is_lock_of(const std::string& line, std::optional<std::uint64_t> byte) {
  std::istringstream words(line);
  std::string title, number, kind, is_advisory, mode, pid, inode, last;
  std::uint64_t first = 0;
  words >> title >> number >> kind >> is_advisory >> mode >> pid >> inode >> first >> last;
  if (!words || title != "lock:") return false;
  if (!byte.has_value()) return kind == "FLOCK";
  return kind == "OFDLCK" && first <= *byte && (last == "EOF" || *byte <= std::stoull(last));
}

bool holds_lock(const proc::path& process, const struct stat& file,
                std::optional<std::uint64_t> byte) {
  std::error_code gone;  // the process may end meanwhile
  for (proc::directory_iterator entry(process / "fd", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    struct stat status{};
    if (::stat(entry->path().c_str(), &status) != 0) continue;
    if (status.st_dev != file.st_dev || status.st_ino != file.st_ino) continue;
    std::ifstream info(process / "fdinfo" / entry->path().filename());
    for (std::string line; std::getline(info, line);) {
      if (is_lock_of(line, byte)) return true;
    }
  }
  return false;
}

std::string described(const proc::path& process) {
  std::string name;
  std::ifstream comm(process / "comm");
  std::getline(comm, name);
  return "process " + process.filename().string() + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

std::string lock_holders(const std::string& path, std::optional<std::uint64_t> byte) noexcept {
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) return {};
  try {
    std::string out;
    for (const auto& entry : proc::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (!holds_lock(entry.path(), file, byte)) continue;
      out += (out.empty() ? " (held by " : ", ") + described(entry.path());
    }
    return out.empty() ? out : out + ")";
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace vellum::base
