// cli/commands/cmd_restore.cpp: vellum restore: replaces a file by a version, atomically.
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/inode_lock.hpp"
#include "base/files/new_file.hpp"
#include "cli/files/file_family.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "interfaces/lmdb/lock_file.hpp"
#include "region/api/when_free.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

struct RestoreArguments {
  std::string store;
  std::string version;
  std::string file;
  bool force = false;
};

// The file to be replaced, locked so that no other process has it open. Programs under vellum run
// cannot open it meanwhile; programs that use LMDB wait.
class LockedTarget {
 public:
  LockedTarget(const std::string& path, bool force) {
    auto& files = base::posix_fs();
    require_no_journal(path);
    if (const std::string lock = lmdb::lock_file_of(path); !lock.empty()) {
      lock_.emplace(lock);
      if (!lock_->held() && !force)
        refuse(path, "LMDB's lock file says that a program has it open");
      // Processes that open the new file must not share the lock with those that have the old one.
      if (!lock_->held()) stale_lock_file_ = lock;
    }
    if (!files.exists(path)) return;
    file_ = files.open(path, base::OpenMode::read_only);
    in_use_ = base::InodeLock::try_take(*file_, base::InodeLock::Mode::exclusive);
    if (in_use_ == nullptr) fail(Errc::busy, "{}: a program under vellum run has it open", path);
    if (!force && is_open_in_other_process(*file_, FileUse::any))
      refuse(path, "a program has it open");
  }

  const base::File* file() const noexcept { return file_.get(); }
  // Replaces the file, or creates it if there is none.
  void replace_by(const std::string& from, const std::string& path) const {
    auto& files = base::posix_fs();
    if (!stale_lock_file_.empty()) files.unlink(stale_lock_file_);
    if (file_ != nullptr) {
      files.rename(from, path);
    } else {
      files.rename_new(from, path);
    }
    files.sync_directory(base::parent_of(path));
  }

 private:
  [[noreturn]] static void refuse(const std::string& path, const char* why) {
    fail(Errc::busy, "{}: {}; with --force, that program continues with the old file", path, why);
  }

  std::optional<lmdb::Lock> lock_;
  std::string stale_lock_file_;
  std::unique_ptr<base::File> file_;
  std::unique_ptr<base::InodeLock> in_use_;
};

// A program under vellum run that has closed the file, and keeps it for a later commit, is asked to
// commit it now.
void await_commit(const Store& store, const std::string& path) {
  auto& files = base::posix_fs();
  const auto branches = branches_with_image(store, path);
  if (branches.empty() || !files.exists(path)) return;
  const auto file = files.open(path, base::OpenMode::read_only);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  api::when_free(store.path(), branches.front(), end, {Errc::busy}, [&] {
    if (base::InodeLock::try_take(*file, base::InodeLock::Mode::exclusive) == nullptr)
      fail(Errc::busy, "{}: a program under vellum run has it open", path);
  });
}

// A private directory next to a file. A file in it gets the access rights of the target only at the
// end.
class SiblingDirectory {
 public:
  explicit SiblingDirectory(const std::string& path) : directory_(base::posix_fs(), path) {
    const std::string& made = directory_.unfinished_path();
    if (::mkdir(made.c_str(), 0700) != 0) fail(Errc::io, "{}: {}", made, std::strerror(errno));
  }
  std::string file() const { return directory_.unfinished_path() + "/file"; }

 private:
  base::NewDirectory directory_;
};

// A version next to the file whose place it takes.
class NewContent {
 public:
  NewContent(const Store& store, const std::string& version, const std::string& path,
             const ProgressFn& progress)
      : path_(path), beside_(path) {
    store.export_file(version, beside_.file(), progress);
  }
  // A program's change to the file after this call is not replaced without force.
  void note_target() {
    auto& files = base::posix_fs();
    if (files.exists(path_)) target_ = files.open(path_, base::OpenMode::read_only)->identity();
  }
  // From here on no other process has the file open.
  void lock(bool force) {
    held_.emplace(path_, force);
    std::optional<base::FileIdentity> found;
    if (held_->file() != nullptr) found = held_->file()->identity();
    if (!force && found != target_)
      fail(Errc::busy, "{}: a program has changed it during the restore: restore again", path_);
    if (held_->file() == nullptr) return;
    struct stat status{};
    has_other_names_ = ::stat(path_.c_str(), &status) == 0 && status.st_nlink > 1;
    const auto made = base::posix_fs().open(beside_.file(), base::OpenMode::read_write);
    made->take_access_of(*held_->file());
    made->take_attributes_of(*held_->file());
    made->sync_data();
  }
  void publish() const {
    held_->replace_by(beside_.file(), path_);
    if (has_other_names_)
      print_error(path_ + ": the file's other names (hard links) keep the old content");
  }

 private:
  const std::string path_;
  const SiblingDirectory beside_;
  std::optional<base::FileIdentity> target_;  // empty: there is no file
  std::optional<LockedTarget> held_;
  bool has_other_names_ = false;
};

using VersionOfFile = std::map<std::string, std::string>;

std::set<std::string> paths_of(const VersionOfFile& files) {
  std::set<std::string> out;
  for (const auto& [path, version] : files) out.insert(path);
  return out;
}

// A log or journal that is itself one of the files is replaced, and needs no force.
void require_replaceable_files(const VersionOfFile& files, bool force) {
  if (force) return;
  const std::set<std::string> paths = paths_of(files);
  for (const std::string& path : paths) require_replaceable(path, paths);
}

// Commits the file's content to each branch whose image it is, unless the branch has it.
void commit_current_content(Store& store, const std::string& path) {
  for (const std::string& branch : branches_with_image(store, path)) {
    const auto image = store.branch_image(branch);
    if (!image || (!image->in_use && !image->changed)) continue;
    try {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      api::when_free(store.path(), branch, end, {Errc::busy},
                     [&] { commit_as_found(store, branch, image_at(path)); });
    } catch (const Error& error) {
      if (error.code() != Errc::already_exists) throw;
      // Both have changed: the branch gets the file's content, which then matches its image.
      store.import_file(branch, path, "as the file was found");
      commit_as_found(store, branch, image_at(path));
    }
  }
}

// Whatever can fail precedes the first change, except a rename. The versions are read before the
// current content is committed: that may move the branch whose head is restored, and its commits
// can no longer be read. A file precedes its log, whose name is longer. Returns the companion files
// that were removed with the old content.
std::vector<std::string> replace(Context& context, Store& store, const VersionOfFile& files,
                                 bool force) {
  std::vector<std::unique_ptr<NewContent>> contents;
  for (const auto& [path, version] : files) {
    ProgressMeter meter("restore", context.progress_wanted());
    contents.push_back(std::make_unique<NewContent>(store, version, path, meter.callback()));
  }
  for (const auto& [path, version] : files) commit_current_content(store, path);
  for (const auto& content : contents) content->note_target();
  for (const auto& content : contents) content->lock(force);
  require_replaceable_files(files, force);
  std::vector<std::string> removed;
  // Before the files: the log of an old content must never exist next to a new one.
  for (const auto& [path, version] : files) {
    for (const std::string& companion : remove_companions(path)) removed.push_back(companion);
  }
  for (const auto& content : contents) content->publish();
  return removed;
}

int restore_one(Context& context, Store& store, const RestoreArguments& arguments) {
  const std::string version = resolve_version(store, arguments.version);
  const std::uint64_t bytes = store.version(version).file_bytes;
  const std::string path = whole_path(data_file(arguments.file));
  await_commit(store, path);
  {
    const LockedTarget nobody_else(path, arguments.force);
    require_replaceable_files({{path, version}}, arguments.force);
  }  // before anything is written
  const auto removed = replace(context, store, {{path, version}}, arguments.force);
  context.report(
      Json{{"store", store.path()},
           {"version", version},
           {"file", path},
           {"size_bytes", bytes},
           {"removed", removed}},
      fmt::format("restored {} from '{}' ({}){}", path, version, human_bytes(bytes),
                  removed.empty() ? "" : fmt::format("; removed {}", fmt::join(removed, ", "))));
  return kExitOk;
}

// The file of each member: where its branch has it, or in `directory` under the same name.
VersionOfFile files_of_set(const Store& store, const SnapshotSet& set,
                           const std::string& directory) {
  VersionOfFile out;
  for (const VersionInfo& member : set.members) {
    std::optional<BranchImage> image;
    if (store.contains(member.branch)) image = store.branch_image(member.branch);
    if (!image && directory.empty())
      fail(Errc::invalid_argument,
           "'{}' does not say where its file was: name a directory for the set", member.name);
    const fs::path name =
        image ? fs::path(image->path).filename() : fs::path(file_of_branch(member.branch));
    const std::string path =
        directory.empty() ? image->path : (fs::path(directory) / name).string();
    if (!out.emplace(whole_path(path), member.name).second)
      fail(Errc::invalid_argument, "two members of '{}' would be {}", set.name, path);
  }
  return out;
}

int restore_set(Context& context, Store& store, const SnapshotSet& set,
                const RestoreArguments& arguments) {
  if (!arguments.force) require_complete(store, set);
  const VersionOfFile files = files_of_set(store, set, arguments.file);
  for (const auto& [path, version] : files) {
    await_commit(store, path);
    const LockedTarget nobody_else(path, arguments.force);
  }
  require_replaceable_files(files, arguments.force);  // before anything is written
  replace(context, store, files, arguments.force);
  Json list = Json::array();
  for (const auto& [path, version] : files)
    list.push_back(Json{{"file", path}, {"version", version}});
  context.report(Json{{"store", store.path()}, {"set", set.name}, {"files", std::move(list)}},
                 fmt::format("restored {} from '{}'", counted(files.size(), "file"), set.name));
  return kExitOk;
}

int run_restore(Context& context, RestoreArguments arguments) {
  store_first(arguments.store, arguments.file);
  const auto require_file = [&] {
    if (!arguments.file.empty()) return;
    fail(Errc::invalid_argument, "restore needs STORE, VERSION and FILE; only a set needs no FILE");
  };
  if (!is_local_store(arguments.store)) require_file();
  Store store = Store::open(arguments.store);
  const SnapshotSet set = find_set(store, arguments.version);
  if (!set.members.empty()) return restore_set(context, store, set, arguments);
  require_file();
  return restore_one(context, store, arguments);
}

}  // namespace

void add_restore(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RestoreArguments>();
  CLI::App* command = add_command(
      app, context, "restore", "Replace a file by the content of a version", arguments->store,
      [&context, arguments] { return run_restore(context, *arguments); });
  command->add_option("VERSION", arguments->version, "A snapshot, a set, or a branch (its head)")
      ->required();
  command->add_option("FILE", arguments->file,
                      "The file, or a directory with data.mdb; of a set, the directory for its "
                      "files (default: where they were)");
  command->add_flag("--force", arguments->force,
                    "Restore even while programs have FILE open: they continue with the old file; "
                    "remove a log or journal of SQLite or DuckDB next to it; and restore a set "
                    "with missing members");
}

}  // namespace vellum::cli
