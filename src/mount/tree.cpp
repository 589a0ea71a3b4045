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
  // One spelling a commit.
  return out.has_value() && std::to_string(*out) == name ? out : std::nullopt;
}

std::string key_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::root:
      return "/";
    case Node::Kind::commits:
      return "at";
    case Node::Kind::commits_of_branch:
      return "at/" + node.branch;
    case Node::Kind::writable:
      return "writable/" + node.writable->branch();
    case Node::Kind::datastore:
    case Node::Kind::file:
      break;
  }
  const VersionKey& key = node.version.key;
  const std::string& path = node.is_file() ? node.part.path : node.prefix;
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
  Held& held = held_[at->second];
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
  std::vector<Part> parts = parts_of(versions_, version);
  out.kind = parts.front().path.empty() ? Node::Kind::file : Node::Kind::datastore;
  if (out.is_file()) {
    out.part = parts.front();
  } else {
    out.parts = std::make_shared<const std::vector<Part>>(std::move(parts));
  }
  return out;
}

// A file or a directory of a datastore; a node of kind root: there is none.
Node Tree::inside(const Node& directory, const std::string& name) {
  const std::string path = directory.prefix + name;
  Node out = directory;
  for (const Part& part : *directory.parts) {
    if (part.path == path) {
      out.kind = Node::Kind::file;
      out.part = part;
      return out;
    }
    if (part.path.starts_with(path + "/")) {
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
      case Node::Kind::root:
        if (name == kCommits) {
          out.kind = Node::Kind::commits;
          break;
        }
        if (const auto at = writable_.find(name); at != writable_.end()) {
          out.kind = Node::Kind::writable;
          out.writable = at->second;
          break;
        }
        out = version_node(versions_.find(name));
        break;
      case Node::Kind::commits: {
        const auto branches = versions_.branches();
        if (std::find(branches.begin(), branches.end(), name) == branches.end()) return nullptr;
        out.kind = Node::Kind::commits_of_branch;
        out.branch = name;
        break;
      }
      case Node::Kind::commits_of_branch: {
        const auto sequence = number_in(name);
        if (!sequence) return nullptr;
        const auto commits = versions_.commits_of(directory.branch);
        const auto at = commits.find(*sequence);
        if (at == commits.end()) return nullptr;
        out = version_node(at->second);
        break;
      }
      case Node::Kind::datastore:
        out = inside(directory, name);
        if (out.kind == Node::Kind::root) return nullptr;
        break;
      case Node::Kind::file:
      case Node::Kind::writable:
        return nullptr;
    }
  } catch (const Error& error) {
    // What is no name of a version is not there either.
    if (error.code() == Errc::not_found || error.code() == Errc::invalid_argument) return nullptr;
    throw;
  }
  const std::string key = key_of(out);
  return hold(std::move(out), key);
}

std::vector<std::string> Tree::list(const Node& directory) const {
  switch (directory.kind) {
    case Node::Kind::root: {
      std::vector<std::string> out = versions_.names();
      out.insert(out.begin(), kCommits);
      return out;
    }
    case Node::Kind::commits:
      return versions_.branches();
    case Node::Kind::commits_of_branch: {
      std::vector<std::string> out;
      for (const auto& [sequence, version] : versions_.commits_of(directory.branch)) {
        out.push_back(std::to_string(sequence));
      }
      return out;
    }
    case Node::Kind::datastore: {
      std::set<std::string> out;
      for (const Part& part : *directory.parts) {
        if (!part.path.starts_with(directory.prefix)) continue;
        const std::string rest = part.path.substr(directory.prefix.size());
        out.insert(rest.substr(0, rest.find('/')));
      }
      return {out.begin(), out.end()};
    }
    case Node::Kind::file:
    case Node::Kind::writable:
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
  Held& held = held_.at(file.number);
  if (auto earlier = held.source.lock()) return earlier;  // another thread was faster
  held.source = source;
  return source;
}

}  // namespace vellum::mount
