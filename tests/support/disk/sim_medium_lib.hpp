// The durable content of a disk after a part of a log, and the changes that may reach the medium.
//
// Durable for certain: data and sizes of a file after sync_data, names in a directory after
// sync_directory. Everything else may have reached the medium or not, each atom by itself and in
// any order: no single file system does as much. A name may be durable before the data of its file,
// a rename may have left both names or none, a size may have grown without the data. A sector (512
// bytes) is written whole or not at all.
#pragma once

#include <functional>
#include <random>

#include "support/disk/sim_fs_lib.hpp"

namespace vellum::sim {

// A unit that can reach the medium, or not, by itself.
struct Atom {
  enum class AtomKind { write, extend, truncate, allocate, punch, link, unlink };
  AtomKind kind = AtomKind::write;
  InodeId inode = 0, directory = 0;
  std::string name;
  std::uint64_t offset = 0, length = 0;
  std::span<const std::byte> bytes;  // of an Op in the log
  std::size_t op = 0;                // position in the log
  bool second_half = false;          // of a rename: the removal of the old name

  void apply_to(Disk& disk) const;
};

class Medium {
 public:
  // `start` is durable. `random` decides which data a failed sync has lost.
  Medium(Disk start, std::mt19937_64& random) : durable_(std::move(start)), random_(random) {}

  // The next call of the log. The log outlives the atoms.
  void take(const Op& op, std::size_t position);

  const Disk& durable() const noexcept { return durable_; }
  const std::vector<Atom>& pending() const noexcept { return pending_; }  // in the order of the log
  // The same with torn writes; sizes may grow before any of the data is written.
  std::vector<Atom> torn(std::uint64_t piece_bytes) const;
  // The durable disk with the atoms for whose index `chosen` is true.
  Disk with(const std::vector<Atom>& atoms, const std::function<bool(std::size_t)>& chosen) const;

 private:
  void make_durable(const std::function<bool(const Atom&)>& which);
  void sync_directory(InodeId directory);
  void lose(InodeId inode);
  void add_atoms(const Op& op, std::size_t position);
  void tear(const Atom& write, std::uint64_t piece_bytes, std::vector<Atom>& out) const;

  Disk durable_;
  std::vector<Atom> pending_;
  std::mt19937_64& random_;
};

}  // namespace vellum::sim
