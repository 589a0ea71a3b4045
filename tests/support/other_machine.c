// other_machine.c: runs a program as on another kernel or in a container, by a filter of system
// calls.
//
//   other_machine PROFILE PROGRAM [ARGUMENT...]
//
// A filter sees numbers and not memory. Therefore a kernel that lacks a feature of userfaultfd
// refuses the whole handshake here (UFFDIO_API): the library requests asynchronous write protection
// in each.
#define _GNU_SOURCE  // NOLINT(bugprone-reserved-identifier)
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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

// Debian 12: no PAGEMAP_SCAN (6.7), no asynchronous write protection (6.7), no call of 6.5 and
// later.
static void as_linux_6_1(void) {
  struct {
    unsigned long long words[12];
  } scan;
  refuse_ioctl(_IOWR('f', 16, scan), ENOTTY);
  refuse_ioctl(UFFDIO_API, EINVAL);
  refuse_from(451, ENOSYS);  // cachestat
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
  if (strcmp(profile, "linux-6.1") == 0) {
    as_linux_6_1();
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

int main(int argc, char** argv) {
  load(offsetof(struct seccomp_data, nr));
  if (argc < 3 || !choose(argv[1])) {
    fputs(
        "usage: other_machine linux-6.1|docker|no-userfaultfd|no-userfaultfd-in-kernel|no-threads "
        "PROGRAM [ARGUMENT...]\n",
        stderr);
    return 2;
  }
  answer(SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {count, steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("other_machine: cannot install the filter");
    return 2;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
