#!/usr/bin/env python3
"""Lists a restored tree in the lines of a vector's expected.txt, whose head says what they are.

usage: list-tree.py FOLDER

A reader that restores a snapshot of a vector into FOLDER is right if this prints the snapshot's
lines, in any order. Owners and devices need root.
"""

import hashlib
import os
import stat
import sys

BLOCK = 4096
KINDS = {
    stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket", stat.S_IFCHR: "character", stat.S_IFBLK: "block",
}


def hash_of(data):
    return hashlib.blake2b(data, digest_size=32)


def escaped(name):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else "\\x%02x" % b for b in name)


def blocks(path):
    """The hash of the blocks that are not all zeros; holes are passed over."""
    sums = hash_of(b"")
    with open(path, "rb", buffering=0) as file:
        size, place = os.fstat(file.fileno()).st_size, 0
        while place < size:
            try:
                place = os.lseek(file.fileno(), place, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError:
                break
            data = os.pread(file.fileno(), BLOCK, place)
            if any(data):
                number = (place // BLOCK).to_bytes(8, "little")
                sums.update(number + hash_of(data.ljust(BLOCK, b"\0")).digest())
            place += BLOCK
    return sums.hexdigest()


def entries(root, path=b""):
    """Each path below the root with its status, a folder before what is in it."""
    with os.scandir(os.path.join(root, path)) as found:
        for entry in sorted(found, key=lambda entry: entry.name):
            below = os.path.join(path, entry.name)
            yield below, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield from entries(root, below)


def detail(path, status):
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return "%d %s" % (status.st_size, blocks(path))
    if kind == stat.S_IFLNK:
        return escaped(os.readlink(path))
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        return "%d,%d" % (os.major(status.st_rdev), os.minor(status.st_rdev))
    return "-"


def attributes(path):
    names = sorted(os.fsencode(name) for name in os.listxattr(path, follow_symlinks=False))
    return ",".join(
        "%s=%s" % (escaped(name), hash_of(
            os.getxattr(path, name, follow_symlinks=False)).hexdigest()[:16])
        for name in names if name != b"security.selinux") or "-"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    root = os.fsencode(sys.argv[1])
    found = list(entries(root))
    first = {}
    for path, status in found:
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            key = status.st_dev, status.st_ino
            first[key] = min(first.get(key, path), path)
    for path, status in found:
        whole = os.path.join(root, path)
        seconds, fraction = divmod(status.st_mtime_ns, 10**9)
        group = first.get((status.st_dev, status.st_ino))
        print("\t".join([
            KINDS[stat.S_IFMT(status.st_mode)], "%o" % stat.S_IMODE(status.st_mode),
            "%d:%d" % (status.st_uid, status.st_gid), "%d+.%09d" % (seconds, fraction),
            detail(whole, status), attributes(whole), escaped(group) if group else "-",
            escaped(path)]))


if __name__ == "__main__":
    main()
