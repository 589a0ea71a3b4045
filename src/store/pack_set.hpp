// store/pack_set.hpp: the packs of a store, open for reading.
//
// Threads: all calls from any thread. find() allocates nothing and takes no lock: the fault handler
// uses it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.hpp"
#include "format/types.hpp"

namespace vellum::store {

std::string pack_file_name(std::uint64_t pack);  // "0123456789abcdef.pack"
bool parse_pack_file_name(const std::string& name, std::uint64_t& pack);

class PackSet {
 public:
  PackSet(base::Fs& fs, std::string directory, const format::Uuid& store_id);
  ~PackSet();

  // Opens a pack unless it is open already and checks its header. Throws Errc::damaged when it is
  // missing, is no regular file, or belongs elsewhere; the message names the file.
  void open(std::uint64_t pack);
  // An open pack, or nullptr.
  const base::File* find(std::uint64_t pack) const noexcept;
  // Marks a byte of an open pack for all processes (base::File::mark_byte) until the last copy of
  // the result dies, which may outlive the set.
  std::shared_ptr<const void> mark(std::uint64_t pack, std::uint64_t offset_bytes);
  std::string path_of(std::uint64_t pack) const;
  // Every pack file in the directory, ascending.
  std::vector<std::uint64_t> list() const;

 private:
  // A table that only grows: open addressing over atomic pointers, replaced when half full; old
  // tables are kept until the set dies, so a reader in the fault handler never sees freed memory.
  struct Table;
  struct OpenPack;
  base::Fs& fs_;
  std::string directory_;
  format::Uuid store_id_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<OpenPack>> packs_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::atomic<const Table*> table_{nullptr};
};

}  // namespace vellum::store
