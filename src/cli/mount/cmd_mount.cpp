// cli/mount/cmd_mount.cpp: vellum mount: shows every version of a store as a file, and writable
// branches.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fail.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "mount/serve.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

// A child process that continues after the command has returned. REQUIRES: one thread, and no store
// is open.
class Background {
 public:
  Background();
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  bool is_child() const { return child_ == 0; }
  // In the child: the parent returns, and the child detaches from its terminal and directory.
  void is_ready();
  // In the parent: the exit status of the command. If it is not 0, the child has reported the
  // reason.
  int wait();

 private:
  pid_t child_ = -1;
  int ready_ = -1;  // a pipe: to read in the parent, to write in the child
};

Background::Background() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(Errc::io, "pipe: {}", std::strerror(errno));
  child_ = fork();
  if (child_ < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    fail(Errc::io, "fork: {}", std::strerror(error));
  }
  ready_ = ends[child_ == 0 ? 1 : 0];
  close(ends[child_ == 0 ? 0 : 1]);
}

Background::~Background() {
  if (ready_ >= 0) close(ready_);
}

void Background::is_ready() {
  setsid();  // until now the terminal could ask for a passphrase
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nowhere >= 0; ++fd) {
    // A log file is kept; with a pipe, its reader would wait for the end.
    struct stat status{};
    if (fd == STDERR_FILENO && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) continue;
    dup2(nowhere, fd);
  }
  if (nowhere > STDERR_FILENO) close(nowhere);
  // A working directory would keep its file system from being unmounted.
  if (chdir("/") != 0) fail(Errc::io, "/: {}", std::strerror(errno));
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = write(ready_, &byte, 1);
  close(ready_);
  ready_ = -1;
}

int Background::wait() {
  char byte = 0;
  ssize_t n = 0;
  while ((n = read(ready_, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (n == 1) return kExitOk;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : kExitOther;
}

struct MountArguments {
  std::string store;
  std::string directory;
  std::vector<std::string> writable;
  bool background = false;
};

bool lies_in(const std::filesystem::path& place, const std::filesystem::path& directory) {
  const auto below = place.lexically_relative(directory);
  return !below.empty() && *below.begin() != "..";
}

void require_directory(const MountArguments& arguments) {
  namespace fs = std::filesystem;
  const fs::path& directory = arguments.directory;
  if (!fs::is_directory(directory)) {
    fail(fs::exists(directory) ? Errc::invalid_argument : Errc::not_found, "{}: not a directory",
         arguments.directory);
  }
  if (remote::is_remote_url(arguments.store)) return;
  const fs::path at = fs::canonical(directory), store = fs::canonical(arguments.store);
  if (lies_in(at, store)) {
    fail(Errc::invalid_argument, "{}: is inside the store", arguments.directory);
  }
  // The server would request the store's files from itself, and deadlock.
  if (lies_in(store, at)) {
    fail(Errc::invalid_argument, "{}: contains the store", arguments.directory);
  }
}

void report_mounted(Context& context, const Store& store, const MountArguments& arguments) {
  context.report(Json{{"store", store.path()},
                      {"directory", arguments.directory},
                      {"writable", arguments.writable}},
                 fmt::format("{} shows {}; unmount it with: fusermount3 -u {}", arguments.directory,
                             store.path(), arguments.directory));
  context.out.flush();
}

// A URL is absolute already.
std::string absolute_store(const std::string& store) {
  return remote::is_remote_url(store) ? store : std::filesystem::absolute(store).string();
}

int run_mount(Context& context, MountArguments arguments) {
  mount::clear_dead_mount(arguments.directory);
  // The background process has another working directory.
  arguments.store = absolute_store(arguments.store);
  const Store store = Store::open(arguments.store);
  require_directory(arguments);
  mount::serve(store, arguments.directory, arguments.writable,
               [&] { report_mounted(context, store, arguments); });
  return kExitOk;
}

int run_in_background(Context& context, const MountArguments& arguments) {
  mount::clear_dead_mount(arguments.directory);
  MountArguments there = arguments;
  there.store = absolute_store(arguments.store);
  there.directory = std::filesystem::absolute(arguments.directory);
  // Before the store is open: its threads and locks belong to the serving process.
  Background background;
  if (!background.is_child()) return background.wait();
  const Store store = Store::open(there.store);
  require_directory(there);
  mount::serve(store, there.directory, there.writable, [&] {
    report_mounted(context, store, arguments);
    background.is_ready();
  });
  return kExitOk;
}

}  // namespace

void add_mount(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<MountArguments>();
  CLI::App* command = add_command(app, context, "mount", "Show every version as a file (FUSE)",
                                  arguments->store, [&context, arguments] {
                                    return arguments->background
                                               ? run_in_background(context, *arguments)
                                               : run_mount(context, *arguments);
                                  });
  command->add_option("DIR", arguments->directory, "The directory to mount on")->required();
  command
      ->add_option("--writable", arguments->writable,
                   "A branch that programs can write as a file; its fsync is a commit (repeatable)")
      ->type_name("BRANCH")
      ->allow_extra_args(false);
  command->add_flag("--background", arguments->background,
                    "Return when the directory shows the store, and serve in the background");
}

}  // namespace vellum::cli
