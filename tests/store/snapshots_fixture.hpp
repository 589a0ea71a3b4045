// A store with snapshots to remove and to collect, with the expected content of each version.
#pragma once

#include "store/branch/fault_fs.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/support.hpp"

namespace vellum::store::test {

inline void expect_no_damage(StoreDirectory& store) {
  for (const auto& damage : verify_store(store, true, nullptr).damages) {
    ADD_FAILURE() << damage.object << ": " << damage.reason;
  }
}

// The disk space of all packs.
inline std::uint64_t pack_allocated(StoreDirectory& store) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t pack : store.packs().list()) {
    const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
    bytes += file->allocated_bytes();
  }
  return bytes;
}

class SnapshotsTest : public testing::Test {
 protected:
  // A new store with branch `main`; returns its writer.
  std::unique_ptr<BranchWriter> create(const format::Superblock& options, std::size_t pages,
                                       const std::string& name) {
    contents.clear();
    store = StoreDirectory::create(fs, dir.path(name), options);
    store->create_branch("main", pages * kPageBytes, 0);
    return BranchWriter::open(*store, "main");
  }
  void name_head(BranchWriter& writer, const Model& model, const std::string& name) {
    writer.publish_snapshot(name, "");
    contents[name] = contents["main"] = model.bytes;
  }
  void remove(const std::string& name) {
    store->remove_snapshot(name);
    contents.erase(name);
  }
  void expect_all() {
    const auto fresh = StoreDirectory::open(fs, store->path());
    for (const auto& [name, bytes] : contents) expect_same(*open_version(*fresh, name), bytes);
    expect_no_damage(*fresh);
  }
  // The result in a new process.
  GcReport gc(int level = 0) {
    return collect_garbage(*StoreDirectory::open(fs, store->path()), false, nullptr, level);
  }

  TempDirectory dir;
  FaultFs fs{base::posix_fs()};
  std::shared_ptr<StoreDirectory> store;
  std::map<std::string, std::vector<std::byte>> contents;  // of the versions by name
};

}  // namespace vellum::store::test
