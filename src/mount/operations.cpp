// mount/operations.cpp: see operations.hpp.
#include "mount/operations.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "mount/tree.hpp"
#include "vellum/error.hpp"

namespace vellum::mount {
namespace {

// A version never changes. A name in the store may lead elsewhere at the next moment, and is asked
// for each time.
constexpr double kForEverSeconds = 1e6, kNowSeconds = 0;
constexpr std::uint64_t kNanoseconds = 1000000000;
constexpr std::uint64_t kStatBlockBytes = 512;

struct OpenFile {
  std::shared_ptr<const Node> node;
  std::shared_ptr<const store::PageSource> source;
};
using OpenDirectory = std::vector<std::string>;

Tree& tree_of(fuse_req_t request) { return *static_cast<Tree*>(fuse_req_userdata(request)); }

template <typename T>
T& handle_of(const fuse_file_info* file) {
  return *reinterpret_cast<T*>(file->fh);
}

int error_number(const Error& error) {
  switch (error.code()) {
    case Errc::not_found:
      return ESTALE;  // it was there when its name was looked up
    case Errc::out_of_memory:
      return ENOMEM;
    case Errc::busy:
      return EBUSY;
    default:
      return EIO;
  }
}

// Runs `answer`, which replies unless it throws.
template <typename Answer>
void reply(fuse_req_t request, const Answer& answer) noexcept {
  try {
    answer();
  } catch (const Error& error) {
    std::fprintf(stderr, "vellum: mount: %s\n", error.what());
    fuse_reply_err(request, error_number(error));
  } catch (const std::bad_alloc&) {
    fuse_reply_err(request, ENOMEM);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vellum: mount: %s\n", error.what());
    fuse_reply_err(request, EIO);
  }
}

timespec time_of(std::int64_t time_ns) {
  timespec out{};
  const auto second = static_cast<std::int64_t>(kNanoseconds);
  out.tv_sec = time_ns / second;
  out.tv_nsec = time_ns % second;
  if (out.tv_nsec < 0) {
    out.tv_nsec += second;
    --out.tv_sec;
  }
  return out;
}

// Nobody writes: the mode says so to programs that ask before they try.
struct stat attributes_of(const Node& node) {
  struct stat out{};
  out.st_ino = node.number;
  out.st_uid = getuid();
  out.st_gid = getgid();
  out.st_mtim = out.st_ctim = out.st_atim = time_of(node.version.key.time_ns);
  if (node.kind < Node::Kind::datastore) {
    static const timespec since = time_of(base::wall_clock_ns());  // no version has a time for it
    out.st_mtim = out.st_ctim = out.st_atim = since;
  }
  if (!node.is_file()) {
    out.st_mode = S_IFDIR | 0555;
    out.st_nlink = 2;
    return out;
  }
  out.st_mode = S_IFREG | 0444;
  out.st_nlink = 1;
  out.st_size = static_cast<off_t>(node.part.length_bytes);
  // One less than all of them: programs then look for holes. None would say that all is a hole.
  const std::uint64_t blocks = node.part.length_bytes / kStatBlockBytes;
  out.st_blocks = static_cast<blkcnt_t>(std::max<std::uint64_t>(blocks, 2) - 1);
  return out;
}

std::shared_ptr<const Node> node_of(fuse_req_t request, fuse_ino_t number) {
  auto node = tree_of(request).node(number);
  if (node == nullptr) fuse_reply_err(request, ESTALE);
  return node;
}

void begin(void*, fuse_conn_info* connection) {
  constexpr unsigned kReadAheadBytes = 1 << 20;
  connection->max_readahead = std::min(connection->max_readahead, kReadAheadBytes);
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
    entry.attr = attributes_of(*node);
    entry.attr_timeout = kForEverSeconds;
    entry.entry_timeout = directory->kind == Node::Kind::datastore ? kForEverSeconds : kNowSeconds;
    // What does not arrive is not held by the kernel.
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
    const struct stat out = attributes_of(*node);
    fuse_reply_attr(request, &out, kForEverSeconds);
  });
}

void open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  reply(request, [&] {
    const auto node = node_of(request, number);
    if (node == nullptr) return;
    if ((file->flags & O_ACCMODE) != O_RDONLY) {
      fuse_reply_err(request, EROFS);
      return;
    }
    auto opened = std::make_unique<OpenFile>(OpenFile{node, tree_of(request).open(*node)});
    file->fh = reinterpret_cast<std::uint64_t>(opened.get());
    file->keep_cache = 1;  // for all that read this version, one after the other, too
    if (fuse_reply_open(request, file) == 0) static_cast<void>(opened.release());
  });
}

void close_file(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  delete &handle_of<OpenFile>(file);
  fuse_reply_err(request, 0);
}

void read_file(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
               fuse_file_info* file) {
  reply(request, [&] {
    const auto& [node, source] = handle_of<OpenFile>(file);
    const auto at = static_cast<std::uint64_t>(offset);
    const std::uint64_t length = node->part.length_bytes;
    thread_local std::vector<std::byte> bytes;
    bytes.resize(at >= length ? 0 : std::min<std::uint64_t>(size, length - at));
    if (!bytes.empty()) read_part(*source, node->part, at, bytes);
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

void seek(fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* file) {
  reply(request, [&] {
    const auto& [node, source] = handle_of<OpenFile>(file);
    const auto at = static_cast<std::uint64_t>(offset);
    if (offset < 0 || at >= node->part.length_bytes ||
        (whence != SEEK_DATA && whence != SEEK_HOLE)) {
      fuse_reply_err(request, offset < 0 || at >= node->part.length_bytes ? ENXIO : EINVAL);
      return;
    }
    const std::uint64_t found = whence == SEEK_DATA ? next_data(*source, node->part, at)
                                                    : next_hole(*source, node->part, at);
    if (whence == SEEK_DATA && found == node->part.length_bytes) {
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
    file->fh = reinterpret_cast<std::uint64_t>(names.get());
    if (fuse_reply_open(request, file) == 0) static_cast<void>(names.release());
  });
}

void close_directory(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  delete &handle_of<OpenDirectory>(file);
  fuse_reply_err(request, 0);
}

// Of the names alone: what they are is found when somebody looks one up.
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
  out.release = close_file;
  out.read = read_file;
  out.lseek = seek;
  out.opendir = open_directory;
  out.releasedir = close_directory;
  out.readdir = read_directory;
  return out;
}

}  // namespace

const fuse_lowlevel_ops kOperations = operations();

}  // namespace vellum::mount
