// mount/reply.cpp: see reply.hpp.
#include "mount/reply.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/error_number.hpp"

namespace vellum::mount {
namespace {

constexpr std::uint64_t kStatBlockBytes = 512;
constexpr std::int64_t kNanoseconds = 1'000'000'000;  // of a second

timespec time_of(std::int64_t time_ns) {
  timespec out{};
  out.tv_sec = time_ns / kNanoseconds;
  out.tv_nsec = time_ns % kNanoseconds;
  if (out.tv_nsec < 0) {
    out.tv_nsec += kNanoseconds;
    --out.tv_sec;
  }
  return out;
}

std::int64_t time_ns_of(const Node& node) {
  // No version has a time for these directories.
  static const std::int64_t mounted_ns = base::wall_clock_ns();
  if (node.is_writable()) return node.writable->changed_ns();
  return node.kind < NodeKind::datastore ? mounted_ns : node.version.key.time_ns;
}

}  // namespace

int error_number(const Error& error) {
  if (error.code() == Errc::not_found) return ESTALE;  // it existed when its name was looked up
  return base::error_number(error.code());
}

// The mode shows programs whether the file is writable.
struct stat attributes_of(const Node& node, const std::optional<std::uint64_t>& data_bytes) {
  struct stat out{};
  out.st_ino = node.number;
  out.st_uid = getuid();
  out.st_gid = getgid();
  out.st_mtim = out.st_ctim = out.st_atim = time_of(time_ns_of(node));
  if (!node.is_file()) {
    out.st_mode = S_IFDIR | 0555;
    out.st_nlink = 2;
    return out;
  }
  const std::uint64_t bytes = node.size_bytes();
  out.st_mode = S_IFREG | (node.is_writable() ? 0644 : 0444);
  out.st_nlink = 1;
  out.st_size = static_cast<off_t>(bytes);
  if (data_bytes.has_value()) {
    out.st_blocks = static_cast<blkcnt_t>((*data_bytes + kStatBlockBytes - 1) / kStatBlockBytes);
    return out;
  }
  // One block less than the file has: programs then search for holes. 0 would mean that the file is
  // one hole.
  const std::uint64_t blocks = bytes / kStatBlockBytes;
  out.st_blocks = static_cast<blkcnt_t>(std::max<std::uint64_t>(blocks, 2) - 1);
  return out;
}

struct stat attributes_of(Tree& tree, const Node& node) {
  return attributes_of(
      node, node.kind == NodeKind::file ? tree.data_bytes(node) : std::optional<std::uint64_t>());
}

std::shared_ptr<const Node> node_of(fuse_req_t request, fuse_ino_t number) {
  auto node = tree_of(request).node(number);
  if (node == nullptr) fuse_reply_err(request, ESTALE);
  return node;
}

}  // namespace vellum::mount
