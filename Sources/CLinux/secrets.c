#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

long cl_disable_core_dumps(void) {
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -(long)errno : 0;
}

static int spawn_writing(pid_t *child, char *const words[], int out) {
  posix_spawn_file_actions_t streams;
  posix_spawnattr_t attributes;
  int failed = posix_spawn_file_actions_init(&streams);
  if (failed) return failed;
  failed = posix_spawnattr_init(&attributes);
  if (failed) {
    posix_spawn_file_actions_destroy(&streams);
    return failed;
  }
  failed = posix_spawn_file_actions_addopen(&streams, 0, "/dev/null", O_RDONLY, 0);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&streams, out, 1);
  // An ignored signal would stay ignored in the child.
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGXFSZ);
  if (!failed) failed = posix_spawnattr_setsigdefault(&attributes, &usual);
  if (!failed) failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (!failed) failed = posix_spawn(child, words[0], &streams, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&streams);
  return failed;
}

long cl_run_reading(char *const words[], void *into, size_t limit, size_t *count) {
  *count = 0;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -(long)errno;
  pid_t child = 0;
  int failed = spawn_writing(&child, words, ends[1]);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    return -(long)failed;
  }
  int error = 0;
  while (*count < limit) {
    ssize_t more = read(ends[0], (char *)into + *count, limit - *count);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) error = errno;
    if (more <= 0) break;
    *count += (size_t)more;
  }
  close(ends[0]);
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      error = errno;
      break;
    }
  }
  if (error) {
    explicit_bzero(into, *count);
    return -(long)error;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The signals that end or stop a program at a terminal. They are held while it does not echo.
static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
#define HELD (sizeof held / sizeof *held)

static volatile sig_atomic_t arrived;

static void on_held(int signal) { arrived = signal; }

// Reads a line until its end, the end of the input, or a signal.
static long read_line(int input, char *into, size_t limit) {
  size_t count = 0;
  while (!arrived) {
    // Another thread may handle the signal, so the wait is short.
    struct pollfd wanted = {.fd = input, .events = POLLIN};
    int ready = poll(&wanted, 1, 100);
    if (ready < 0 && errno != EINTR) return -(long)errno;
    if (ready <= 0) continue;
    char byte = 0;
    ssize_t more = read(input, &byte, 1);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return -(long)errno;
    if (more == 0 || byte == '\n') return (long)count;
    if (count == limit) return -(long)EMSGSIZE;
    into[count++] = byte;
  }
  return -(long)EINTR;
}

long cl_read_secret_line(int input, void *into, size_t limit) {
  long result = read_line(input, into, limit);
  if (result < 0) explicit_bzero(into, limit);
  return result;
}

static int set_echo(int terminal, const struct termios *settings) {
  int result;
  do {
    result = tcsetattr(terminal, TCSAFLUSH, settings);
  } while (result < 0 && errno == EINTR && !arrived);
  return result;
}

static long ask_once(int terminal, const char *question, char *into, size_t limit) {
  struct termios before;
  if (tcgetattr(terminal, &before) < 0) return -(long)errno;
  struct termios silent = before;
  silent.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
  long result;
  if (set_echo(terminal, &silent) < 0) {
    result = -(long)errno;
  } else if (write(terminal, question, strlen(question)) < 0) {
    result = -(long)errno;
  } else {
    result = cl_read_secret_line(terminal, into, limit);
    if (write(terminal, "\n", 1) < 0 && result >= 0) {
      result = -(long)errno;
      explicit_bzero(into, limit);
    }
  }
  // A signal must not prevent that the terminal echoes again.
  while (tcsetattr(terminal, TCSAFLUSH, &before) < 0 && errno == EINTR) {
  }
  return result;
}

long cl_ask_secret(const char *question, void *into, size_t limit) {
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return -(long)errno;
  long result;
  int signal;
  do {
    struct sigaction before[HELD], wanted = {.sa_handler = on_held};
    sigemptyset(&wanted.sa_mask);
    arrived = 0;
    for (size_t i = 0; i < HELD; i++) {
      sigaction(held[i], &wanted, &before[i]);
      if (before[i].sa_handler == SIG_IGN) sigaction(held[i], &before[i], NULL);
    }
    result = ask_once(terminal, question, into, limit);
    for (size_t i = 0; i < HELD; i++) sigaction(held[i], &before[i], NULL);
    signal = arrived;
    // With its usual effect the signal ends the program, or stops it until it is continued.
    if (signal) raise(signal);
  } while (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU);
  close(terminal);
  return result;
}
