#!/usr/bin/env python3
"""Runs `run_peers.py`, the harness for the peers, from the directory in the first argument.
Restored trees are moved aside and deleted at the end.

The harness deletes them before the next tool restores. ext4 without a journal reuses an inode only
minutes after its deletion, and examines all such inodes for each new file (recently_deleted in the
kernel's fs/ext4/ialloc.c): after the deletion of a tree of 22,000 files `cp -a` took ten seconds
instead of two. The first tool would have an advantage over the others."""

import contextlib
import os
import shutil
import sys
import time
import types

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import run_peers  # noqa: E402  (in that directory)


def set_aside(path, ignore_errors=False):
    """Moves a tree to the trash, which the harness deletes at its end."""
    trash = f"{run_peers.W}/trash"
    os.makedirs(trash, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, f"{trash}/{time.time_ns()}")


class Run(run_peers.Run):
    def restore(self, t, op="restore"):
        run_peers.shutil = types.SimpleNamespace(rmtree=set_aside)
        try:
            super().restore(t, op)
        finally:
            run_peers.shutil = shutil


run_peers.Run = Run
if __name__ == "__main__":
    run_peers.main()
