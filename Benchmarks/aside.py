#!/usr/bin/env python3
"""The harness of the peers, `run_peers.py` in the folder that is named first, but what a tool restored is
set aside and deleted at the end.

The harness deletes it before the next tool restores. ext4 without a journal gives an inode away again only
minutes after its deletion, and for each file that is made it looks at all of them anew (recently_deleted in
the kernel's fs/ext4/ialloc.c): behind a deleted tree of 22,000 files `cp -a` took ten seconds instead of
two. The first tool would find another disk than those after it."""

import contextlib
import os
import shutil
import sys
import time
import types

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import run_peers  # noqa: E402  (it lies in that folder)


def set_aside(path, ignore_errors=False):
    """Moves a tree to where the harness deletes all at its end."""
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
