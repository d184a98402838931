#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define CL_RETRY(expression)                                                                       \
  ({                                                                                               \
    long cl_result;                                                                                \
    do {                                                                                           \
      cl_result = (long)(expression);                                                              \
    } while (cl_result < 0 && errno == EINTR);                                                     \
    cl_result < 0 ? -(long)errno : cl_result;                                                      \
  })

long cl_open(int directory, const char *name, int flags, unsigned mode) {
  return CL_RETRY(openat(directory, name, flags | O_CLOEXEC, mode));
}

// For kernels before 5.6 and sandboxes that forbid openat2: opens one component after the other.
static long open_stepwise(const char *path) {
  char name[256];
  int directory = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
  if (directory < 0 && directory != AT_FDCWD) return -(long)errno;
  long error = 0;
  while (*path && !error) {
    size_t length = strcspn(path, "/");
    if (length >= sizeof name) {
      error = -(long)ENAMETOOLONG;
    } else if (length > 0) {
      memcpy(name, path, length);
      name[length] = 0;
      int next = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (next < 0) error = errno == ENOTDIR ? -(long)ELOOP : -(long)errno;
      if (directory >= 0) close(directory);
      directory = next;
    }
    path += length + (path[length] == '/');
  }
  if (error) return error;
  long opened = cl_open(directory, ".", O_RDONLY | O_DIRECTORY, 0);
  if (directory >= 0) close(directory);
  return opened;
}

long cl_open_resolved(const char *path) {
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
  long opened = CL_RETRY(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
  return opened == -ENOSYS || opened == -EPERM ? open_stepwise(path) : opened;
}

long cl_close(int fd) { return close(fd) < 0 ? -(long)errno : 0; }
long cl_read(int fd, void *into, size_t count) {
  return CL_RETRY(read(fd, into, count));
}
long cl_wait_for_input(int fd, int milliseconds) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  int ready = poll(&wanted, 1, milliseconds);
  if (ready >= 0) return ready;
  return errno == EINTR ? 0 : -(long)errno;
}
long cl_pread(int fd, void *into, size_t count, int64_t at) {
  return CL_RETRY(pread(fd, into, count, at));
}
long cl_write(int fd, const void *from, size_t count) {
  return CL_RETRY(write(fd, from, count));
}
long cl_pwrite(int fd, const void *from, size_t count, int64_t at) {
  return CL_RETRY(pwrite(fd, from, count, at));
}
long cl_duplicate(int fd) { return CL_RETRY(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }
long cl_fsync(int fd) { return fsync(fd) < 0 ? -(long)errno : 0; }
// Sandboxes may answer EPERM to calls that they do not know. The kernel never does so to a call for
// no file, which therefore tells such a sandbox apart.
long cl_syncfs(int fd) {
  if (syncfs(fd) == 0) return 0;
  long error = errno;
  if (error == EPERM && syncfs(-1) < 0 && errno == EPERM) error = ENOSYS;
  return -error;
}
// Return the start of the next data, or of the next hole.
long cl_next_data(int fd, int64_t from) { return CL_RETRY(lseek(fd, from, SEEK_DATA)); }
long cl_next_hole(int fd, int64_t from) { return CL_RETRY(lseek(fd, from, SEEK_HOLE)); }
long cl_seek(int fd, int64_t to) { return CL_RETRY(lseek(fd, to, SEEK_SET)); }
long cl_punch_hole(int fd, int64_t from, int64_t count) {
  return CL_RETRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, count));
}
long cl_truncate(int fd, int64_t size) { return CL_RETRY(ftruncate(fd, size)); }
long cl_advise_unneeded(int fd, int64_t from, int64_t count) {
  return -(long)posix_fadvise(fd, from, count, POSIX_FADV_DONTNEED);
}
long cl_begin_sync(int fd, int64_t from, int64_t count) {
  return CL_RETRY(sync_file_range(fd, from, count, SYNC_FILE_RANGE_WRITE));
}
long cl_end_sync(int fd, int64_t from, int64_t count) {
  return CL_RETRY(sync_file_range(fd, from, count,
                                  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                      SYNC_FILE_RANGE_WAIT_AFTER));
}

// For sandboxes that forbid statx: without creation times, mount points and file flags, as the C
// library does without statx in the kernel.
static long status_without_statx(int directory, const char *name, int flags,
                                 struct cl_status *out) {
  struct stat s;
  long r = CL_RETRY(fstatat(directory, name, &s, flags));
  if (r == 0) cl_take_status(&s, out);
  return r;
}

static long status(int directory, const char *name, int flags, unsigned mask,
                   struct cl_status *out) {
  struct statx s;
  flags |= AT_NO_AUTOMOUNT;
  long r = CL_RETRY(statx(directory, name, flags, mask, &s));
  if (r == -EPERM) return status_without_statx(directory, name, flags, out);
  if (r < 0) return r;
  out->inode = s.stx_ino;
  out->device = makedev(s.stx_dev_major, s.stx_dev_minor);
  out->special_device = makedev(s.stx_rdev_major, s.stx_rdev_minor);
  out->size = s.stx_size;
  out->blocks = s.stx_blocks;
  out->mtime = s.stx_mtime.tv_sec;
  out->mtime_ns = s.stx_mtime.tv_nsec;
  out->ctime = s.stx_ctime.tv_sec;
  out->ctime_ns = s.stx_ctime.tv_nsec;
  out->atime = s.stx_atime.tv_sec;
  out->btime = s.stx_btime.tv_sec;
  out->btime_ns = s.stx_btime.tv_nsec;
  out->has_btime = (s.stx_mask & STATX_BTIME) != 0;
  out->mode = s.stx_mode;
  out->uid = s.stx_uid;
  out->gid = s.stx_gid;
  out->links = s.stx_nlink;
  uint64_t attributes = s.stx_attributes & s.stx_attributes_mask;
  out->mount_root = (attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  out->fixed = (attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
  return 0;
}

// Returns the status of an open file.
long cl_stat_open(int fd, struct cl_status *out) {
  return status(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, out);
}
// Returns the status of a child; follows a symbolic link only if `follow` is nonzero.
long cl_stat(int directory, const char *name, int follow, struct cl_status *out) {
  return status(directory, name, follow ? 0 : AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                out);
}

long cl_lstat(int directory, const char *name, struct cl_status *out) {
  return status(directory, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, out);
}

long cl_list(int fd, void *into, size_t count) {
  return CL_RETRY(syscall(SYS_getdents64, fd, into, count));
}
long cl_mkdir(int directory, const char *name, unsigned mode) {
  return CL_RETRY(mkdirat(directory, name, mode));
}
long cl_unlink(int directory, const char *name, int flags) {
  return CL_RETRY(unlinkat(directory, name, flags));
}
static long rename_flagged(int from, const char *name, int to, const char *as, unsigned flags) {
  long r = CL_RETRY(renameat2(from, name, to, as, flags));
  // As for syncfs. An immutable file, for example, is EPERM as well.
  int is_forbidden = r == -EPERM && renameat2(-1, "-", -1, "-", flags) < 0 && errno == EPERM;
  return is_forbidden ? -(long)ENOSYS : r;
}
// Renames a child. If no_replace is nonzero, an existing target is EEXIST.
long cl_rename(int from, const char *name, int to, const char *as, int no_replace) {
  if (no_replace) return rename_flagged(from, name, to, as, RENAME_NOREPLACE);
  return CL_RETRY(renameat(from, name, to, as));
}
long cl_exchange(int from, const char *name, int to, const char *other) {
  return rename_flagged(from, name, to, other, RENAME_EXCHANGE);
}
long cl_link(int from, const char *name, int to, const char *as) {
  return CL_RETRY(linkat(from, name, to, as, 0));
}
long cl_symlink(const char *target, int directory, const char *name) {
  return CL_RETRY(symlinkat(target, directory, name));
}
long cl_readlink(int directory, const char *name, void *into, size_t count) {
  return CL_RETRY(readlinkat(directory, name, into, count));
}
long cl_mknod(int directory, const char *name, unsigned mode, uint64_t device) {
  return CL_RETRY(mknodat(directory, name, mode, device));
}
long cl_chmod(int fd, unsigned mode) { return CL_RETRY(fchmod(fd, mode)); }
// fchmodat2, added in Linux 6.6. C libraries do not wrap it yet.
enum { CHMOD_AT = 452 };

// Sets the mode of a child through its descriptor, for kernels without fchmodat2.
static long chmod_opened(int directory, const char *name, unsigned mode) {
  struct stat child, opened;
  long fd = cl_open(directory, name, O_PATH | O_NOFOLLOW, 0);
  if (fd < 0) return fd;
  char path[40];
  snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
  long r = CL_RETRY(fstat((int)fd, &child));
  if (r == 0) r = S_ISLNK(child.st_mode) ? -(long)ELOOP : CL_RETRY(chmod(path, mode));
  close((int)fd);
  if (r != -ENOENT) return r;
  // There is no /proc, as in a chroot: only files and directories can be opened instead.
  if (!S_ISREG(child.st_mode) && !S_ISDIR(child.st_mode)) return -EOPNOTSUPP;
  fd = cl_open(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0) return fd;
  r = CL_RETRY(fstat((int)fd, &opened));
  if (r == 0 && (opened.st_ino != child.st_ino || opened.st_dev != child.st_dev)) r = -ESTALE;
  if (r == 0) r = cl_chmod((int)fd, mode);
  close((int)fd);
  return r;
}

long cl_chmod_at(int directory, const char *name, unsigned mode) {
  long r = CL_RETRY(syscall(CHMOD_AT, directory, name, mode, AT_SYMLINK_NOFOLLOW));
  // Some sandboxes forbid calls that they do not know.
  return r == -ENOSYS || r == -EPERM ? chmod_opened(directory, name, mode) : r;
}
long cl_chown_at(int directory, const char *name, unsigned uid, unsigned gid) {
  return CL_RETRY(fchownat(directory, name, uid, gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
}
long cl_give_away(int directory, const char *name, unsigned uid, unsigned gid) {
  struct stat child;
  long fd = cl_open(directory, name, O_PATH | O_NOFOLLOW, 0);
  if (fd < 0) return fd;
  long r = CL_RETRY(fstat((int)fd, &child));
  if (r == 0 && child.st_uid == geteuid()) {
    // A new file has one name.
    int is_other = S_ISDIR(child.st_mode) || child.st_nlink > 1;
    r = is_other ? -(long)ESTALE : cl_chown_at((int)fd, "", uid, gid);
  }
  close((int)fd);
  return r;
}
long cl_set_mtime(int directory, const char *name, int64_t seconds, uint32_t ns) {
  struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, ns}};
  return CL_RETRY(utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW));
}
long cl_set_mtime_open(int fd, int64_t seconds, uint32_t ns) {
  struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, ns}};
  return CL_RETRY(futimens(fd, times));
}

long cl_flags(int fd) {
  int flags = 0;
  long r = CL_RETRY(ioctl(fd, FS_IOC_GETFLAGS, &flags));
  return r < 0 ? r : (long)flags;
}
_Static_assert(STATX_ATTR_COMPRESSED == FS_COMPR_FL && STATX_ATTR_IMMUTABLE == FS_IMMUTABLE_FL &&
                   STATX_ATTR_APPEND == FS_APPEND_FL && STATX_ATTR_NODUMP == FS_NODUMP_FL,
               "statx and FS_IOC_GETFLAGS use the same bits");
long cl_reported_flags(int fd, uint32_t *known) {
  struct statx s;
  long r = CL_RETRY(statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &s));
  if (r < 0) return r;
  *known = (uint32_t)(s.stx_attributes_mask & (STATX_ATTR_COMPRESSED | STATX_ATTR_IMMUTABLE |
                                               STATX_ATTR_APPEND | STATX_ATTR_NODUMP));
  return (long)(s.stx_attributes & *known);
}
long cl_set_flags(int fd, int flags) { return CL_RETRY(ioctl(fd, FS_IOC_SETFLAGS, &flags)); }
long cl_lock(int fd, int exclusive, int wait) {
  return CL_RETRY(flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | (wait ? 0 : LOCK_NB)));
}
// Sets a lock on a byte range, owned by the open file description. `type` is F_RDLCK or F_UNLCK.
long cl_lock_range(int fd, int type, int64_t start, int64_t length) {
  struct flock lock = {
      .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  return CL_RETRY(fcntl(fd, F_OFD_SETLK, &lock));
}
long cl_range_is_locked(int fd, int type, int64_t start, int64_t length) {
  struct flock lock = {
      .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  long r = CL_RETRY(fcntl(fd, F_OFD_GETLK, &lock));
  return r < 0 ? r : lock.l_type != F_UNLCK;
}
// Shares all blocks of another file (FICLONE).
long cl_clone(int to, int from) { return CL_RETRY(ioctl(to, FICLONE, from)); }
long cl_unlock(int fd) { return CL_RETRY(flock(fd, LOCK_UN)); }
long cl_random(void *into, size_t count) { return CL_RETRY(getrandom(into, count, 0)); }

long cl_can_change(int directory) {
  return CL_RETRY(faccessat(directory, ".", W_OK | X_OK, AT_EACCESS));
}

// Whether the volume of fd is mounted read-only.
long cl_is_read_only(int fd) {
  struct statvfs v;
  long r = CL_RETRY(fstatvfs(fd, &v));
  return r < 0 ? r : (v.f_flag & ST_RDONLY) != 0;
}

static int is_one_of(unsigned long magic, const unsigned long *magics, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (magics[i] == magic) return 1;
  }
  return 0;
}

// Returns the reliability of file times, by the magic number of the file system (statfs(2)).
long cl_volume_times(int fd) {
  // The clock of another machine may set the times; FUSE may be a network file system.
  static const unsigned long remote[] = {
      0x6969 /* NFS */,        0x517b /* SMB */,         0xfe534d42 /* SMB2 */,
      0xff534d42 /* CIFS */,   0x01021997 /* 9P */,      0x00c36400 /* Ceph */,
      0x5346414f /* AFS */,    0x6b414653 /* kAFS */,    0x73757245 /* Coda */,
      0x65735546 /* FUSE */,   0x0bd00bd0 /* Lustre */,  0x7461636f /* OCFS2 */,
      0x01161970 /* GFS2 */,   0x20030528 /* OrangeFS */, 0x47504653 /* GPFS */,
      0x19830326 /* BeeGFS */, 0x786f4256 /* vboxsf */,  0x7c7c6673 /* Parallels */};
  // On memory file systems a store through a mapping updates no time, and images are built with
  // times and inodes that other images have as well.
  static const unsigned long loose[] = {
      0x01021994 /* tmpfs */,    0x858458f6 /* ramfs */, 0x958458f6 /* hugetlbfs */,
      0x73717368 /* squashfs */, 0x9660 /* ISO 9660 */,  0xe0f5e1e2 /* EROFS */,
      0x28cd3d45 /* cramfs */,   0x7275 /* romfs */};
  struct statfs s;
  long r = CL_RETRY(fstatfs(fd, &s));
  if (r < 0) return r;
  unsigned long magic = (unsigned long)s.f_type & 0xffffffff;
  if (magic == 0x794c7630 /* overlayfs */) return CL_TIMES_LAYERED;
  if (is_one_of(magic, remote, sizeof remote / sizeof *remote)) return CL_TIMES_REMOTE;
  return is_one_of(magic, loose, sizeof loose / sizeof *loose) ? CL_TIMES_LOOSE : CL_TIMES_EXACT;
}

long cl_memory_file(const char *name) { return CL_RETRY(memfd_create(name, MFD_CLOEXEC)); }

// Waits; continues after interruption by a signal.
void cl_pause(int64_t nanoseconds) {
  struct timespec left = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) {
  }
}

long cl_terminal_columns(int fd) {
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) < 0 ? -(long)errno : (long)size.ws_col;
}

void cl_map_blocks_from(int bytes) { mallopt(M_MMAP_THRESHOLD, bytes); }

long cl_processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) < 0 ? -(long)errno : (long)CPU_COUNT(&set);
}
