// mount/tree.cpp: see tree.hpp.
#include "mount/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/parse_number.hpp"
#include "vellum/error.hpp"

namespace vellum::mount {
namespace {

std::optional<std::uint64_t> number_in(const std::string& name) {
  const auto out = base::parse_number<std::uint64_t>(name);
  // Each commit has only one spelling.
  return out.has_value() && std::to_string(*out) == name ? out : std::nullopt;
}

std::string key_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::root:
      return "/";
    case NodeKind::commits:
      return "at";
    case NodeKind::commits_of_branch:
      return "at/" + node.branch;
    case NodeKind::writable:
      return "writable/" + node.writable->branch();
    case NodeKind::datastore:
    case NodeKind::file:
      break;
  }
  const VersionKey& key = node.version.key;
  const std::string& path = node.is_file() ? node.file.path : node.prefix;
  return fmt::format("{}:{}:{}:{}", key.branch_id, key.sequence, key.time_ns, path);
}

}  // namespace

Tree::Tree(std::shared_ptr<store::StoreDirectory> store, const WritableFiles& writable)
    : versions_(std::move(store)) {
  for (const auto& file : writable) writable_.emplace(file->branch(), file);
  hold(Node{}, "/");
}

std::shared_ptr<const Node> Tree::node(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(number);
  return at == held_.end() ? nullptr : at->second.node;
}

std::shared_ptr<const Node> Tree::hold(Node node, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = numbers_.emplace(key, next_);
  HeldNode& held = held_[at->second];
  if (is_new) {
    node.number = next_++;
    held.key = key;
    held.node = std::make_shared<const Node>(std::move(node));
  }
  ++held.times;
  return held.node;
}

void Tree::forget(std::uint64_t number, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  const auto at = held_.find(number);
  if (at == held_.end() || number == kRoot) return;
  at->second.times -= std::min(at->second.times, times);
  if (at->second.times != 0) return;
  numbers_.erase(at->second.key);
  held_.erase(at);
}

Node Tree::version_node(const FoundVersion& version) const {
  Node out;
  out.version = version;
  std::vector<VersionFile> files = files_of(versions_, version);
  out.kind = files.front().path.empty() ? NodeKind::file : NodeKind::datastore;
  if (out.is_file()) {
    out.file = files.front();
  } else {
    out.files = std::make_shared<const std::vector<VersionFile>>(std::move(files));
  }
  return out;
}

// A file or a directory of a datastore; a node of kind root: there is none.
Node Tree::inside(const Node& directory, const std::string& name) {
  const std::string path = directory.prefix + name;
  Node out = directory;
  for (const VersionFile& file : *directory.files) {
    if (file.path == path) {
      out.kind = NodeKind::file;
      out.file = file;
      return out;
    }
    if (file.path.starts_with(path + "/")) {
      out.prefix = path + "/";
      return out;
    }
  }
  return Node{};
}

std::shared_ptr<const Node> Tree::look_up(const Node& directory, const std::string& name) {
  Node out;
  try {
    switch (directory.kind) {
      case NodeKind::root:
        if (name == kCommits) {
          out.kind = NodeKind::commits;
          break;
        }
        if (const auto at = writable_.find(name); at != writable_.end()) {
          out.kind = NodeKind::writable;
          out.writable = at->second;
          break;
        }
        out = version_node(versions_.find(name));
        break;
      case NodeKind::commits: {
        const auto branches = versions_.branches();
        if (std::find(branches.begin(), branches.end(), name) == branches.end()) return nullptr;
        out.kind = NodeKind::commits_of_branch;
        out.branch = name;
        break;
      }
      case NodeKind::commits_of_branch: {
        const auto sequence = number_in(name);
        if (!sequence) return nullptr;
        const auto commits = versions_.commits_of(directory.branch);
        const auto at = commits.find(*sequence);
        if (at == commits.end()) return nullptr;
        out = version_node(at->second);
        break;
      }
      case NodeKind::datastore:
        out = inside(directory, name);
        if (out.kind == NodeKind::root) return nullptr;
        break;
      case NodeKind::file:
      case NodeKind::writable:
        return nullptr;
    }
  } catch (const Error& error) {
    // An invalid name of a version is not found either.
    if (error.code() == Errc::not_found || error.code() == Errc::invalid_argument) return nullptr;
    throw;
  }
  const std::string key = key_of(out);
  return hold(std::move(out), key);
}

std::vector<std::string> Tree::list(const Node& directory) const {
  switch (directory.kind) {
    case NodeKind::root: {
      std::vector<std::string> out = versions_.names();
      out.insert(out.begin(), kCommits);
      return out;
    }
    case NodeKind::commits:
      return versions_.branches();
    case NodeKind::commits_of_branch: {
      std::vector<std::string> out;
      for (const auto& [sequence, version] : versions_.commits_of(directory.branch)) {
        out.push_back(std::to_string(sequence));
      }
      return out;
    }
    case NodeKind::datastore: {
      std::set<std::string> out;
      for (const VersionFile& file : *directory.files) {
        if (!file.path.starts_with(directory.prefix)) continue;
        const std::string rest = file.path.substr(directory.prefix.size());
        out.insert(rest.substr(0, rest.find('/')));
      }
      return {out.begin(), out.end()};
    }
    case NodeKind::file:
    case NodeKind::writable:
      break;
  }
  return {};
}

std::shared_ptr<const store::PageSource> Tree::open(const Node& file) {
  {
    const std::lock_guard lock(mutex_);
    if (auto source = held_.at(file.number).source.lock()) return source;
  }
  auto source = versions_.open(file.version);
  const std::lock_guard lock(mutex_);
  HeldNode& held = held_.at(file.number);
  if (auto earlier = held.source.lock()) return earlier;  // another thread was faster
  held.source = source;
  return source;
}

std::optional<std::uint64_t> Tree::data_bytes(const Node& file) {
  if (versions_.at_remote()) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    const HeldNode& held = held_.at(file.number);
    if (held.searched) return held.data_bytes;
  }
  std::optional<std::uint64_t> found;
  try {
    const auto source = open(file);
    if (!source->may_be_remote()) found = mount::data_bytes(*source, file.file);
  } catch (const Error&) {  // the version was removed, or cannot be read: reading it says so
  }
  const std::lock_guard lock(mutex_);
  held_.at(file.number).searched = true;
  return held_.at(file.number).data_bytes = found;
}

}  // namespace vellum::mount
