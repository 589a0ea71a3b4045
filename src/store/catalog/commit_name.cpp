#include "store/catalog/commit_name.hpp"

#include <cassert>
#include <string_view>
#include <utility>

#include "base/fail.hpp"
#include "base/parse_number.hpp"
#include "store/catalog/names.hpp"
#include "store/page_map/overlay.hpp"

namespace vellum::store {
namespace {

std::uint64_t pages_of(const StoreDirectory& store, const format::CommitBody& commit) {
  std::vector<format::CommitBody> alone{commit};
  check_raw_bytes(alone, store.superblock().journal_half_bytes);
  return Overlay(std::move(alone)).lines().size();
}

// `of` becomes the version after the first `count` of its commits.
ResolvedVersion cut_to(ResolvedVersion of, std::size_t count, const CommitName& name) {
  assert(count <= of.commits.size());
  of.commits.resize(count);
  of.is_branch = false;
  of.created_ns = of.head_info().time_ns;
  of.label = fmt::format("commit {} of branch '{}'", name.sequence, name.branch);
  return of;
}

// The branch's head, if it is a branch.
ResolvedVersion head_of(const StoreDirectory& store, const CommitName& name) {
  ResolvedVersion head = resolve_version(store, name.branch);
  if (!head.is_branch) {
    fail(Errc::not_found, "'{}': '{}' is a snapshot, and only a branch has commits", text_of(name),
         name.branch);
  }
  return head;
}

// The snapshot of a branch's commit; empty: there is none.
std::string snapshot_of(const StoreDirectory& store, std::uint64_t branch_id,
                        std::uint64_t sequence) {
  for (const std::string& name : snapshot_names(store)) {
    try {
      const format::Version found = read_snapshot(store, name).version;
      if (found.branch_id == branch_id && found.sequence == sequence) return name;
    } catch (const Error& error) {
      if (error.code() != Errc::not_found) throw;  // it was removed meanwhile
    }
  }
  return "";
}

}  // namespace

std::optional<CommitName> parse_commit_name(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == 0 || at == std::string::npos) return std::nullopt;
  const auto sequence = base::parse_number<std::uint64_t>(std::string_view(text).substr(at + 1));
  if (!sequence) return std::nullopt;
  CommitName name{text.substr(0, at), *sequence};
  return text_of(name) == text ? std::optional(std::move(name)) : std::nullopt;
}

std::string text_of(const CommitName& name) {
  return fmt::format("{}@{}", name.branch, name.sequence);
}

ResolvedVersion resolve_commit(const StoreDirectory& store, const CommitName& name) {
  ResolvedVersion head = head_of(store, name);
  const std::uint64_t first = head.version.sequence, last = head.head_sequence();
  if (name.sequence > last) {
    fail(Errc::not_found, "branch '{}' has no commit {}: its last is {}", name.branch,
         name.sequence, last);
  }
  if (name.sequence >= first) {
    return cut_to(std::move(head), static_cast<std::size_t>(name.sequence - first), name);
  }
  const std::string snapshot = snapshot_of(store, head.version.branch_id, name.sequence);
  if (!snapshot.empty()) return resolve_snapshot(store, snapshot);
  fail(Errc::not_found,
       "commit {} of branch '{}' can no longer be read: a later one includes it, and it has no "
       "snapshot; the oldest that can is {}",
       name.sequence, name.branch, first);
}

std::vector<UnnamedCommit> unnamed_commits(const StoreDirectory& store, const std::string& branch) {
  const ResolvedVersion head = head_of(store, {branch, 0});
  const std::uint64_t first = head.version.sequence;
  std::vector<UnnamedCommit> out;
  for (std::size_t i = head.commits.size(); i-- > 1;) {
    const format::CommitBody& commit = head.commits[i - 1];
    out.push_back({{branch, first + i}, commit, pages_of(store, commit)});
  }
  // The version that the journal extends; 0: the branch was new.
  const bool has_base = first != 0 && !head.commits.empty();
  if (has_base && snapshot_of(store, head.version.branch_id, first).empty())
    out.push_back({{branch, first}, head.version, 0});
  return out;
}

}  // namespace vellum::store
