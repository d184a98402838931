#!/bin/sh
# Runs a command with its temporary files ($TMPDIR) on an ext4 file system in memory.
#
# usage: memory-disk.sh COMMAND...
#
# Times and free space are those of a disk, but removing a file is cheap. On a disk that is mounted
# with `discard` each file that was written takes up to a third of a millisecond.
#
# The file system is mounted for the command only, and ends with its last process, however that
# ends. If it cannot be mounted, a message says why, and the command runs with $TMPDIR as it is.
set -eu

size=8    # GiB, of which only what is written takes memory
needed=12 # GiB of available memory, some of it for the command

# usage: without REASON COMMAND...
without() {
  echo "memory-disk.sh: $1: temporary files are in ${TMPDIR:-/tmp}" >&2
  shift
  exec "$@"
}

available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
[ "${available:-0}" -ge $((needed << 20)) ] ||
  without "less than $needed GiB of memory are available" "$@"
unshare --mount true 2>/dev/null || without "file systems cannot be mounted" "$@"

directory=$(mktemp -d)
trap 'rmdir "$directory"' EXIT
status=0
# The image is in a file system that it hides, in a mount namespace that no other process sees.
# shellcheck disable=SC2016
unshare --mount sh -c '
  directory=$1 size=$2
  shift 2
  if mount -t tmpfs -o "size=$((size + 1))g" memory "$directory" &&
    truncate -s "${size}G" "$directory/image" &&
    mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1 "$directory/image" &&
    mount -o loop "$directory/image" "$directory"
  then
    rmdir "$directory/lost+found"
    chmod 1777 "$directory"
    export TMPDIR="$directory"
  else
    echo "memory-disk.sh: temporary files are in ${TMPDIR:-/tmp}" >&2
  fi
  exec "$@"' sh "$directory" "$size" "$@" || status=$?
exit "$status"
