// base/files/file.hpp: the only interface between Vellum and the file system.
//
// Every layer accesses files only through an Fs. A test can therefore count, delay, tear, drop,
// reorder or fail any call (idea: leveldb's Env, db/fault_injection_test.cc). The real one is
// posix_fs().
//
// Errors: every call throws vellum::Error with the path and the operating system's reason:
//   no_space        ENOSPC, EDQUOT
//   read_only       EROFS
//   not_found       ENOENT
//   already_exists  EEXIST
//   unsupported     EOPNOTSUPP (a file system without fallocate or holes)
//   out_of_memory   EMFILE, ENFILE, ENOMEM
//   io              the rest
// A held lock is not an error. EINTR and short transfers are retried inside. A read past the end of
// the file throws Errc::corrupted ("truncated").
//
// Threads: any number may use a File at once (positioned I/O only, no shared offset).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vellum::base {

enum class OpenMode {
  read_only,
  read_write,  // must exist
  create_new,  // must not exist (O_EXCL), read-write
};

// Distinguishes a file from an earlier state of it, and from an earlier file with the same name.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;  // mtime, ctime, since 1970-01-01 UTC
  std::int64_t born_ns = 0;  // 0: unknown. Inode numbers are reused, even at once
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
  // Like pread(), without exceptions or allocation, for the fault handler. Returns 0 or an errno
  // (ENODATA when the file ends early).
  virtual int try_pread(std::span<std::byte> out, std::uint64_t offset_bytes) const noexcept = 0;
  // Starts reading these bytes from the medium, for a later pread(). Reports no errors.
  virtual void begin_read(std::uint64_t, std::uint64_t) const noexcept {}
  // Writes all bytes and extends the file if needed. Not durable before sync_data().
  virtual void pwrite(std::span<const std::byte> bytes, std::uint64_t offset_bytes) = 0;
  virtual void sync_data() = 0;  // fdatasync(2)
  // Starts writing these bytes to the medium, to make a later sync_data() faster. Makes nothing
  // durable, and reports no errors.
  virtual void begin_flush(std::uint64_t, std::uint64_t) noexcept {}
  virtual void truncate(std::uint64_t size_bytes) = 0;
  virtual void allocate(std::uint64_t offset_bytes,
                        std::uint64_t length_bytes) = 0;  // fallocate(2), extends
  virtual void punch(std::uint64_t offset_bytes,
                     std::uint64_t length_bytes) = 0;  // FALLOC_FL_PUNCH_HOLE
  // Takes an exclusive advisory lock (flock(2)) that ends with its process. False: another File
  // holds it. A child of fork(2) shares neither this lock nor any below
  // (base/threads/forked_locks.hpp).
  virtual bool try_lock_exclusive() = 0;
  // The same, shared: any number of holders at once, but none concurrently with an exclusive one.
  virtual bool try_lock_shared() = 0;
  // Pins the byte at an offset, which need not exist, by a shared lock that ends with this File
  // (fcntl(2), F_OFD_SETLK). A file opened read_only suffices. False: another File has locked it.
  virtual bool pin_byte(std::uint64_t offset_bytes) = 0;
  // The same, exclusively: no other File can pin or lock the byte meanwhile. REQUIRES: opened for
  // writing. A process that may only read a file thus cannot keep others from pinning it.
  virtual bool try_lock_byte(std::uint64_t offset_bytes) = 0;
  // Whether another File holds the byte by try_lock_byte().
  virtual bool byte_locked(std::uint64_t offset_bytes) const = 0;
  // Releases a pin or a lock of the byte.
  virtual void unpin_byte(std::uint64_t offset_bytes) = 0;
  // The bytes that other Files have pinned, in this process or any other, ascending.
  virtual std::vector<std::uint64_t> pinned_bytes() const = 0;
  // Sets the File's new name, for messages and for replaced().
  virtual void renamed(const std::string&) {}
  // Whether this file's name now belongs to another file or to no file.
  virtual bool replaced() const = 0;
  // Bytes that the file occupies on the medium (st_blocks * 512).
  virtual std::uint64_t allocated_bytes() const = 0;
  // The first offset at or after this one that may have data (lseek(2), SEEK_DATA). The offset
  // itself if the file system does not report holes. UINT64_MAX: only a hole follows, or the end.
  virtual std::uint64_t next_data(std::uint64_t offset_bytes) const { return offset_bytes; }
  // The start of the next hole at or after the offset (lseek(2), SEEK_HOLE); the end of the file
  // counts as one. UINT64_MAX if the file system does not report holes.
  virtual std::uint64_t next_hole(std::uint64_t) const { return UINT64_MAX; }
  // One read(2), for files with a meaningless size, as in /proc. May read less. 0: the end.
  virtual std::size_t read_some(std::span<std::byte> out, std::uint64_t offset_bytes) const {
    const std::uint64_t size = size_bytes();
    if (offset_bytes >= size) return 0;
    out = out.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size - offset_bytes)));
    pread(out, offset_bytes);
    return out.size();
  }
  // Copies the permissions, the access list and, as far as permitted, the owner of another file.
  // Call it before copying content of the other file.
  virtual void take_access_of(const File&) {}
  // Copies the other extended attributes of another file, as far as permitted.
  virtual void take_attributes_of(const File&) {}
  // Whether this file belongs to the owner of the other file, or to root.
  virtual bool trusted_beside(const File&) const { return true; }
  virtual FileIdentity identity() const { return {.size_bytes = size_bytes()}; }
  // For mmap(2) only: a mapping bypasses this seam. The File keeps the descriptor. -1: this file
  // cannot be mapped.
  virtual int descriptor() const noexcept { return -1; }
};

struct DirEntry {
  std::string name;
  bool is_regular_file = false;
  bool is_directory = false;
};

// Times since 1970-01-01 UTC. A copy of a directory may have its st_mtime; no program can give it the
// other two.
struct DirectoryState {
  std::int64_t modified_ns = 0;  // st_mtime: a name was added or removed, or the time was set
  std::int64_t changed_ns = 0;   // st_ctime
  std::uint64_t inode = 0;
};

class Fs {
 public:
  virtual ~Fs() = default;
  Fs() = default;
  Fs(const Fs&) = delete;
  Fs& operator=(const Fs&) = delete;

  // Opens a regular file; refuses symbolic links (O_NOFOLLOW) and anything that is not a regular
  // file (never blocks on a FIFO) with Errc::corrupted.
  virtual std::unique_ptr<File> open(const std::string& path, OpenMode mode) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;      // replaces `to`
  virtual void rename_new(const std::string& from, const std::string& to) = 0;  // RENAME_NOREPLACE
  // A second name, `to`, for a file. Errc::already_exists: the name is taken.
  virtual void link(const std::string& from, const std::string& to) = 0;
  virtual void unlink(const std::string& path) = 0;
  virtual void make_directory(const std::string& path) = 0;    // already_exists when it exists
  virtual void remove_directory(const std::string& path) = 0;  // must be empty
  virtual void sync_directory(const std::string& path) = 0;
  virtual std::vector<DirEntry> list(
      const std::string& path) const = 0;                  // sorted by name, without . and ..
  virtual bool exists(const std::string& path) const = 0;  // lstat
  // A directory, and not a symbolic link to one.
  virtual bool is_directory(const std::string& path) const;
  // nullopt: the file system does not say.
  virtual std::optional<DirectoryState> directory_state(const std::string&) const {
    return std::nullopt;
  }
  // Sets its modified_ns. Only the directory's owner may. A file system may store a less exact time.
  virtual void set_directory_time(const std::string& path, std::int64_t time_ns);
};

Fs& posix_fs();

// Reads a whole small file. Throws Errc::corrupted when it is larger than `limit_bytes`.
std::vector<std::byte> read_whole(Fs& fs, const std::string& path, std::uint64_t limit_bytes);

// Publishes `bytes` as the file `directory/name`: 1. write tmp_directory/<name>.<unique>, fdatasync
// 2. rename 3. fsync the directory With `replace` false the name must be free
// (Errc::already_exists). Readers see the complete file or none. If the process is killed, the file
// remains in tmp_directory. REQUIRES: `name` has no '/'.
void publish_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                  const std::string& name, std::span<const std::byte> bytes, bool replace);
// Like publish_file() without `replace`. `around` gets step 2 and calls it once.
void publish_new_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                      const std::string& name, std::span<const std::byte> bytes,
                      const std::function<void(const std::function<void()>&)>& around);
// Like publish_file() without `replace`: a file of `size_bytes` that starts with `start`, followed
// by zeros, as a hole if the file system has holes. REQUIRES: start.size() <= size_bytes.
void publish_sparse_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                         const std::string& name, std::span<const std::byte> start,
                         std::uint64_t size_bytes);
// Removes an unpublished file of publish_file(), unless its writer still holds its lock.
bool remove_unpublished(Fs& fs, const std::string& path);

// Like publish_file() with `replace`, without a flush: after a power cut the file may be the
// previous one, a torn one, or missing.
void replace_hint_file(Fs& fs, const std::string& tmp_directory, const std::string& directory,
                       const std::string& name, std::span<const std::byte> bytes);

// Unlinks a file that is unfinished because of an error. Ignores its own errors: the first error is
// more important, and a sweep removes the file later.
void unlink_quietly(Fs& fs, const std::string& path) noexcept;

// The same file system without following links in paths below the directory `root`. A user who may
// write there cannot redirect accesses to outside of it. Errc::corrupted: a path has a link, which
// the message names; invalid_argument: a path has `..`. Works for posix_fs() and for results of
// this function. Other file systems have no links, or forward to posix_fs() in a test: the result
// is then `fs` itself, which must outlive it.
std::shared_ptr<Fs> beneath(Fs& fs, const std::string& root);

}  // namespace vellum::base
