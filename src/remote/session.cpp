#include "remote/session.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "base/new_file.hpp"
#include "remote/engine/open_engine.hpp"
#include "remote/engine/url.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kDirectoryName = "remotes";
constexpr const char* kCacheName = "cache";
constexpr const char* kLockName = "lock";
constexpr const char* kSuffix = ".remote";

std::string directory_of(const store::StoreCore& store) {
  return store.path() + "/" + kDirectoryName;
}

std::string path_of(const store::StoreCore& store, const std::string& name) {
  return directory_of(store) + "/" + name + kSuffix;
}

void require_remote_name(const std::string& name) {
  const char* problem = format::name_problem(name);
  if (problem != nullptr) fail(Errc::invalid_argument, "remote '{}': {}", name, problem);
}

void write_remote_file(store::StoreCore& store, const std::string& name, const RemoteFile& file,
                       bool replace) {
  if (base::ensure_directory(store.fs(), directory_of(store))) {
    store.fs().sync_directory(store.path());
  }
  base::publish_file(store.fs(), store.tmp_directory(), directory_of(store), name + kSuffix,
                     encode_remote_file(file, store.superblock().store_id), replace);
}

std::unique_ptr<base::File> lock_remotes(store::StoreCore& store) {
  const std::string path = directory_of(store) + "/" + kLockName;
  base::ensure_directory(store.fs(), directory_of(store));
  try {
    store.fs().open(path, base::OpenMode::create_new);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
  }
  auto file = store.fs().open(path, base::OpenMode::read_write);
  if (!file->try_lock_exclusive()) {
    fail(Errc::busy, "{}: another push or pull is at work", store.path());
  }
  return file;
}

}  // namespace

std::vector<std::string> remote_names(const store::StoreCore& store) {
  std::vector<std::string> out;
  if (!store.fs().exists(directory_of(store))) return out;
  for (const auto& entry : store.fs().list(directory_of(store))) {
    if (!entry.is_regular_file || !entry.name.ends_with(kSuffix)) continue;
    out.push_back(entry.name.substr(0, entry.name.size() - std::string_view(kSuffix).size()));
  }
  return out;
}

RemoteFile read_remote_file(const store::StoreCore& store, const std::string& name) {
  require_remote_name(name);
  const std::string path = path_of(store, name);
  if (!store.fs().exists(path)) {
    fail(Errc::not_found, "{} knows no remote '{}': `vellum remote add` makes it known",
         store.path(), name);
  }
  RemoteFile out;
  const auto bytes = base::read_whole(store.fs(), path, kMaxRemoteFileBytes);
  const char* problem = decode_remote_file(bytes, store.superblock().store_id, out);
  if (problem != nullptr) fail(Errc::corrupted, "{}: {}", path, problem);
  return out;
}

void add_remote_file(store::StoreCore& store, const std::string& name, const std::string& url,
                     bool one_writer) {
  require_remote_name(name);
  parse_remote_url(url);
  if (url.size() > kMaxUrlBytes) fail(Errc::invalid_argument, "the URL is too long");
  RemoteFile file;
  file.url = url;
  file.writer = random_write_id();
  file.one_writer = one_writer;
  try {
    write_remote_file(store, name, file, false);
  } catch (const Error& e) {
    if (e.code() != Errc::already_exists) throw;
    fail(Errc::already_exists, "{} knows a remote '{}' already", store.path(), name);
  }
}

void remove_remote_file(store::StoreCore& store, const std::string& name) {
  read_remote_file(store, name);
  store.fs().unlink(path_of(store, name));
  store.fs().sync_directory(directory_of(store));
}

Session::Session(store::StoreCore& store, const std::string& name,
                 std::unique_ptr<ObjectStore> objects)
    : store_(store), name_(name), file_(read_remote_file(store, name)) {
  lock_ = lock_remotes(store);
  file_ = read_remote_file(store, name);  // another may have written it before
  objects_ = objects != nullptr ? std::move(objects) : open_object_store(store.fs(), file_.url);
  cache_ = std::make_unique<LocalCache>(store.fs(), directory_of(store) + "/" + kCacheName,
                                        store.tmp_directory());
  remote_ = std::make_unique<Remote>(*objects_, store.superblock().store_id, cache_.get());
}

const SeenBranch* Session::find(const std::string& branch) const noexcept {
  for (const SeenBranch& seen : file_.branches) {
    if (seen.name == branch) return &seen;
  }
  return nullptr;
}

void Session::note(const std::vector<SeenBranch>& branches) {
  if (branches.empty()) return;
  for (const SeenBranch& branch : branches) {
    const auto at = std::find_if(file_.branches.begin(), file_.branches.end(),
                                 [&](const SeenBranch& b) { return b.name == branch.name; });
    if (at == file_.branches.end()) {
      file_.branches.push_back(branch);
    } else {
      *at = branch;
    }
  }
  write_remote_file(store_, name_, file_, true);
}

}  // namespace vellum::remote
