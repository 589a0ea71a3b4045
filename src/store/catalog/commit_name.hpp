// store/catalog/commit_name.hpp: the commits of a branch that can still be read, and their names.
//
//   BRANCH@N   the commit with this sequence number on the branch
//
// A commit can be read while the branch's journal holds it, that is until a checkpoint, and for as
// long as a snapshot is of it. No branch or snapshot has an '@' in its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

struct CommitName {
  std::string branch;
  std::uint64_t sequence = 0;
};
// nullopt: the text has another form. Each commit has only one spelling.
std::optional<CommitName> parse_commit_name(const std::string& text);
std::string text_of(const CommitName& name);

// Errc::not_found: there is no such branch, or the commit cannot be read any more.
ResolvedVersion resolve_commit(const StoreDirectory& store, const CommitName& name);

// A commit of a branch that can be read, and is neither its head nor a snapshot.
struct UnnamedCommit {
  CommitName name;
  format::CommitInfo info;
  std::uint64_t pages = 0;  // that it wrote; 0: unknown
};
// Newest first. Errc::not_found: there is no such branch; corrupted.
std::vector<UnnamedCommit> unnamed_commits(const StoreDirectory& store, const std::string& branch);

}  // namespace vellum::store
