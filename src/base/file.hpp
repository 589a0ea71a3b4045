// base/file.hpp: the one seam between Vellum and the file system.
//
// Every file operation of every layer goes through a Fs, so that a test can count, delay, tear,
// drop, reorder or fail any call (idea: leveldb's Env, db/fault_injection_test.cc). The real one is
// posix_fs().
//
// Errors: every call throws vellum::Error with the path and the operating system's reason;
// Errc::no_space for ENOSPC/EDQUOT, read_only for EROFS, not_found for ENOENT, already_exists for
// EEXIST, unsupported for EOPNOTSUPP (a file system without fallocate or holes), out_of_memory for
// EMFILE, ENFILE and ENOMEM, io for the rest; a held lock is no error. EINTR and short transfers
// are retried inside; a read that meets the end of the file early throws Errc::damaged
// ("truncated").
//
// Threads: a File may be used by many threads at once (positioned I/O only, no shared offset).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vellum::base {

enum class OpenMode {
  read_only,
  read_write,  // must exist
  create_new,  // must not exist (O_EXCL), read-write
};

// What tells a file that someone has changed, or put in the place of another, from the one before.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // mtime, ctime, since 1970-01-01 UTC
  std::int64_t born_ns = 0;  // 0: not known. Inode numbers are used again, also at once
  bool operator==(const FileIdentity&) const = default;
};

class File {
 public:
  virtual ~File() = default;
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  virtual const std::string& path() const noexcept = 0;
  virtual std::uint64_t size_bytes() const = 0;
  // Reads exactly out.size() bytes.
  virtual void pread(std::span<std::byte> out, std::uint64_t offset_bytes) const = 0;
  // The same without exceptions or allocation, for the fault handler: 0, or an errno (ENODATA when
  // the file ends early).
  virtual int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept = 0;
  // Writes all bytes; extends the file where needed. Not durable before sync_data().
  virtual void pwrite(std::span<const std::byte> bytes, std::uint64_t offset_bytes) = 0;
  virtual void sync_data() = 0;  // fdatasync(2)
  virtual void truncate(std::uint64_t size_bytes) = 0;
  virtual void allocate(std::uint64_t offset_bytes,
                        std::uint64_t length_bytes) = 0;  // fallocate(2), extends
  virtual void punch(std::uint64_t offset_bytes,
                     std::uint64_t length_bytes) = 0;  // FALLOC_FL_PUNCH_HOLE
  // Exclusive advisory lock (flock(2)) that dies with its holder. False: someone else holds it.
  // This one, like all that follow, is not shared with a child of fork(2) (base/forked_locks.hpp).
  virtual bool try_lock_exclusive() = 0;
  // The same, shared: any number may hold it at once, none beside an exclusive one.
  virtual bool try_lock_shared() = 0;
  // Marks the byte at an offset, which need not be there, by a shared lock that dies with this File
  // (fcntl(2), F_OFD_SETLK); a file opened read_only will do. False: it is locked otherwise.
  virtual bool mark_byte(std::uint64_t offset_bytes) = 0;
  // The same, alone: nobody else marks or locks the byte meanwhile. REQUIRES: open to write, so who
  // may only read a file keeps nobody from marking it.
  virtual bool try_lock_byte(std::uint64_t offset_bytes) = 0;
  // Whether another File has locked the byte so.
  virtual bool byte_locked(std::uint64_t offset_bytes) const = 0;
  // Ends a mark, or a lock of the byte.
  virtual void unmark_byte(std::uint64_t offset_bytes) = 0;
  // The bytes that others have marked, ascending: other Files, in this process or any.
  virtual std::vector<std::uint64_t> marked_bytes() const = 0;
  // It has this name now: for messages, and for replaced().
  virtual void renamed(const std::string&) {}
  // Whether another file, or none, has this one's name now.
  virtual bool replaced() const = 0;
  // Bytes that the file occupies on the medium (st_blocks * 512).
  virtual std::uint64_t allocated_bytes() const = 0;
  // Where there may be something but a hole at or after the offset (lseek(2), SEEK_DATA). Where the
  // file system does not say: the offset itself. UINT64_MAX: nothing but a hole, or the end.
  virtual std::uint64_t next_data(std::uint64_t offset_bytes) const { return offset_bytes; }
  // Where the next hole begins at or after the offset, of which the end of the file is one
  // (lseek(2), SEEK_HOLE). Where the file system does not say: UINT64_MAX.
  virtual std::uint64_t next_hole(std::uint64_t) const { return UINT64_MAX; }
  // Gives this file the owner, as far as permitted, and the permissions of another: before anything
  // of that is copied here.
  virtual void take_access_of(const File&) {}
  // Whether it belongs to who owns the other, or to root.
  virtual bool trusted_beside(const File&) const { return true; }
  virtual FileIdentity identity() const { return {.size_bytes = size_bytes()}; }
  // For mmap(2) alone: whoever maps the file goes past this seam. Stays the File's. -1: this file
  // cannot be mapped.
  virtual int descriptor() const noexcept { return -1; }
};

struct DirEntry {
  std::string name;
  bool is_regular_file = false;
  bool is_directory = false;
};

class Fs {
 public:
  virtual ~Fs() = default;
  Fs() = default;
  Fs(const Fs&) = delete;
  Fs& operator=(const Fs&) = delete;

  // Opens a regular file; refuses symbolic links (O_NOFOLLOW) and anything that is not a regular
  // file (never blocks on a FIFO) with Errc::damaged.
  virtual std::unique_ptr<File> open(const std::string& path, OpenMode mode) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;      // replaces `to`
  virtual void rename_new(const std::string& from, const std::string& to) = 0;  // RENAME_NOREPLACE
  virtual void unlink(const std::string& path) = 0;
  virtual void make_directory(const std::string& path) = 0;    // already_exists when it is there
  virtual void remove_directory(const std::string& path) = 0;  // must be empty
  virtual void sync_directory(const std::string& path) = 0;
  virtual std::vector<DirEntry> list(
      const std::string& path) const = 0;                  // sorted by name, without . and ..
  virtual bool exists(const std::string& path) const = 0;  // lstat
  // A directory, and not a symbolic link to one.
  virtual bool is_directory(const std::string& path) const;
};

Fs& posix_fs();

// The whole of a small file. Throws Errc::damaged when it is larger than `limit_bytes`.
std::vector<std::byte> read_whole(Fs& fs, const std::string& path, std::uint64_t limit_bytes);

// Publishes `bytes` as the file `directory/name`: write directory_tmp/<unique>, fdatasync, rename,
// fsync the directory. With `replace` false the name must be free (Errc::already_exists). Readers
// see all of it or nothing. A kill leaves `<name>.<unique>` in tmp_directory. Zeros at the end
// become a hole, as far as the file system has holes.
void publish_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                  const std::string& name, std::span<const std::byte> bytes, bool replace);
// Removes such a file, unless somebody is still at work on it: it is locked as long.
bool remove_unpublished(Fs& fs, const std::string& path);

// The same, replacing, without a flush: after a power cut the file may be the one before, a torn
// one, or none.
void replace_hint_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                       const std::string& name, std::span<const std::byte> bytes);

// Unlinks what an error has left unfinished. An error of its own is dropped: the first one says
// more, and a sweep takes the file later.
void unlink_quietly(Fs& fs, const std::string& path) noexcept;

}  // namespace vellum::base
