#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

long cl_notes_access(int fd) {
  struct statvfs v;
  if (fstatvfs(fd, &v) < 0) return -(long)errno;
  return (v.f_flag & ST_NOATIME) == 0;
}

#define CL_ZFS_MAGIC 0x2fc12fc1ul

long cl_reports_holes_of(unsigned long magic) { return (magic & 0xffffffff) != CL_ZFS_MAGIC; }

long cl_reports_holes(int fd) {
  struct statfs s;
  if (fstatfs(fd, &s) < 0) return -(long)errno;
  return cl_reports_holes_of((unsigned long)s.f_type);
}

// A read lease is granted only if no process has the file open or mapped for writing (fcntl(2),
// F_SETLEASE); it is released at once. A process that opens the file for writing in between waits
// for the release, and the signal that announces it is ignored by default. Only file systems whose
// own inode every writer has open are asked: mappings on an overlay use another inode.
long cl_has_no_writer(int fd) {
  static const unsigned long telling[] = {
      0xef53 /* ext2, ext3, ext4 */, 0x58465342 /* XFS */, 0x9123683e /* Btrfs */,
      0xf2f52010 /* F2FS */};
  struct statfs s;
  if (fstatfs(fd, &s) < 0) return -(long)errno;
  for (size_t i = 0; i < sizeof telling / sizeof *telling; i++) {
    if (telling[i] != ((unsigned long)s.f_type & 0xffffffff)) continue;
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0) return 0;
    return fcntl(fd, F_SETLEASE, F_UNLCK) < 0 ? -(long)errno : 1;
  }
  return 0;
}

// File systems with reflinks, by their magic numbers (statfs(2)).
long cl_may_share(int fd) {
  static const unsigned long sharing[] = {
      0x58465342 /* XFS */, 0x9123683e /* Btrfs */, 0x7461636f /* OCFS2 */,
      0xca451a4e /* Bcachefs */, 0x2fc12fc1 /* ZFS */};
  struct statfs s;
  if (fstatfs(fd, &s) < 0) return -(long)errno;
  for (size_t i = 0; i < sizeof sharing / sizeof *sharing; i++) {
    if (sharing[i] == ((unsigned long)s.f_type & 0xffffffff)) return 1;
  }
  return 0;
}

// Files take whole blocks if the file system neither compresses nor packs them, nor passes them to
// one that may (FUSE, NFS, overlays). ext4 can store small files in inodes (feature inline_data).
long cl_space(int fd, struct cl_volume *volume) {
  static const unsigned long keeping[] = {
      0xef53 /* ext2, ext3, ext4 */, 0x58465342 /* XFS */, 0x01021994 /* tmpfs */,
      0x4d44 /* FAT */, 0x2011bab0 /* exFAT */};
  struct statvfs v;
  struct statfs s;
  if (fstatvfs(fd, &v) < 0 || fstatfs(fd, &s) < 0) return -(long)errno;
  memset(volume, 0, sizeof *volume);
  volume->available = (uint64_t)v.f_bavail * v.f_frsize;
  volume->reserved = v.f_bfree > v.f_bavail ? (uint64_t)(v.f_bfree - v.f_bavail) * v.f_frsize : 0;
  volume->total = (uint64_t)v.f_blocks * v.f_frsize;
  volume->inodes = v.f_favail;
  volume->all_inodes = v.f_files;
  unsigned long kind = (unsigned long)s.f_type & 0xffffffff;
  for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++) {
    if (keeping[i] != kind) continue;
    volume->block = v.f_frsize;
    volume->packs_small = i == 0;
  }
  return 0;
}

long cl_shared_bytes(int fd, uint64_t *bytes) {
  enum { count = 64 };
  union {
    struct fiemap map;
    char room[sizeof(struct fiemap) + count * sizeof(struct fiemap_extent)];
  } buffer;
  uint64_t from = 0;
  *bytes = 0;
  for (;;) {
    memset(&buffer.map, 0, sizeof buffer.map);
    buffer.map.fm_start = from;
    buffer.map.fm_length = FIEMAP_MAX_OFFSET - from;
    buffer.map.fm_extent_count = count;
    if (ioctl(fd, FS_IOC_FIEMAP, &buffer.map) < 0) return -(long)errno;
    for (unsigned i = 0; i < buffer.map.fm_mapped_extents; i++) {
      struct fiemap_extent *extent = &buffer.map.fm_extents[i];
      if (extent->fe_flags & FIEMAP_EXTENT_SHARED) *bytes += extent->fe_length;
      from = extent->fe_logical + extent->fe_length;
      if (extent->fe_flags & FIEMAP_EXTENT_LAST) return 0;
    }
    if (buffer.map.fm_mapped_extents == 0) return 0;
  }
}
