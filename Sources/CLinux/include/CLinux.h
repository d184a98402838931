// The Linux calls that Swift cannot import: variadic functions, macros, and functions whose C types
// differ between libraries. Every function returns its result or the negative errno; interrupted
// calls are repeated.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

// AT_NO_AUTOMOUNT, which the C library defines only with _GNU_SOURCE.
#define CL_NO_AUTOMOUNT 0x800

// O_TMPFILE, which the C library defines only with _GNU_SOURCE: creates an unnamed file in the
// opened directory.
static const int cl_unnamed = 020000000 | O_DIRECTORY;

// O_NOATIME, which the C library defines only with _GNU_SOURCE; only for the file's owner.
static const int cl_no_access_time = 01000000;

// The status of a file in fixed types; times in seconds and nanoseconds.
struct cl_status {
  uint64_t inode, device, special_device, size, blocks;
  int64_t mtime, ctime, btime, atime;
  uint32_t mtime_ns, ctime_ns, btime_ns;
  uint32_t mode, uid, gid, links;
  // `fixed`: immutable or append-only, so that it cannot be removed.
  uint8_t mount_root, has_btime, fixed;
};

// An argument of the program by its index, from the program's name at 0; NULL if there is none.
const char *cl_argument(int index);

long cl_open(int directory, const char *name, int flags, unsigned mode);
// Opens a directory by a path without symbolic links (otherwise ELOOP).
long cl_open_resolved(const char *path);
long cl_close(int fd);
long cl_read(int fd, void *into, size_t count);
// Waits until a read would not block; 0 if the time or a signal ended the wait.
long cl_wait_for_input(int fd, int milliseconds);
long cl_pread(int fd, void *into, size_t count, int64_t at);
long cl_write(int fd, const void *from, size_t count);
long cl_pwrite(int fd, const void *from, size_t count, int64_t at);
// Returns a second descriptor of the same open file.
long cl_duplicate(int fd);
long cl_fsync(int fd);
long cl_syncfs(int fd);
// Whether no process has the file open or mapped for writing; 0 also if that is unknown, as for
// another user's file.
long cl_has_no_writer(int fd);
// Whether reported holes can be trusted on the file system of a file; 1 also if it reports none.
long cl_reports_holes(int fd);
// The same by the magic number of a file system (statfs(2)).
long cl_reports_holes_of(unsigned long magic);
// Return the start of the next data, or of the next hole.
long cl_next_data(int fd, int64_t from);
long cl_next_hole(int fd, int64_t from);
long cl_seek(int fd, int64_t to);
long cl_truncate(int fd, int64_t size);
// Punches a hole: frees the blocks of a range, including data not yet written.
long cl_punch_hole(int fd, int64_t from, int64_t count);
// Drops the clean pages of a range from memory. A count of 0 means the rest of the file.
long cl_advise_unneeded(int fd, int64_t from, int64_t count);
// Starts writing a range of a file to disk without waiting.
long cl_begin_sync(int fd, int64_t from, int64_t count);
// Waits until a range of a file is written to disk.
long cl_end_sync(int fd, int64_t from, int64_t count);
// Returns the status of an open file.
long cl_stat_open(int fd, struct cl_status *out);
// Returns the status of a child; follows a symbolic link only if `follow` is nonzero.
long cl_stat(int directory, const char *name, int follow, struct cl_status *out);
// Returns the status of a child without its creation time. Does not follow a symbolic link.
long cl_lstat(int directory, const char *name, struct cl_status *out);
// Takes the results of fstatat(2), which reports neither mount points nor file flags.
static inline void cl_take_status(const struct stat *s, struct cl_status *out) {
  out->inode = s->st_ino;
  out->device = s->st_dev;
  out->special_device = s->st_rdev;
  out->size = s->st_size;
  out->blocks = s->st_blocks;
  out->mtime = s->st_mtim.tv_sec;
  out->mtime_ns = s->st_mtim.tv_nsec;
  out->atime = s->st_atim.tv_sec;
  out->ctime = s->st_ctim.tv_sec;
  out->ctime_ns = s->st_ctim.tv_nsec;
  out->mode = s->st_mode;
  out->uid = s->st_uid;
  out->gid = s->st_gid;
  out->links = s->st_nlink;
  out->mount_root = 0;
  out->has_btime = 0;
  out->fixed = 0;
}
// The same for a child that is not a directory and was listed with this inode in a directory on
// this device: with fstatat(2), which is 5 % faster than statx(2) but reports neither mount points nor
// file flags.
// If something is mounted over the file, its inode differs from the listed one; statx is called
// then, and the result is 1. In the header, so that it is inlined into the calling loop.
static inline long cl_lstat_listed(int directory, const char *name, uint64_t device, uint64_t inode,
                                   struct cl_status *out) {
  struct stat s;
  while (fstatat(directory, name, &s, AT_SYMLINK_NOFOLLOW | CL_NO_AUTOMOUNT) < 0) {
    if (errno != EINTR) return -(long)errno;
  }
  if (s.st_dev != device || s.st_ino != inode) {
    long r = cl_lstat(directory, name, out);
    return r < 0 ? r : 1;
  }
  cl_take_status(&s, out);
  return 0;
}
long cl_list(int fd, void *into, size_t count);
long cl_mkdir(int directory, const char *name, unsigned mode);
long cl_unlink(int directory, const char *name, int flags);
// Renames a child. If no_replace is nonzero, an existing target is EEXIST.
long cl_rename(int from, const char *name, int to, const char *as, int no_replace);
// Exchanges two entries of any kinds.
long cl_exchange(int from, const char *name, int to, const char *other);
long cl_link(int from, const char *name, int to, const char *as);
long cl_symlink(const char *target, int directory, const char *name);
long cl_readlink(int directory, const char *name, void *into, size_t count);
long cl_mknod(int directory, const char *name, unsigned mode, uint64_t device);
long cl_chmod(int fd, unsigned mode);
// Sets the mode of a child that is not a symbolic link. A link is an error (ELOOP or EOPNOTSUPP).
long cl_chmod_at(int directory, const char *name, unsigned mode);
// Changes the owner of a child that this user owns. A directory, and a file that has a second name
// elsewhere, are refused (ESTALE); the child of another user is left unchanged.
long cl_give_away(int directory, const char *name, unsigned uid, unsigned gid);
long cl_chown_at(int directory, const char *name, unsigned uid, unsigned gid);
long cl_set_mtime(int directory, const char *name, int64_t seconds, uint32_t ns);
long cl_set_mtime_open(int fd, int64_t seconds, uint32_t ns);
// The extended attributes of a child, without following a symbolic link; without a name, of the
// open file itself. Use the system calls of Linux 6.13 if available, otherwise a path below
// /proc/self/fd.
long cl_list_attributes(int fd, const char *name, void *into, size_t count);
long cl_get_attribute(int fd, const char *name, const char *key, void *into, size_t count);
long cl_set_attribute(int fd, const char *name, const char *key, const void *from, size_t count);
long cl_remove_attribute(int fd, const char *name, const char *key);
// Sets whether the newer system calls are used if available: off for tests of the fallback.
void cl_use_attribute_calls(int use);
// The flags of chattr(1).
long cl_flags(int fd);
// Returns the flags that statx(2) reports, for sandboxes that forbid the ioctl. `known` gets those
// that the file system supports.
long cl_reported_flags(int fd, uint32_t *known);
long cl_set_flags(int fd, int flags);
long cl_lock(int fd, int exclusive, int wait);
long cl_unlock(int fd);
// Sets a lock on a byte range, owned by the open file description. `type` is F_RDLCK or F_UNLCK.
long cl_lock_range(int fd, int type, int64_t start, int64_t length);
// Whether another process holds a lock on one of these bytes that excludes one of `type`: F_WRLCK for
// locks of any kind, F_RDLCK for exclusive ones. 1 or 0.
long cl_range_is_locked(int fd, int type, int64_t start, int64_t length);
// Shares all blocks of another file (FICLONE).
long cl_clone(int to, int from);
long cl_random(void *into, size_t count);
// Whether entries can be created and removed in an open directory.
long cl_can_change(int directory);

// The space of a volume.
struct cl_volume {
  // Bytes available to all users, additional bytes for root, and the total.
  uint64_t available, reserved, total;
  // Inodes available and in total; both 0 if they are not counted.
  uint64_t inodes, all_inodes;
  // The block size in bytes if files are known to take whole blocks, otherwise 0.
  uint64_t block;
  // Whether content smaller than a block may be stored in the inode.
  int packs_small;
};
// Reads the space of the volume of fd.
long cl_space(int fd, struct cl_volume *volume);

// Whether the volume of fd records access times: 1 or 0.
long cl_notes_access(int fd);
// Whether files on the volume of fd may share blocks with others: 1 or 0.
long cl_may_share(int fd);
// Reads the number of bytes whose blocks are shared with other files (FIEMAP).
long cl_shared_bytes(int fd, uint64_t *bytes);

// The reliability of the times of files on the volume of fd.
enum { CL_TIMES_EXACT, CL_TIMES_REMOTE, CL_TIMES_LOOSE, CL_TIMES_LAYERED };
long cl_volume_times(int fd);

// Whether the volume of fd is mounted read-only: 1 or 0.
long cl_is_read_only(int fd);

// Creates an unnamed file in memory.
long cl_memory_file(const char *name);
// Runs the program named by the first word, searched in PATH, with these standard streams, and
// waits until it exits. Returns its exit status, or 128 plus the number of the signal that killed
// it.
long cl_run(char *const words[], int in, int out, int err);
// Runs a program by its path without input and with this process's standard error, reads at most
// `limit` bytes of its standard output into memory, closes the pipe and waits until it exits. Returns
// the same as cl_run.
long cl_run_reading(char *const words[], void *into, size_t limit, size_t *count);

// Makes a pipe whose ends are closed in programs: the end to read from, then the end to write to.
long cl_pipe(int ends[2]);
// Starts the program named by the first word, searched in PATH, without input, with these streams,
// and with this process's environment and other entries of the form NAME=VALUE. It has a session and
// a process group of its own, no terminal, and receives SIGINT when the calling thread ends. Returns
// its process ID.
long cl_start(char *const words[], char *const added[], int out, int err);
// The same with a standard input.
long cl_start_with_input(char *const words[], char *const added[], int in, int out, int err);
// Makes a pair of connected stream sockets that are closed in programs.
long cl_socket_pair(int ends[2]);
// Writes to a socket what it has room for, and waits for room if there is none. Returns the number of
// bytes, 0 after the time; EPIPE instead of SIGPIPE if its other end is closed.
long cl_send(int socket, const void *from, size_t count, int milliseconds);
// Ends both directions of a socket. A thread that waits in cl_send returns with EPIPE.
long cl_shut_down(int socket);
// Returns 1 if a child process has ended, with the same code as cl_run, and 0 if it is running. A
// process that has ended is reported once.
long cl_child_ended(int child, int *code);
// Sends a signal to a process group.
long cl_signal_group(int group, int signal);
// Waits until one of two streams has bytes or has ended; a stream of -1 never has. Returns the sum of
// 1 for the first and 2 for the second, 0 after the time.
long cl_wait_for_inputs(int first, int second, int milliseconds);

// Excludes the process from core dumps, and from inspection by other processes of the user.
long cl_disable_core_dumps(void);
// Writes a question to the terminal that controls the process, and reads a line without echo. Returns
// its length without the newline; EMSGSIZE if it is longer than `limit`, and EINTR after a signal that
// did not end the program. The terminal echoes again in any case. After an error nothing that was typed
// is in memory.
long cl_ask_secret(const char *question, void *into, size_t limit);
// Reads a line, up to its newline or the end of the input, as cl_ask_secret does.
long cl_read_secret_line(int input, void *into, size_t limit);

// SIGINT, SIGTERM and SIGHUP request a stop; a second one ends the program at once with this
// status.
#define CL_INTERRUPTED 130
// The events: a stop request, SIGUSR1, or a call of cl_wake.
#define CL_SIGNAL_STOP 1
#define CL_SIGNAL_ASK 2
#define CL_SIGNAL_WAKE 3
long cl_watch_signals(void);
// Makes the process write a message of at most 1 KiB to standard error and exit with status 1 if
// mapped data cannot be read from disk.
long cl_end_at_loss(const char *message);
// Whether a stop was requested, or the reader of standard output has ended.
long cl_is_stopping(void);
// Ignores SIGPIPE, unless it was ignored at the start, so that the program can finish its work in
// order before it ends by the signal.
long cl_hold_broken_pipe(void);
// Opens standard streams that are closed, so that no file gets the number of one: a message would be
// written into the file. Reads from these streams and writes to them still fail. Call it first.
long cl_occupy_standard_streams(void);
// Ignores SIGXFSZ, so that a write beyond the limit of file sizes fails with EFBIG.
long cl_fail_at_size_limit(void);
// Records that a write to standard output failed with EPIPE. No effect if SIGPIPE was ignored at the
// start.
void cl_note_lost_reader(void);
long cl_has_lost_reader(void);
// Ends the program by SIGPIPE.
void cl_end_by_broken_pipe(void) __attribute__((noreturn));
// Waits for a signal and returns the event, or 0 after the timeout. A negative timeout waits
// forever. The kernel may delay the end by `tolerance` milliseconds (0: its usual 50 µs).
long cl_wait_for_signal(int milliseconds, int tolerance);
// Wakes the thread that waits for a signal.
void cl_wake(void);

// Returns the number of processors that the scheduler allows for this process.
long cl_processors(void);

// Makes malloc map each block of at least `bytes` bytes separately, and unmap it when it is freed.
void cl_map_blocks_from(int bytes);

// Waits; continues after interruption by a signal.
void cl_pause(int64_t nanoseconds);

// Returns the width of a terminal in columns.
long cl_terminal_columns(int fd);

// The current thread's plan of injected failures: an opaque object of SystemIO, or null.
void *cl_fault_plan(void);
void cl_set_fault_plan(void *plan);
