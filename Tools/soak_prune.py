#!/usr/bin/env python3
"""Backs up, forgets, prunes, copies, mirrors and checks at the same time, while programs are killed
or suspended.

usage: soak_prune.py PROGRAM [MINUTES] [--store directory|test|ceph|ssh]

WRITERS directories share files, and each is backed up repeatedly by its own program, all into one
repository. At the same time snapshots are forgotten and the repository is pruned in a loop, its
snapshots are copied to a second repository, it is mirrored to a third, and all its data is checked.
Programs are killed with SIGKILL at random, or stopped with SIGSTOP while the heartbeats of all leases
are set back by more than an hour, as if they had been suspended that long, and then continued.

Each snapshot that a backup reported must be complete, whatever its exit status: in a sample of the
rounds, each is restored at once and compared with its source, and at the end all are, from the
repository and from the mirror. `check --read-data` must find no damage in any of the three. During
the run this is only required if no lease was set back in the meantime, because a program without its
lease may find that data has been removed.
The repositories are in a directory, or in another store (soak_stores.py); a store that is not
installed is skipped with a message. In Ceph RGW, leases cannot be set back: programs only pause
there, and the leases of killed programs are removed, as a prune would do an hour later.
The seed is printed; SANDBOXCTL_SEED repeats the choices. The directory of a failed run is kept.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import soak_stores  # noqa: E402

WRITERS = 8
# Exit statuses of a program that lost its lease, found another prune, or was killed.
EXPECTED = {0, 1, 11, -signal.SIGKILL}
# The exit status of a reader that found lost data, which is an error unless it may have lost its lease.
DAMAGED = 13
REPOSITORIES = ["repo", "second", "mirror"]
AN_HOUR = 3700
# In runs of at least this number of minutes, each type of program must have ended at least once.
LONG = 0.5


class Soak:
    """A run: the repository, its writers, and the content of each reported snapshot."""

    def __init__(self, program, folder, store, chance):
        self.program, self.folder, self.store, self.chance = program, folder, store, chance
        repo, second, mirror = map(store.location, REPOSITORIES)
        self.repo = ["--repo", repo]
        self.copying = ["copy", "--to", second, *self.repo, "--quiet"]
        self.mirroring = ["mirror", "--to", mirror, *self.repo, "--quiet", "--allow-large-removal"]
        self.end = 0.0
        self.lock = threading.Lock()
        self.reported = {}
        self.failures = []
        self.sleeps = 0
        self.counts = dict.fromkeys(
            ["backups", "prunes", "removed packs", "forgotten", "copies", "mirrors", "checks",
             "killed", "slept", "refused", "restored"], 0)
        self.run("init", repo, "--plain", "--no-default")
        self.run("init", second, "--plain", "--no-default")

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def fail(self, text):
        with self.lock:
            self.failures.append(text)

    def start(self, *words, home="home"):
        environment = {"HOME": str(self.folder / home), "PATH": os.environ["PATH"], "TZ": "UTC",
                       **self.store.environment}
        return subprocess.Popen([self.program, *words, *self.store.options], cwd=self.folder,
                                env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words, home="home"):
        process = self.start(*words, home=home)
        output, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"soak: error: {' '.join(words)} exited with status "
                             f"{process.returncode}\n{output}{errors}")
        return output

    def disturbed(self, chance, *words, home="home"):
        """Runs a program that may be killed, or sleep for an hour. Returns its status and output."""
        sleeps = self.sleeps
        process = self.start(*words, home=home)
        fate = chance.random()
        if fate < 0.3:
            time.sleep(chance.uniform(0, 0.4))
            if fate < 0.15:
                process.kill()
                self.count("killed")
                self.store.forget(process, REPOSITORIES)
            else:
                process.send_signal(signal.SIGSTOP)
                self.set_leases_back()
                time.sleep(chance.uniform(0, 0.3))
                process.send_signal(signal.SIGCONT)
                self.count("slept")
        output, errors = process.communicate()
        if process.returncode == DAMAGED and self.sleeps != sleeps:
            return process.returncode, output
        if process.returncode not in EXPECTED:
            self.fail(f"{' '.join(words)} exited with status {process.returncode}: {errors}")
        if process.returncode == 1:
            self.count("refused")
            if "expired" not in errors + output:
                self.fail(f"{' '.join(words)}: {errors}")
        return process.returncode, output

    def set_leases_back(self):
        """Sets the heartbeats of all programs back by more than an hour."""
        with self.lock:
            self.sleeps += 1
        self.store.set_leases_back(REPOSITORIES, AN_HOUR)

    def write(self, number):
        """Changes one directory and backs it up until the time is over."""
        chance = random.Random(self.chance.random() + number)
        source = self.folder / f"source{number}"
        source.mkdir()
        while time.monotonic() < self.end and not self.failures:
            self.change(source, chance)
            code, output = self.disturbed(
                chance, "backup", "--layout", "folder", "--root", source.name, *self.repo, "--json",
                home=f"home{number}")
            if code == 0:
                self.count("backups")
            identity = self.reported_snapshot(output)
            if not identity:
                if code == 0:
                    self.fail(f"no snapshot reported: {output}")
                continue
            with self.lock:
                self.reported[identity] = (source.name, self.content(source))
            if chance.random() < 0.2:
                self.verify(identity, f"part{number}", home=f"home{number}")

    @staticmethod
    def change(source, chance):
        """Writes and removes files; half of their contents are the same in all directories."""
        for _ in range(chance.randint(1, 30)):
            path = source / f"file{chance.randint(0, 40)}"
            if path.exists() and chance.random() < 0.3:
                path.unlink()
                continue
            content = random.Random(chance.randint(0, 120) if chance.random() < 0.5
                                    else chance.random())
            path.write_bytes(content.randbytes(content.randint(1, 60_000)))

    @staticmethod
    def content(folder):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in folder.iterdir()}

    @staticmethod
    def reported_snapshot(output):
        """Returns the snapshot that a backup reported; None if it reported none."""
        for line in reversed(output.splitlines(keepends=True)):
            # The last line of a program that was killed may be incomplete.
            identity = json.loads(line).get("snapshot") if line.endswith("\n") else None
            if identity:
                return identity
        return None

    def verify(self, identity, name, home="home", repository="repo"):
        """Restores a snapshot and compares it, unless it was forgotten meanwhile."""
        source, wanted = self.reported[identity]
        target = self.folder / name
        process = self.start("restore", f"{identity}:folders/{source}", "--to", name, "--repo",
                             self.store.location(repository), "--quiet", home=home)
        _, errors = process.communicate()
        with self.lock:
            is_forgotten = identity not in self.reported
        if not is_forgotten:
            if process.returncode != 0:
                self.fail(f"snapshot {identity} was reported and cannot be restored: {errors}")
            elif self.content(target) != wanted:
                self.fail(f"snapshot {identity} was restored with other content")
            self.count("restored")
        shutil.rmtree(target, ignore_errors=True)

    def prune(self):
        """Forgets snapshots and prunes until the time is over."""
        chance = random.Random(self.chance.random())
        # A prune refuses a repository that has packs and no snapshot.
        while not self.reported and time.monotonic() < self.end and not self.failures:
            time.sleep(0.05)
        while time.monotonic() < self.end and not self.failures:
            with self.lock:
                names = list(self.reported)
                gone = [name for name in names[:-WRITERS] if chance.random() < 0.4]
                for name in gone:
                    del self.reported[name]
            if gone:
                self.run("forget", *gone, "--allow-last", *self.repo, "--quiet")
                self.count("forgotten", len(gone))
            code, output = self.disturbed(chance, "prune", *self.repo, "--json")
            if code == 0:
                self.count("prunes")
                self.count("removed packs", json.loads(output)["removed_packs"])

    def repeat(self, what, *words):
        """Runs a program that copies, mirrors or checks until the time is over."""
        chance = random.Random(self.chance.random())
        while time.monotonic() < self.end and not self.failures:
            code, _ = self.disturbed(chance, *words, home=f"home-{what}")
            if code == 0:
                self.count(what)
            # A prune removes packs only while no program reads.
            time.sleep(chance.uniform(0, 3))

    def settle(self, *words):
        """Runs a program after all others have ended, and returns its output. Leases are set back, so
        that the right to remove objects expires if its holder was killed before its first
        heartbeat."""
        for _ in range(2):
            self.set_leases_back()
            process = self.start(*words)
            output, _ = process.communicate()
            if process.returncode == 0:
                return output
        self.set_leases_back()
        return self.run(*words)

    def guarded(self, work, *arguments):
        """Records the failure of a thread."""
        try:
            work(*arguments)
        except (OSError, SystemExit, ValueError) as error:
            self.fail(f"{work.__name__}: {error}")

    def soak(self, minutes):
        self.end = time.monotonic() + 60 * minutes
        threads = [threading.Thread(target=self.guarded, args=[self.write, number])
                   for number in range(WRITERS)]
        threads.append(threading.Thread(target=self.guarded, args=[self.prune]))
        for work in [("copies", *self.copying), ("mirrors", *self.mirroring),
                     ("checks", "check", "--read-data", "--quiet", *self.repo)]:
            threads.append(threading.Thread(target=self.guarded, args=[self.repeat, *work]))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # The second prune removes what the first has condemned.
        for _ in range(2):
            output = self.settle("prune", *self.repo, "--json")
            self.count("prunes")
            self.count("removed packs", json.loads(output)["removed_packs"])
        for words in [(*self.copying, "--check"), self.mirroring]:
            self.settle(*words)
        for number, identity in enumerate(list(self.reported)):
            for repository in ["repo", "mirror"]:
                self.verify(identity, f"last{number}", repository=repository)
        if not self.failures:
            for repository in REPOSITORIES:
                self.run("check", "--read-data", "--repo", self.store.location(repository))
        return not self.failures


def run(program, minutes, kind, folder):
    """Runs the soak in a store. Returns whether it passed; True if the store is not installed."""
    seed = int(os.environ.get("SANDBOXCTL_SEED", random.randrange(1 << 32)))
    store = soak_stores.open_store(kind, folder)
    if store is None:
        return True
    print(f"soak: seed {seed} (SANDBOXCTL_SEED={seed} repeats the choices)", flush=True)
    try:
        soak = Soak(program, folder, store, random.Random(seed))
        is_good = soak.soak(minutes)
    finally:
        store.close()
    print(f"soak: {kind}: "
          + ", ".join(f"{number} {what}" for what, number in soak.counts.items()))
    for failure in soak.failures[:5]:
        print(f"soak: error: {failure}", file=sys.stderr)
    needed = ["backups", "prunes", "restored"]
    if minutes >= LONG:
        needed += ["removed packs", "copies", "mirrors", "killed", "slept"]
    # A check of all data in a remote store may be disturbed each time in a short run.
    if minutes >= LONG and kind == "directory":
        needed.append("checks")
    missing = [what for what in needed if not soak.counts[what]]
    if missing:
        print(f"soak: error: no {', no '.join(missing)}: the run was too short", file=sys.stderr)
    return is_good and not missing


def main():
    parser = argparse.ArgumentParser(description="Prune beside writers, with kills.")
    parser.add_argument("program")
    parser.add_argument("minutes", type=float, nargs="?", default=1)
    parser.add_argument("--store", choices=soak_stores.KINDS, default="directory")
    options = parser.parse_args()
    # A terminated run ends its store as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-prune-"))
    if run(os.path.abspath(options.program), options.minutes, options.store, folder):
        shutil.rmtree(folder)
        return 0
    print(f"soak: the directory is {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
