#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

// The state that handlers use: atomic numbers and a pipe that never blocks.
static atomic_int stops;
// Whether SIGPIPE is ignored for the program, and whether a write to its output failed for it.
static atomic_int holds_pipes, has_lost_reader;
static atomic_int pipe_in = -1, pipe_out = -1;

static void notify(char what) {
  int saved = errno;
  // A full pipe is enough to wake the waiting thread.
  if (write(atomic_load(&pipe_in), &what, 1) < 0) errno = 0;
  errno = saved;
}

static void on_stop(int signal) {
  (void)signal;
  if (atomic_fetch_add(&stops, 1) > 0) _exit(CL_INTERRUPTED);
  notify(CL_SIGNAL_STOP);
}

static void on_ask(int signal) {
  (void)signal;
  notify(CL_SIGNAL_ASK);
}

static long handle(int signal, void (*handler)(int)) {
  struct sigaction now;
  if (sigaction(signal, NULL, &now) < 0) return -(long)errno;
  // A signal that was ignored at the start stays ignored, as under nohup(1).
  if (now.sa_handler == SIG_IGN) return 0;
  struct sigaction wanted = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigemptyset(&wanted.sa_mask);
  return sigaction(signal, &wanted, NULL) < 0 ? -(long)errno : 0;
}

long cl_watch_signals(void) {
  if (atomic_load(&pipe_in) < 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return -(long)errno;
    atomic_store(&pipe_out, ends[0]);
    atomic_store(&pipe_in, ends[1]);
  }
  const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof stopping / sizeof *stopping; i++) {
    long r = handle(stopping[i], on_stop);
    if (r < 0) return r;
  }
  return handle(SIGUSR1, on_ask);
}

static char loss[1024];

static void on_loss(int signal, siginfo_t *info, void *context) {
  (void)context;
  if (info->si_code <= 0 || info->si_code == BUS_ADRALN) {
    // Sent by a process, or caused by a bug: apply the default action.
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(signal, &usual, NULL);
    raise(signal);
    return;
  }
  size_t count = strlen(loss), at = 0;
  while (at < count) {
    ssize_t written = write(STDERR_FILENO, loss + at, count - at);
    if (written <= 0) break;
    at += (size_t)written;
  }
  _exit(1);
}

long cl_end_at_loss(const char *message) {
  strncpy(loss, message, sizeof loss - 1);
  struct sigaction wanted = {.sa_sigaction = on_loss, .sa_flags = SA_SIGINFO};
  sigemptyset(&wanted.sa_mask);
  return sigaction(SIGBUS, &wanted, NULL) < 0 ? -(long)errno : 0;
}

long cl_is_stopping(void) {
  return atomic_load_explicit(&stops, memory_order_relaxed) > 0 || cl_has_lost_reader();
}

long cl_hold_broken_pipe(void) {
  struct sigaction now, ignored = {.sa_handler = SIG_IGN};
  if (sigaction(SIGPIPE, NULL, &now) < 0) return -(long)errno;
  // A signal that was ignored at the start stays ignored.
  if (now.sa_handler != SIG_DFL) return 0;
  if (sigaction(SIGPIPE, &ignored, NULL) < 0) return -(long)errno;
  atomic_store(&holds_pipes, 1);
  return 0;
}

long cl_occupy_standard_streams(void) {
  for (int stream = 0; stream <= 2; stream++) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Only a path, so that reads, writes and poll(2) fail as on the closed stream.
    int fd = open("/", O_PATH | O_DIRECTORY);
    if (fd < 0) return -(long)errno;
    // The lowest free number, unless another thread has taken it.
    if (fd > 2) close(fd);
  }
  return 0;
}

long cl_fail_at_size_limit(void) {
  struct sigaction ignored = {.sa_handler = SIG_IGN};
  return sigaction(SIGXFSZ, &ignored, NULL) < 0 ? -(long)errno : 0;
}

void cl_note_lost_reader(void) {
  if (atomic_load(&holds_pipes)) atomic_store(&has_lost_reader, 1);
}

long cl_has_lost_reader(void) {
  return atomic_load_explicit(&has_lost_reader, memory_order_relaxed);
}

void cl_end_by_broken_pipe(void) {
  struct sigaction usual = {.sa_handler = SIG_DFL};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  sigaction(SIGPIPE, &usual, NULL);
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  raise(SIGPIPE);
  _exit(128 + SIGPIPE);
}

void cl_wake(void) { notify(CL_SIGNAL_WAKE); }

// The tolerance concerns the calling thread alone, and only here: threads that it creates later would
// inherit it (PR_SET_TIMERSLACK(2const)).
long cl_wait_for_signal(int milliseconds, int tolerance) {
  struct pollfd wanted = {.fd = atomic_load(&pipe_out), .events = POLLIN};
  if (tolerance > 0) prctl(PR_SET_TIMERSLACK, (unsigned long)tolerance * 1000000, 0, 0, 0);
  int r = poll(&wanted, 1, milliseconds), number = errno;
  if (tolerance > 0) prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
  if (r < 0 && number != EINTR) return -(long)number;
  char what = 0;
  if (r > 0 && read(wanted.fd, &what, 1) == 1) return what;
  return 0;
}
