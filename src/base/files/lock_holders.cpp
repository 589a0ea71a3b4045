#include "base/files/lock_holders.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/files/real_path.hpp"

namespace vellum::base {

namespace {

namespace proc = std::filesystem;

// A line of /proc/PID/fdinfo/FD, which lists the locks of this open file only:
// lock:  1: OFDLCK  ADVISORY  READ -1 fe:01:1234 FIRST LAST
struct LockLine {
  bool is_of_bytes = false;
  std::uint64_t first = 0, last = UINT64_MAX;

  bool covers(std::uint64_t byte) const { return is_of_bytes && first <= byte && byte <= last; }
};

std::optional<LockLine> parse_lock_line(const std::string& line) {
  std::istringstream words(line);
  std::string title, number, kind, is_advisory, mode, pid, inode, last;
  LockLine out;
  words >> title >> number >> kind >> is_advisory >> mode >> pid >> inode >> out.first >> last;
  if (!words || title != "lock:" || (kind != "OFDLCK" && kind != "FLOCK")) return std::nullopt;
  out.is_of_bytes = kind == "OFDLCK";
  if (last != "EOF") out.last = std::stoull(last);
  return out;
}

struct LockSearch {
  std::function<bool(const proc::path& descriptor)> is_file;
  std::function<bool(const LockLine& lock)> is_lock;
};

bool holds_one(const proc::path& process, const LockSearch& search) {
  std::error_code gone;  // the process may end meanwhile
  for (proc::directory_iterator entry(process / "fd", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    if (!search.is_file(entry->path())) continue;
    std::ifstream info(process / "fdinfo" / entry->path().filename());
    for (std::string line; std::getline(info, line);) {
      const auto lock = parse_lock_line(line);
      if (lock.has_value() && search.is_lock(*lock)) return true;
    }
  }
  return false;
}

std::string title_of(const proc::path& process) {
  std::string name;
  std::ifstream comm(process / "comm");
  std::getline(comm, name);
  return "process " + process.filename().string() + (name.empty() ? "" : " (" + name + ")");
}

// The descriptors of the files with such a path. Reads their links only: stat(2) of a descriptor
// waits if its file system does not answer, even though the file is another one.
std::function<bool(const proc::path&)> links_to(std::function<bool(const std::string&)> is_path) {
  return [is_path = std::move(is_path)](const proc::path& descriptor) {
    std::error_code ignored;
    return is_path(proc::read_symlink(descriptor, ignored).string());
  };
}

std::string find_holders(const LockSearch& search) {
  try {
    std::string out;
    for (const auto& entry : proc::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (!holds_one(entry.path(), search)) continue;
      out += (out.empty() ? " (held by " : ", ") + title_of(entry.path());
    }
    return out.empty() ? out : out + ")";
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

std::string lock_holders(const std::string& path, std::optional<std::uint64_t> byte) {
  const auto is_file =
      links_to([real = real_path(path)](const auto& link) { return link == real; });
  const auto is_lock = [&](const LockLine& lock) {
    return byte.has_value() ? lock.covers(*byte) : !lock.is_of_bytes;
  };
  return find_holders({is_file, is_lock});
}

std::string lock_holders_in(const std::string& directory) {
  const std::string front = real_path(directory) + "/";
  const auto is_file = links_to([&](const auto& link) { return link.starts_with(front); });
  return find_holders({is_file, [](const LockLine& lock) { return lock.is_of_bytes; }});
}

}  // namespace vellum::base
