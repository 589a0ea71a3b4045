// region/api/version_names.hpp: versions as programs and command lines name them.
//
//   NAME          the branch's head, or the snapshot
//   NAME~N        N snapshots before it on its line; NAME~ is NAME~1
//   NAME@{TIME}   the newest snapshot on its line that was created at TIME or before
//   @{TIME}       the same, of all snapshots
//   latest        the newest snapshot, unless a version has this name
//   NAME@N        the commit N of the branch, while it can be read (store/catalog/commit_name.hpp)
//
// TIME is 2026-11-24, 2026-11-24T10:30, 2026-11-24T10:30:15 (UTC), `yesterday`, or a number with
// its unit: `3 days ago`, `90min`. A day without a time means its end. ~N may follow any of these.
// Names have neither '~' nor '@', so no version is hidden. (The forms are those of
// git-rev-parse(1).)
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::api {

// The name of the version that `text` denotes. Text without '~' and '{' other than `latest` is
// returned unchanged, whether or not the version exists. Throws Errc::not_found, with the length of
// the line; Errc::invalid_argument for a malformed number or time.
std::string resolve_version(const Store& store, const std::string& text);

// A time as above. A day or a minute without a finer time means its beginning or its end.
// Errc::invalid_argument: it is no time.
enum class Edge : std::uint8_t { begin, end };
std::chrono::system_clock::time_point moment_of(std::string_view time, Edge edge);

// Which of two snapshots is the newer one. by_order: of one store, whose clock may be wrong. by_time:
// of a remote, where the orders of several stores are not one sequence.
enum class Newest : std::uint8_t { by_order, by_time };
// The newest snapshot of `versions` that was created at `time` (above) or before. Errc::not_found,
// with `where` (" on a line") in its message; Errc::invalid_argument: it is no time.
std::string newest_at(const std::vector<VersionInfo>& versions, std::string_view time,
                      const std::string& where, Newest newest);

// The commits of a branch that can be read, newest first, without its head and those that are
// snapshots. Their names are BRANCH@N, and their pages are those that the commit wrote. Empty: the
// name is a snapshot's. Errc::not_found.
std::vector<VersionInfo> commits_of(const Store& store, const std::string& branch);
bool is_commit(const VersionInfo& version);

// `name` and the earlier snapshots on its line, newest first; for a branch also every snapshot
// created on it. A removed snapshot breaks the chain of parents.
std::vector<VersionInfo> line_of(const Store& store, const std::string& name);
// The same of `last`, which is one of `versions`.
std::vector<VersionInfo> line_of(std::vector<VersionInfo> versions, const VersionInfo& last);

// The heads of all branches, by name: Store::versions() without the snapshots. A name that is both
// means the snapshot, and is none of them.
std::vector<VersionInfo> branch_heads(const Store& store);
// The newest snapshots, at most `most`, newest first. Up to this number, not all refs are read
// (store/catalog/snapshots/newest_snapshots.hpp).
inline constexpr std::size_t kNewestFast = 64;
std::vector<VersionInfo> newest_snapshots(const Store& store, std::size_t most);
// Whether a snapshot may be a member of a set `latest` (region/api/snapshots_of.hpp).
bool may_have_set_latest(const Store& store);
// The snapshots whose names begin with `prefix`, by name.
std::vector<VersionInfo> snapshots_named(const Store& store, const std::string& prefix);

// Sorts branch heads by name, then snapshots from the newest to the oldest. The clock is not used.
void sort_newest_first(std::vector<VersionInfo>& versions);

}  // namespace vellum::api
