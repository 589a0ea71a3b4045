// Functions that read bytes from files and sockets, and return their number.
#include <algorithm>
#include <cstdio>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "compiler/runtime/mapped_calls.hpp"
#include "compiler/runtime/marked.hpp"

using vellum::msync::given_offset;
using vellum::msync::is_mapped;
using vellum::msync::kOwnOffset;
using vellum::msync::mapped_read;
using vellum::msync::mark_object;
using vellum::msync::marked;
using vellum::msync::marked_count;

extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void*, size_t, size_t, int, sockaddr*, socklen_t*);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
size_t __fread_unlocked_chk(void*, size_t, size_t, size_t, FILE*);
char* __fgets_chk(char*, size_t, int, FILE*);
char* __fgets_unlocked_chk(char*, size_t, int, FILE*);
}

namespace {

ssize_t marked_pieces(const iovec* pieces, size_t count, ssize_t bytes) {
  auto left = bytes < 0 ? 0 : static_cast<size_t>(bytes);
  for (size_t i = 0; i < count && left > 0; ++i) {
    const size_t here = std::min(left, pieces[i].iov_len);
    marked(pieces[i].iov_base, here);
    left -= here;
  }
  return bytes;
}

void mark_sender(const sockaddr* from, const socklen_t* bytes, ssize_t got) {
  if (got < 0 || from == nullptr || bytes == nullptr) return;
  vellum_mark(from, std::min<size_t>(*bytes, sizeof(sockaddr_storage)));
  mark_object(bytes);
}

// In addition to the counted items, part of another one may have been read.
size_t marked_items(void* to, size_t bytes, size_t wanted, size_t got) {
  marked(to, bytes * std::min(wanted, got + 1));
  return got;
}

// A line may contain zeros, so its length is unknown.
char* marked_line(char* to, int room, char* line) {
  if (room > 0) marked(to, static_cast<size_t>(room));
  return line;
}

}  // namespace

VELLUM_WRAP(ssize_t, read)(int fd, void* to, size_t bytes) {
  return marked_count(to,
                      is_mapped(fd) ? mapped_read(fd, to, bytes, kOwnOffset) : read(fd, to, bytes));
}
VELLUM_WRAP(ssize_t, pread)(int fd, void* to, size_t bytes, off_t at) {
  return marked_count(
      to, is_mapped(fd) ? mapped_read(fd, to, bytes, given_offset(at)) : pread(fd, to, bytes, at));
}
VELLUM_WRAP(ssize_t, pread64)(int fd, void* to, size_t bytes, off64_t at) {
  return marked_count(to, is_mapped(fd) ? mapped_read(fd, to, bytes, given_offset(at))
                                        : pread64(fd, to, bytes, at));
}
VELLUM_WRAP(ssize_t, readv)(int fd, const iovec* pieces, int count) {
  const auto all = static_cast<size_t>(count);
  const ssize_t got =
      is_mapped(fd) ? mapped_read(fd, pieces, all, kOwnOffset) : readv(fd, pieces, count);
  return marked_pieces(pieces, all, got);
}
VELLUM_WRAP(ssize_t, preadv)(int fd, const iovec* pieces, int count, off_t at) {
  const auto all = static_cast<size_t>(count);
  const ssize_t got = is_mapped(fd) ? mapped_read(fd, pieces, all, given_offset(at))
                                    : preadv(fd, pieces, count, at);
  return marked_pieces(pieces, all, got);
}
VELLUM_WRAP(ssize_t, preadv64)(int fd, const iovec* pieces, int count, off64_t at) {
  const auto all = static_cast<size_t>(count);
  const ssize_t got = is_mapped(fd) ? mapped_read(fd, pieces, all, given_offset(at))
                                    : preadv64(fd, pieces, count, at);
  return marked_pieces(pieces, all, got);
}

// The calls with flags: -1 is the descriptor's own offset.
VELLUM_WRAP(ssize_t, preadv2)(int fd, const iovec* pieces, int count, off_t at, int flags) {
  const auto all = static_cast<size_t>(count);
  const ssize_t got = is_mapped(fd) ? mapped_read(fd, pieces, all, at, flags)
                                    : preadv2(fd, pieces, count, at, flags);
  return marked_pieces(pieces, all, got);
}
VELLUM_WRAP(ssize_t, preadv64v2)(int fd, const iovec* pieces, int count, off64_t at, int flags) {
  const auto all = static_cast<size_t>(count);
  const ssize_t got = is_mapped(fd) ? mapped_read(fd, pieces, all, at, flags)
                                    : preadv64v2(fd, pieces, count, at, flags);
  return marked_pieces(pieces, all, got);
}

VELLUM_WRAP(ssize_t, recv)(int fd, void* to, size_t bytes, int flags) {
  const ssize_t got = recv(fd, to, bytes, flags);
  marked_count(to, std::min(got, static_cast<ssize_t>(bytes)));  // MSG_TRUNC may return more
  return got;
}
VELLUM_WRAP(ssize_t, recvfrom)
(int fd, void* to, size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
  const ssize_t got = recvfrom(fd, to, bytes, flags, from, from_bytes);
  marked_count(to, std::min(got, static_cast<ssize_t>(bytes)));
  mark_sender(from, from_bytes, got);
  return got;
}
VELLUM_WRAP(ssize_t, recvmsg)(int fd, msghdr* message, int flags) {
  const ssize_t got = recvmsg(fd, message, flags);
  if (got < 0) return got;
  marked_pieces(message->msg_iov, message->msg_iovlen, got);
  if (message->msg_name != nullptr)
    marked(message->msg_name, std::min<size_t>(message->msg_namelen, sizeof(sockaddr_storage)));
  if (message->msg_control != nullptr) marked(message->msg_control, message->msg_controllen);
  mark_object(message);
  return got;
}

VELLUM_WRAP(size_t, fread)(void* to, size_t bytes, size_t count, FILE* file) {
  return marked_items(to, bytes, count, fread(to, bytes, count, file));
}
VELLUM_WRAP(size_t, fread_unlocked)(void* to, size_t bytes, size_t count, FILE* file) {
  return marked_items(to, bytes, count, fread_unlocked(to, bytes, count, file));
}
VELLUM_WRAP(char*, fgets)(char* to, int room, FILE* file) {
  return marked_line(to, room, fgets(to, room, file));
}
VELLUM_WRAP(char*, fgets_unlocked)(char* to, int room, FILE* file) {
  return marked_line(to, room, fgets_unlocked(to, room, file));
}

VELLUM_WRAP(ssize_t, __read_chk)(int fd, void* to, size_t bytes, size_t room) {
  if (bytes <= room && is_mapped(fd))
    return marked_count(to, mapped_read(fd, to, bytes, kOwnOffset));
  return marked_count(to, __read_chk(fd, to, bytes, room));
}
VELLUM_WRAP(ssize_t, __pread_chk)(int fd, void* to, size_t bytes, off_t at, size_t room) {
  if (bytes <= room && is_mapped(fd))
    return marked_count(to, mapped_read(fd, to, bytes, given_offset(at)));
  return marked_count(to, __pread_chk(fd, to, bytes, at, room));
}
VELLUM_WRAP(ssize_t, __pread64_chk)(int fd, void* to, size_t bytes, off64_t at, size_t room) {
  if (bytes <= room && is_mapped(fd))
    return marked_count(to, mapped_read(fd, to, bytes, given_offset(at)));
  return marked_count(to, __pread64_chk(fd, to, bytes, at, room));
}
VELLUM_WRAP(ssize_t, __recv_chk)(int fd, void* to, size_t bytes, size_t room, int flags) {
  const ssize_t got = __recv_chk(fd, to, bytes, room, flags);
  marked_count(to, std::min(got, static_cast<ssize_t>(bytes)));
  return got;
}
VELLUM_WRAP(ssize_t, __recvfrom_chk)
(int fd, void* to, size_t bytes, size_t room, int flags, sockaddr* from, socklen_t* from_bytes) {
  const ssize_t got = __recvfrom_chk(fd, to, bytes, room, flags, from, from_bytes);
  marked_count(to, std::min(got, static_cast<ssize_t>(bytes)));
  mark_sender(from, from_bytes, got);
  return got;
}
VELLUM_WRAP(size_t, __fread_chk)(void* to, size_t room, size_t bytes, size_t count, FILE* file) {
  return marked_items(to, bytes, count, __fread_chk(to, room, bytes, count, file));
}
VELLUM_WRAP(size_t, __fread_unlocked_chk)
(void* to, size_t room, size_t bytes, size_t count, FILE* file) {
  return marked_items(to, bytes, count, __fread_unlocked_chk(to, room, bytes, count, file));
}
VELLUM_WRAP(char*, __fgets_chk)(char* to, size_t room, int bytes, FILE* file) {
  return marked_line(to, bytes, __fgets_chk(to, room, bytes, file));
}
VELLUM_WRAP(char*, __fgets_unlocked_chk)(char* to, size_t room, int bytes, FILE* file) {
  return marked_line(to, bytes, __fgets_unlocked_chk(to, room, bytes, file));
}
