// mount/operations.cpp: the kernel's requests to read.
#include "mount/fuse.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mount/reply.hpp"

namespace vellum::mount {
namespace {

void begin(void*, fuse_conn_info* connection) {
  constexpr unsigned kReadAheadBytes = 1 << 20;
  connection->max_readahead = std::min(connection->max_readahead, kReadAheadBytes);
  // All changes of a writable file pass through the kernel, so it does not have to drop cached
  // pages because of a new time. O_TRUNC arrives as a change of the size.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC);
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  reply(request, [&] {
    const auto directory = node_of(request, parent);
    if (directory == nullptr) return;
    fuse_entry_param entry{};
    const auto node = tree_of(request).look_up(*directory, name);
    if (node == nullptr) {
      fuse_reply_err(request, ENOENT);
      return;
    }
    entry.ino = node->number;
    entry.attr = attributes_of(tree_of(request), *node);
    entry.attr_timeout = kForeverSeconds;
    const bool stays = directory->kind == NodeKind::datastore || node->is_writable();
    entry.entry_timeout = stays ? kForeverSeconds : kNowSeconds;
    // If the reply fails, the kernel does not hold the number.
    if (fuse_reply_entry(request, &entry) != 0) tree_of(request).forget(node->number, 1);
  });
}

void forget(fuse_req_t request, fuse_ino_t number, std::uint64_t times) {
  tree_of(request).forget(number, times);
  fuse_reply_none(request);
}

void forget_many(fuse_req_t request, std::size_t count, fuse_forget_data* all) {
  for (std::size_t i = 0; i < count; ++i) tree_of(request).forget(all[i].ino, all[i].nlookup);
  fuse_reply_none(request);
}

void get_attributes(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  reply(request, [&] {
    const auto node = node_of(request, number);
    if (node == nullptr) return;
    const struct stat out = attributes_of(tree_of(request), *node);
    fuse_reply_attr(request, &out, kForeverSeconds);
  });
}

// The handle exists until close_handle().
template <typename Handle>
void reply_opened(fuse_req_t request, fuse_file_info* file, std::unique_ptr<Handle> handle) {
  file->fh = reinterpret_cast<std::uint64_t>(handle.get());
  if (fuse_reply_open(request, file) == 0) static_cast<void>(handle.release());
}

template <typename Handle>
void close_handle(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  delete &handle_of<Handle>(file);
  fuse_reply_err(request, 0);
}

void open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  reply(request, [&] {
    const auto node = node_of(request, number);
    if (node == nullptr) return;
    if ((file->flags & O_ACCMODE) != O_RDONLY && !node->is_writable()) {
      fuse_reply_err(request, EROFS);
      return;
    }
    file->keep_cache = 1;  // also across openings of this version
    const auto source = node->is_writable() ? nullptr : tree_of(request).open(*node);
    reply_opened(request, file, std::make_unique<OpenFile>(OpenFile{node, source}));
  });
}

void read_file(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
               fuse_file_info* file) {
  reply(request, [&] {
    const auto& [node, source] = handle_of<OpenFile>(file);
    const auto at = static_cast<std::uint64_t>(offset);
    const std::uint64_t length = node->file.length_bytes;
    thread_local std::vector<std::byte> bytes;
    if (node->is_writable()) {
      bytes.resize(size);
      bytes.resize(node->writable->read(at, bytes));
    } else {
      bytes.resize(at >= length ? 0 : std::min<std::uint64_t>(size, length - at));
      if (!bytes.empty()) read_version_file(*source, node->file, at, bytes);
    }
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

void seek(fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* file) {
  reply(request, [&] {
    const auto& [node, source] = handle_of<OpenFile>(file);
    const auto at = static_cast<std::uint64_t>(offset);
    const std::uint64_t length = node->size_bytes();
    if (offset < 0 || at >= length || (whence != SEEK_DATA && whence != SEEK_HOLE)) {
      fuse_reply_err(request, offset < 0 || at >= length ? ENXIO : EINVAL);
      return;
    }
    if (node->is_writable()) {  // all of it is data
      fuse_reply_lseek(request, whence == SEEK_DATA ? offset : static_cast<off_t>(length));
      return;
    }
    const std::uint64_t found = whence == SEEK_DATA ? next_data(*source, node->file, at)
                                                    : next_hole(*source, node->file, at);
    if (whence == SEEK_DATA && found == node->file.length_bytes) {
      fuse_reply_err(request, ENXIO);
      return;
    }
    fuse_reply_lseek(request, static_cast<off_t>(found));
  });
}

void open_directory(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  reply(request, [&] {
    const auto node = node_of(request, number);
    if (node == nullptr) return;
    auto names = std::make_unique<OpenDirectory>(tree_of(request).list(*node));
    names->insert(names->begin(), {".", ".."});
    reply_opened(request, file, std::move(names));
  });
}

// Only names: the kernel looks up the type of an entry when it is used.
void read_directory(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                    fuse_file_info* file) {
  reply(request, [&] {
    const OpenDirectory& names = handle_of<OpenDirectory>(file);
    std::vector<char> out(size);
    std::size_t used = 0;
    for (auto i = static_cast<std::size_t>(offset); i < names.size(); ++i) {
      struct stat unknown{};
      unknown.st_ino = i + 1;
      const std::size_t needed =
          fuse_add_direntry(request, out.data() + used, size - used, names[i].c_str(), &unknown,
                            static_cast<off_t>(i + 1));
      if (needed > size - used) break;
      used += needed;
    }
    fuse_reply_buf(request, out.data(), used);
  });
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops out{};
  out.init = begin;
  out.lookup = look_up;
  out.forget = forget;
  out.forget_multi = forget_many;
  out.getattr = get_attributes;
  out.open = open_file;
  out.release = close_handle<OpenFile>;
  out.read = read_file;
  out.lseek = seek;
  out.opendir = open_directory;
  out.releasedir = close_handle<OpenDirectory>;
  out.readdir = read_directory;
  add_write_operations(out);
  return out;
}

}  // namespace

const fuse_lowlevel_ops kOperations = operations();

}  // namespace vellum::mount
