#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

long cl_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) < 0 ? -(long)errno : 0; }

long cl_socket_pair(int ends[2]) {
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ? -(long)errno : 0;
}

static long send_now(int socket, const void *from, size_t count) {
  ssize_t sent;
  do {
    sent = send(socket, from, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -(long)errno;
}

long cl_send(int socket, const void *from, size_t count, int milliseconds) {
  long sent = send_now(socket, from, count);
  if (sent) return sent;
  struct pollfd wanted = {.fd = socket, .events = POLLOUT};
  if (poll(&wanted, 1, milliseconds) < 0) return errno == EINTR ? 0 : -(long)errno;
  return send_now(socket, from, count);
}

long cl_shut_down(int socket) { return shutdown(socket, SHUT_RDWR) < 0 ? -(long)errno : 0; }

// Returns the length of the name of an environment entry, with its '='.
static size_t name_length(const char *entry) {
  const char *end = strchr(entry, '=');
  return end ? (size_t)(end - entry) + 1 : strlen(entry);
}

static int is_replaced(const char *entry, char *const added[]) {
  for (size_t i = 0; added[i]; i++) {
    size_t length = name_length(added[i]);
    if (!strncmp(entry, added[i], length)) return 1;
  }
  return 0;
}

// Returns this process's environment with other entries, of which the entries are not copies; null
// without memory.
static char **environment_with(char *const added[]) {
  size_t count = 0, more = 0, at = 0;
  while (environ && environ[count]) count++;
  while (added[more]) more++;
  char **result = calloc(count + more + 1, sizeof *result);
  if (!result) return NULL;
  for (size_t i = 0; i < count; i++) {
    if (!is_replaced(environ[i], added)) result[at++] = environ[i];
  }
  for (size_t i = 0; i < more; i++) result[at++] = added[i];
  return result;
}

static int set_stream(int fd, int number) {
  // A duplicate of itself would keep the flag that closes it.
  if (fd == number) return fcntl(fd, F_SETFD, 0);
  return dup2(fd, number);
}

// Becomes the program, in the child: only calls that are safe after a fork of a process with several
// threads. Writes the error number to `report` if that fails.
static void become(
  char *const words[], char *const environment[], const int streams[3], int report, pid_t parent
) {
  // Without a terminal it cannot ask, and a signal of the terminal reaches it through its parent.
  int failed = setsid() < 0;
  // The end of the thread that started it, for example by SIGKILL, ends it in order.
  if (!failed) failed = prctl(PR_SET_PDEATHSIG, SIGINT) < 0;
  if (!failed && getppid() != parent) _exit(127);
  // An ignored signal would stay ignored in the program.
  const int usual[] = {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ};
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) signal(usual[i], SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int i = 0; i < 3 && !failed; i++) failed = set_stream(streams[i], i) < 0;
  if (!failed) execvpe(words[0], words, environment);
  int number = errno;
  while (write(report, &number, sizeof number) < 0 && errno == EINTR) {}
  _exit(127);
}

// Waits until the child has become the program. Returns 0, or the error number.
static int read_report(int report) {
  int number = 0;
  ssize_t count;
  do {
    count = read(report, &number, sizeof number);
  } while (count < 0 && errno == EINTR);
  return count == (ssize_t)sizeof number ? number : 0;
}

static long fork_program(
  char *const words[], char *const environment[], const int streams[3], const int report[2]
) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child < 0) return -(long)errno;
  if (child == 0) become(words, environment, streams, report[1], parent);
  return child;
}

long cl_start(char *const words[], char *const added[], int out, int err) {
  int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (none < 0) return -(long)errno;
  long child = cl_start_with_input(words, added, none, out, err);
  close(none);
  return child;
}

long cl_start_with_input(char *const words[], char *const added[], int in, int out, int err) {
  char **environment = environment_with(added);
  if (!environment) return -(long)ENOMEM;
  int report[2] = {-1, -1};
  long child = cl_pipe(report);
  if (child == 0) {
    const int streams[3] = {in, out, err};
    child = fork_program(words, environment, streams, report);
    close(report[1]);
    int failed = child > 0 ? read_report(report[0]) : 0;
    close(report[0]);
    if (failed) {
      while (waitpid((pid_t)child, NULL, 0) < 0 && errno == EINTR) {}
      child = -(long)failed;
    }
  }
  free(environment);
  return child;
}

long cl_child_ended(int child, int *code) {
  int status;
  pid_t ended;
  do {
    ended = waitpid(child, &status, WNOHANG);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0) return -(long)errno;
  if (ended == 0) return 0;
  *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return 1;
}

long cl_signal_group(int child, int signal) { return kill(-child, signal) < 0 ? -(long)errno : 0; }

long cl_wait_for_inputs(int first, int second, int milliseconds) {
  struct pollfd wanted[] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
  int ready = poll(wanted, 2, milliseconds);
  if (ready < 0) return errno == EINTR ? 0 : -(long)errno;
  return (wanted[0].revents ? 1 : 0) | (wanted[1].revents ? 2 : 0);
}
