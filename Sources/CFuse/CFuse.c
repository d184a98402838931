#include "CFuse.h"
#include <CLoader.h>

static struct ld_library library = {.file = "libfuse3.so.3", .package = "libfuse3-3"};

#define FORWARD(...) LD_FORWARD(&library, __VA_ARGS__)

FORWARD(
    size_t, fuse_add_direntry, fuse_req_t, char *, size_t, const char *, const struct stat *, off_t)
FORWARD(
    size_t, fuse_add_direntry_plus, fuse_req_t, char *, size_t, const char *,
    const struct fuse_entry_param *, off_t)
FORWARD(
    int, fuse_lowlevel_notify_store, struct fuse_session *, fuse_ino_t, off_t, struct fuse_bufvec *,
    enum fuse_buf_copy_flags)
FORWARD(int, fuse_opt_add_arg, struct fuse_args *, const char *)
FORWARD(void, fuse_opt_free_args, struct fuse_args *)
FORWARD(int, fuse_reply_attr, fuse_req_t, const struct stat *, double)
FORWARD(int, fuse_reply_buf, fuse_req_t, const char *, size_t)
FORWARD(int, fuse_reply_entry, fuse_req_t, const struct fuse_entry_param *)
FORWARD(int, fuse_reply_err, fuse_req_t, int)
FORWARD(int, fuse_reply_iov, fuse_req_t, const struct iovec *, int)
FORWARD(int, fuse_reply_lseek, fuse_req_t, off_t)
FORWARD(void, fuse_reply_none, fuse_req_t)
FORWARD(int, fuse_reply_open, fuse_req_t, const struct fuse_file_info *)
FORWARD(int, fuse_reply_readlink, fuse_req_t, const char *)
FORWARD(int, fuse_reply_statfs, fuse_req_t, const struct statvfs *)
FORWARD(int, fuse_reply_xattr, fuse_req_t, size_t)
FORWARD(const struct fuse_ctx *, fuse_req_ctx, fuse_req_t)
FORWARD(void, fuse_req_interrupt_func, fuse_req_t, fuse_interrupt_func_t, void *)
FORWARD(void *, fuse_req_userdata, fuse_req_t)
FORWARD(void, fuse_session_destroy, struct fuse_session *)
FORWARD(int, fuse_session_exited, struct fuse_session *)
FORWARD(int, fuse_session_fd, struct fuse_session *)
FORWARD(int, fuse_session_mount, struct fuse_session *, const char *)
FORWARD(
    struct fuse_session *, fuse_session_new, struct fuse_args *, const struct fuse_lowlevel_ops *,
    size_t, void *)
FORWARD(void, fuse_session_process_buf, struct fuse_session *, const struct fuse_buf *)
FORWARD(int, fuse_session_receive_buf, struct fuse_session *, struct fuse_buf *)
FORWARD(void, fuse_session_unmount, struct fuse_session *)
FORWARD(void, fuse_set_log_func, fuse_log_func_t)
