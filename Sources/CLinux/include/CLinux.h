// The few Linux calls that Swift cannot import: variadic ones, macros, and those whose C types
// differ between libraries. Every function returns its result, or the negative errno; a call that a
// signal interrupted is made again.
#pragma once
#include <stddef.h>
#include <stdint.h>

// What a file's status says, in fixed types; times in seconds and nanoseconds.
struct cl_status {
  uint64_t inode, device, special_device, size, blocks;
  int64_t mtime, ctime, btime;
  uint32_t mtime_ns, ctime_ns, btime_ns;
  uint32_t mode, uid, gid, links;
  uint8_t mount_root, has_btime;
};

long cl_open(int folder, const char *name, int flags, unsigned mode);
long cl_close(int fd);
long cl_read(int fd, void *into, size_t count);
long cl_pread(int fd, void *into, size_t count, int64_t at);
long cl_write(int fd, const void *from, size_t count);
long cl_pwrite(int fd, const void *from, size_t count, int64_t at);
long cl_fsync(int fd);
long cl_syncfs(int fd);
// Where the next data, or the next hole, begins.
long cl_next_data(int fd, int64_t from);
long cl_next_hole(int fd, int64_t from);
long cl_seek(int fd, int64_t to);
long cl_truncate(int fd, int64_t size);
long cl_advise_sequential(int fd);
// The status of an open file.
long cl_stat_open(int fd, struct cl_status *out);
// The status of a child; a link's own unless it is to be followed.
long cl_stat(int folder, const char *name, int follow, struct cl_status *out);
// The status of a child, a link's own, without its time of birth.
long cl_look(int folder, const char *name, struct cl_status *out);
// The same for a child that is no folder and was listed with this inode in a folder on this device:
// by fstatat(2), which is a twentieth faster than statx(2) but does not tell of mounts. What is
// mounted over a file is another inode than the listed one, so there statx is asked too; then the
// result is 1.
long cl_look_quickly(int folder, const char *name, uint64_t device, uint64_t inode,
                     struct cl_status *out);
long cl_list(int fd, void *into, size_t count);
long cl_mkdir(int folder, const char *name, unsigned mode);
long cl_unlink(int folder, const char *name, int flags);
// Renames; with no_replace nonzero an existing target is EEXIST.
long cl_rename(int from, const char *name, int to, const char *as, int no_replace);
long cl_link(int from, const char *name, int to, const char *as);
long cl_symlink(const char *target, int folder, const char *name);
long cl_readlink(int folder, const char *name, void *into, size_t count);
long cl_mknod(int folder, const char *name, unsigned mode, uint64_t device);
long cl_chmod(int fd, unsigned mode);
long cl_chmod_at(int folder, const char *name, unsigned mode);
long cl_chown_at(int folder, const char *name, unsigned uid, unsigned gid);
long cl_set_mtime(int folder, const char *name, int64_t seconds, uint32_t ns);
long cl_set_mtime_open(int fd, int64_t seconds, uint32_t ns);
// Extended attributes of what is at a path, of a link's target if it is to be followed.
long cl_list_attributes(const char *path, int follow, void *into, size_t count);
long cl_get_attribute(const char *path, int follow, const char *key, void *into, size_t count);
long cl_set_attribute(const char *path, int follow, const char *key, const void *from,
                      size_t count);
long cl_remove_attribute(const char *path, int follow, const char *key);
long cl_flags(int fd);
long cl_lock(int fd, int exclusive, int wait);
long cl_random(void *into, size_t count);
// Free bytes for an unprivileged user, all bytes, free inodes of the volume that fd is on.
long cl_space(int fd, uint64_t *available, uint64_t *total, uint64_t *inodes);

// How many processors the scheduler lets this program run on.
long cl_processors(void);

// The width of a terminal in columns.
long cl_terminal_columns(int fd);

// The plan of injected failures of the running thread: an opaque object of SystemIO's, or null.
void *cl_fault_plan(void);
void cl_set_fault_plan(void *plan);
