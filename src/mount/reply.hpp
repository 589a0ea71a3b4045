// mount/reply.hpp: what all answers to the kernel share. Internal to src/mount.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "mount/fuse.hpp"
#include "mount/tree.hpp"
#include "vellum/error.hpp"

namespace vellum::mount {

// A version never changes. A name in the store may lead elsewhere at the next moment, and is asked
// for each time. What changes of a writable file, the kernel has changed itself.
inline constexpr double kForEverSeconds = 1e6, kNowSeconds = 0;

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
struct stat attributes_of(const Node& node);
// nullptr: there is none, which has been answered.
std::shared_ptr<const Node> node_of(fuse_req_t request, fuse_ino_t number);

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

}  // namespace vellum::mount
