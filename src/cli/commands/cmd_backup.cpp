// cli/commands/cmd_backup.cpp: vellum backup: records a file's current content, while other
// programs may have it open.
#include <chrono>
#include <memory>
#include <utility>

#include "base/fail.hpp"
#include "base/try_to.hpp"
#include "cli/files/backup_source.hpp"
#include "cli/files/file_family.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "region/api/import.hpp"
#include "region/api/when_free.hpp"

namespace vellum::cli {
namespace {

struct BackupArguments : IngestFileArguments {
  std::string name;
  std::vector<std::string> files;
  bool stopped = false;
};

[[noreturn]] void refuse_live(const BackupArguments& arguments, const std::string& branch) {
  fail(Errc::busy,
       "{}: a program has it open under vellum run, as branch '{}'; "
       "keep its content with: vellum snapshot {} {} {}",
       arguments.file, branch, arguments.store, arguments.name, branch);
}

// After a crash of `vellum run`, the file may be older than the branch, or a mix of states.
void repair_image(const BackupArguments& arguments, Store& store) {
  const std::string path = regular_file(arguments.file);
  for (const std::string& branch : branches_with_image(store, path)) {
    if (!store.branch_image(branch)->in_use) continue;
    try {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      api::when_free(store.path(), branch, end, {Errc::busy},
                     [&] { store.open_region(branch, image_at(path)).close(); });
    } catch (const Error& error) {
      if (error.code() == Errc::busy) refuse_live(arguments, branch);
      if (error.code() != Errc::already_exists) throw;  // another file: read as it is
    }
  }
}

using Source = std::unique_ptr<store::Content>;

Source open_source(const BackupArguments& arguments) {
  return open_backup_source(arguments.file, arguments.stopped);
}

// Null if there is a store, which may have to repair the file's image first. Otherwise the file is
// opened before a store is created: one that cannot be read leaves no store.
Source source_of_new_store(const BackupArguments& first) {
  return is_local_store(first.store) ? nullptr : open_source(first);
}

CommitReport take(Context& context, Store& store, const BackupArguments& arguments, Source source) {
  if (!source) {
    repair_image(arguments, store);
    source = open_source(arguments);
  }
  ProgressMeter meter("backup", context.progress_wanted());
  return api::import_content(store, arguments.branch, *source, arguments.message, meter.callback(),
                             snapshot_of(arguments));
}

int back_up_one(Context& context, BackupArguments arguments) {
  store_first(arguments.store, arguments.file);
  arguments.snapshot = arguments.name;
  arguments.file = data_file(arguments.file);
  require_valid_names(arguments);
  require_no_companions(regular_file(arguments.file));
  Source source = source_of_new_store(arguments);
  Store store = Store::open_or_create(arguments.store);
  require_free_name(store, arguments);
  const CommitReport report = take(context, store, arguments, std::move(source));
  report_taken(context, store, arguments, report);
  return kExitOk;
}

// A file each, in a branch as under `vellum run`.
std::vector<BackupArguments> each_file(const BackupArguments& arguments) {
  std::vector<BackupArguments> out;
  for (const std::string& file : arguments.files) {
    BackupArguments one = arguments;
    one.file = data_file(file);
    const std::string path = regular_file(one.file);
    require_no_companions(path);
    one.branch = branch_of_file(path);
    for (const BackupArguments& other : out) {
      if (other.branch == one.branch)
        fail(Errc::invalid_argument, "{} and {} would be one branch: '{}'", other.file, one.file,
             one.branch);
    }
    out.push_back(std::move(one));
  }
  return out;
}

void report_set(Context& context, const Store& store, const BackupArguments& arguments,
                const std::vector<BackupArguments>& files, std::uint64_t bytes_written) {
  Json list = Json::array();
  for (const BackupArguments& one : files) {
    list.push_back(Json{{"file", one.file}, {"branch", one.branch}, {"snapshot", *one.snapshot}});
  }
  context.report(Json{{"store", store.path()},
                      {"set", arguments.name},
                      {"files", std::move(list)},
                      {"bytes_written", bytes_written}},
                 fmt::format("kept {} as '{}', {} written", counted(files.size(), "file"),
                             arguments.name, human_bytes(bytes_written)));
}

// One set; after an error there is none.
int back_up_several(Context& context, const BackupArguments& arguments) {
  std::vector<BackupArguments> files = each_file(arguments);
  std::vector<std::string> branches;
  for (const BackupArguments& one : files) branches.push_back(one.branch);
  for (BackupArguments& one : files)
    one.snapshot = member_name(arguments.name, branches, one.branch);
  require_good_message(arguments.message);
  Source first = source_of_new_store(files.front());
  Store store = Store::open_or_create(arguments.store);
  require_free_set(store, arguments.name, branches);
  std::uint64_t bytes_written = 0;
  std::size_t done = 0;
  try {
    for (; done < files.size(); ++done)
      bytes_written +=
          take(context, store, files[done], std::exchange(first, nullptr)).bytes_written;
  } catch (...) {
    while (done-- > 0) base::try_to([&] { store.remove_snapshot(*files[done].snapshot); });
    throw;
  }
  report_set(context, store, arguments, files, bytes_written);
  return kExitOk;
}

int run_backup(Context& context, BackupArguments arguments, bool branch_given) {
  if (arguments.files.size() == 1) {
    arguments.file = arguments.files[0];
    return back_up_one(context, std::move(arguments));
  }
  if (branch_given) fail(Errc::invalid_argument, "--branch is for one FILE");
  return back_up_several(context, arguments);
}

}  // namespace

void add_backup(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BackupArguments>();
  arguments->branch = "main";
  auto branch_given = std::make_shared<CLI::Option*>(nullptr);
  CLI::App* command = add_command(
      app, context, "backup", "Record the current content of a file, also while LMDB writes it",
      arguments->store, [&context, arguments, branch_given] {
        return run_backup(context, *arguments, (*branch_given)->count() != 0);
      });
  command->get_option("STORE")->description("The store; it is created if it does not exist");
  command
      ->add_option("FILE", arguments->files,
                   "The file, or a directory with data.mdb; several make one set")
      ->required();
  command->add_option("--name", arguments->name, "The new snapshot's name, or the set's")
      ->required()
      ->type_name("NAME");
  command->add_option("-m,--message", arguments->message, "The message that log and show print")
      ->type_name("MSG");
  *branch_given = command
                      ->add_option("--branch", arguments->branch,
                                   "The branch; it is created if it does not exist (default: main)")
                      ->type_name("NAME");
  command->add_flag("--stopped", arguments->stopped,
                    "Read the file even if programs have it open; none may write it meanwhile");
}

}  // namespace vellum::cli
