// other_machine.c: runs a program as on another kernel or in a container, by a filter of system
// calls.
//
//   other_machine PROFILE PROGRAM [ARGUMENT...]
//
// A filter sees numbers and not memory. A call whose argument in memory decides is therefore passed
// to this process, which stays the program's parent: the handshake of userfaultfd (UFFDIO_API) and
// UFFDIO_CONTINUE, for kernels that lack some of their features.
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier)
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMaxSteps = 256 };
static struct sock_filter steps[kMaxSteps];
static unsigned short count;

static void add(struct sock_filter step) { steps[count++] = step; }

static void load(size_t offset) {
  add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void answer(unsigned code) { add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, code)); }

static unsigned refusal(int error) { return SECCOMP_RET_ERRNO | (unsigned)error; }

// REQUIRES: the call's number is loaded; it is loaded again afterwards.
static void refuse(long call, int error) {
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1));
  answer(refusal(error));
}

static void refuse_from(long call, int error) {
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)call, 0, 1));
  answer(refusal(error));
}

static void refuse_ioctl(unsigned long request, int error) {
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4));
  load(offsetof(struct seccomp_data, args[1]));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)request, 0, 1));
  answer(refusal(error));
  load(offsetof(struct seccomp_data, nr));
}

static void refuse_flags(long call, unsigned flags, int error) {
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4));
  load(offsetof(struct seccomp_data, args[0]));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1));
  answer(refusal(error));
  load(offsetof(struct seccomp_data, nr));
}

static void without_userfaultfd(int error) {
  refuse(SYS_userfaultfd, error);
  refuse_ioctl(_IO(UFFDIO, 0x00), error);  // USERFAULTFD_IOC_NEW, of /dev/userfaultfd
}

static void ask_parent(unsigned long request) {
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4));
  load(offsetof(struct seccomp_data, args[1]));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)request, 0, 1));
  answer(SECCOMP_RET_USER_NOTIF);
  load(offsetof(struct seccomp_data, nr));
}

// What the parent permits.
static unsigned long long features_permitted;
static int continue_may_arm;
static int asks_parent;

static void without_page_scan(void) {
  struct {
    unsigned long long words[12];
  } scan;
  refuse_ioctl(_IOWR('f', 16, scan), ENOTTY);
}

// No PAGEMAP_SCAN (6.7), no asynchronous write protection (6.7), no call of 6.7 and later.
static void as_linux_6_6(void) {
  without_page_scan();
  ask_parent(UFFDIO_API);
  asks_parent = 1;
  features_permitted = (1ULL << 15) - 1;  // UFFD_FEATURE_POISON is the last
  continue_may_arm = 1;
  refuse_from(454, ENOSYS);  // futex_wake
}

// Debian 12: also no UFFDIO_CONTINUE that arms (6.4), no UFFDIO_POISON (6.6), no call of 6.5 and
// later.
static void as_linux_6_1(void) {
  without_page_scan();
  ask_parent(UFFDIO_API);
  ask_parent(UFFDIO_CONTINUE);
  refuse_ioctl(_IOWR(UFFDIO, 0x08, struct { unsigned long long words[4]; }), EINVAL);
  asks_parent = 1;
  features_permitted = (1ULL << 13) - 1;  // UFFD_FEATURE_WP_HUGETLBFS_SHMEM is the last
  refuse_from(451, ENOSYS);               // cachestat
}

// Ubuntu 22.04: also no write protection of shared memory (5.19).
static void as_linux_5_15(void) {
  without_page_scan();
  refuse_ioctl(UFFDIO_API, EINVAL);
  refuse_from(449, ENOSYS);  // futex_waitv
}

// The calls that Docker's default profile refuses to a container without added capabilities.
static void as_docker(void) {
  static const long kRefused[] = {
      SYS_userfaultfd, SYS_bpf,          SYS_perf_event_open, SYS_mount,      SYS_umount2,
      SYS_unshare,     SYS_setns,        SYS_pivot_root,      SYS_chroot,     SYS_add_key,
      SYS_keyctl,      SYS_swapon,       SYS_request_key,     SYS_quotactl,   SYS_open_by_handle_at,
      SYS_reboot,      SYS_kcmp,         SYS_set_mempolicy,   SYS_mbind,      SYS_get_mempolicy,
      SYS_move_pages,  SYS_fsopen,       SYS_fsmount,         SYS_move_mount, SYS_io_uring_setup,
      SYS_acct,        SYS_settimeofday, SYS_open_tree};
  for (size_t i = 0; i < sizeof kRefused / sizeof *kRefused; ++i) refuse(kRefused[i], EPERM);
  refuse_ioctl(_IO(UFFDIO, 0x00), EPERM);
  refuse(SYS_clone3, ENOSYS);
  refuse_flags(SYS_clone,
               CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                   CLONE_NEWNET | CLONE_NEWCGROUP,
               EPERM);
}

// As if RLIMIT_NPROC or a cgroup's number of tasks were used up, for root, too.
static void without_threads(void) {
  refuse(SYS_clone3, ENOSYS);
  refuse_flags(SYS_clone, CLONE_THREAD, EAGAIN);
}

static int choose(const char* profile) {
  if (strcmp(profile, "linux-6.6") == 0) {
    as_linux_6_6();
  } else if (strcmp(profile, "linux-6.1") == 0) {
    as_linux_6_1();
  } else if (strcmp(profile, "linux-5.15") == 0) {
    as_linux_5_15();
  } else if (strcmp(profile, "docker") == 0) {
    as_docker();
  } else if (strcmp(profile, "no-userfaultfd") == 0) {
    without_userfaultfd(EPERM);
  } else if (strcmp(profile, "no-userfaultfd-in-kernel") == 0) {
    without_userfaultfd(ENOSYS);
  } else if (strcmp(profile, "no-threads") == 0) {
    without_threads();
  } else {
    return 0;
  }
  return 1;
}

// The errno of a call that a thread waits in; 0: the kernel continues it.
static int decide(const struct seccomp_notif* call) {
  unsigned long long words[4] = {0, 0, 0, 0};
  const int is_handshake = (unsigned)call->data.args[1] == (unsigned)UFFDIO_API;
  const struct iovec to = {words, is_handshake ? 16 : 32};
  const struct iovec from = {(void*)(uintptr_t)call->data.args[2], to.iov_len};
  if (process_vm_readv((pid_t)call->pid, &to, 1, &from, 1, 0) != (ssize_t)to.iov_len) return EFAULT;
  // struct uffdio_api: the version, then the features; struct uffdio_continue: the range, the mode.
  if (is_handshake) return (words[1] & ~features_permitted) != 0 ? EINVAL : 0;
  return !continue_may_arm && (words[2] & 2) != 0 ? EINVAL : 0;
}

static void* answer_calls(void* listener) {
  const int fd = (int)(intptr_t)listener;
  for (;;) {
    struct seccomp_notif call;
    memset(&call, 0, sizeof call);
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;  // the thread has ended
    struct seccomp_notif_resp reply = {call.id, 0, 0, 0};
    reply.error = -decide(&call);
    if (reply.error == 0) reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
  }
  return NULL;
}

// Becomes the parent of a process that continues when `go` is closed, and ends as it ends.
// `listener` is the number of the child's descriptor.
static void serve(pid_t child, int listener, int go) {
  const int process = (int)syscall(SYS_pidfd_open, child, 0);
  const int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, listener, 0);
  pthread_t thread;
  if (fd < 0 || pthread_create(&thread, NULL, answer_calls, (void*)(intptr_t)fd) != 0) {
    perror("other_machine: cannot answer for the kernel");
    kill(child, SIGKILL);
  }
  close(go);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

// Returns in the process that runs the program.
static int install(const struct sock_fprog* program) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  if (!asks_parent) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
  int ready[2], go[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child < 0) return -1;
  int listener = -1;
  if (child > 0) {
    close(ready[1]);
    if (read(ready[0], &listener, sizeof listener) != sizeof listener) listener = -1;
    serve(child, listener, go[1]);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  listener =
      (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
  if (listener < 0 || write(ready[1], &listener, sizeof listener) != sizeof listener) return -1;
  char none = 0;
  close(go[1]);
  return read(go[0], &none, 1) == 0 ? 0 : -1;  // the parent has the listener
}

int main(int argc, char** argv) {
  load(offsetof(struct seccomp_data, nr));
  if (argc < 3 || !choose(argv[1])) {
    fputs(
        "usage: other_machine linux-6.6|linux-6.1|linux-5.15|docker|no-userfaultfd|"
        "no-userfaultfd-in-kernel|no-threads PROGRAM [ARGUMENT...]\n",
        stderr);
    return 2;
  }
  answer(SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {count, steps};
  if (install(&program) != 0) {
    perror("other_machine: cannot install the filter");
    return 2;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
