#define FUSE_USE_VERSION 314
#include "power/recorder_lib.hpp"

#include <fuse3/fuse_lowlevel.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

namespace vellum::power {

namespace {

constexpr fuse_ino_t kDisk = 2;

// Of the recorder's process.
struct Medium {
  int disk = -1, log = -1;
  const Progress* progress = nullptr;

  static Medium& of(fuse_req_t request) {
    return *static_cast<Medium*>(fuse_req_userdata(request));
  }
  void note(std::uint64_t at, const char* bytes, std::size_t length) const {
    LogHeader header;
    header.at_bytes = at;
    header.length_bytes = length;
    // In this order: a state that is visible as returned is also visible as begun.
    header.returned = progress->returned.load();
    header.begun = progress->begun.load();
    const iovec parts[] = {{&header, sizeof header}, {const_cast<char*>(bytes), length}};
    const auto all = static_cast<ssize_t>(sizeof header + length);
    if (writev(log, parts, length == 0 ? 1 : 2) != all)
      _exit(1);  // a log with a gap proves nothing
  }
};

bool attributes_of(fuse_req_t request, fuse_ino_t inode, struct stat& out) {
  std::memset(&out, 0, sizeof out);
  out.st_ino = inode;
  if (inode == FUSE_ROOT_ID) {
    out.st_mode = S_IFDIR | 0700;
    out.st_nlink = 2;
    return true;
  }
  struct stat disk{};
  if (inode != kDisk || fstat(Medium::of(request).disk, &disk) != 0) return false;
  out.st_mode = S_IFREG | 0600;
  out.st_nlink = 1;
  out.st_size = disk.st_size;
  return true;
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  fuse_entry_param entry{};
  entry.ino = kDisk;
  if (parent != FUSE_ROOT_ID || std::strcmp(name, "disk") != 0 ||
      !attributes_of(request, kDisk, entry.attr)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_reply_entry(request, &entry);
}

void get_attributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  struct stat out{};
  if (!attributes_of(request, inode, out)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_reply_attr(request, &out, 1.0);
}

void open_disk(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  if (inode != kDisk) {
    fuse_reply_err(request, EISDIR);
    return;
  }
  file->direct_io = 1;
  fuse_reply_open(request, file);
}

void read_disk(fuse_req_t request, fuse_ino_t, std::size_t length, off_t at, fuse_file_info*) {
  std::vector<char> bytes(length);
  const ssize_t n = pread(Medium::of(request).disk, bytes.data(), length, at);
  if (n < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  fuse_reply_buf(request, bytes.data(), static_cast<std::size_t>(n));
}

void write_disk(fuse_req_t request, fuse_ino_t, const char* bytes, std::size_t length, off_t at,
                fuse_file_info*) {
  const Medium& medium = Medium::of(request);
  medium.note(static_cast<std::uint64_t>(at), bytes, length);
  const ssize_t n = pwrite(medium.disk, bytes, length, at);
  if (n < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  fuse_reply_write(request, static_cast<std::size_t>(n));
}

void flush_disk(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  Medium::of(request).note(0, nullptr, 0);
  fuse_reply_err(request, 0);
}

// The process: one thread, to log requests in the order of their arrival.
[[noreturn]] void serve(Medium medium, const std::string& directory, int ready) {
  fuse_lowlevel_ops operations{};
  operations.lookup = look_up;
  operations.getattr = get_attributes;
  operations.open = open_disk;
  operations.read = read_disk;
  operations.write = write_disk;
  operations.fsync = flush_disk;
  char name[] = "power-recorder";
  char* words[] = {name, nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, words);
  fuse_session* const session =
      fuse_session_new(&arguments, &operations, sizeof operations, &medium);
  if (session == nullptr || fuse_session_mount(session, directory.c_str()) != 0) _exit(1);
  if (write(ready, "", 1) != 1) _exit(1);
  close(ready);
  _exit(fuse_session_loop(session) == 0 ? 0 : 1);
}

void wait_until_ready(int ready) {
  char byte = 0;
  if (read(ready, &byte, 1) != 1) throw std::runtime_error("the recorder cannot mount its file");
}

}  // namespace

Recorder::Recorder(const Descriptor& disk, std::string directory)
    : directory_(std::move(directory)),
      log_file_(make_memory_file("log", 0)),
      progress_file_(make_memory_file("progress", sizeof(Progress))),
      progress_(progress_file_) {
  new (progress_.bytes().data()) Progress;
  int ready[2];
  if (pipe(ready) != 0) fail_with_errno("pipe");
  process_ = fork();
  if (process_ < 0) fail_with_errno("fork");
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);  // its memory must not wait for the device that it serves
    close(ready[0]);
    serve({disk.get(), log_file_.get(), &progress()}, directory_, ready[1]);
  }
  close(ready[1]);
  const Descriptor is_ready(ready[0]);
  wait_until_ready(is_ready.get());
}

Recorder::~Recorder() { end(); }

Progress& Recorder::progress() { return *reinterpret_cast<Progress*>(progress_.bytes().data()); }

// The loop device closes the file shortly after its last user has.
void Recorder::end() {
  if (process_ < 0) return;
  constexpr int kTries = 200;
  for (int i = 0; i < kTries && umount2(directory_.c_str(), 0) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (i == kTries - 1) umount2(directory_.c_str(), MNT_DETACH);
  }
  ::kill(process_, SIGTERM);  // has no effect when the loop has already ended
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

BlockLog Recorder::stop() {
  end();
  return BlockLog(MappedMemory(log_file_), progress());
}

}  // namespace vellum::power
