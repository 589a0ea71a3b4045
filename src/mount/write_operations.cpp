// mount/write_operations.cpp: see write_operations.hpp.
//
// Only calls that make a file durable commit (interfaces/mapped_io/durable.hpp): a commit at
// close(2) would break the transactions of programs that close one of several descriptors, as every
// exiting child of fork(2) does. The operation flush is therefore missing, and the kernel does not
// request it again.
#include "mount/fuse.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "interfaces/mapped_io/durable.hpp"
#include "mount/reply.hpp"

namespace vellum::mount {
namespace {

// The writable file; nullptr: it is a version, and the error has been sent.
WritableFile* writable_of(fuse_req_t request, const Node& node) {
  if (!node.is_writable()) fuse_reply_err(request, EROFS);
  return node.writable.get();
}

void commit(WritableFile& writable, const char* call) {
  with_context(std::string(call) + " of branch '" + writable.branch() + "'",
               [&] { writable.commit(); });
}

// The kernel reports O_DSYNC, O_SYNC and the flags of pwritev2(2) in the same way.
void write_file(fuse_req_t request, fuse_ino_t, const char* from, std::size_t size, off_t offset,
                fuse_file_info* file) {
  reply(request, [&] {
    WritableFile* const writable = writable_of(request, *handle_of<OpenFile>(file).node);
    if (writable == nullptr) return;
    const auto bytes = std::as_bytes(std::span(from, size));
    const auto at = static_cast<std::uint64_t>(offset);
    const std::uint64_t capacity = writable->capacity_bytes();
    if (file->writepage != 0) {
      writable->write_back(at, bytes);
    } else if (at > capacity || size > capacity - at) {
      fuse_reply_err(request, EFBIG);
      return;
    } else {
      writable->write(at, bytes);
      if (mapped_io::descriptor_is_synchronous(file->flags)) commit(*writable, "write");
    }
    fuse_reply_write(request, size);
  });
}

void sync_file(fuse_req_t request, fuse_ino_t, int, fuse_file_info* file) {
  reply(request, [&] {
    // A version is always durable.
    const Node& node = *handle_of<OpenFile>(file).node;
    if (node.is_writable()) commit(*node.writable, "fsync");
    fuse_reply_err(request, 0);
  });
}

void set_time(WritableFile& file, const timespec& time) {
  file.set_changed_ns(base::nanoseconds_of(time));
}

void set_attributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
                    fuse_file_info*) {
  reply(request, [&] {
    const auto node = node_of(request, number);
    if (node == nullptr) return;
    WritableFile* const writable = writable_of(request, *node);
    if (writable == nullptr) return;
    const auto size = static_cast<std::uint64_t>(wanted->st_size);
    if ((which & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
      fuse_reply_err(request, EPERM);
      return;
    }
    if ((which & FUSE_SET_ATTR_SIZE) != 0) {
      if (size > writable->capacity_bytes()) {
        fuse_reply_err(request, EFBIG);
        return;
      }
      writable->resize(size);
    }
    if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) {
      writable->set_changed_ns(base::wall_clock_ns());
    } else if ((which & FUSE_SET_ATTR_MTIME) != 0) {
      set_time(*writable, wanted->st_mtim);
    }
    const struct stat now = attributes_of(*node);
    fuse_reply_attr(request, &now, kForeverSeconds);
  });
}

// Names belong to the store.
void refuse_make(fuse_req_t request, fuse_ino_t, const char*, mode_t, fuse_file_info*) {
  fuse_reply_err(request, EROFS);
}
void refuse_node(fuse_req_t request, fuse_ino_t, const char*, mode_t, dev_t) {
  fuse_reply_err(request, EROFS);
}
void refuse_directory(fuse_req_t request, fuse_ino_t, const char*, mode_t) {
  fuse_reply_err(request, EROFS);
}
void refuse_remove(fuse_req_t request, fuse_ino_t, const char*) { fuse_reply_err(request, EROFS); }
void refuse_rename(fuse_req_t request, fuse_ino_t, const char*, fuse_ino_t, const char*, unsigned) {
  fuse_reply_err(request, EROFS);
}
void refuse_link(fuse_req_t request, fuse_ino_t, fuse_ino_t, const char*) {
  fuse_reply_err(request, EROFS);
}
void refuse_symbolic_link(fuse_req_t request, const char*, fuse_ino_t, const char*) {
  fuse_reply_err(request, EROFS);
}

}  // namespace

void add_write_operations(fuse_lowlevel_ops& operations) {
  operations.write = write_file;
  operations.fsync = sync_file;
  operations.setattr = set_attributes;
  operations.create = refuse_make;
  operations.mknod = refuse_node;
  operations.mkdir = refuse_directory;
  operations.unlink = refuse_remove;
  operations.rmdir = refuse_remove;
  operations.rename = refuse_rename;
  operations.link = refuse_link;
  operations.symlink = refuse_symbolic_link;
}

}  // namespace vellum::mount
