#include "remote/lazy/remote_files.hpp"

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "format/journal.hpp"
#include "remote/fetch/bytes_file.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/journal/journal_state.hpp"
#include "store/journal/journal_writer.hpp"

namespace vellum::remote {

RemoteFiles::RemoteFiles(base::Fs& below, const std::string& url, const UnlockedRemote& remote,
                         const Head& head)
    : below_(below), root_(url), seal_(remote.seal), directories_{url} {
  for (const char* name : {"/branches", "/snapshots", "/packs", "/tmp"}) {
    directories_.insert(root_ + name);
  }
  add_file(root_ + "/" + store::kSuperblockName, format::encode_superblock(remote.superblock));
  if (!remote.key_slots.empty()) add_file(root_ + "/" + store::kKeysName, remote.key_slots);
  for (const RemoteVersion& name : head.versions) {
    if (name.is_branch) {
      add_journal(name, remote.superblock);
    } else {
      add_file(root_ + "/snapshots/" + name.ref.name + store::kRefSuffix,
               format::encode_snapshot_ref(name.ref, seal_.of_files()));
    }
  }
}

void RemoteFiles::add_working_set(const RemoteVersion& name,
                                  const std::vector<format::PageRange>& ranges) {
  const auto owner = store::working_set_owner(name.ref.version, name.is_branch);
  const std::lock_guard lock(mutex_);
  directories_.insert(store::working_set_directory(root_));
  add_file(store::working_set_path(root_, name.ref.name),
           format::encode_working_set({owner, ranges}, seal_.of_files()));
}

// All commits of a branch at a remote are in packs.
void RemoteFiles::add_journal(const RemoteVersion& name, const format::Superblock& superblock) {
  format::JournalHeader header;
  header.store_id = superblock.store_id;
  header.branch_id = name.ref.version.branch_id;
  header.created_ns = name.ref.version.time_ns;
  header.half_bytes = superblock.journal_half_bytes;
  header.branch = name.ref.name;
  header.encoding = name.encoding;
  const std::string directory = root_ + "/branches/" + name.ref.name;
  directories_.insert(directory);
  files_[directory + "/" + store::kJournalName] = {
      store::new_journal_start(header, name.ref.version, seal_.keys.get()),
      store::journal_bytes(header.half_bytes)};
}

void RemoteFiles::add_file(const std::string& path, std::vector<std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  files_[path] = {std::move(bytes), size};
}

bool RemoteFiles::is_remote(const std::string& path) const {
  return path.starts_with(root_) && (path.size() == root_.size() || path[root_.size()] == '/');
}

base::Fs& RemoteFiles::writable(const std::string& path) const {
  if (!is_remote(path)) return below_;
  fail(Errc::read_only, "{}: a remote is only read here: clone it to write", path);
}

std::unique_ptr<base::File> RemoteFiles::open(const std::string& path, base::OpenMode mode) {
  if (mode != base::OpenMode::read_only || !is_remote(path)) return writable(path).open(path, mode);
  const std::lock_guard lock(mutex_);
  const auto at = files_.find(path);
  if (at == files_.end()) fail(Errc::not_found, "{}: open: no such file", path);
  return std::make_unique<BytesFile>(path, at->second.start, at->second.size_bytes);
}

std::vector<base::DirEntry> RemoteFiles::list(const std::string& path) const {
  if (!is_remote(path)) return below_.list(path);
  const std::lock_guard lock(mutex_);
  if (!directories_.contains(path)) fail(Errc::not_found, "{}: no such directory", path);
  const std::string inside = path + "/";
  std::map<std::string, base::DirEntry> found;
  const auto add = [&](const std::string& name, bool is_directory) {
    if (!name.starts_with(inside) || name.find('/', inside.size()) != std::string::npos) return;
    const std::string own = name.substr(inside.size());
    found[own] = {own, !is_directory, is_directory};
  };
  for (const auto& [name, content] : files_) add(name, false);
  for (const std::string& name : directories_) add(name, true);
  std::vector<base::DirEntry> out;
  for (auto& [name, entry] : found) out.push_back(std::move(entry));
  return out;
}

bool RemoteFiles::is_directory(const std::string& path) const {
  if (!is_remote(path)) return below_.is_directory(path);
  const std::lock_guard lock(mutex_);
  return directories_.contains(path);
}

bool RemoteFiles::exists(const std::string& path) const {
  if (!is_remote(path)) return below_.exists(path);
  const std::lock_guard lock(mutex_);
  return files_.contains(path) || directories_.contains(path);
}

}  // namespace vellum::remote
