#!/usr/bin/env python3
"""Backs up changing random trees, kills some of the runs, and compares every restore.

usage: soak_trees.py PROGRAM [MINUTES]

Each round changes a tree at random (new, rewritten, truncated and removed files; changed content
with the old modification time; renames, swaps and moves of files and directories; hard links,
symbolic links, FIFOs, holes, extended attributes, modes, owners, unusual names) and backs it up: in
some rounds while another process changes it, in some with a SIGKILL or SIGINT at a random time.
While the tree changes, one directory, the canary, is renamed all the time without changes in it: the
snapshot of a backup with exit status 0 must have all of it, under exactly one of its names. A
final backup of the unchanging tree must restore to an identical tree: names, types, content, modes,
owners, times, link targets, attributes and hard-link groups. A second restore over a changed copy
with `--overwrite always --delete` must give the same result. Then `check --read-data` must report
nothing. The seed is printed; SANDBOXCTL_SEED repeats the changes (the times of the kills depend on
the machine). The directory of a failed run is kept.
"""

import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

CANARY = b"canary-"  # the beginning of the canary's names
CANARY_FILES = {b"file %d" % number: b"content %d" % number for number in range(20)}

NAMES = [b"a", b"b.txt", b"notes.db", b"caf\xc3\xa9", b"cafe\xcc\x81", b"\xff\xfe", b"with space",
         b"new\nline", b"-rf", b"*", b"~", b"x" * 200, b".hidden", b"a.plist", b"#1"]


def opened(path, flags):
    """Opens a path without following a link out of the tree or blocking on a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


class Changer:
    """Changes a tree at random. Each step tolerates concurrent changes."""

    def __init__(self, root, chance):
        self.root, self.chance = os.fsencode(root), chance
        self.steps = [
            (8, self.write), (4, self.rewrite_with_old_time), (3, self.truncate), (4, self.remove),
            (4, self.rename), (2, self.swap), (3, self.make_directory), (2, self.link),
            (2, self.symlink), (1, self.make_fifo), (2, self.make_sparse), (3, self.set_attribute),
            (2, self.set_mode), (1, self.set_owner), (1, self.set_time), (1, self.remove_tree),
        ]

    def change(self, count):
        weights = [weight for weight, _ in self.steps]
        for _ in range(count):
            (_, step), = self.chance.choices(self.steps, weights)
            try:
                step()
            except OSError:
                continue  # a concurrent change came first

    def walk(self):
        """Walks the tree without the canary."""
        for path, directories, files in os.walk(self.root):
            directories[:] = [name for name in directories if not name.startswith(CANARY)]
            yield path, directories, files

    def directories(self):
        found = [self.root]
        for path, names, _ in self.walk():
            found += [os.path.join(path, name) for name in names
                      if not os.path.islink(os.path.join(path, name))]
        return found

    def paths(self, wanted=lambda mode: True):
        found = []
        for path, directories, files in self.walk():
            for name in directories + files:
                entry = os.path.join(path, name)
                try:
                    if wanted(os.lstat(entry).st_mode):
                        found.append(entry)
                except FileNotFoundError:
                    continue
        return found

    def place(self):
        """Returns a path for a new entry, often one that exists."""
        name = self.chance.choice(NAMES) + str(self.chance.randrange(12)).encode()
        return os.path.join(self.chance.choice(self.directories()), name)

    def some(self, wanted=lambda mode: True):
        found = self.paths(wanted)
        if not found:
            raise FileNotFoundError
        return self.chance.choice(found)

    def content(self):
        size = self.chance.choice([0, 1, 100, 4096, 20_000, 600_000, 600_000, 5_000_000]
                                  if self.chance.random() < 0.2 else [0, 1, 100, 4096, 20_000])
        data = self.chance.randbytes(min(size, 4096))
        return (data * (size // max(1, len(data)) + 1))[:size]

    def write(self):
        with open(self.place(), "wb", opener=opened) as file:
            file.write(self.content())

    def rewrite_with_old_time(self):
        path = self.some(stat.S_ISREG)
        before = os.lstat(path)
        with open(path, "r+b", opener=opened) as file:
            file.write(self.chance.randbytes(min(before.st_size, 64)))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def truncate(self):
        path = self.some(stat.S_ISREG)
        os.truncate(path, self.chance.randrange(os.lstat(path).st_size + 1000))

    def remove(self):
        os.unlink(self.some(lambda mode: not stat.S_ISDIR(mode)))

    def rename(self):
        os.rename(self.some(), self.place())

    def swap(self):
        first, second = self.some(), self.some()
        aside = os.path.join(self.root, b"aside%d" % self.chance.randrange(1 << 30))
        os.rename(first, aside)
        try:
            os.rename(second, first)
            os.rename(aside, second)
        except OSError:
            if not os.path.lexists(first):
                os.rename(aside, first)

    def make_directory(self):
        os.mkdir(self.place())

    def link(self):
        os.link(self.some(stat.S_ISREG), self.place())

    def symlink(self):
        os.symlink(self.chance.choice([b"nowhere", b"../a1", b"/etc/hostname", b"\xff"]),
                   self.place())

    def make_fifo(self):
        os.mkfifo(self.place())

    def make_sparse(self):
        with open(self.place(), "wb", opener=opened) as file:
            for _ in range(self.chance.randrange(4)):
                file.seek(self.chance.randrange(3_000_000), os.SEEK_CUR)
                file.write(self.content()[:4096])
            file.truncate(file.tell() + self.chance.randrange(2_000_000))

    def set_attribute(self):
        path = self.some(lambda mode: stat.S_ISREG(mode) or stat.S_ISDIR(mode))
        name = self.chance.choice([b"user.a", b"user.b\xff", b"user.long"])
        os.setxattr(path, name, self.chance.randbytes(self.chance.choice([0, 5, 700])))

    def set_mode(self):
        path = self.some(lambda mode: not stat.S_ISLNK(mode))
        own = 0o700 if os.path.isdir(path) else 0o600
        os.chmod(path, own | self.chance.choice([0, 0o44, 0o55, 0o77, 0o2000, 0o1000]))

    def set_owner(self):
        if os.geteuid() == 0:
            os.chown(self.some(), self.chance.choice([0, 1000, 65534]),
                     self.chance.choice([0, 1000]), follow_symlinks=False)

    def set_time(self):
        moment = self.chance.choice([0, 1, -1, 10**9 + 7, self.chance.randrange(2 * 10**18)])
        os.utime(self.some(), ns=(moment, moment), follow_symlinks=False)

    def remove_tree(self):
        if self.chance.random() < 0.3:
            shutil.rmtree(self.chance.choice(self.directories()[1:] or [b"/nonexistent"]))


def record(root):
    """Returns everything that a restore must reproduce, by path relative to the root."""
    root = os.fsencode(root)
    found, groups = {}, {}
    for path, directories, files in os.walk(root):
        for name in [b""] * (path == root) + directories + files:
            entry = os.path.join(path, name) if name else root
            status = os.lstat(entry)
            key = os.path.relpath(entry, root)
            values = [stat.S_IFMT(status.st_mode), status.st_mode, status.st_uid, status.st_gid,
                      status.st_mtime_ns]
            if stat.S_ISREG(status.st_mode):
                values += [status.st_size, pathlib.Path(os.fsdecode(entry)).read_bytes()]
                if status.st_nlink > 1:
                    groups.setdefault((status.st_dev, status.st_ino), []).append(key)
            if stat.S_ISLNK(status.st_mode):
                values.append(os.readlink(entry))
            else:
                values.append({name: os.getxattr(entry, name) for name in os.listxattr(entry)})
            found[key] = values
    for members in groups.values():
        if len(members) > 1:
            for member in members:
                found[member].append(sorted(members))
    return found


def differences(wanted, found):
    """Returns the paths that differ between two records, without the root itself."""
    return sorted(path for path in wanted.keys() | found.keys()
                  if path != b"." and wanted.get(path) != found.get(path))


class Canary:
    """A directory that a thread renames all the time."""

    def __init__(self, tree, chance):
        self.tree, self.chance = os.fsencode(tree), chance
        self.number = 0
        self.pause = self.chance.choice([0.0, 0.001, 0.01, 0.03, 0.1])
        found = [name for name in os.listdir(self.tree) if name.startswith(CANARY)]
        if found:
            self.number = int(found[0][len(CANARY):])
        else:
            os.mkdir(self.path())
            for name, content in CANARY_FILES.items():
                pathlib.Path(os.fsdecode(os.path.join(self.path(), name))).write_bytes(content)

    def path(self):
        return os.path.join(self.tree, CANARY + b"%d" % self.number)

    def rename(self):
        before = self.path()
        self.number += 1
        os.rename(before, self.path())
        time.sleep(self.pause * self.chance.random())

    @staticmethod
    def fault(restored):
        """Returns the part of the canary that a restored tree lacks, or None."""
        restored = os.fsencode(restored)
        names = [name for name in os.listdir(restored) if name.startswith(CANARY)]
        if len(names) != 1:
            return f"its names are {names}"
        path = os.path.join(restored, names[0])
        found = {name: pathlib.Path(os.fsdecode(os.path.join(path, name))).read_bytes()
                 for name in os.listdir(path)}
        return None if found == CANARY_FILES else f"{names[0]} has {sorted(found)}"


class Soak:
    """A run: the program, its directory, and counts for the summary."""

    def __init__(self, program, directory, chance):
        self.program, self.directory, self.chance = program, directory, chance
        self.tree = directory / "tree"
        self.tree.mkdir()
        self.rounds = self.killed = self.interrupted = self.disturbed = self.canaries = 0
        self.run("init", "repo", "--plain")

    def start(self, *words):
        environment = {"HOME": str(self.directory), "PATH": os.environ["PATH"], "TZ": "UTC"}
        return subprocess.Popen([self.program, *words], cwd=self.directory, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace")

    def run(self, *words, accepted=(0,)):
        """Runs the program; returns its exit status, which must be an accepted one."""
        process = self.start(*words)
        output, errors = process.communicate()
        if process.returncode not in accepted:
            raise SystemExit(f"soak: error: {' '.join(words)} exited with status "
                             f"{process.returncode}, not {accepted}\n{output}{errors}")
        return process.returncode

    BACKUP = ("backup", "--layout", "folder", "--root", "tree", "--repo", "repo", "--quiet")

    def back_up_and_stop(self):
        """Runs a backup that a signal ends at a random time."""
        process = self.start(*self.BACKUP)
        number = self.chance.choice([signal.SIGKILL, signal.SIGINT])
        try:
            process.communicate(timeout=self.chance.uniform(0.001, 0.15))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, errors = process.communicate()
        if process.returncode == -signal.SIGKILL:
            self.killed += 1
        elif process.returncode in (130, -signal.SIGINT):  # the latter before the handler is set
            self.interrupted += 1
        elif process.returncode != 0:
            raise SystemExit(f"soak: error: backup exited with status {process.returncode}\n"
                             f"{errors}")

    def back_up_while_changing(self):
        """Backs up a tree while it changes: the backup succeeds or reports missing entries. If it
        succeeds, the canary is complete."""
        changer = Changer(self.tree, random.Random(self.chance.random()))
        canary = Canary(self.tree, random.Random(self.chance.random()))
        ending = threading.Event()

        def repeat(step):
            while not ending.is_set():
                step()

        threads = [threading.Thread(target=repeat, args=(step,))
                   for step in (lambda: changer.change(3), canary.rename)]
        for thread in threads:
            thread.start()
        try:
            status = self.run(*self.BACKUP, accepted=(0, 3))
        finally:
            ending.set()
            for thread in threads:
                thread.join()
        self.disturbed += 1
        if status == 0:
            self.examine_canary()

    def examine_canary(self):
        self.canaries += 1
        back = self.directory / "back"
        # Other entries may be damaged by changes while they were read, but not lost.
        self.run("restore", "latest:folders/tree", "--to", "back", "--repo", "repo", "--quiet")
        fault = Canary.fault(back)
        if fault:
            raise SystemExit(f"soak: error: a backup with status 0 lacks the canary: {fault}")
        shutil.rmtree(back)

    def restore_and_compare(self):
        wanted = record(self.tree)
        back = self.directory / "back"
        self.run("restore", "latest:folders/tree", "--to", "back", "--repo", "repo", "--quiet")
        self.expect(wanted, back, "restored incorrectly")
        Changer(back, self.chance).change(60)
        self.run("restore", "latest:folders/tree", "--to", "back", "--repo", "repo", "--quiet",
                 "--overwrite", "always", "--delete")
        self.expect(wanted, back, "restored incorrectly over a changed copy")
        shutil.rmtree(back)

    @staticmethod
    def expect(wanted, found, what):
        found = record(found)
        paths = differences(wanted, found)
        if paths:
            first = paths[0]
            shown = [str(values)[:300] for values in (wanted.get(first), found.get(first))]
            raise SystemExit(f"soak: error: {what}: {paths[:5]}\n  expected {shown[0]}\n"
                             f"  found {shown[1]}")

    def round(self):
        self.rounds += 1
        Changer(self.tree, self.chance).change(self.chance.randrange(1, 150))
        if self.chance.random() < 0.5:
            self.back_up_and_stop()
        if self.chance.random() < 0.4:
            self.back_up_while_changing()
        self.run(*self.BACKUP)
        self.restore_and_compare()
        if self.rounds % 4 == 0:
            self.run("check", "--read-data", "--quiet", "--repo", "repo")
        if self.rounds % 50 == 0:
            self.begin_again()

    def begin_again(self):
        """Starts with a new tree and repository, so that neither grows without limit."""
        for name in ("tree", "repo"):
            shutil.rmtree(self.directory / name)
        self.tree.mkdir()
        self.run("init", "repo", "--plain")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: soak_trees.py PROGRAM [MINUTES]")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    end = time.monotonic() + 60 * float(sys.argv[2] if len(sys.argv) > 2 else 10)
    seed = int(os.environ.get("SANDBOXCTL_SEED") or random.randrange(1 << 32))
    print(f"soak: seed {seed} (SANDBOXCTL_SEED={seed} repeats its changes)", flush=True)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-soak-"))
    try:
        soak = Soak(program, directory, random.Random(seed))
        while time.monotonic() < end:
            soak.round()
    except BaseException:
        print(f"soak: kept: {directory}", file=sys.stderr)
        raise
    shutil.rmtree(directory)
    print(f"soak: {soak.rounds} rounds, {soak.killed} backups killed, {soak.interrupted} "
          f"interrupted, {soak.disturbed} of changing trees ({soak.canaries} of them complete): "
          "every restore is identical")


if __name__ == "__main__":
    main()
