#!/usr/bin/env python3
"""Compares a mount with a restore, with `restic mount` and with a local copy.

usage: mounting.py PROGRAM [--profile apps|many] [--scale 0.1] [--seed 1] [--reps 3] [--folder DIR]

Makes a corpus and repositories of both programs in DIR. In each repetition all operations run in
turn: `cp -a` of a local tree, a restore, and `cp -a` of the whole tree from a new mount of each
program; `ls -lR` of a local tree and of each mount, the first and the second time. The last copy is
compared completely with its source. See README.md in this directory.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import budgets
import peers
import programs
import repeats
from budgets import Line

# Profiles whose trees are copied from a mount.
PROFILES = ["apps", "many"]
# `cp -a` from the mount, compared with a restore and with `restic mount`.
COPY_OF_RESTORE = 2.5
COPY_OF_RESTIC = 0.5
# `ls -lR` of the mount after it was listed once, compared with a local tree.
LIST_OF_LOCAL = 3
# The longest wait for a mount, in seconds.
PATIENCE = 60


class View:
    """A mounted repository. It is unmounted at the end of a `with` statement."""

    def __init__(self, place, command, environment):
        self.place, self.command, self.environment = place, command, environment
        self.process = None

    def __enter__(self):
        self.place.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            self.command + [str(self.place)], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while not os.path.ismount(self.place):
            if self.process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise programs.Failed(f"not mounted: {' '.join(self.command)}")
            time.sleep(0.02)
        return self.place

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if os.path.ismount(self.place):
            subprocess.run(["umount", "-l", str(self.place)], check=False)


class Mounting:
    """The repositories of both programs, and the tree of one profile."""

    def __init__(self, folder, profile, program, runs):
        self.profile, self.program, self.runs = profile, program, runs
        self.source = folder / "live" / profile
        self.ours, self.restic = folder / "work" / "ours", folder / "work" / "restic"
        self.scratch = folder / "work" / "mounting"
        self.environment = os.environ | peers.environment(str(self.ours / "state"))
        self.taken = {}

    def lines(self):
        """Yields a line for each measurement; one that fails states the reason."""
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            yield Line("mount", "no FUSE here")
            return
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        try:
            for run in range(self.runs):
                self.measure(is_last=run == self.runs - 1)
            yield from self.compared()
        except programs.Failed as error:
            yield Line.failed("mount", str(error))
        shutil.rmtree(self.scratch)

    def measure(self, is_last):
        """Runs each operation once."""
        target = self.scratch / "copy"
        self.timed("local copy", ["cp", "-a", str(self.source), str(target)], target)
        self.timed("restore", [self.program, "restore", f"latest:folders/{self.profile}", "--to",
                               str(target), "--repo", str(self.ours / "repo"), "--quiet"], target)
        self.timed("local list", ["ls", "-lR", str(self.source)])
        for name in ("ours", "restic"):
            with self.view(name) as place:
                tree = self.tree(name, place)
                self.timed(f"{name} copy", ["cp", "-a", str(tree), str(target)], target,
                           is_checked=is_last and name == "ours")
            with self.view(name) as place:
                tree = self.tree(name, place)
                self.timed(f"{name} list", ["ls", "-lR", str(tree)])
                self.timed(f"{name} list again", ["ls", "-lR", str(tree)])

    def view(self, name):
        if name == "ours":
            command = [self.program, "mount", "--repo", str(self.ours / "repo"), "--quiet"]
            return View(self.scratch / name, command, self.environment)
        environment = os.environ | repeats.PASSWORD | {
            "RESTIC_CACHE_DIR": str(self.restic / "state" / "cache")}
        return View(self.scratch / name, ["restic", "-q", "-r", str(self.restic / "repo"), "mount"],
                    environment)

    def tree(self, name, place):
        """Returns the path of the tree in a mount."""
        if name == "ours":
            return place / "latest" / "folders" / self.profile
        return pathlib.Path(f"{place}/snapshots/latest{self.source.absolute()}")

    def timed(self, operation, command, target=None, is_checked=False):
        """Measures a command until all data is on disk, and removes the tree that it made."""
        seconds = programs.seconds(command, self.environment)[0]
        if target:
            start = time.perf_counter()
            subprocess.run(["sync", "-f", str(target)], check=True)
            seconds += time.perf_counter() - start
            if is_checked:
                self.check(target)
            programs.set_aside(target)
        self.taken.setdefault(operation, []).append(seconds)

    def check(self, copy):
        """Compares a copy with the source."""
        checked = subprocess.run(
            [sys.executable, str(peers.harness() / "verify_tree.py"), str(self.source), str(copy)],
            check=False, capture_output=True, text=True)
        if checked.returncode:
            raise programs.Failed(f"the copy differs: {checked.stdout.strip()[:200]}")

    def compared(self):
        """Yields the lines with budgets."""
        taken = self.taken
        yield Line.ratio("cp -a, mount", taken["ours copy"], "restore", taken["restore"],
                         COPY_OF_RESTORE)
        yield Line.ratio("cp -a, mount", taken["ours copy"], "restic mount", taken["restic copy"],
                         COPY_OF_RESTIC)
        yield Line.ratio("cp -a, mount", taken["ours copy"], "local cp -a", taken["local copy"],
                         None)
        yield Line.ratio("ls -lR, mount", taken["ours list"], "restic mount", taken["restic list"],
                         None)
        yield Line.ratio("ls -lR, mount, again", taken["ours list again"], "restic mount",
                         taken["restic list again"], None)
        yield Line.ratio("ls -lR, mount, again", taken["ours list again"], "local ls -lR",
                         taken["local list"], LIST_OF_LOCAL)

    def prepare(self):
        """Makes repositories of both programs with one snapshot."""
        for place in (self.ours, self.restic):
            (place / "state").mkdir(parents=True)
        repository = ["--repo", str(self.ours / "repo")]
        programs.seconds([self.program, "init", str(self.ours / "repo"), "--plain", "--no-default",
                          "--quiet"], self.environment)
        programs.seconds([self.program, "backup", "--layout", "folder", "--root", str(self.source),
                          "--quiet", *repository], self.environment)
        restic = self.view("restic")
        repository = ["restic", "-q", "-r", str(self.restic / "repo")]
        programs.seconds(repository + ["init"], restic.environment)
        programs.seconds(repository + ["backup", str(self.source)], restic.environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program", help="the program to measure")
    parser.add_argument("--profile", choices=PROFILES, default="many")
    parser.add_argument("--scale", type=float, default=0.1, help="the scale of the corpus")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the corpus")
    parser.add_argument("--reps", type=int, default=3, help="the number of repetitions (default: 3)")
    parser.add_argument("--folder", default="/tmp/bench", help="the directory for working files")
    options = parser.parse_args()
    if not peers.harness():
        print("mounting: error: no bench in ../shared: set SANDBOXCTL_SHARED", file=sys.stderr)
        return 2
    folder = pathlib.Path(options.folder).absolute()
    source = peers.corpus(folder, options.profile, options)
    work = folder / f"mounting-{source.name}"
    shutil.rmtree(work, ignore_errors=True)
    try:
        (work / "live").mkdir(parents=True)
        subprocess.run(["cp", "-a", str(source), str(work / "live" / options.profile)], check=True)
        mounting = Mounting(work, options.profile, os.path.abspath(options.program), options.reps)
        mounting.prepare()
        lines = list(mounting.lines())
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{options.profile}, scale {options.scale:g}, {options.reps} repetitions\n\n"
          f"{budgets.table(lines)}")
    return 1 if any(line.has_failed for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
