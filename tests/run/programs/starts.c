/* Starts a program with the named call, in an environment without this one's variables: starts CALL
 * PROGRAM ARGUMENT ARGUMENT. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

static char* bare[] = {"PATH=/bin:/usr/bin", NULL};
static char* other_preload[] = {"PATH=/bin:/usr/bin", "LD_PRELOAD=libm.so.6", NULL};
static const char* call;

static int is(const char* name) { return strcmp(call, name) == 0; }

static int status_of(pid_t child) {
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static void become(char** words) {
  const char* program = words[0];
  const int environ_only = strncmp(call, "clearenv-", 9) == 0;
  if (environ_only) clearenv();
  if (is("execve")) execve(program, words, bare);
  if (is("other-preload")) execve(program, words, other_preload);
  if (is("no-environment")) execve(program, words, NULL);
  if (is("execle")) execle(program, program, words[1], words[2], (char*)NULL, bare);
  if (is("execvpe")) execvpe(program, words, bare);
  if (is("fexecve")) fexecve(open(program, O_RDONLY | O_CLOEXEC), words, bare);
  if (is("execveat")) execveat(AT_FDCWD, program, words, bare, 0);
  if (is("execveat-empty"))
    execveat(open(program, O_PATH | O_CLOEXEC), "", words, bare, AT_EMPTY_PATH);
  if (is("clearenv-execv")) execv(program, words);
  if (is("clearenv-execvp")) execvp(program, words);
  if (is("clearenv-execl")) execl(program, program, words[1], words[2], (char*)NULL);
  if (is("clearenv-execlp")) execlp(program, program, words[1], words[2], (char*)NULL);
}

static int by_shell(char** words) {
  char line[8192];
  wordexp_t expanded;
  snprintf(line, sizeof line, "'%s' '%s' '%s'", words[0], words[1], words[2]);
  if (is("system-without-environ")) environ = NULL;
  if (is("system-unset")) unsetenv("LD_PRELOAD");
  if (strncmp(call, "clearenv-", 9) == 0) clearenv();
  if (strstr(call, "system") != NULL) return system(line);
  if (is("clearenv-popen")) return pclose(popen(line, "r"));
  if (!is("clearenv-wordexp")) return -1;
  snprintf(line, sizeof line, "$('%s' '%s' '%s')", words[0], words[1], words[2]);
  return wordexp(line, &expanded, 0);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  char** words = argv + 2;
  pid_t child = -1;
  call = argv[1];
  if (is("posix_spawn")) {
    if (posix_spawn(&child, words[0], NULL, NULL, words, bare) != 0) return 1;
    return status_of(child);
  }
  if (is("posix_spawnp")) {
    if (posix_spawnp(&child, words[0], NULL, NULL, words, bare) != 0) return 1;
    return status_of(child);
  }
  if (is("vfork")) {
    child = vfork();
    if (child == 0) {
      execve(words[0], words, bare);
      _exit(1);
    }
    return status_of(child);
  }
  become(words);
  return by_shell(words) == 0 ? 0 : 1;
}
