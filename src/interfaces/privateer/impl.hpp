// interfaces/privateer/impl.hpp: the implementation of a Privateer object
// (privateer/privateer.hpp).
#pragma once

#include <privateer/privateer.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>
#include <vellum/store.hpp>

#include "interfaces/privateer/versions.hpp"

struct Privateer::Impl {
  std::mutex mutex;
  std::string base;
  std::string blocks;  // the first interface: a store at any path; empty: in the base
  std::string stash;
  std::uint64_t block_bytes = 0;  // of the open version, or of the next create(); 0: unknown

  std::optional<vellum::Store> store;
  vellum::privateer::VersionPlace place;
  vellum::Region region;
  std::vector<vellum::Region> read_before;  // versions that stay mapped

  void start(int action, const std::string& base_path, const std::string& stash_path);
  void start_beside(const std::string& blocks_path);    // for the first interface
  void start_at_version(const std::string& directory);  // likewise

  vellum::privateer::VersionPlace place_of(const std::string& version) const;
  vellum::Store& store_of(const vellum::privateer::VersionPlace& at);
  void require_open(const char* call) const;

  void put_away(void* addr, std::uint64_t size_bytes);
  void close();
  void* use(vellum::Region&& opened, vellum::privateer::VersionPlace&& at,
            std::uint64_t its_block_bytes);

  void* create(void* addr, const std::string& version, std::uint64_t size_bytes, bool overwrite);
  void* open(void* addr, const std::string& version);
  void* open_read_only(void* addr, const std::string& version);
  void* open_immutable(void* addr, const std::string& version, const std::string& new_version);
  bool snapshot(const std::string& version);
};
