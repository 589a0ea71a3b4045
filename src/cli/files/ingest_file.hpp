// cli/files/ingest_file.hpp: shared by commands that commit the content of a plain file to a
// branch.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/terminal/command.hpp"

namespace vellum::cli {

struct IngestFileArguments {
  std::string store;
  std::string branch;
  std::string file;
  std::string message;
  std::optional<std::string> snapshot;
};

// Adds the command `name` with these arguments.
CLI::App* add_ingest_file_command(CLI::App& app, Context& context, const std::string& name,
                                  const std::string& description, const std::string& of_file,
                                  std::function<int(const IngestFileArguments&)> run);

// Throw unless the message and the names are valid, and the snapshot's name is free: if the
// snapshot cannot be created, the commit must not happen either. The first one needs no store, and
// precedes its creation.
void require_valid_names(const IngestFileArguments& arguments);
void require_free_name(const Store& store, const IngestFileArguments& arguments);

// Whether the path is a local store's directory.
bool is_local_store(const std::string& path);
// The order is STORE ... FILE. Swaps the two if only FILE is a store.
void store_first(std::string& store, std::string& file);

// Resolves links, because the library follows none. Throws unless it is a regular file.
std::string regular_file(const std::string& file);
// The same for a file that need not exist yet.
std::string whole_path(const std::string& file);
// For a directory with data.mdb, returns that file, as LMDB does.
std::string data_file(const std::string& file);

// The branch of one of several files: the file's name. A name that no branch can have is escaped:
// "file+" and the name, with + and two hexadecimal digits for '+' and for each byte that no name has.
// Errc::invalid_argument: it is too long then.
std::string branch_of_file(const std::string& path);
// The inverse. Never a path with several components.
std::string file_of_branch(const std::string& branch);

RegionOptions image_at(const std::string& path);
// Options for a file that a program may have recreated without the library.
RegionOptions image_as_it_is(const std::string& path);
// Opens the branch with its image: repairs the file after a crash, and commits the changes of other
// programs to it.
void commit_as_found(Store& store, const std::string& branch, const RegionOptions& image);
// The branches whose image is, or last was, this file.
std::vector<std::string> branches_with_image(const Store& store, const std::string& path);

// The requested snapshot's name; null: none.
const std::string* snapshot_of(const IngestFileArguments& arguments) noexcept;

void report_taken(Context& context, const Store& store, const IngestFileArguments& arguments,
                  const CommitReport& report);

}  // namespace vellum::cli
