// The few Linux calls that Swift cannot import: variadic ones, macros, and those whose C types
// differ between libraries. Every function returns its result, or the negative errno; a call that a
// signal interrupted is made again.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// AT_NO_AUTOMOUNT, which the C library shows only to _GNU_SOURCE.
#define CL_NO_AUTOMOUNT 0x800

// O_TMPFILE, which the C library shows only to _GNU_SOURCE: opening a directory so makes a file in it
// without a name.
static const int cl_unnamed = 020000000 | O_DIRECTORY;

// O_NOATIME, which the C library shows only to _GNU_SOURCE; for a file's owner alone.
static const int cl_no_access_time = 01000000;

// What a file's status says, in fixed types; times in seconds and nanoseconds.
struct cl_status {
  uint64_t inode, device, special_device, size, blocks;
  int64_t mtime, ctime, btime, atime;
  uint32_t mtime_ns, ctime_ns, btime_ns;
  uint32_t mode, uid, gid, links;
  uint8_t mount_root, has_btime;
};

long cl_open(int folder, const char *name, int flags, unsigned mode);
// Opens a directory by a path of which no component may be a symbolic link (ELOOP).
long cl_open_resolved(const char *path);
long cl_close(int fd);
long cl_read(int fd, void *into, size_t count);
long cl_pread(int fd, void *into, size_t count, int64_t at);
long cl_write(int fd, const void *from, size_t count);
long cl_pwrite(int fd, const void *from, size_t count, int64_t at);
// A second descriptor of the same open file.
long cl_duplicate(int fd);
long cl_fsync(int fd);
long cl_syncfs(int fd);
// Whether nobody has a file open for writing, or mapped so; 0 also where that cannot be told, as for
// a file of another user.
long cl_has_no_writer(int fd);
// Whether the file system of a file is one whose holes can be believed; 1 for those that say nothing.
long cl_tells_holes(int fd);
// The same by the magic number of a file system (statfs(2)).
long cl_tells_holes_of(unsigned long magic);
// Where the next data, or the next hole, begins.
long cl_next_data(int fd, int64_t from);
long cl_next_hole(int fd, int64_t from);
long cl_seek(int fd, int64_t to);
long cl_truncate(int fd, int64_t size);
// Makes a range of a file a hole: its blocks are free again, and what of it was not written yet is not.
long cl_give_back(int fd, int64_t from, int64_t count);
long cl_advise_sequential(int fd);
// What of a range is on the disk need not stay in memory; a count of 0 means all that follows.
long cl_advise_unneeded(int fd, int64_t from, int64_t count);
// Begins to write a range of a file to the disk, and does not wait for it.
long cl_begin_sync(int fd, int64_t from, int64_t count);
// Waits until a range of a file is written to the disk.
long cl_end_sync(int fd, int64_t from, int64_t count);
// The status of an open file.
long cl_stat_open(int fd, struct cl_status *out);
// The status of a child; a link's own unless it is to be followed.
long cl_stat(int folder, const char *name, int follow, struct cl_status *out);
// The status of a child, a link's own, without its time of birth.
long cl_look(int folder, const char *name, struct cl_status *out);
// The same for a child that is no directory and was listed with this inode in a directory on this device:
// by fstatat(2), which is a twentieth faster than statx(2) but does not tell of mounts. What is
// mounted over a file is another inode than the listed one, so there statx is asked too; then the
// result is 1. In the header, so that the call is compiled into the loop that makes it.
static inline long cl_look_quickly(int folder, const char *name, uint64_t device, uint64_t inode,
                                   struct cl_status *out) {
  struct stat s;
  while (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW | CL_NO_AUTOMOUNT) < 0) {
    if (errno != EINTR) return -(long)errno;
  }
  if (s.st_dev != device || s.st_ino != inode) {
    long r = cl_look(folder, name, out);
    return r < 0 ? r : 1;
  }
  out->inode = s.st_ino;
  out->device = s.st_dev;
  out->special_device = s.st_rdev;
  out->size = s.st_size;
  out->blocks = s.st_blocks;
  out->mtime = s.st_mtim.tv_sec;
  out->mtime_ns = s.st_mtim.tv_nsec;
  out->atime = s.st_atim.tv_sec;
  out->ctime = s.st_ctim.tv_sec;
  out->ctime_ns = s.st_ctim.tv_nsec;
  out->mode = s.st_mode;
  out->uid = s.st_uid;
  out->gid = s.st_gid;
  out->links = s.st_nlink;
  out->mount_root = 0;
  out->has_btime = 0;
  return 0;
}
long cl_list(int fd, void *into, size_t count);
long cl_mkdir(int folder, const char *name, unsigned mode);
long cl_unlink(int folder, const char *name, int flags);
// Renames; with no_replace nonzero an existing target is EEXIST.
long cl_rename(int from, const char *name, int to, const char *as, int no_replace);
// Swaps two names, whatever kinds of things they are.
long cl_exchange(int from, const char *name, int to, const char *other);
long cl_link(int from, const char *name, int to, const char *as);
long cl_symlink(const char *target, int folder, const char *name);
long cl_readlink(int folder, const char *name, void *into, size_t count);
long cl_mknod(int folder, const char *name, unsigned mode, uint64_t device);
long cl_chmod(int fd, unsigned mode);
long cl_chmod_at(int folder, const char *name, unsigned mode);
long cl_chown_at(int folder, const char *name, unsigned uid, unsigned gid);
long cl_set_mtime(int folder, const char *name, int64_t seconds, uint32_t ns);
long cl_set_mtime_open(int fd, int64_t seconds, uint32_t ns);
// Extended attributes of a directory's child, a link's own; without a name, of what is open itself.
// By the calls that Linux has since 6.13, else by a path below /proc/self/fd.
long cl_list_attributes(int fd, const char *name, void *into, size_t count);
long cl_get_attribute(int fd, const char *name, const char *key, void *into, size_t count);
long cl_set_attribute(int fd, const char *name, const char *key, const void *from, size_t count);
long cl_remove_attribute(int fd, const char *name, const char *key);
// Whether the newer calls are used where they are there: off for tests of the older way.
void cl_use_attribute_calls(int use);
// The flags that chattr(1) sets.
long cl_flags(int fd);
long cl_set_flags(int fd, int flags);
long cl_lock(int fd, int exclusive, int wait);
long cl_unlock(int fd);
// Locks of a range of bytes that belong to the open file description: `type` is F_RDLCK or F_UNLCK.
long cl_lock_range(int fd, int type, int64_t start, int64_t length);
// Whether someone else holds a lock of any kind on one of these bytes: 1 or 0.
long cl_range_is_locked(int fd, int64_t start, int64_t length);
// Makes the file share all blocks of another (FICLONE).
long cl_clone(int to, int from);
long cl_random(void *into, size_t count);
// Whether names can be made and removed in an open directory.
long cl_can_change(int folder);

// The room on a volume.
struct cl_volume {
  // Bytes that are free for all, those free for the superuser besides, and all.
  uint64_t available, reserved, total;
  // Files that can still be made, and all; both 0 where they are not counted.
  uint64_t inodes, all_inodes;
  // Bytes of a block, where files are known to take whole ones; else 0.
  uint64_t block;
  // Whether what is smaller than a block may be kept in the inode.
  int packs_small;
};
// Tells the room on the volume that fd is on.
long cl_space(int fd, struct cl_volume *volume);

// Whether the volume that fd is on notes when files are read: 1 or 0.
long cl_notes_access(int fd);
// Whether files on the volume that fd is on may share blocks with others: 1 or 0.
long cl_may_share(int fd);
// Bytes of a file whose blocks others have, too (FIEMAP).
long cl_shared_bytes(int fd, uint64_t *bytes);

// 1 when another machine's clock may give the times of the files on the volume that fd is on.
enum { CL_TIMES_EXACT, CL_TIMES_REMOTE, CL_TIMES_LOOSE, CL_TIMES_LAYERED };
long cl_volume_times(int fd);

// 1 when nothing on the volume that fd is on can be changed, as it is mounted.
long cl_is_read_only(int fd);

// A file that has no name and lies in memory.
long cl_memory_file(const char *name);
// Starts the program that the first word names, found in PATH, with these standard streams, and waits
// until it has ended: gives its exit code, or 128 and the signal that ended it.
long cl_run(char *const words[], int in, int out, int err);

// SIGINT, SIGTERM and SIGHUP ask the program to stop, a second one ends it at once with this status.
#define CL_INTERRUPTED 130
// What came: one of those, SIGUSR1, or a call of cl_wake.
#define CL_SIGNAL_STOP 1
#define CL_SIGNAL_ASK 2
#define CL_SIGNAL_WAKE 3
long cl_watch_signals(void);
// Has a message written to the standard error, at most 1 KiB of it, and ends the process with status 1
// where the disk does not give what is mapped into memory.
long cl_end_at_loss(const char *message);
// Whether the program was asked to stop.
long cl_is_stopping(void);
// Waits for a signal and tells which; 0 when none came in time. A negative time waits for ever.
long cl_wait_for_signal(int milliseconds);
// Wakes whoever waits for a signal.
void cl_wake(void);

// How many processors the scheduler lets this program run on.
long cl_processors(void);

// Has malloc map each block of so many bytes or more for itself, and unmap it when it is freed.
void cl_map_blocks_from(int bytes);

// Waits; goes on waiting when a signal interrupts.
void cl_pause(int64_t nanoseconds);

// The width of a terminal in columns.
long cl_terminal_columns(int fd);

// The plan of injected failures of the running thread: an opaque object of SystemIO's, or null.
void *cl_fault_plan(void);
void cl_set_fault_plan(void *plan);
