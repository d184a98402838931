#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

long cl_run(char *const words[], int in, int out, int err) {
  posix_spawn_file_actions_t streams;
  posix_spawnattr_t attributes;
  int failed = posix_spawn_file_actions_init(&streams);
  if (failed) return -(long)failed;
  failed = posix_spawnattr_init(&attributes);
  if (failed) {
    posix_spawn_file_actions_destroy(&streams);
    return -(long)failed;
  }
  const int ends[] = {in, out, err};
  for (int i = 0; i < 3 && !failed; i++) {
    failed = posix_spawn_file_actions_adddup2(&streams, ends[i], i);
  }
  // Handlers are not inherited, but an ignored signal would stay ignored in the child.
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGXFSZ);
  if (!failed) failed = posix_spawnattr_setsigdefault(&attributes, &usual);
  if (!failed) failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  if (!failed) failed = posix_spawnp(&child, words[0], &streams, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&streams);
  if (failed) return -(long)failed;
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -(long)errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
