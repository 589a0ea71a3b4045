// Stores that exchange versions through a directory remote, on one simulated disk.
#pragma once

#include "region/api/import.hpp"
#include "region/api/store_impl.hpp"
#include "remote/engine/directory_engine.hpp"
#include "remote/holds.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/pull.hpp"
#include "remote/push.hpp"
#include "remote/session/missing_pieces.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/upkeep.hpp"
#include "store/gc/gc.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::remote::meeting {

using store::StoreDirectory;
using Bytes = std::vector<std::byte>;
using Contents = std::map<std::string, Bytes>;
using Names = std::vector<std::string>;

inline constexpr std::size_t kBlockPages = 16;
inline constexpr std::size_t kBlockBytes = kBlockPages * format::kPageBytes;

// Words, which a higher level compresses further.
class Texts {
 public:
  explicit Texts(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3000; ++i) {
      std::string word;
      for (std::size_t n = 2 + random_() % 8; n > 0; --n) {
        word += static_cast<char>('a' + random_() % 26);
      }
      words_.push_back(word + " ");
    }
  }
  Bytes of(std::size_t bytes) {
    std::string out;
    while (out.size() < bytes) out += words_[random_() % words_.size()];
    Bytes text(bytes);
    std::memcpy(text.data(), out.data(), bytes);
    return text;
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline Bytes part(const Bytes& bytes, std::size_t from, std::size_t to) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
          bytes.begin() + static_cast<std::ptrdiff_t>(to)};
}

inline Bytes read_all(StoreDirectory& store, const std::string& name) {
  const auto source = store::test::open_version(store, name);
  Bytes out(source->region_bytes());
  source->read(0, out.size() / format::kPageBytes, out.data());
  return out;
}

// Commits all differences between the branch's content and the next one, of the same size.
inline void commit_content(store::BranchWriter& writer, const Bytes& now, const Bytes& next,
                           std::int64_t time_ns = 1, bool checkpoint = true) {
  store::test::Model model(next.size() / format::kPageBytes);
  model.bytes = now;
  base::Compressor compressor;
  for (format::PageNumber p = 0; p < model.pages(); ++p) model.touched.insert(p);
  model.take(kBlockPages, compressor);
  for (format::PageNumber p = 0; p < model.pages(); ++p) {
    const auto* const page = next.data() + p * format::kPageBytes;
    if (std::memcmp(model.page(p), page, format::kPageBytes) != 0) model.touched.insert(p);
  }
  model.bytes = next;
  auto commit = writer.begin();
  commit->add(model.take(kBlockPages, compressor));
  commit->finish({time_ns, next.size(), 0, ""}, checkpoint);
}

inline const std::string kRemotePath = "/r";
inline const std::string kRemoteUrl = "file:///r";

inline std::shared_ptr<ObjectStore> objects_on(base::Fs& fs) {
  return std::make_shared<DirectoryEngine>(fs, kRemotePath);
}

inline RemoteOptions without_cache() {
  RemoteOptions out;
  out.cache_directory = "";
  return out;
}

// A store at a path. Each call acts as a new process.
class Station {
 public:
  Station(base::Fs& fs, std::string path, std::shared_ptr<ObjectStore> objects = nullptr)
      : fs_(fs),
        path_(std::move(path)),
        objects_(objects != nullptr ? std::move(objects) : objects_on(fs)) {}

  void create(const format::Superblock& options) {
    add_remote_file(*StoreDirectory::create(fs_, path_, options), "origin", kRemoteUrl, false);
  }
  const std::string& path() const { return path_; }
  bool is_there() const { return fs_.exists(path_ + "/vellum.store"); }
  std::shared_ptr<StoreDirectory> open() const {
    return open_store(fs_, path_, without_cache(), objects_);
  }

  // Commits all differences; creates a snapshot if `name` is not empty.
  void import(const std::string& branch, const Bytes& bytes, const std::string& snapshot = "",
              std::int64_t time_ns = 1) {
    const auto store = open();
    if (!store::has_branch(*store, branch)) store->create_branch(branch, bytes.size(), 0);
    const Bytes now = read_all(*store, branch);
    const auto writer = store::BranchWriter::open(*store, branch);
    commit_content(*writer, now, bytes, time_ns);
    if (!snapshot.empty()) writer->publish_snapshot(snapshot, "");
  }
  // Replaces the branch's content by that of a file, as `vellum backup` does.
  void back_up(const std::string& file, const std::string& branch, const std::string& snapshot) {
    const auto source = fs_.open(file, base::OpenMode::read_only);
    store::FileContent content(*source);
    Store store = StoreAccess::handle_of(open());
    api::import_content(store, branch, content, "", {}, snapshot.empty() ? nullptr : &snapshot);
  }
  void branch(const std::string& name, const std::string& from) {
    const auto store = open();
    store->create_branch_at(name, store::resolve_version(*store, from).version, from, {});
  }
  void remove(const Names& snapshots) {
    for (const std::string& name : snapshots) open()->remove_snapshot(name);
  }
  void gc(int level = 0, std::chrono::milliseconds patience = store::kGcPatience) {
    store::GcPace pace;
    pace.patience = patience;
    store::collect_garbage(*open(), false, nullptr, level, pace);
  }
  void push(const Names& names) {
    const auto store = open();
    Session session(*store, "origin", objects_);
    remote::push(session, {names, false}, nullptr, {.embeds = true});  // if it is one branch
  }
  PullReport pull(const Names& names = {}, bool packs = false) {
    const auto store = open();
    Session session(*store, "origin", objects_);
    return remote::pull(session, {names, packs}, nullptr);
  }
  Names release() {
    const auto store = open();
    Session session(*store, "origin", objects_);
    return release_holds(session);
  }
  void clone(const Names& names = {}, bool lazy = false) {
    remote::clone(fs_, kRemoteUrl, path_, {names, lazy}, nullptr, objects_);
  }
  void expect(const Contents& contents) const {
    const auto store = open();
    for (const auto& [name, bytes] : contents) {
      SCOPED_TRACE(name + " of " + path_);
      EXPECT_TRUE(read_all(*store, name) == bytes);
    }
    store::test::expect_no_damage(*store);
  }

 private:
  base::Fs& fs_;
  const std::string path_;
  const std::shared_ptr<ObjectStore> objects_;
};

// cp -r
inline void copy_directory(base::Fs& fs, const std::string& from, const std::string& to) {
  fs.make_directory(to);
  for (const auto& entry : fs.list(from)) {
    const std::string old = from + "/" + entry.name, fresh = to + "/" + entry.name;
    if (entry.is_directory) {
      copy_directory(fs, old, fresh);
    } else {
      fs.open(fresh, base::OpenMode::create_new)->pwrite(base::read_whole(fs, old, 1u << 30), 0);
    }
  }
}

inline void remove_directory(base::Fs& fs, const std::string& path) {
  if (!fs.exists(path)) return;
  for (const auto& entry : fs.list(path)) {
    const std::string inside = path + "/" + entry.name;
    if (entry.is_directory) {
      remove_directory(fs, inside);
    } else {
      fs.unlink(inside);
    }
  }
  fs.remove_directory(path);
}

// The content that a machine without a store reads from the remote.
inline std::shared_ptr<StoreDirectory> at_url(base::Fs& fs, std::shared_ptr<ObjectStore> objects) {
  return open_remote(fs, kRemoteUrl, without_cache(), std::move(objects));
}
inline std::shared_ptr<StoreDirectory> at_url(base::Fs& fs) { return at_url(fs, objects_on(fs)); }

inline RemoteVerifyReport verify_there(ObjectStore& objects) {
  const Remote remote(objects, read_superblock(objects).store_id);
  return verify_remote(remote, true, nullptr);
}
inline RemoteVerifyReport verify_there(base::Fs& fs) { return verify_there(*objects_on(fs)); }

inline void expect_whole_remote(ObjectStore& objects) {
  for (const RemoteDamage& damage : verify_there(objects).damages) {
    ADD_FAILURE() << damage.object << ": " << damage.reason;
  }
}
inline void expect_whole_remote(base::Fs& fs) { expect_whole_remote(*objects_on(fs)); }

inline void forget_there(ObjectStore& objects, const Names& names) {
  forget_names(Remote(objects, read_superblock(objects).store_id), names);
}
inline void forget_there(base::Fs& fs, const Names& names) { forget_there(*objects_on(fs), names); }

inline void gc_there(ObjectStore& objects) {
  collect_remote(Remote(objects, read_superblock(objects).store_id), false, nullptr);
}
inline void gc_there(base::Fs& fs) { gc_there(*objects_on(fs)); }

inline format::Superblock options(std::uint64_t pack_bytes = 64ULL << 20) {
  format::Superblock out;
  out.block_bytes = kBlockBytes;
  out.journal_half_bytes = 64u << 10;
  out.pack_bytes = pack_bytes;
  return out;
}

}  // namespace vellum::remote::meeting
