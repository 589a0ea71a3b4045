#include "remote/session/known_remotes.hpp"

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "remote/engine/probe.hpp"
#include "remote/engine/url.hpp"
#include "remote/session/open_engine.hpp"
#include "remote/session/remote.hpp"

namespace vellum::remote {
namespace {

constexpr const char* kSuffix = ".remote";

std::string path_of(const store::StoreCore& store, const std::string& name) {
  return remotes_directory(store) + "/" + name + kSuffix;
}

void require_remote_name(const std::string& name) {
  const char* problem = format::name_problem(name);
  if (problem != nullptr) fail(Errc::invalid_argument, "remote '{}': {}", name, problem);
}

// A remote of another store is refused before anything is written there.
void require_same_store(ObjectStore& objects, const store::StoreCore& store) {
  try {
    if (read_superblock(objects).store_id == store.superblock().store_id) return;
  } catch (const Error& e) {
    if (e.code() != Errc::not_found) throw;
    return;
  }
  fail(Errc::invalid_argument, "{}: the remote has the versions of another store than {}",
       objects.url(), store.path());
}

}  // namespace

std::string remotes_directory(const store::StoreCore& store) {
  return store.path() + "/" + kRemotesDirectoryName;
}

void write_remote_file(store::StoreCore& store, const std::string& name, const RemoteFile& file,
                       bool replace) {
  if (base::ensure_directory(store.fs(), remotes_directory(store))) {
    store.fs().sync_directory(store.path());
  }
  base::publish_file(store.fs(), store.tmp_directory(), remotes_directory(store), name + kSuffix,
                     encode_remote_file(file, store.superblock().store_id), replace);
}

std::vector<std::string> remote_names(const store::StoreCore& store) {
  std::vector<std::string> out;
  if (!store.fs().exists(remotes_directory(store))) return out;
  for (const auto& entry : store.fs().list(remotes_directory(store))) {
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

bool add_remote(store::StoreCore& store, const std::string& name, const std::string& url,
                bool one_writer) {
  const auto objects = open_object_store(store.fs(), url);
  require_same_store(*objects, store);
  const ProbeResult probe = probe_conditional_writes(*objects);
  if (!probe.one_creator_wins() && !one_writer) {
    fail(Errc::unsupported,
         "{}: of several creators of an object, not just one won ({} of {} rounds): two stores "
         "that push would lose versions. --one-writer lets this store alone push, to a new remote",
         objects->url(), probe.several_won + probe.none_won + probe.other_content, probe.rounds);
  }
  add_remote_file(store, name, url, one_writer);
  return probe.one_creator_wins();
}

void remove_remote_file(store::StoreCore& store, const std::string& name) {
  read_remote_file(store, name);
  store.fs().unlink(path_of(store, name));
  store.fs().sync_directory(remotes_directory(store));
}

}  // namespace vellum::remote
