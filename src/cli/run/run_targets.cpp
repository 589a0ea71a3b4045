#include "cli/run/run_targets.hpp"

#include <filesystem>

#include "base/fail.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/options/arguments.hpp"
#include "run/run/run_record.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

// The offset of the first character that is not literal (fnmatch(3)).
std::size_t literal_bytes(const std::string& pattern) { return pattern.find_first_of("*?[\\"); }

std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Patterns match whole paths, as the kernel resolves them. A pattern that begins with a star may
// match anywhere; in others, the directory is resolved.
std::string whole_pattern(const std::string& pattern) {
  if (pattern.front() == '*') return pattern;
  const std::size_t slash = pattern.substr(0, literal_bytes(pattern)).rfind('/');
  const fs::path before =
      slash == std::string::npos ? fs::path(".") : fs::path(pattern.substr(0, slash + 1));
  const std::string directory = fs::weakly_canonical(fs::absolute(before)).string();
  const std::string behind = slash == std::string::npos ? pattern : pattern.substr(slash + 1);
  return escaped(directory) + (directory.ends_with('/') ? "" : "/") + behind;
}

// A link to a missing file means that file: the program will create it there.
fs::path behind_links(const std::string& file) {
  fs::path path(file);
  constexpr int kMaxLinks = 40;  // the kernel's limit
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code problem;
    if (!fs::is_symlink(fs::symlink_status(path, problem))) return path;
    path = path.parent_path() / fs::read_symlink(path);
  }
  fail(Errc::invalid_argument, "{}: too many levels of symbolic links", file);
}

std::string whole_file(const std::string& file) {
  const fs::path path = behind_links(file);
  std::error_code problem;
  if (fs::is_directory(path, problem)) {
    const std::string inside = data_file(path.string());
    fail(Errc::invalid_argument,
         "{}: a directory, not a regular file: name the program's file in it{}", file,
         inside == path.string() ? "" : ", as " + inside);
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, problem))
    fail(Errc::not_found, "{}: its directory {} does not exist", file, parent.string());
  return whole_path(path.string());
}

// The library gets several paths as lines.
void require_no_line_break(const std::string& file) {
  if (file.find('\n') != std::string::npos)
    fail(Errc::invalid_argument, "{}: a path with a line break cannot be a --file", file);
}

bool means_a_pattern(const std::string& file) {
  std::error_code problem;
  return preload::is_pattern(file) && !fs::exists(fs::symlink_status(file, problem));
}

void require_own_branch(const std::vector<preload::RunTarget>& targets) {
  const preload::RunTarget& last = targets.back();
  require_good_name(last.branch);
  for (std::size_t i = 0; i + 1 < targets.size(); ++i)
    if (targets[i].branch == last.branch)
      fail(Errc::invalid_argument, "{} and {} would be one branch: '{}'", targets[i].path,
           last.path, last.branch);
}

}  // namespace

std::vector<preload::RunTarget> targets_of(const std::vector<std::string>& files,
                                           const std::optional<std::string>& branch) {
  if (files.size() > preload::RunRecord::kMaxTargets)
    fail(Errc::invalid_argument, "--file may be given at most {} times",
         preload::RunRecord::kMaxTargets);
  std::vector<preload::RunTarget> out;
  for (const std::string& file : files) {
    require_no_line_break(file);
    if (means_a_pattern(file)) {
      out.push_back({whole_pattern(file), {}, {}});
      continue;
    }
    const std::string path = whole_file(file);
    const bool one = files.size() == 1;
    out.push_back({path, one ? branch.value_or("main") : branch_of_file(path), {}});
    require_own_branch(out);
  }
  if (branch && (out.size() != 1 || out[0].branch.empty()))
    fail(Errc::invalid_argument, "--branch is for one --file that is not a pattern");
  return out;
}

std::string directory_of_pattern(const std::string& pattern) {
  const std::size_t slash = pattern.substr(0, literal_bytes(pattern)).rfind('/');
  return slash == std::string::npos ? fs::current_path().string() : pattern.substr(0, slash + 1);
}

}  // namespace vellum::cli
