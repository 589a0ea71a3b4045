// tests/support/disk/memory_fs.hpp: a complete file system in memory behind base::Fs.
//
// It behaves like posix_fs(): open never follows a link in the last component, and refuses all but
// regular files; an unlinked file exists while it is open; locks belong to an open file and end
// with it. Links in the middle of a path are followed, as by the kernel: a store that must stay
// within its directory has to check that itself. In addition to the seam's calls it creates links
// and FIFOs, returns its files' bytes, and counts changes.
//
// Everything written is durable immediately: support/sim_fs_lib.hpp simulates power cuts.
//
// Threads: all calls from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>
#include <vellum/error.hpp>

#include "base/files/file.hpp"
#include "support/file_lock.hpp"

namespace vellum::test {

class MemoryFs final : public base::Fs {
 public:
  using Bytes = std::vector<std::byte>;
  enum class NodeKind { file, directory, link, fifo };

  explicit MemoryFs(std::uint64_t capacity_bytes = UINT64_MAX)
      : shared_(std::make_shared<Shared>()), root_(std::make_shared<Node>()) {
    shared_->capacity_bytes = capacity_bytes;
    root_->kind = NodeKind::directory;
  }

  // The seam.
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override;
  void rename(const std::string& from, const std::string& to) override { move(from, to, true); }
  void rename_new(const std::string& from, const std::string& to) override {
    move(from, to, false);
  }
  // It imitates a file system without second names.
  void link(const std::string&, const std::string& to) override {
    fail(Errc::unsupported, to, "no hard links");
  }
  void unlink(const std::string& path) override;
  void make_directory(const std::string& path) override { add(path, NodeKind::directory, {}); }
  void remove_directory(const std::string& path) override;
  void sync_directory(const std::string& path) override {
    const std::lock_guard guard(shared_->mutex);
    directory_at(path);
  }
  std::vector<base::DirEntry> list(const std::string& path) const override;
  bool exists(const std::string& path) const override {
    const std::lock_guard guard(shared_->mutex);
    const ParentAndName place = find_parent(path);
    return place.parent != nullptr && place.node() != nullptr;
  }

  // For tests.
  void write_file(const std::string& path, Bytes bytes) {
    add(path, NodeKind::file, {});
    const std::lock_guard guard(shared_->mutex);
    find_parent(path).node()->bytes = std::move(bytes);
  }
  void make_link(const std::string& path, const std::string& to) { add(path, NodeKind::link, to); }
  void make_fifo(const std::string& path) { add(path, NodeKind::fifo, {}); }
  Bytes read_file(const std::string& path) const {
    const std::lock_guard guard(shared_->mutex);
    const auto node = find_parent(path).node();
    return node == nullptr ? Bytes() : node->bytes;
  }
  // Removes the file or directory, with everything below it.
  void erase(const std::string& path) {
    const std::lock_guard guard(shared_->mutex);
    const ParentAndName place = find_parent(path);
    if (place.parent != nullptr) place.parent->children.erase(place.name);
  }
  // Corruption: changes bits of one byte; open files do not notice. False: there is no such byte.
  bool flip(const std::string& path, std::uint64_t offset_bytes, std::byte mask) {
    const std::lock_guard guard(shared_->mutex);
    const auto node = find_parent(path).node();
    if (node == nullptr || offset_bytes >= node->bytes.size()) return false;
    node->bytes[static_cast<std::size_t>(offset_bytes)] ^= mask;
    return true;
  }
  // The state after a power cut if everything had been written: an independent copy, without locks.
  std::unique_ptr<MemoryFs> clone() const {
    const std::lock_guard guard(shared_->mutex);
    auto out = std::make_unique<MemoryFs>();
    out->root_ = copy_of(*root_);
    return out;
  }
  // Every regular file, sorted by path.
  std::vector<std::string> files() const {
    const std::lock_guard guard(shared_->mutex);
    std::vector<std::string> out;
    collect_files(*root_, "", out);
    return out;
  }
  // Calls that changed something: writes, truncations, and names created, moved and removed.
  std::uint64_t changes() const noexcept { return shared_->changes.load(); }
  std::uint64_t syncs() const noexcept { return shared_->syncs.load(); }

 private:
  struct Shared {
    std::mutex mutex;
    std::atomic<std::uint64_t> changes{0}, syncs{0};
    std::uint64_t capacity_bytes = UINT64_MAX;
    std::uint64_t used_bytes = 0;
  };
  struct Node {
    NodeKind kind = NodeKind::file;
    Bytes bytes;
    std::string target;     // of a link
    bool nameless = false;  // it was unlinked, or its name now belongs to another file
    std::map<std::string, std::shared_ptr<Node>> children;
    FileLock lock;
  };
  class OpenFile;
  struct ParentAndName {
    std::shared_ptr<Node> parent;  // null: no such directory
    std::string name;              // empty: the root itself
    std::shared_ptr<Node> node() const {
      if (parent == nullptr || name.empty()) return parent;
      const auto at = parent->children.find(name);
      return at == parent->children.end() ? nullptr : at->second;
    }
  };

  [[noreturn]] static void fail(Errc code, const std::string& path, const char* what) {
    throw Error(code, path + ": " + what);
  }
  static std::shared_ptr<Node> copy_of(const Node& node) {
    auto out = std::make_shared<Node>();
    out->kind = node.kind;
    out->bytes = node.bytes;
    out->target = node.target;
    for (const auto& [name, child] : node.children) out->children[name] = copy_of(*child);
    return out;
  }
  static void collect_files(const Node& node, const std::string& path,
                            std::vector<std::string>& out) {
    if (node.kind == NodeKind::file) out.push_back(path);
    for (const auto& [name, child] : node.children) collect_files(*child, path + "/" + name, out);
  }
  ParentAndName find_parent(const std::string& path, int links_left = 16) const;
  std::shared_ptr<Node> directory_at(const std::string& path) const;
  void add(const std::string& path, NodeKind kind, const std::string& target);
  void move(const std::string& from, const std::string& to, bool replace);

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Node> root_;
};

// An open file keeps its node when the name changes.
class MemoryFs::OpenFile final : public base::File {
 public:
  OpenFile(std::string path, bool writable, std::shared_ptr<Shared> shared,
           std::shared_ptr<Node> node)
      : path_(std::move(path)),
        writable_(writable),
        shared_(std::move(shared)),
        node_(std::move(node)) {}
  ~OpenFile() override {
    const std::lock_guard guard(shared_->mutex);
    node_->lock.unlock(this);
  }

  const std::string& path() const noexcept override { return path_; }
  std::uint64_t size_bytes() const override {
    const std::lock_guard guard(shared_->mutex);
    return node_->bytes.size();
  }
  std::uint64_t allocated_bytes() const override { return (size_bytes() + 4095) / 4096 * 4096; }

  void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const override {
    if (try_pread(out, offset_bytes) != 0) {
      fail(Errc::corrupted, path_, "truncated: read past the end of the file");
    }
  }
  int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept override {
    const std::lock_guard guard(shared_->mutex);
    const Bytes& bytes = node_->bytes;
    if (offset_bytes > INT64_MAX) return EINVAL;
    if (out.empty()) return 0;
    if (offset_bytes > bytes.size() || out.size() > bytes.size() - offset_bytes) return ENODATA;
    std::memcpy(out.data(), bytes.data() + offset_bytes, out.size());
    return 0;
  }
  void pwrite(std::span<const std::byte> in, std::uint64_t offset_bytes) override {
    if (in.empty()) return;
    const std::lock_guard guard(shared_->mutex);
    require_writable();
    grow_to(offset_bytes, in.size());
    std::memcpy(node_->bytes.data() + offset_bytes, in.data(), in.size());
    ++shared_->changes;
  }
  void sync_data() override { ++shared_->syncs; }
  void truncate(std::uint64_t size_bytes) override {
    const std::lock_guard guard(shared_->mutex);
    require_writable();
    if (size_bytes > node_->bytes.size()) {
      grow_to(size_bytes, 0);
    } else {
      shared_->used_bytes -= node_->bytes.size() - size_bytes;
      node_->bytes.resize(static_cast<std::size_t>(size_bytes));
    }
    ++shared_->changes;
  }
  void allocate(std::uint64_t offset_bytes, std::uint64_t length_bytes) override {
    const std::lock_guard guard(shared_->mutex);
    require_writable();
    grow_to(offset_bytes, length_bytes);
    ++shared_->changes;
  }
  void punch(std::uint64_t offset_bytes, std::uint64_t length_bytes) override {
    const std::lock_guard guard(shared_->mutex);
    require_writable();
    Bytes& bytes = node_->bytes;
    if (offset_bytes >= bytes.size()) return;
    const std::uint64_t n = std::min<std::uint64_t>(length_bytes, bytes.size() - offset_bytes);
    std::memset(bytes.data() + offset_bytes, 0, static_cast<std::size_t>(n));
    ++shared_->changes;
  }
  bool pin_byte(std::uint64_t at) override {
    const std::lock_guard guard(shared_->mutex);
    return node_->lock.pin(this, at);
  }
  bool try_lock_byte(std::uint64_t at) override {
    const std::lock_guard guard(shared_->mutex);
    require_writable();
    return node_->lock.lock_byte(this, at);
  }
  bool byte_locked(std::uint64_t at) const override {
    const std::lock_guard guard(shared_->mutex);
    return node_->lock.locked_by_another(this, at);
  }
  void unpin_byte(std::uint64_t at) override {
    const std::lock_guard guard(shared_->mutex);
    node_->lock.unpin(this, at);
  }
  std::vector<std::uint64_t> pinned_bytes() const override {
    const std::lock_guard guard(shared_->mutex);
    return node_->lock.pins_of_others(this);
  }
  bool replaced() const override {
    const std::lock_guard guard(shared_->mutex);
    return node_->nameless;
  }
  bool try_lock_exclusive() override {
    const std::lock_guard guard(shared_->mutex);
    return node_->lock.lock(this, true);
  }
  bool try_lock_shared() override {
    const std::lock_guard guard(shared_->mutex);
    return node_->lock.lock(this, false);
  }

 private:
  void require_writable() const {
    if (!writable_) fail(Errc::io, path_, "not open for writing");
  }
  void grow_to(std::uint64_t offset_bytes, std::uint64_t length_bytes) {
    if (offset_bytes > INT64_MAX || length_bytes > INT64_MAX - offset_bytes) {
      fail(Errc::io, path_, "file too large");
    }
    const std::uint64_t end = offset_bytes + length_bytes;
    if (end <= node_->bytes.size()) return;
    const std::uint64_t more = end - node_->bytes.size();
    if (more > shared_->capacity_bytes - shared_->used_bytes)
      fail(Errc::no_space, path_, "no space");
    shared_->used_bytes += more;
    node_->bytes.resize(static_cast<std::size_t>(end));
  }

  std::string path_;
  bool writable_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Node> node_;
};

// Resolves all but the last name. Links on the path are followed, absolute ones from the root.
inline MemoryFs::ParentAndName MemoryFs::find_parent(const std::string& path,
                                                     int links_left) const {
  std::vector<std::shared_ptr<Node>> trail{root_};
  std::size_t at = 0;
  for (;;) {
    while (at < path.size() && path[at] == '/') ++at;
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, end - at);
    std::size_t next = end;
    while (next < path.size() && path[next] == '/') ++next;
    const bool last = next >= path.size();
    if (name == "..") {
      if (trail.size() > 1) trail.pop_back();
      if (last) return {trail.back(), ""};
    } else if (last) {
      if (name.empty() || name == ".") return {trail.back(), ""};
      if (trail.back()->kind != NodeKind::directory) return {};
      return {trail.back(), name};
    } else if (!name.empty() && name != ".") {
      if (trail.back()->kind != NodeKind::directory) return {};
      const auto child = trail.back()->children.find(name);
      if (child == trail.back()->children.end()) return {};
      if (child->second->kind == NodeKind::link) {
        if (links_left == 0) return {};
        const std::string& to = child->second->target;
        const std::string front = to.starts_with('/') ? to : path.substr(0, at) + to;
        return find_parent(front + "/" + path.substr(next), links_left - 1);
      }
      trail.push_back(child->second);
    }
    at = next;
  }
}

inline std::shared_ptr<MemoryFs::Node> MemoryFs::directory_at(const std::string& path) const {
  // A slash at the end follows a link in the last component.
  const ParentAndName place = find_parent(path);
  auto node = place.node();
  for (int i = 0; node != nullptr && node->kind == NodeKind::link && i < 16; ++i) {
    const std::string& to = node->target;
    const std::size_t slash = path.rfind('/');
    node = find_parent(to.starts_with('/') || slash == std::string::npos
                           ? to
                           : path.substr(0, slash + 1) + to)
               .node();
  }
  if (node == nullptr) fail(Errc::not_found, path, "no such directory");
  if (node->kind != NodeKind::directory) fail(Errc::io, path, "not a directory");
  return node;
}

inline std::unique_ptr<base::File> MemoryFs::open(const std::string& path, base::OpenMode mode) {
  const std::lock_guard guard(shared_->mutex);
  const ParentAndName place = find_parent(path);
  if (place.parent == nullptr) fail(Errc::not_found, path, "no such file");
  auto node = place.node();
  if (mode == base::OpenMode::create_new) {
    if (node != nullptr) fail(Errc::already_exists, path, "exists");
    node = std::make_shared<Node>();
    place.parent->children.emplace(place.name, node);
    ++shared_->changes;
  }
  if (node == nullptr) fail(Errc::not_found, path, "no such file");
  if (node->kind != NodeKind::file) fail(Errc::corrupted, path, "not a regular file");
  return std::make_unique<OpenFile>(path, mode != base::OpenMode::read_only, shared_, node);
}

inline void MemoryFs::unlink(const std::string& path) {
  const std::lock_guard guard(shared_->mutex);
  const ParentAndName place = find_parent(path);
  const auto node = place.node();
  if (node == nullptr) fail(Errc::not_found, path, "no such file");
  if (node->kind == NodeKind::directory) fail(Errc::io, path, "is a directory");
  shared_->used_bytes -= std::min<std::uint64_t>(shared_->used_bytes, node->bytes.size());
  node->nameless = true;
  place.parent->children.erase(place.name);
  ++shared_->changes;
}

inline void MemoryFs::remove_directory(const std::string& path) {
  const std::lock_guard guard(shared_->mutex);
  const ParentAndName place = find_parent(path);
  const auto node = place.node();
  if (node == nullptr) fail(Errc::not_found, path, "no such directory");
  if (node->kind != NodeKind::directory || place.name.empty())
    fail(Errc::io, path, "not a directory");
  if (!node->children.empty()) fail(Errc::io, path, "directory not empty");
  place.parent->children.erase(place.name);
  ++shared_->changes;
}

inline std::vector<base::DirEntry> MemoryFs::list(const std::string& path) const {
  const std::lock_guard guard(shared_->mutex);
  std::vector<base::DirEntry> out;
  for (const auto& [name, node] : directory_at(path)->children) {
    out.push_back({name, node->kind == NodeKind::file, node->kind == NodeKind::directory});
  }
  return out;
}

inline void MemoryFs::add(const std::string& path, NodeKind kind, const std::string& target) {
  const std::lock_guard guard(shared_->mutex);
  const ParentAndName place = find_parent(path);
  if (place.parent == nullptr) fail(Errc::not_found, path, "no such directory");
  if (place.node() != nullptr) fail(Errc::already_exists, path, "exists");
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->target = target;
  place.parent->children.emplace(place.name, std::move(node));
  ++shared_->changes;
}

inline void MemoryFs::move(const std::string& from, const std::string& to, bool replace) {
  const std::lock_guard guard(shared_->mutex);
  const ParentAndName source = find_parent(from);
  const auto node = source.node();
  if (node == nullptr || source.name.empty()) fail(Errc::not_found, from, "no such file");
  const ParentAndName target = find_parent(to);
  if (target.parent == nullptr) fail(Errc::not_found, to, "no such directory");
  const auto old = target.node();
  if (old == node) return;
  if (old != nullptr && !replace) fail(Errc::already_exists, to, "exists");
  if (old != nullptr && (old->kind == NodeKind::directory) != (node->kind == NodeKind::directory)) {
    fail(Errc::io, to, "is of another kind");
  }
  if (old != nullptr && !old->children.empty()) fail(Errc::io, to, "directory not empty");
  if (old != nullptr) {
    old->nameless = true;
    shared_->used_bytes -= std::min<std::uint64_t>(shared_->used_bytes, old->bytes.size());
  }
  source.parent->children.erase(source.name);
  target.parent->children[target.name] = node;
  ++shared_->changes;
}

}  // namespace vellum::test
