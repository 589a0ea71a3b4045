// mount/serve.cpp: see serve.hpp.
#include "mount/serve.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "base/try_to.hpp"
#include "mount/fuse.hpp"
#include "mount/stop_signals.hpp"
#include "mount/tree.hpp"
#include "mount/writable_file.hpp"
#include "region/api/store_impl.hpp"

namespace vellum::mount {
namespace {

struct CloseSession {
  void operator()(fuse_session* session) const {
    fuse_session_unmount(session);
    fuse_session_destroy(session);
  }
};
using Session = std::unique_ptr<fuse_session, CloseSession>;

// A value of a mount option.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// The kernel checks permissions: without `allow_other`, only the user that mounts may read.
Session make_session(Tree& tree, const std::string& store, bool is_writable) {
  std::string options = is_writable ? "rw" : "ro";
  options += ",nosuid,nodev,default_permissions,subtype=vellum,fsname=" + escaped(store);
  std::string name = "vellum", option = "-o";
  char* words[] = {name.data(), option.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  Session session(fuse_session_new(&arguments, &kOperations, sizeof kOperations, &tree));
  fuse_opt_free_args(&arguments);
  if (session == nullptr) fail(Errc::io, "FUSE could not be started");
  return session;
}

// The device reports POLLERR once the file system is unmounted, or its connection is aborted
// (fuse_dev_poll() in the kernel).
bool is_unmounted(fuse_session* session) noexcept {
  pollfd device{fuse_session_fd(session), 0, 0};
  return poll(&device, 1, 0) == 1 && (device.revents & POLLERR) != 0;
}

void answer(fuse_session* session) {
  const std::unique_ptr<fuse_loop_config, void (*)(fuse_loop_config*)> config(
      fuse_loop_cfg_create(), fuse_loop_cfg_destroy);
  // Threads that read concurrently, each with its own descriptor.
  constexpr unsigned kMaxThreads = 16;
  fuse_loop_cfg_set_max_threads(config.get(), kMaxThreads);
  fuse_loop_cfg_set_clone_fd(config.get(), 1);
  const int result = fuse_session_loop_mt(session, config.get());
  // A positive result is a signal. A request that the unmount cuts off can be an error of its reader.
  if (result < 0 && !is_unmounted(session)) fail(Errc::io, "FUSE: {}", std::strerror(-result));
}

void serve_tree(Tree& tree, const std::string& store, const std::string& directory,
                const std::vector<std::string>& writable,
                const std::function<void()>& when_mounted) {
  const Session session = make_session(tree, store, !writable.empty());
  if (fuse_session_mount(session.get(), directory.c_str()) != 0) {
    fail(Errc::io, "{}: cannot be mounted", directory);
  }
  std::vector<std::string> written;
  for (const std::string& branch : writable) written.push_back(directory + "/" + branch);
  const StopSignals stop_signals(session.get(), std::move(written));
  when_mounted();
  answer(session.get());
}

// Commits all files, even if one of them fails.
void commit_all(const Tree::WritableFiles& files) {
  std::exception_ptr failed;
  for (const auto& file : files) {
    try {
      with_context("branch '" + file->branch() + "': writes since the last fsync are lost",
                   [&] { file->close(); });
    } catch (const Error&) {
      failed = std::current_exception();
    }
  }
  if (failed != nullptr) std::rethrow_exception(failed);
}

}  // namespace

void clear_dead_mount(const std::string& directory) {
  // Not stat(2), which the kernel answers from its cache long after the server has ended.
  struct statvfs ignored{};
  if (statvfs(directory.c_str(), &ignored) == 0 || errno != ENOTCONN) return;
  if (umount2(directory.c_str(), MNT_DETACH) == 0) return;
  std::string program = "fusermount3", option = "-uzq", path = directory;
  char* words[] = {program.data(), option.data(), path.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawnp(&child, words[0], nullptr, nullptr, words, environ) == 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
}

void serve(const Store& store, const std::string& directory,
           const std::vector<std::string>& writable, const std::function<void()>& when_mounted) {
  Tree::WritableFiles files;
  for (const std::string& branch : writable) {
    files.push_back(std::make_shared<WritableFile>(store, branch));
  }
  try {
    Tree tree(StoreAccess::core_of(store), files);
    serve_tree(tree, store.path(), directory, writable, when_mounted);
  } catch (...) {
    for (const auto& file : files) base::try_to([&] { file->close(); });
    throw;
  }
  commit_all(files);
}

}  // namespace vellum::mount
