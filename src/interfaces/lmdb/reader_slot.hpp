// interfaces/lmdb/reader_slot.hpp: a reader of an LMDB 1.0 environment that other processes have
// open (mdb.c, "Reader Lock Table").
//
// A writer reuses no page of a transaction that a slot of the reader table names. Debian has no
// library of LMDB 1.0, and each reader only follows this protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vellum::lmdb {

class ReaderSlot {
 public:
  // Null: no other process has the environment open, and its lock file cannot be joined.
  // Errc::unsupported: the lock file is not one of LMDB 1.0 on this kind of machine. Errc::busy:
  // all slots are in use, or a process does not release the table.
  static std::unique_ptr<ReaderSlot> join(const std::string& lock_file);
  ~ReaderSlot();
  ReaderSlot(const ReaderSlot&) = delete;
  ReaderSlot& operator=(const ReaderSlot&) = delete;

  // Names the last transaction instead, and returns its number.
  std::uint64_t renew() noexcept;
  // Whether the environment is one of lmdb-js, which has a third meta page.
  bool is_of_lmdb_js() const noexcept { return is_of_lmdb_js_; }
  // The last transaction that a writer has ended.
  std::uint64_t last_transaction() const noexcept;
  // Whether the slot still names the transaction: no process has taken this one for dead.
  bool is_held() const noexcept;

 private:
  ReaderSlot(std::string path, int fd) noexcept : path_(std::move(path)), fd_(fd) {}
  void map();
  void find_kind();
  std::size_t slots_at() const noexcept;
  void claim();

  // POSIX locks of the process: closing any other descriptor of the lock file would release them.
  const std::string path_;
  const int fd_;
  std::byte* lock_file_ = nullptr;  // the mapped file
  std::size_t lock_file_bytes_ = 0;
  std::byte* slot_ = nullptr;  // within it
  std::uint64_t transaction_ = 0;
  bool is_of_lmdb_js_ = false;
};

}  // namespace vellum::lmdb
