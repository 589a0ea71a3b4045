/* The result of each call on a name whose old version `vellum run --version` shows: old_version
 * SCENARIO DIRECTORY. DIRECTORY has `file` ("new"; its version is "old"), `alias`, a link to it,
 * and `other`. Exits with 1, and prints the lines, if a result differs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "require.h"

int old_xmknod(int, const char*, mode_t, dev_t*);
int old_xmknodat(int, int, const char*, mode_t, dev_t*);
__asm__(".symver old_xmknod,__xmknod@GLIBC_2.2.5");
__asm__(".symver old_xmknodat,__xmknodat@GLIBC_2.4");
int lchmod(const char*, mode_t);

static const char file[] = "file", alias[] = "alias", other[] = "other", fresh[] = "fresh";
static const int here = AT_FDCWD;
static int failures = 0;

/* `call` returns a negative number and this error; 0: none. */
#define GIVES(error, call)                                                         \
  do {                                                                             \
    errno = 0;                                                                     \
    const int got = (call) < 0 ? errno : 0;                                        \
    if (got != (error)) {                                                          \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, strerrorname_np(got)); \
      ++failures;                                                                  \
    }                                                                              \
  } while (0)

static long opened_by(const char* path, int flags, int resolve) {
  struct open_how how = {.flags = (unsigned)flags, .resolve = (unsigned)resolve};
  return syscall(SYS_openat2, here, path, &how, sizeof how);
}

static int streamed(const char* path, const char* mode) {
  FILE* const stream = fopen(path, mode);
  if (stream != NULL) fclose(stream);
  return stream != NULL ? 0 : -1;
}

static int streamed_again(const char* path, const char* mode) {
  FILE* const stream = fopen("/dev/null", "r");
  FILE* const again = freopen(path, mode, stream);
  if (again != NULL) fclose(again);
  return again != NULL ? 0 : -1;
}

static int given_to_child(int flags) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  errno = posix_spawn_file_actions_addopen(&actions, 0, file, flags, 0);
  const int error = errno;
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  return error == 0 ? 0 : -1;
}

static void opens(void) {
  GIVES(EROFS, open(file, O_WRONLY));
  GIVES(EROFS, open(file, O_RDWR | O_CREAT, 0600));
  GIVES(EROFS, open(file, O_RDONLY | O_TRUNC));
  GIVES(EROFS, open(file, O_WRONLY | O_TRUNC));
  GIVES(EROFS, open64(alias, O_WRONLY | O_TRUNC));
  GIVES(EROFS, openat(here, alias, O_RDWR));
  GIVES(EEXIST, open(file, O_RDWR | O_CREAT | O_EXCL, 0600));
  GIVES(ELOOP, open(alias, O_RDONLY | O_NOFOLLOW));
  GIVES(EROFS, creat(file, 0600));
  GIVES(EROFS, opened_by(file, O_RDWR, 0));
  GIVES(EROFS, opened_by(alias, O_WRONLY | O_TRUNC, RESOLVE_NO_MAGICLINKS));
  GIVES(EROFS, streamed(file, "w"));
  GIVES(EROFS, streamed(alias, "a"));
  GIVES(EROFS, streamed(file, "r+"));
  GIVES(EROFS, streamed_again(file, "w"));
  GIVES(EROFS, streamed_again(alias, "r+"));
  GIVES(EROFS, given_to_child(O_WRONLY | O_TRUNC));
  GIVES(0, open(file, O_RDONLY | O_CREAT, 0600));
}

static void names(void) {
  GIVES(EROFS, unlink(file));
  GIVES(EROFS, unlinkat(here, file, 0));
  GIVES(EROFS, remove(file));
  GIVES(EROFS, syscall(SYS_unlink, file));
  GIVES(EROFS, rename(file, fresh));
  GIVES(EROFS, rename(other, file));
  GIVES(EROFS, renameat(here, file, here, fresh));
  GIVES(EROFS, renameat(here, other, here, file));
  GIVES(EROFS, renameat2(here, file, here, other, RENAME_EXCHANGE));
  GIVES(EROFS, renameat2(here, other, here, file, RENAME_EXCHANGE));
  GIVES(EROFS, renameat2(here, file, here, fresh, RENAME_NOREPLACE));
  GIVES(EROFS, syscall(SYS_renameat2, here, other, here, file, 0));
  GIVES(EBUSY, rename("../directory", "../renamed"));
  GIVES(EROFS, link(file, fresh));
  GIVES(EEXIST, link(other, file));
  GIVES(EROFS, linkat(here, file, here, fresh, 0));
  GIVES(EROFS, linkat(here, alias, here, fresh, AT_SYMLINK_FOLLOW));
}

static void made_names(void) {
  dev_t none = 0;
  GIVES(EEXIST, symlink(other, file));
  GIVES(EEXIST, symlinkat(other, here, file));
  GIVES(EEXIST, mkfifo(file, 0600));
  GIVES(EEXIST, mkfifoat(here, file, 0600));
  GIVES(EEXIST, mknod(file, S_IFREG | 0600, none));
  GIVES(EEXIST, mknodat(here, file, S_IFREG | 0600, none));
  GIVES(EEXIST, old_xmknod(0, file, S_IFREG | 0600, &none));
  GIVES(EEXIST, old_xmknodat(0, here, file, S_IFREG | 0600, &none));
  GIVES(EEXIST, mkdir(file, 0700));
  GIVES(EEXIST, mkdirat(here, file, 0700));
  GIVES(EEXIST, link(other, file));
}

static void inodes(void) {
  GIVES(EROFS, truncate(file, 0));
  GIVES(EROFS, truncate64(alias, 0));
  GIVES(EROFS, syscall(SYS_truncate, file, 1));
  GIVES(EROFS, chmod(file, 0600));
  GIVES(EROFS, chmod(alias, 0600));
  GIVES(EROFS, lchmod(file, 0600));
  GIVES(EROFS, fchmodat(here, alias, 0600, 0));
  GIVES(EROFS, chown(alias, 1, 1));
  GIVES(EROFS, lchown(file, 1, 1));
  GIVES(EROFS, fchownat(here, file, 1, 1, AT_SYMLINK_NOFOLLOW));
  GIVES(EROFS, setxattr(alias, "user.a", "b", 1, 0));
  GIVES(EROFS, lsetxattr(file, "user.a", "b", 1, 0));
  GIVES(EROFS, removexattr(file, "user.a"));
  GIVES(EROFS, lremovexattr(file, "user.a"));
  GIVES(EROFS, syscall(SYS_chmod, file, 0600));
}

static void times(void) {
  const struct timespec then[2] = {{1, 0}, {1, 0}};
  const struct timeval then_too[2] = {{1, 0}, {1, 0}};
  GIVES(EROFS, utime(file, NULL));
  GIVES(EROFS, utimes(alias, then_too));
  GIVES(EROFS, lutimes(file, then_too));
  GIVES(EROFS, futimesat(here, file, then_too));
  GIVES(EROFS, utimensat(here, alias, then, 0));
  GIVES(EROFS, utimensat(here, file, then, AT_SYMLINK_NOFOLLOW));
}

static void access_to_it(void) {
  GIVES(0, access(file, R_OK));
  GIVES(0, access(alias, F_OK));
  GIVES(EROFS, access(file, R_OK | W_OK));
  GIVES(EROFS, eaccess(alias, W_OK));
  GIVES(EROFS, euidaccess(file, W_OK));
  GIVES(EROFS, faccessat(here, file, W_OK, AT_EACCESS));
  GIVES(0, faccessat(here, file, R_OK, 0));
}

static void reads_old(FILE* stream) {
  char content[8] = "";
  REQUIRE(stream != NULL && fgets(content, sizeof content, stream) != NULL);
  REQUIRE(strcmp(content, "old") == 0);
  fclose(stream);
}

/* Every call that reads the file reads the version. */
static void reads(void) {
  posix_spawn_file_actions_t actions;
  char* const words[] = {"grep", "-qx", "old", NULL};
  char* const none[] = {NULL};
  pid_t child;
  int status = -1;
  reads_old(fopen(file, "r"));
  reads_old(fopen(alias, "r"));
  reads_old(fdopen(openat(here, "../directory/./alias", O_RDONLY), "r"));
  reads_old(fdopen(open("/proc/self/fd/0", O_RDONLY), "r"));
  reads_old(freopen(alias, "r", stdin));
  posix_spawn_file_actions_init(&actions);
  REQUIRE(posix_spawn_file_actions_addopen(&actions, 0, file, O_RDONLY, 0) == 0);
  REQUIRE(posix_spawn(&child, "/bin/grep", &actions, NULL, words, none) == 0);
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  posix_spawn_file_actions_destroy(&actions);
}

/* Files with the customary companion names are the program's own; it does not see existing ones. */
static void beside(void) {
  char made[] = "file-XXXXXX", content[8] = "";
  GIVES(ENOENT, access("file-wal", F_OK));
  GIVES(ENOENT, unlink("file-wal"));
  GIVES(ENOENT, rename("file-wal", fresh));
  GIVES(EXDEV, rename(other, "file-wal"));
  GIVES(EXDEV, link(other, "file-wal"));
  const int fd = open("file-wal", O_RDWR | O_CREAT | O_EXCL, 0600);
  REQUIRE(fd >= 0 && write(fd, "mine", 4) == 4);
  GIVES(0, chmod("file-wal", 0400));
  GIVES(0, utime("file-wal", NULL));
  GIVES(0, truncate("file-wal", 2));
  GIVES(0, rename("file-wal", "file-journal"));
  GIVES(EXDEV, rename("file-journal", fresh));
  GIVES(0, link("file-journal", "file-second"));
  FILE* const stream = fopen("file-journal", "r");
  REQUIRE(stream != NULL && fread(content, 1, 8, stream) == 2 && strcmp(content, "mi") == 0);
  GIVES(0, unlink("file-journal"));
  GIVES(0, symlink("nowhere", "file-link"));
  GIVES(0, unlink("file-link"));
  REQUIRE(mkstemp(made) >= 0 && strcmp(made, "file-XXXXXX") != 0);
  GIVES(0, unlink(made));
  /* Directories are not affected. */
  GIVES(0, mkdir("file-directory", 0700));
  GIVES(0, creat("file-directory/inside", 0600));
  GIVES(0, unlink("file-directory/inside"));
  GIVES(0, rmdir("file-directory"));
}

int main(int argc, char** argv) {
  if (argc != 3 || chdir(argv[2]) != 0) return 2;
  if (strcmp(argv[1], "there") == 0) {
    reads();
    opens();
    names();
    made_names();
    inodes();
    times();
    access_to_it();
  } else if (strcmp(argv[1], "gone") == 0) {
    opens();
    names();
    made_names();
    access_to_it();
  } else if (strcmp(argv[1], "beside") == 0) {
    beside();
  } else {
    return 2;
  }
  return failures != 0;
}
