// mount/versions.hpp: the versions that a mounted store shows, found by name and opened.
//
// A version is identified by its key, under any name: the kernel's cached bytes stay valid when a
// branch gets new commits. Threads: all calls from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/catalog/store_directory.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::mount {

inline constexpr const char* kCommits = "at";  // the directory of all commits

struct VersionKey {
  std::uint64_t branch_id = 0, sequence = 0;
  std::int64_t time_ns = 0;  // distinguishes a commit from one that replaced it after a failure
  auto operator<=>(const VersionKey&) const = default;
};

struct FoundVersion {
  std::string name;  // of its snapshot or branch
  VersionKey key;
  std::uint64_t file_bytes = 0, region_bytes = 0;
};

class Versions {
 public:
  explicit Versions(std::shared_ptr<store::StoreDirectory> store) : store_(std::move(store)) {}

  bool at_remote() const;
  std::vector<std::string> names() const;  // of snapshots and branches, sorted
  std::vector<std::string> branches() const;
  // Errc::not_found.
  FoundVersion find(const std::string& name) const;
  // Every commit of a branch that is still readable: those in its journal, and those of snapshots.
  // Errc::not_found.
  std::map<std::uint64_t, FoundVersion> commits_of(const std::string& branch) const;
  // Pins the version as long as the result exists. Errc::not_found if it was freed.
  std::shared_ptr<const store::PageSource> open(const FoundVersion& version) const;

 private:
  store::ResolvedVersion resolve(const FoundVersion& version) const;

  std::shared_ptr<store::StoreDirectory> store_;
};

}  // namespace vellum::mount
