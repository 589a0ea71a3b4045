// Stores that push to a remote and are cloned from it, with the expected content of each version.
#pragma once

#include <cstdlib>
#include <fstream>

#include "remote/engine/directory_engine.hpp"
#include "remote/pull.hpp"
#include "remote/push.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote_keys.hpp"
#include "remote/upkeep.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::remote::test {

using store::BranchWriter;
using store::StoreDirectory;
using store::test::commit;
using store::test::Model;

using Contents = std::map<std::string, std::vector<std::byte>>;

inline constexpr std::size_t kRemotePages = 96;

inline format::Superblock remote_options() {
  format::Superblock options = store::test::small_options();
  options.pack_bytes = 64u << 10;
  return options;
}

// A branch of a store, to which steps are committed.
class Line {
 public:
  Line(StoreDirectory& store, std::string branch, std::uint64_t seed)
      : store_(store), branch_(std::move(branch)), random_(seed), model_(kRemotePages) {}

  // Creates the branch, with every page filled.
  void begin() {
    store_.create_branch(branch_, kRemotePages * format::kPageBytes, 0);
    for (format::PageNumber p = 0; p < kRemotePages; ++p)
      store::test::fill_text(model_, p, random_);
  }
  // Continues from the branch's content, which is that of another line.
  void go_on(const Line& other) { model_ = other.model_; }

  // Commits changes of some pages, and creates a snapshot if `name` is not empty.
  void step(const std::string& snapshot, std::size_t pages = 8, bool checkpoint = true) {
    const auto writer = BranchWriter::open(store_, branch_);
    for (std::size_t i = 0; i < pages; ++i) {
      store::test::fill_text(model_, random_() % kRemotePages, random_);
    }
    model_.store64(random_() % kRemotePages, 8, random_());
    commit(*writer, model_, checkpoint || !snapshot.empty());
    if (!snapshot.empty()) writer->publish_snapshot(snapshot, "message of " + snapshot);
  }
  // Commits only to the journal; closing the writer would checkpoint the commit.
  std::unique_ptr<BranchWriter> step_and_stay() {
    auto writer = BranchWriter::open(store_, branch_);
    model_.store64(random_() % kRemotePages, 16, random_());
    commit(*writer, model_, false);
    return writer;
  }
  // One more commit of that writer, of one page, to the journal.
  void step_with(BranchWriter& writer) {
    store::test::fill_text(model_, random_() % kRemotePages, random_);
    commit(writer, model_, false);
  }
  const std::vector<std::byte>& bytes() const { return model_.bytes; }

 private:
  StoreDirectory& store_;
  const std::string branch_;
  std::mt19937_64 random_;
  Model model_;
};

inline void expect_contents(StoreDirectory& store, const Contents& contents) {
  for (const auto& [name, bytes] : contents) {
    store::test::expect_same(*store::test::open_version(store, name), bytes);
  }
  store::test::expect_no_damage(store);
}

inline void expect_same_snapshots(StoreDirectory& a, StoreDirectory& b) {
  ASSERT_EQ(store::snapshot_names(a), store::snapshot_names(b));
  for (const std::string& name : store::snapshot_names(a)) {
    EXPECT_EQ(store::read_snapshot(a, name), store::read_snapshot(b, name)) << name;
  }
}

using Ranges = std::vector<format::PageRange>;

// The working set of a name.
inline void record_set(StoreDirectory& store, const std::string& name, const Ranges& ranges) {
  const auto owner = store::working_set_owner(store::resolve_version(store, name));
  store::write_working_set(store, name, {owner, ranges});
}
inline Ranges recorded_set(StoreDirectory& store, const std::string& name) {
  const auto owner = store::working_set_owner(store::resolve_version(store, name));
  return store::read_working_set(store, name, owner);
}

inline PushReport push_names(StoreDirectory& store, std::vector<std::string> names,
                             std::shared_ptr<ObjectStore> objects = nullptr,
                             bool take_over = false) {
  Session session(store, "origin", std::move(objects));
  return push(session, {std::move(names), take_over}, nullptr);
}

inline PushReport push_all(StoreDirectory& store, std::shared_ptr<ObjectStore> objects = nullptr) {
  std::vector<std::string> names = store::snapshot_names(store);
  for (const std::string& branch : store.branch_names()) {
    if (!store::is_staging_name(branch)) names.push_back(branch);
  }
  return push_names(store, std::move(names), std::move(objects));
}

inline PullReport pull_names(StoreDirectory& store, std::vector<std::string> names = {},
                             std::shared_ptr<ObjectStore> objects = nullptr) {
  Session session(store, "origin", std::move(objects));
  return pull(session, {std::move(names)}, nullptr);
}

// What is encrypted in a run of its own: VELLUM_TEST_ENCRYPTED is "stores", or "objects".
inline bool is_run_with_encrypted(std::string_view what) {
  const char* const wanted = std::getenv("VELLUM_TEST_ENCRYPTED");
  return wanted != nullptr && what == wanted;
}
// Whether the stores of these tests are encrypted, and so their remotes.
inline bool& are_encrypted() {
  static bool encrypted = is_run_with_encrypted("stores");
  return encrypted;
}
// Whether the remotes are, by objects, and the stores are not.
inline bool& are_objects_encrypted() {
  static bool encrypted = is_run_with_encrypted("objects");
  return encrypted;
}

// A key file, in a directory of this process: 'k' is the secret of all these stores.
inline KeySource test_key(char content = 'k') {
  static const store::test::TempDirectory directory;
  KeySource out;
  out.key_file = directory.path(std::string("key-") + content);
  std::ofstream(out.key_file) << std::string(40, content);
  return out;
}

inline std::shared_ptr<StoreDirectory> create_store(base::Fs& fs, const std::string& path,
                                                    const format::Superblock& options) {
  if (!are_encrypted()) return StoreDirectory::create(fs, path, options);
  set_key_source(test_key());
  return StoreDirectory::create_encrypted(fs, path, options, test_key());
}

// The remote behind these objects, which has a key of its own if the test's remotes do; opened.
inline std::shared_ptr<ObjectStore> opened_remote(StoreDirectory& store,
                                                  std::shared_ptr<ObjectStore> objects) {
  if (!are_objects_encrypted()) return objects;
  set_key_source(test_key());
  try {
    return unlock_remote(objects).objects;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
  }
  return create_objects_key(std::move(objects), store, test_key());
}
inline void add_origin(StoreDirectory& store, const std::string& url,
                       std::shared_ptr<ObjectStore> objects) {
  add_remote_file(store, "origin", url, false,
                  key_entry_of(*opened_remote(store, std::move(objects))));
}

class RemoteTest : public testing::Test {
 protected:
  RemoteTest() { add_origin(*store, url(), raw_objects()); }
  std::string url() const { return "file://" + dir.path("r"); }
  std::shared_ptr<ObjectStore> raw_objects() const {
    return open_object_store(base::posix_fs(), url());
  }
  // Opened, if they are encrypted.
  std::shared_ptr<ObjectStore> objects() const {
    if (!are_objects_encrypted()) return raw_objects();
    return opened_objects(*store, read_remote_file(*store, "origin"), raw_objects(),
                          SlotsFrom::store_first);
  }

  // `main` with snapshots s0, s1, ...
  void make(int snapshots) {
    line.begin();
    for (int i = 0; i < snapshots; ++i) step("s" + std::to_string(i));
  }
  void step(const std::string& snapshot, std::size_t pages = 8, bool checkpoint = true) {
    line.step(snapshot, pages, checkpoint);
    contents["main"] = line.bytes();
    if (!snapshot.empty()) contents[snapshot] = line.bytes();
  }
  std::shared_ptr<StoreDirectory> clone_to(const std::string& name,
                                           std::vector<std::string> names = {}) {
    clone(base::posix_fs(), url(), dir.path(name), {std::move(names)}, nullptr);
    return StoreDirectory::open(base::posix_fs(), dir.path(name));
  }
  // Pushes many versions one by one, and calls `read` with the name of each. Some of their runs
  // name packs of which the version needs no record.
  void push_each_version(const std::function<void(const std::string& name)>& read) {
    line.begin();
    for (int i = 0; i < 30; ++i) {
      const std::string name = "s" + std::to_string(i);
      step(name, 40);
      push_names(*store, {name});
      read(name);
    }
  }
  // Packs of a store with only a header.
  int bare_packs(const std::string& name) const {
    int bare = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path(name) + "/packs")) {
      bare += entry.file_size() == format::kPackHeaderBytes ? 1 : 0;
    }
    return bare;
  }
  void expect_good_remote() {
    const auto there = objects();
    const Remote remote(*there, store->store_seal());
    for (const RemoteDamage& damage : verify_remote(remote, true, nullptr).damages) {
      ADD_FAILURE() << damage.object << ": " << damage.reason;
    }
  }

  store::test::TempDirectory dir;
  std::shared_ptr<StoreDirectory> store =
      create_store(base::posix_fs(), dir.path("s"), remote_options());
  Line line{*store, "main", 5};
  Contents contents;
};

}  // namespace vellum::remote::test
