#define _GNU_SOURCE
#include "CLinux.h"
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

// System call numbers that older C libraries lack; the same on all architectures except Alpha.
enum { SET_AT = 463, GET_AT = 464, LIST_AT = 465, REMOVE_AT = 466 };

struct value {
  uint64_t bytes __attribute__((aligned(8)));
  uint32_t size, flags;
};

// Whether the kernel lacks the calls, or a sandbox forbids unknown calls.
static atomic_bool lacks_calls;

static long result(long r) { return r < 0 ? -(long)errno : r; }

static int is_lacking(long r) {
  if (r >= 0 || (errno != ENOSYS && errno != EPERM)) return 0;
  // EPERM for another reason must not count as a missing call: the cheapest call distinguishes
  // them.
  if (errno == EPERM) {
    int saved = errno;
    long probe = syscall(LIST_AT, -1, "", 0, NULL, 0);
    int lacking = probe < 0 && (errno == ENOSYS || errno == EPERM);
    errno = saved;
    if (!lacking) return 0;
  }
  atomic_store_explicit(&lacks_calls, 1, memory_order_relaxed);
  return 1;
}

void cl_use_attribute_calls(int use) {
  atomic_store_explicit(&lacks_calls, !use, memory_order_relaxed);
}

static int may_call(void) { return !atomic_load_explicit(&lacks_calls, memory_order_relaxed); }

// Enough for the path of any child.
enum { PATH_SIZE = 320 };

// Writes a path of a child that is independent of renames and does not require opening the child.
static long path_of_child(int fd, const char *name, char *into) {
  if (!*name) return -(long)ENOENT;
  int length = snprintf(into, PATH_SIZE, "/proc/self/fd/%d/%s", fd, name);
  return length < PATH_SIZE ? length : -(long)ENAMETOOLONG;
}

long cl_list_attributes(int fd, const char *name, void *into, size_t count) {
  if (!name) return result(flistxattr(fd, into, count));
  if (may_call()) {
    long r = syscall(LIST_AT, fd, name, AT_SYMLINK_NOFOLLOW, into, count);
    if (!is_lacking(r)) return result(r);
  }
  char path[PATH_SIZE];
  long r = path_of_child(fd, name, path);
  return r < 0 ? r : result(llistxattr(path, into, count));
}

long cl_get_attribute(int fd, const char *name, const char *key, void *into, size_t count) {
  if (!name) return result(fgetxattr(fd, key, into, count));
  if (may_call()) {
    struct value value = {(uint64_t)(uintptr_t)into, (uint32_t)count, 0};
    long r = syscall(GET_AT, fd, name, AT_SYMLINK_NOFOLLOW, key, &value, sizeof value);
    if (!is_lacking(r)) return result(r);
  }
  char path[PATH_SIZE];
  long r = path_of_child(fd, name, path);
  return r < 0 ? r : result(lgetxattr(path, key, into, count));
}

long cl_set_attribute(int fd, const char *name, const char *key, const void *from, size_t count) {
  if (!name) return result(fsetxattr(fd, key, from, count, 0));
  if (may_call()) {
    struct value value = {(uint64_t)(uintptr_t)from, (uint32_t)count, 0};
    long r = syscall(SET_AT, fd, name, AT_SYMLINK_NOFOLLOW, key, &value, sizeof value);
    if (!is_lacking(r)) return result(r);
  }
  char path[PATH_SIZE];
  long r = path_of_child(fd, name, path);
  return r < 0 ? r : result(lsetxattr(path, key, from, count, 0));
}

long cl_remove_attribute(int fd, const char *name, const char *key) {
  if (!name) return result(fremovexattr(fd, key));
  if (may_call()) {
    long r = syscall(REMOVE_AT, fd, name, AT_SYMLINK_NOFOLLOW, key);
    if (!is_lacking(r)) return result(r);
  }
  char path[PATH_SIZE];
  long r = path_of_child(fd, name, path);
  return r < 0 ? r : result(lremovexattr(path, key));
}
