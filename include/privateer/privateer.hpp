// privateer/privateer.hpp: the interface of LLNL's Privateer over a Vellum store.
// Programs written for it build and run unchanged. docs/guides/privateer.md lists the differences.
//
//   Privateer privateer(Privateer::CREATE, "/data/base");
//   auto* words = static_cast<std::uint64_t*>(privateer.create(nullptr, "v0", 1 << 30, false));
//   words[0] = 1;
//   privateer.msync();             // durable, all or nothing
//   privateer.snapshot("v1");      // kept unchanged; v0 continues
//
// BASE/blocks is the Vellum store; BASE/VERSION/ is a version's directory, for files of the
// program. A version exists when it has its directory and its name in the store: removing the
// directory removes the version.
//
// Errors are exceptions (vellum::Error, a std::runtime_error) that name the version and the path;
// none ends the process. One object is one mapping. Threads: one call at a time; loads and stores
// need no more care than in plain memory. Any number of objects may use one base; only one of them
// at a time may write a version.
//
// The interface is that of Privateer (Youssef et al., CLUSTER 2021 and HPEC 2022).
#ifndef PRIVATEER_PRIVATEER_HPP
#define PRIVATEER_PRIVATEER_HPP

// This header does not need these. Programs may rely on them, and on the short name below, as with
// the original.
#if __has_include(<bits/stdc++.h>)
#include <bits/stdc++.h>
#endif
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace fs = std::filesystem;

class Privateer {
 public:
  static constexpr int CREATE = 0;  // creates the base directory when it is missing
  static constexpr int OPEN = 1;    // the base directory must exist

  // `base_path` may be "STASH<stash>BASE". The stash directory is for the spill file: dirty pages
  // beyond the memory limit; it is created when it is missing.
  Privateer(int action, const char* base_path);
  Privateer(int action, const char* base_path, const char* stash_base_path);

  // The first interface: a store, and a version's directory anywhere. `capacity` creates.
  Privateer(const char* blocks_path, const char* version_path, std::size_t capacity);
  Privateer(void* addr, const char* blocks_path, const char* version_path, std::size_t capacity);
  Privateer(const char* blocks_path, const char* version_path, std::size_t size,
            std::size_t capacity);
  Privateer(void* addr, const char* blocks_path, const char* version_path, std::size_t size,
            std::size_t capacity);
  Privateer(const char* version_path, bool read_only);
  Privateer(void* addr, const char* version_path, bool read_only);
  Privateer(const char* version_path, const char* new_version_path);  // as open_immutable()
  // The same; or opens `version_path`, when the first path is that of a store.
  Privateer(void* addr, const char* version_or_blocks_path, const char* version_path);

  // As msync(), then unmaps. Stores that cannot be written are lost, with a line on standard error.
  ~Privateer();
  Privateer(const Privateer&) = delete;
  Privateer& operator=(const Privateer&) = delete;

  // The four functions below return the region's address: `addr`, a multiple of 4096, over any
  // mapping there (reserve region_size() bytes first, and unmap them afterwards), or any address
  // when it is null. This object's earlier version is synchronised and closed; versions that it had
  // open to read stay mapped, as long as nothing is mapped over them.

  // Creates a version of zeros. The size is rounded up to whole blocks. An existing version is an
  // error, or is replaced with `allow_overwrite`.
  void* create(void* addr, const char* version, std::size_t region_size,
               bool allow_overwrite = false);
  // Opens a version to write. A snapshot becomes a branch of that name.
  void* open(void* addr, const char* version);
  void* open_read_only(void* addr, const char* version);
  // Opens a new version that starts as `version`, which stays as it is.
  void* open_immutable(void* addr, const char* version, const char* new_version);

  // Makes everything stored so far durable, in one step. With a version open to read, or none, it
  // does nothing.
  void msync();
  // msync(), and keeps that state under another name. False: that version exists.
  bool snapshot(const char* version);
  // Grows the region in place, with zeros; durable with the next msync(). Returns true, or throws,
  // also for a smaller size or one that does not fit (with a given `addr` no larger size fits).
  bool resize(std::size_t region_size);

  void* data();                // null when nothing is open
  std::size_t region_size();   // 0 when nothing is open
  std::size_t current_size();  // the same
  // The open version's; before that, the next create()'s. See docs/guides/privateer.md.
  std::size_t get_block_size();
  bool version_exists(const char* version);

  // By the full path, BASE/VERSION.
  static std::size_t version_capacity(std::string version_path);
  static std::size_t version_block_size(std::string version_path);

 private:
  struct Impl;  // src/interfaces/privateer/privateer.cpp
  std::unique_ptr<Impl> impl_;
};

#endif  // PRIVATEER_PRIVATEER_HPP
