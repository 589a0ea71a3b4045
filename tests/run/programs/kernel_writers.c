/* A program whose writes are asynchronous in the kernel: kernel_writers io_uring|linux-aio FILE. It
 * opens and flushes the file with the C library, but makes the system calls for writing itself, as
 * liburing and libaio do. Exits with 77 if the kernel refuses. With `asks`, it only requests both
 * with syscall(2), and exits with 77 if both are refused as by a container's seccomp rules. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kRefused = 77, kFailed = 1, kOffset = 6000 };

static const char text[] = "written by the kernel";

static long call(long number, long a, long b, long c, long d, void* e) {
  register long fourth __asm__("r10") = d;
  register void* fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = 0;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return result;
}

static unsigned* at(void* ring, unsigned offset) { return (unsigned*)((char*)ring + offset); }

static int by_io_uring(int fd) {
  struct io_uring_params how;
  memset(&how, 0, sizeof how);
  const int ring_fd = (int)call(SYS_io_uring_setup, 1, (long)&how, 0, 0, NULL);
  if (ring_fd < 0 || (how.features & IORING_FEAT_SINGLE_MMAP) == 0) return kRefused;
  const size_t sent = how.sq_off.array + how.sq_entries * sizeof(unsigned);
  const size_t done = how.cq_off.cqes + how.cq_entries * sizeof(struct io_uring_cqe);
  char* const ring = mmap(NULL, sent > done ? sent : done, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQ_RING);
  struct io_uring_sqe* const entry =
      mmap(NULL, how.sq_entries * sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
           ring_fd, IORING_OFF_SQES);
  if (ring == MAP_FAILED || entry == MAP_FAILED) return kFailed;
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_WRITE;
  entry->fd = fd;
  entry->addr = (uintptr_t)text;
  entry->len = sizeof text;
  entry->off = kOffset;
  *at(ring, how.sq_off.array) = 0;
  __atomic_store_n(at(ring, how.sq_off.tail), 1, __ATOMIC_RELEASE);
  if (call(SYS_io_uring_enter, ring_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL) != 1) return kFailed;
  const struct io_uring_cqe* const result = (struct io_uring_cqe*)(ring + how.cq_off.cqes);
  return result->res == (int)sizeof text ? 0 : kFailed;
}

static int by_linux_aio(int fd) {
  aio_context_t context = 0;
  if (call(SYS_io_setup, 1, (long)&context, 0, 0, NULL) != 0) return kRefused;
  struct iocb job;
  memset(&job, 0, sizeof job);
  job.aio_lio_opcode = IOCB_CMD_PWRITE;
  job.aio_fildes = (unsigned)fd;
  job.aio_buf = (uintptr_t)text;
  job.aio_nbytes = sizeof text;
  job.aio_offset = kOffset;
  struct iocb* jobs[] = {&job};
  struct io_event event;
  if (call(SYS_io_submit, (long)context, 1, (long)jobs, 0, NULL) != 1 ||
      call(SYS_io_getevents, (long)context, 1, 1, (long)&event, NULL) != 1)
    return kFailed;
  return event.res == (int64_t)sizeof text ? 0 : kFailed;
}

static int asks(void) {
  struct io_uring_params how;
  memset(&how, 0, sizeof how);
  if (syscall(SYS_io_uring_setup, 1, &how) >= 0 || errno != EPERM) return kFailed;
  aio_context_t context = 0;
  return syscall(SYS_io_setup, 1, &context) < 0 && errno == EPERM ? kRefused : kFailed;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (strcmp(argv[1], "asks") == 0) return asks();
  const int fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || pwrite(fd, "by the library", 14, 0) != 14 || fsync(fd) != 0) return kFailed;
  const int result = strcmp(argv[1], "io_uring") == 0 ? by_io_uring(fd) : by_linux_aio(fd);
  return result != 0 ? result : fsync(fd) != 0 || close(fd) != 0;
}
