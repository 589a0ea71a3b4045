// mount/tree.hpp: the directories and files of a mounted store, and the numbers by which the kernel
// knows them.
//
//   NAME             a branch's head or a snapshot: a file, or the directory of a datastore
//   at/BRANCH/N      the commit with this sequence number
//
// A branch that is mounted to be written is one file, whose content changes.
//
// Names are looked up in the store each time: what is made, or removed, beside the mount shows. A
// node of a version never changes. Threads: all calls from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "mount/part.hpp"
#include "mount/versions.hpp"
#include "mount/writable_file.hpp"

namespace vellum::mount {

struct Node {
  enum class Kind { root, commits, commits_of_branch, datastore, file, writable };
  std::uint64_t number = 0;
  Kind kind = Kind::root;
  std::string branch;    // of commits_of_branch
  FoundVersion version;  // of datastore and file
  std::string prefix;    // of datastore: the path of this directory in it, ends with '/'; or empty
  std::shared_ptr<const std::vector<Part>> parts;  // of datastore
  Part part;                                       // of file
  std::shared_ptr<WritableFile> writable;          // of writable

  bool is_writable() const { return kind == Kind::writable; }
  bool is_file() const { return kind == Kind::file || is_writable(); }
  // Of a file, as it is now.
  std::uint64_t size_bytes() const {
    return is_writable() ? writable->size_bytes() : part.length_bytes;
  }
};

class Tree {
 public:
  static constexpr std::uint64_t kRoot = 1;

  using WritableFiles = std::vector<std::shared_ptr<WritableFile>>;

  Tree(std::shared_ptr<store::StoreDirectory> store, const WritableFiles& writable);

  // nullptr: the number is not known. The kernel asks for numbers that it holds only.
  std::shared_ptr<const Node> node(std::uint64_t number) const;
  // nullptr: no such name. Counts as held once more.
  std::shared_ptr<const Node> look_up(const Node& directory, const std::string& name);
  // The kernel does not hold the number any more, so many times.
  void forget(std::uint64_t number, std::uint64_t times);
  std::vector<std::string> list(const Node& directory) const;
  // Shared by all that have it open. REQUIRES: the file of a version.
  std::shared_ptr<const store::PageSource> open(const Node& file);

 private:
  struct Held {
    std::shared_ptr<const Node> node;
    std::string key;
    std::uint64_t times = 0;
    std::weak_ptr<const store::PageSource> source;
  };
  std::shared_ptr<const Node> hold(Node node, const std::string& key);
  Node version_node(const FoundVersion& version) const;
  static Node inside(const Node& directory, const std::string& name);

  Versions versions_;
  std::map<std::string, std::shared_ptr<WritableFile>> writable_;  // by branch
  mutable std::mutex mutex_;
  std::uint64_t next_ = kRoot;
  std::unordered_map<std::uint64_t, Held> held_;
  std::unordered_map<std::string, std::uint64_t> numbers_;  // by key
};

}  // namespace vellum::mount
