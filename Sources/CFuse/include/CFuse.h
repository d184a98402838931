// The low-level interface of libfuse3, as Debian's -dev package installs it (3.14), and the parts of
// it that Swift cannot call: bit fields, and structures of the C library. The library is loaded
// when it is needed (CLoader.h).
#pragma once
// The structures of the C library must be those of Swift's module of it, so they are defined before
// the macro that libfuse asks for. Offsets have 64 bits with and without it on all 64-bit systems.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

// Error numbers and constants that are macros of the C library.
enum {
  CF_ENOENT = ENOENT, CF_EIO = EIO, CF_EROFS = EROFS, CF_ENOTDIR = ENOTDIR, CF_EISDIR = EISDIR,
  CF_EINVAL = EINVAL, CF_ENODATA = ENODATA, CF_ERANGE = ERANGE, CF_ENXIO = ENXIO,
  CF_ENOSYS = ENOSYS, CF_EINTR = EINTR, CF_ENOMEM = ENOMEM, CF_EBUSY = EBUSY, CF_ENOTCONN = ENOTCONN,
  CF_EACCES = EACCES, CF_EPERM = EPERM, CF_ENODEV = ENODEV, CF_ESTALE = ESTALE,
  CF_EOPNOTSUPP = EOPNOTSUPP,
  CF_SEEK_DATA = 3, CF_SEEK_HOLE = 4,
};

// The attributes of a node. `mode` has the type and the permissions.
struct cf_attributes {
  uint64_t number, size, blocks, device;
  int64_t seconds;
  uint32_t nanoseconds, mode, links, user, group;
};

static inline struct stat cf_stat(const struct cf_attributes *a) {
  struct stat s;
  memset(&s, 0, sizeof s);
  s.st_ino = a->number;
  s.st_size = (off_t)a->size;
  s.st_blocks = (blkcnt_t)a->blocks;
  s.st_blksize = 4096;
  s.st_rdev = (dev_t)a->device;
  s.st_mode = a->mode;
  s.st_nlink = a->links;
  s.st_uid = a->user;
  s.st_gid = a->group;
  s.st_mtim.tv_sec = a->seconds;
  s.st_mtim.tv_nsec = a->nanoseconds;
  s.st_atim = s.st_mtim;
  s.st_ctim = s.st_mtim;
  return s;
}

static inline struct fuse_entry_param cf_entry(
    const struct cf_attributes *a, double entry_seconds, double attribute_seconds) {
  struct fuse_entry_param e;
  memset(&e, 0, sizeof e);
  e.ino = a->number;
  e.attr = cf_stat(a);
  e.entry_timeout = entry_seconds;
  e.attr_timeout = attribute_seconds;
  return e;
}

static inline int cf_reply_entry(
    fuse_req_t request, const struct cf_attributes *a, double entry_seconds,
    double attribute_seconds) {
  struct fuse_entry_param e = cf_entry(a, entry_seconds, attribute_seconds);
  return fuse_reply_entry(request, &e);
}

static inline int cf_reply_attributes(
    fuse_req_t request, const struct cf_attributes *a, double seconds) {
  struct stat s = cf_stat(a);
  return fuse_reply_attr(request, &s, seconds);
}

// Returns the thread that made a request, or 0 if it is in a PID namespace that is not visible here.
static inline pid_t cf_requester(fuse_req_t request) {
  const struct fuse_ctx *context = fuse_req_ctx(request);
  return context ? context->pid : 0;
}

// Appends an entry to the reply to a readdir request. Returns its size; it was appended if that is at
// most `room`.
static inline size_t cf_add_name(
    fuse_req_t request, char *buffer, size_t room, const char *name, uint64_t number, uint32_t mode,
    int64_t next) {
  struct stat s;
  memset(&s, 0, sizeof s);
  s.st_ino = number;
  s.st_mode = mode;
  return fuse_add_direntry(request, buffer, room, name, &s, next);
}

// The same for a readdirplus request. A null entry only asks for the size.
static inline size_t cf_size_of_entry(fuse_req_t request, const char *name) {
  return fuse_add_direntry_plus(request, NULL, 0, name, NULL, 0);
}

static inline size_t cf_add_entry(
    fuse_req_t request, char *buffer, size_t room, const char *name, const struct cf_attributes *a,
    int is_reference, double entry_seconds, double attribute_seconds, int64_t next) {
  struct fuse_entry_param e = cf_entry(a, entry_seconds, attribute_seconds);
  // Without a node the kernel takes the type and the number alone, and counts no lookup.
  if (!is_reference) e.ino = 0;
  return fuse_add_direntry_plus(request, buffer, room, name, &e, next);
}

static inline uint64_t cf_handle(const struct fuse_file_info *info) { return info ? info->fh : 0; }

// Answers the opening of a directory. The kernel may keep the listing of one that never changes.
static inline int cf_reply_directory(fuse_req_t request, uint64_t handle, int is_constant) {
  struct fuse_file_info info;
  memset(&info, 0, sizeof info);
  info.fh = handle;
  info.keep_cache = is_constant ? 1 : 0;
  info.cache_readdir = is_constant ? 1 : 0;
  return fuse_reply_open(request, &info);
}

// Answers the opening of a file on a kernel that needs an answer. Contents never change.
static inline int cf_reply_file(fuse_req_t request, struct fuse_file_info *info) {
  info->keep_cache = 1;
  return fuse_reply_open(request, info);
}

static inline int cf_reply_space(fuse_req_t request, uint64_t bytes, uint64_t files) {
  struct statvfs s;
  memset(&s, 0, sizeof s);
  s.f_bsize = s.f_frsize = 4096;
  s.f_blocks = (bytes + 4095) / 4096;
  s.f_files = files;
  s.f_namemax = 255;
  return fuse_reply_statfs(request, &s);
}

// Chooses the capabilities of a connection. Returns whether files need not be opened.
static inline int cf_choose(struct fuse_conn_info *connection, int uses_lists) {
  // All attributes are known when a directory is read, and stay valid.
  connection->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
  connection->want |= connection->capable & (FUSE_CAP_READDIRPLUS | FUSE_CAP_CACHE_SYMLINKS);
  if (uses_lists) connection->want |= connection->capable & FUSE_CAP_POSIX_ACL;
  // Requests of up to 1 MiB.
  connection->max_write = 1 << 20;
  connection->max_background = 64;
  connection->congestion_threshold = 48;
  connection->time_gran = 1;
  return (connection->capable & FUSE_CAP_NO_OPEN_SUPPORT) != 0;
}

static inline void cf_drop_message(enum fuse_log_level level, const char *format, va_list values) {
  (void)level; (void)format; (void)values;
}

// The library's messages are replaced by errors of this program.
static inline void cf_drop_messages(void) { fuse_set_log_func(cf_drop_message); }

// Creates a session with options for mounting. Returns NULL if that fails.
static inline struct fuse_session *cf_new_session(
    const char *const *options, int count, const struct fuse_lowlevel_ops *operations, void *data) {
  struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
  struct fuse_session *session = NULL;
  int failed = fuse_opt_add_arg(&arguments, "sandboxctl");
  for (int i = 0; i < count && !failed; i++) {
    failed = fuse_opt_add_arg(&arguments, "-o") || fuse_opt_add_arg(&arguments, options[i]);
  }
  if (!failed) session = fuse_session_new(&arguments, operations, sizeof *operations, data);
  fuse_opt_free_args(&arguments);
  return session;
}

// Mounts a session. Returns 0, or the error number of mount(2), or EIO if it is not known.
static inline int cf_mount(struct fuse_session *session, const char *path) {
  errno = 0;
  if (fuse_session_mount(session, path) == 0) return 0;
  return errno ? errno : EIO;
}

// Asks the scheduler for slices of 0.1 ms for this thread, which needs less for each request: from
// Linux 6.12 on it then runs soon after it is woken, though other programs use all processors. Its
// share of them stays the same. Nothing depends on it, so errors have no effect.
static inline void cf_use_short_slices(void) {
  // struct sched_attr of linux/sched/types.h, in its first version.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes;
  memset(&attributes, 0, sizeof attributes);
  if (syscall(SYS_sched_getattr, 0, &attributes, (unsigned)sizeof attributes, 0u) != 0) return;
  // Of the usual policy (SCHED_OTHER) only, where the member means that.
  if (attributes.policy != 0) return;
  attributes.runtime = 100000;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0u);
}

// The monotonic clock.
static inline uint64_t cf_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Puts a part of a file into the kernel's cache, as if it had been read. A page becomes valid if all
// of it, up to the end of the file, is put at once. Waits for requests that read the same pages, so
// the caller must not be a thread that handles requests. Returns 0 or a negative error number.
static inline int cf_put(
    struct fuse_session *session, uint64_t number, uint64_t offset, const void *bytes, size_t count) {
  struct fuse_bufvec vector = FUSE_BUFVEC_INIT(count);
  vector.buf[0].mem = (void *)bytes;
  return fuse_lowlevel_notify_store(session, number, (off_t)offset, &vector, FUSE_BUF_NO_SPLICE);
}

// Whether a request waits to be received, or the file system was unmounted.
static inline int cf_has_request(struct fuse_session *session) {
  struct pollfd descriptor = {.fd = fuse_session_fd(session), .events = POLLIN};
  return poll(&descriptor, 1, 0) != 0;
}

// Looks for a request repeatedly for `patience` nanoseconds.
static inline void cf_look(struct fuse_session *session, uint64_t patience) {
  uint64_t end = cf_nanoseconds() + patience;
  while (!cf_has_request(session) && cf_nanoseconds() < end) {}
}

// Returns the number of threads of this machine that run or want to (the fourth field of
// /proc/loadavg), or -1 if it is not known.
static inline int cf_running(void) {
  int descriptor = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  char text[128];
  ssize_t size = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  if (size <= 0) return -1;
  text[size] = 0;
  char *field = text;
  for (int skipped = 0; skipped < 3 && field; skipped++) {
    field = strchr(field, ' ');
    if (field) field++;
  }
  if (!field || *field < '0' || *field > '9') return -1;
  return (int)strtol(field, NULL, 10);
}

// Whether a request is answered from memory, or passes the turn to receive before it waits: all about
// names and attributes. Those that read files, and unknown ones, are not.
static inline int cf_is_quick(const struct fuse_buf *buffer) {
  // The operations of linux/fuse.h, which has no header of its own in the library.
  enum {
    lookup = 1, forget = 2, getattr = 3, readlink = 5, getxattr = 22, listxattr = 23, opendir = 27,
    readdir = 28, releasedir = 29, batch_forget = 42, readdirplus = 44,
  };
  struct { uint32_t length, operation; } header;
  if (buffer->size < sizeof header || !buffer->mem) return 0;
  memcpy(&header, buffer->mem, sizeof header);
  switch (header.operation) {
    case lookup: case forget: case getattr: case readlink: case getxattr: case listxattr:
    case opendir: case readdir: case releasedir: case batch_forget: case readdirplus: return 1;
    default: return 0;
  }
}

// Unmounts a file system. Returns 0 or a negative error number.
static inline int cf_unmount(const char *path, int is_lazy) {
  return umount2(path, UMOUNT_NOFOLLOW | (is_lazy ? MNT_DETACH : 0)) == 0 ? 0 : -errno;
}

// Whether a device file can be opened: 0 or a negative error number.
static inline int cf_probe(const char *path) {
  int descriptor = open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return -errno;
  close(descriptor);
  return 0;
}
