#include "cli/run/run_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/run/run_targets.hpp"
#include "cli/terminal/progress.hpp"
#include "region/api/version_names.hpp"
#include "region/api/when_free.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMaxWaiting(2);  // for branches that another process has locked

bool has_content(const std::string& path) {
  std::error_code problem;
  const auto bytes = fs::file_size(path, problem);
  return !problem && bytes != 0;
}

// A file that the program has removed is not recreated.
bool was_removed(const std::string& path) {
  std::error_code problem;
  return !path.empty() && fs::status(path, problem).type() == fs::file_type::not_found;
}

bool is_busy(const std::string& branch, const Error& error) {
  print_error(fmt::format("branch '{}': {}", branch, error.what()));
  return error.code() == Errc::busy;  // of another process that the program has started
}

bool was_never_opened(const RunReports& reports, std::size_t target) {
  return reports.complete() && !reports.was_opened(target);
}

// Writes that bypassed the library while the file was live are not visible in the file's times:
// closing the file recorded those as its own. Setting the times to their current values gives a new
// change time, so that the file is compared with its branch.
void force_comparison(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const timespec times[] = {{0, UTIME_OMIT}, status.st_mtim};
  utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

// A killed process may take time to end. A process that this run has not started usually has the
// branch only briefly.
template <typename Open>
auto RunFiles::when_free(const std::string& branch, const Open& open) const {
  return api::when_free(store_.path(), branch, wait_until_, {Errc::busy}, open);
}

RunFiles::RunFiles(Context& context, Store& store, std::vector<preload::RunTarget> targets)
    : store_(store),
      config_{store.path(), std::move(targets), 0},
      wait_until_(Clock::now() + kMaxWaiting) {
  for (std::size_t i = 0; i < config_.targets.size(); ++i) {
    if (config_.targets[i].branch.empty())
      before_[i] = matching(i);
    else
      restore_last_commit(context, config_.targets[i]);
    for (const auto& [branch, path] : branches_of(i))
      sequences_[branch] = store_.version(branch).sequence;
  }
}

// Otherwise a new file would get another file's content, and its changes would be that file's.
void RunFiles::refuse_branch_of_another(const preload::RunTarget& target) const {
  const auto image = store_.branch_image(target.branch);
  std::error_code problem;
  if (!image || image->path == target.path || fs::exists(fs::symlink_status(target.path, problem)))
    return;
  fail(Errc::already_exists,
       "{0}: branch '{1}' of {2} has the content of {3}, and this file does not exist: give it "
       "another branch (--branch NAME), or get that content with vellum restore {2} {1} {0}",
       target.path, target.branch, store_.path(), image->path);
}

// Also repairs the file after a crash.
void RunFiles::restore_last_commit(Context& context, const preload::RunTarget& target) {
  const bool known = store_.contains(target.branch);
  if (known) refuse_branch_of_another(target);
  if (!known && !has_content(target.path)) return;
  if (!known) {
    ProgressMeter meter("import", context.progress_wanted());
    store_.import_file(target.branch, target.path, "as it was before the first run",
                       meter.callback());
  }
  when_free(target.branch,
            [&] { commit_as_found(store_, target.branch, image_as_it_is(target.path)); });
}

// Returns each branch with its file's path. Branches record the paths of files that match a
// pattern.
std::map<std::string, std::string> RunFiles::branches_of(std::size_t target) const {
  const preload::RunTarget& of = config_.targets[target];
  if (!of.branch.empty()) {
    if (!store_.contains(of.branch)) return {};
    return {{of.branch, of.path}};
  }
  std::map<std::string, std::string> out;
  for (const VersionInfo& version : api::branch_heads(store_)) {
    if (version.name.front() != '+') continue;
    const auto image = store_.branch_image(version.name);
    if (image && config_.target_for(image->path) == target) out[version.name] = image->path;
  }
  return out;
}

std::vector<std::string> RunFiles::branches() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < config_.targets.size(); ++i)
    for (const auto& [branch, path] : branches_of(i)) out.push_back(branch);
  return out;
}

// Finds files at low cost only: below the directory that the pattern begins with.
RunFiles::FoundFiles RunFiles::matching(std::size_t target) const {
  constexpr std::size_t kMaxLookedAt = 100'000;
  FoundFiles out;
  std::size_t looked_at = 0;
  std::error_code problem;
  const std::string directory = directory_of_pattern(config_.targets[target].path);
  fs::recursive_directory_iterator entry(directory, fs::directory_options::skip_permission_denied,
                                         problem);
  for (; !problem && entry != fs::recursive_directory_iterator() && looked_at < kMaxLookedAt;
       entry.increment(problem), ++looked_at) {
    const std::string path = entry->path().string();
    if (path == store_.path()) entry.disable_recursion_pending();
    struct stat status;
    if (config_.target_for(path) == target && lstat(path.c_str(), &status) == 0 &&
        S_ISREG(status.st_mode))
      out[path] = {{static_cast<std::int64_t>(status.st_ino), status.st_size,
                    base::nanoseconds_of(status.st_mtim)},
                   base::nanoseconds_of(status.st_ctim)};
  }
  return out;
}

RunOutcome RunFiles::finish(const RunReports& reports) {
  RunOutcome outcome;
  wait_until_ = Clock::now() + kMaxWaiting;
  for (std::size_t i = 0; i < config_.targets.size(); ++i) {
    const std::uint64_t files_before = outcome.files;
    std::vector<std::string> changed;
    const auto branches = branches_of(i);
    if (reports.was_changed(i))
      for (const auto& [branch, path] : branches) force_comparison(path);
    for (const auto& [branch, path] : branches) finish_branch(branch, path, outcome, changed);
    import_unknown(i, outcome, changed);
    if (changed.empty() && reports.was_changed(i)) changed.push_back(config_.targets[i].path);
    for (const std::string& path : changed)
      outcome.problems.emplace_back(path, RunProblem::changed_around);
    if (changed.empty() && outcome.files == files_before && was_never_opened(reports, i))
      outcome.problems.emplace_back(config_.targets[i].path, RunProblem::never_opened);
  }
  return outcome;
}

void RunFiles::finish_branch(const std::string& branch, const std::string& path,
                             RunOutcome& outcome, std::vector<std::string>& changed) {
  try {
    const std::uint64_t before = sequences_[branch], found = store_.version(branch).sequence;
    outcome.commits += found - before;
    outcome.files += found != before ? 1 : 0;
    const auto image = store_.branch_image(branch);
    if (was_removed(path) || (image && !image->in_use && !image->changed)) return;
    Region region =
        when_free(branch, [&] { return store_.open_region(branch, image_as_it_is(path)); });
    const std::uint64_t sequence = region.sequence();
    // What a killed program has appended and closed.
    outcome.commits += sequence - found;
    outcome.files += found == before && sequence != found ? 1 : 0;
    if (region.commit("changed around vellum run").sequence != sequence) changed.push_back(path);
    region.close();
  } catch (const Error& error) {
    outcome.repaired = is_busy(branch, error) && outcome.repaired;
  }
}

// Imports files without a branch: no program has opened them through the library for writing.
void RunFiles::import_unknown(std::size_t target, RunOutcome& outcome,
                              std::vector<std::string>& changed) {
  const auto take = [&](const std::string& branch, const std::string& path, bool is_problem) {
    if (store_.contains(branch) || !has_content(path)) return;
    outcome.repaired = make_branch(branch, path) && outcome.repaired;
    if (is_problem) changed.push_back(path);
  };
  const preload::RunTarget& of = config_.targets[target];
  if (!of.branch.empty()) return take(of.branch, of.path, true);
  const FoundFiles& before = before_[target];
  for (const auto& [path, state] : matching(target)) {
    adopt_unfinished(preload::branch_of_path(path), path, outcome);
    const auto was = before.find(path);
    if (was != before.end() && was->second == state) continue;
    const bool has_new_content = was == before.end() || was->second.content != state.content;
    take(preload::branch_of_path(path), path, has_new_content);
  }
}

// A killed process has created the branch, but has not recorded its file yet.
void RunFiles::adopt_unfinished(const std::string& branch, const std::string& path,
                                RunOutcome& outcome) {
  if (!store_.contains(branch) || store_.branch_image(branch)) return;
  std::vector<std::string> changed;  // by the library, as far as it got
  finish_branch(branch, path, outcome, changed);
}

bool RunFiles::make_branch(const std::string& branch, const std::string& path) {
  try {
    Region region =
        when_free(branch, [&] { return store_.create_region(branch, 1, image_at(path)); });
    region.commit("changed around vellum run");
    region.close();
    return true;
  } catch (const Error& error) {
    return is_busy(branch, error);
  }
}

}  // namespace vellum::cli
