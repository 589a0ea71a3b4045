// remote/session/local_cache.hpp: copies of lists and of piece indices, in the store.
//
// With them, a push need not read the objects of earlier pushes. A copy is used only after a check,
// and may be deleted at any time. Throws only std::bad_alloc: without a cache, objects are read
// from the remote.
//
// Threads: all calls from any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes/sha256.hpp"
#include "base/files/file.hpp"

namespace vellum::remote {

class LocalCache {
 public:
  // REQUIRES: both directories are on one file system.
  LocalCache(base::Fs& fs, std::string directory, std::string tmp_directory);

  // False: there is no copy, or it has another hash or size.
  bool get(const std::string& key, std::vector<std::byte>& out) const;
  bool get(const std::string& key, const base::Sha256& hash, std::vector<std::byte>& out) const;
  bool get(const std::string& key, std::uint64_t size_bytes, std::vector<std::byte>& out) const;
  void put(const std::string& key, std::span<const std::byte> bytes);

 private:
  std::string name_of(const std::string& key) const;

  base::Fs& fs_;
  const std::string directory_, tmp_directory_;
};

}  // namespace vellum::remote
