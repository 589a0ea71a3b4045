// The images that a power cut could leave, out of a log of what was done to a disk.
//
// What is known to last: data and sizes of a file after sync_data, names in a directory after
// sync_directory. Everything else may have reached the medium or not, each piece by itself and in
// any order: that is more than any one file system does. A name may last before the data of its
// file, a rename may have left both names or none, a size may have grown without the data. A sector
// (512 bytes) is written whole or not at all.
//
// At each step, that is after each call of the log, these images are built:
//   - every subset of the calls that are not durable yet, when they are at most `exhaustive`;
//   `samples` beyond;
//   - the same with writes torn into pieces of 4 KiB, and of 512 bytes.
// Subsets without the newest call were built a step before and are left out, unless what is allowed
// has changed.
#pragma once

#include <functional>
#include <random>

#include "crash/sim_fs_lib.hpp"

namespace vellum::crash {

struct Effort {
  std::size_t exhaustive = 12;      // atoms of which all subsets are built
  std::size_t samples = 1000;       // seeded subsets beyond
  std::size_t torn_exhaustive = 8;  // the same for torn writes
  std::size_t torn_samples = 150;
};

// What can reach the medium, or not, by itself.
struct Atom {
  enum class Kind { write, extend, truncate, allocate, punch, link, unlink };
  Kind kind = Kind::write;
  InodeId inode = 0, directory = 0;
  std::string name;
  std::uint64_t offset = 0, length = 0;
  std::span<const std::byte> bytes;  // of an Op in the log
  std::size_t op = 0;                // position in the log
  bool second_half = false;          // of a rename: the old name goes

  void apply_to(Disk& disk) const;
};

class CrashImages {
 public:
  // low, high: the states that the store may be in (Op::states).
  using Visit = std::function<void(const Disk& image, std::size_t low, std::size_t high)>;

  CrashImages(Disk start, const std::vector<Op>& log, const Effort& effort, std::uint64_t seed);
  void for_each(const Visit& visit);
  std::uint64_t crash_points() const noexcept { return crash_points_; }

 private:
  void take(std::size_t position);
  void make_durable(const std::function<bool(const Atom&)>& which);
  void sync_directory(InodeId directory);
  void lose(InodeId inode);
  void add_atoms(const Op& op, std::size_t position);
  void visit_all(std::size_t newest, const Visit& visit);
  std::vector<Atom> torn(std::uint64_t piece_bytes) const;
  void visit_subsets(const std::vector<Atom>& atoms, std::size_t newest, std::size_t exhaustive,
                     std::size_t samples, const Visit& visit);
  void visit_samples(const std::vector<Atom>& atoms, std::size_t newest, std::size_t samples,
                     const Visit& visit);
  void visit_one(const std::vector<Atom>& atoms, const std::function<bool(std::size_t)>& chosen,
                 const Visit& visit);

  Disk durable_;
  const std::vector<Op>& log_;
  Effort effort_;
  std::mt19937_64 random_;
  std::vector<Atom> pending_;  // in the order of the log
  std::size_t low_ = 0, high_ = 0;
  std::uint64_t crash_points_ = 0;
};

}  // namespace vellum::crash
