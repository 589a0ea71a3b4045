// mount/reply.hpp: shared by all replies to the kernel. Internal to src/mount.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "mount/fuse.hpp"
#include "mount/tree.hpp"
#include "vellum/error.hpp"

namespace vellum::mount {

// Cache times. A version never changes. A name in the store may be changed at any time, and is
// looked up each time. Changes of a writable file pass through the kernel.
inline constexpr double kForeverSeconds = 1e6, kNowSeconds = 0;

struct OpenFile {
  std::shared_ptr<const Node> node;
  std::shared_ptr<const store::PageSource> source;  // of a version
};
using OpenDirectory = std::vector<std::string>;

inline Tree& tree_of(fuse_req_t request) { return *static_cast<Tree*>(fuse_req_userdata(request)); }

template <typename T>
T& handle_of(const fuse_file_info* file) {
  return *reinterpret_cast<T*>(file->fh);
}

int error_number(const Error& error);
// `data_bytes`: Tree::data_bytes(), for the file of a version.
struct stat attributes_of(const Node& node,
                          const std::optional<std::uint64_t>& data_bytes = std::nullopt);
// The same, with the data of a version's file searched.
struct stat attributes_of(Tree& tree, const Node& node);
// nullptr: there is none, and the error has been sent.
std::shared_ptr<const Node> node_of(fuse_req_t request, fuse_ino_t number);

// Runs `answer`, which replies; if it throws, replies with the error.
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

}  // namespace vellum::mount
