// cli/take_file.hpp: what the commands share that make a branch's content that of a plain file.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/command.hpp"

namespace vellum::cli {

struct TakeFileArguments {
  std::string store;
  std::string branch;
  std::string file;
  std::string message;
  std::optional<std::string> snapshot;
};

// Adds the command `name` with these arguments.
CLI::App* add_take_file_command(CLI::App& app, Context& context, const std::string& name,
                                const std::string& description, const std::string& of_file,
                                std::function<int(const TakeFileArguments&)> run);

// Throws unless the message and the snapshot's name will do: a snapshot that cannot be made must
// not leave the commit behind.
void require_takable(const Store& store, const TakeFileArguments& arguments);

// Snapshots and branches share one name space.
void require_two_names(const std::string& snapshot, const std::string& branch);

// The order is STORE ... FILE. The other way round is taken where it is clear: only FILE is a
// store.
void store_first(std::string& store, std::string& file);

// The file itself behind links: the library follows none. Throws when it is no regular file.
std::string regular_file(const std::string& file);
// The same, of one that need not be there yet.
std::string whole_path(const std::string& file);
// Of a directory that holds data.mdb: that, as LMDB has it.
std::string data_file(const std::string& file);

RegionOptions image_at(const std::string& path);
// The same of one that a program may have made anew, also where no library sees it.
RegionOptions image_as_it_is(const std::string& path);
// Opens the branch with its image: what a crash has left in the file is mended, and what another
// program has written there is committed.
void commit_as_found(Store& store, const std::string& branch, const RegionOptions& image);
// The branches of which the file is the image, or was the last time.
std::vector<std::string> branches_with_image(const Store& store, const std::string& path);

// Keeps the branch's head under the snapshot's name, if there is one, and adds to the report.
void keep_taken(Store& store, const TakeFileArguments& arguments, CommitReport& report);

void report_taken(Context& context, const Store& store, const TakeFileArguments& arguments,
                  const CommitReport& report);

}  // namespace vellum::cli
