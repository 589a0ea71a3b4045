// mount/tree.hpp: the directories and files of a mounted store, and their inode numbers.
//
//   NAME             a branch's head or a snapshot: a file, or the directory of a datastore
//   at/BRANCH/N      the commit with this sequence number
//
// A branch that is mounted writable is one file with changing content.
//
// Names are looked up in the store each time, so creations and removals by other processes are
// visible. A node of a version never changes. Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "mount/version_file.hpp"
#include "mount/versions.hpp"
#include "mount/writable_file.hpp"

namespace vellum::mount {

enum class NodeKind { root, commits, commits_of_branch, datastore, file, writable };

struct Node {
  std::uint64_t number = 0;
  NodeKind kind = NodeKind::root;
  std::string branch;    // of commits_of_branch
  FoundVersion version;  // of datastore and file
  std::string prefix;  // of datastore: this directory's path in it, with a '/' at the end; or empty
  std::shared_ptr<const std::vector<VersionFile>> files;  // of datastore
  VersionFile file;                                       // of file
  std::shared_ptr<WritableFile> writable;                 // of writable

  bool is_writable() const { return kind == NodeKind::writable; }
  bool is_file() const { return kind == NodeKind::file || is_writable(); }
  // The current size of a file.
  std::uint64_t size_bytes() const {
    return is_writable() ? writable->size_bytes() : file.length_bytes;
  }
};

class Tree {
 public:
  static constexpr std::uint64_t kRoot = 1;

  using WritableFiles = std::vector<std::shared_ptr<WritableFile>>;

  Tree(std::shared_ptr<store::StoreDirectory> store, const WritableFiles& writable);

  // nullptr: the number is unknown. The kernel requests only numbers that it holds.
  std::shared_ptr<const Node> node(std::uint64_t number) const;
  // nullptr: no such name. Increments the number's reference count.
  std::shared_ptr<const Node> look_up(const Node& directory, const std::string& name);
  // The kernel releases the number this many times.
  void forget(std::uint64_t number, std::uint64_t times);
  std::vector<std::string> list(const Node& directory) const;
  // Shared by all openings. REQUIRES: the file of a version.
  std::shared_ptr<const store::PageSource> open(const Node& file);
  // The bytes of the file outside of holes; searched once. nullopt: unknown, as at a remote, whose
  // page maps would have to be fetched. REQUIRES: as open().
  std::optional<std::uint64_t> data_bytes(const Node& file);

 private:
  struct HeldNode {
    std::shared_ptr<const Node> node;
    std::string key;
    std::uint64_t times = 0;
    std::weak_ptr<const store::PageSource> source;
    bool searched = false;
    std::optional<std::uint64_t> data_bytes;
  };
  std::shared_ptr<const Node> hold(Node node, const std::string& key);
  Node version_node(const FoundVersion& version) const;
  static Node inside(const Node& directory, const std::string& name);

  Versions versions_;
  std::map<std::string, std::shared_ptr<WritableFile>> writable_;  // by branch
  mutable std::mutex mutex_;
  std::uint64_t next_ = kRoot;
  std::unordered_map<std::uint64_t, HeldNode> held_;
  std::unordered_map<std::string, std::uint64_t> numbers_;  // by key
};

}  // namespace vellum::mount
