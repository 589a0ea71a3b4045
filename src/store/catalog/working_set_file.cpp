#include "store/catalog/working_set_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>

#include "base/clock.hpp"
#include "base/try_to.hpp"
#include "store/catalog/names.hpp"

namespace vellum::store {
namespace {

constexpr const char* kDirectory = "hints";
constexpr std::string_view kSetSuffix = ".set";

std::string directory_of_hints(const PackStore& store) {
  return working_set_directory(store.path());
}

// A link does not count: it could lead out of the store.
bool has_directory(PackStore& store) {
  const auto entries = store.fs().list(store.path());
  return std::any_of(entries.begin(), entries.end(), [](const base::DirEntry& e) {
    return e.name == kDirectory && e.is_directory;
  });
}

// A unique path for a new file. No name of a version begins with a dot.
std::string unique_path(const PackStore& store) {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("{}/.{}.{}.{}", directory_of_hints(store), ::getpid(), base::wall_clock_ns(),
                     counter.fetch_add(1));
}

void replace(PackStore& store, const std::string& path, std::span<const std::byte> bytes) {
  const std::string made = unique_path(store);
  try {
    store.fs().open(made, base::OpenMode::create_new)->pwrite(bytes, 0);
    store.fs().rename(made, path);
  } catch (const Error&) {
    base::try_to([&] { store.fs().unlink(made); });
    throw;
  }
}

}  // namespace

format::WorkingSetOwner working_set_owner(const ResolvedVersion& version) {
  return working_set_owner(version.version, version.is_branch);
}

format::WorkingSetOwner working_set_owner(const format::Version& version, bool is_branch) {
  if (is_branch) return working_set_owner_of_branch(version.branch_id);
  return {version.branch_id, version.sequence, version.time_ns};
}

format::WorkingSetOwner working_set_owner_of_branch(std::uint64_t branch_id) {
  return {branch_id, 0, 0};
}

std::string working_set_directory(const std::string& store_path) {
  return store_path + "/" + kDirectory;
}

std::string working_set_path(const std::string& store_path, const std::string& name) {
  assert(!name.empty());
  return working_set_directory(store_path) + "/" + name + std::string(kSetSuffix);
}

std::vector<format::PageRange> read_working_set(PackStore& store, const std::string& name,
                                                const format::WorkingSetOwner& owner) {
  format::WorkingSet set;
  base::try_to([&] {
    if (!has_directory(store)) return;
    const auto bytes = base::read_whole(store.fs(), working_set_path(store.path(), name),
                                        format::kMaxWorkingSetBytes);
    format::decode_working_set(bytes, store.file_seal(), set);
  });
  if (set.owner != owner) set.ranges.clear();
  return std::move(set.ranges);
}

void write_working_set(PackStore& store, const std::string& name, const format::WorkingSet& set) {
  base::try_to([&] {
    if (!has_snapshot(store, name) && !has_branch(store, name)) return;
    if (!has_directory(store)) store.fs().make_directory(directory_of_hints(store));
    replace(store, working_set_path(store.path(), name),
            format::encode_working_set(set, store.file_seal()));
  });
}

void remove_working_set(PackStore& store, const std::string& name) {
  base::try_to([&] {
    if (has_directory(store)) store.fs().unlink(working_set_path(store.path(), name));
  });
}

void sweep_working_sets(PackStore& store) {
  base::try_to([&] {
    if (!has_directory(store)) return;
    const std::string directory = directory_of_hints(store);
    for (const auto& entry : store.fs().list(directory)) {
      if (entry.is_directory) continue;
      const std::string_view file = entry.name;
      const std::string name(
          file.substr(0, file.size() - std::min(file.size(), kSetSuffix.size())));
      const bool kept = file.ends_with(kSetSuffix) && format::name_problem(name) == nullptr &&
                        (has_snapshot(store, name) || has_branch(store, name));
      if (!kept) store.fs().unlink(directory + "/" + entry.name);
    }
  });
}

std::uint64_t allocated_bytes_of_working_sets(PackStore& store) {
  std::uint64_t bytes = 0;
  base::try_to([&] {
    if (!has_directory(store)) return;
    const std::string directory = directory_of_hints(store);
    for (const auto& entry : store.fs().list(directory)) {
      if (!entry.is_regular_file) continue;
      const auto file = store.fs().open(directory + "/" + entry.name, base::OpenMode::read_only);
      bytes += file->allocated_bytes();
    }
  });
  return bytes;
}

}  // namespace vellum::store
