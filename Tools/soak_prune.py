#!/usr/bin/env python3
"""Backs up, forgets and prunes at the same time, with writers that are killed or sleep.

usage: soak_prune.py PROGRAM [MINUTES]

WRITERS directories share files and are backed up repeatedly by a program each, all into one
repository. At the same time snapshots are forgotten and the repository is pruned in a loop. Programs
are killed with SIGKILL at random, or stopped with SIGSTOP while the heartbeats of all leases are set
back by more than an hour, as if they had slept that long, and then continued.

Each snapshot that a backup reported must be complete: each is restored at once in a sample of the
rounds and compared with its source, and at the end all are. `check --read-data` must find no damage.
The seed is printed; SANDBOXCTL_SEED repeats the choices. The directory of a failed run is kept.
"""

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

WRITERS = 8
# Exit statuses of a program that lost its lease, found another prune, or was killed.
EXPECTED = {0, 1, 11, -signal.SIGKILL}
AN_HOUR = 3700


class Soak:
    """A run: the repository, its writers, and the content of each reported snapshot."""

    def __init__(self, program, folder, chance):
        self.program, self.folder, self.chance = program, folder, chance
        self.end = 0.0
        self.lock = threading.Lock()
        self.reported = {}
        self.failures = []
        self.counts = dict.fromkeys(["backups", "prunes", "removed packs", "forgotten", "killed",
                                     "slept", "refused", "restored"], 0)
        self.run("init", "repo", "--plain")

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def fail(self, text):
        with self.lock:
            self.failures.append(text)

    def start(self, *words, home="home"):
        environment = {"HOME": str(self.folder / home), "PATH": os.environ["PATH"], "TZ": "UTC"}
        return subprocess.Popen([self.program, *words], cwd=self.folder, env=environment,
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
        process = self.start(*words, home=home)
        fate = chance.random()
        if fate < 0.3:
            time.sleep(chance.uniform(0, 0.4))
            if fate < 0.15:
                process.kill()
                self.count("killed")
            else:
                process.send_signal(signal.SIGSTOP)
                self.set_leases_back()
                time.sleep(chance.uniform(0, 0.3))
                process.send_signal(signal.SIGCONT)
                self.count("slept")
        output, errors = process.communicate()
        if process.returncode not in EXPECTED:
            self.fail(f"{' '.join(words)} exited with status {process.returncode}: {errors}")
        if process.returncode == 1:
            self.count("refused")
            if "expired" not in errors + output:
                self.fail(f"{' '.join(words)}: {errors}")
        return process.returncode, output

    def set_leases_back(self):
        """Sets the heartbeats of all programs back by more than an hour."""
        then = time.time() - AN_HOUR
        for alive in (self.folder / "repo" / "leases").glob("*/alive"):
            try:
                os.utime(alive, (then, then))
            except FileNotFoundError:
                pass

    def write(self, number):
        """Changes one directory and backs it up until the time is over."""
        chance = random.Random(self.chance.random() + number)
        source = self.folder / f"source{number}"
        source.mkdir()
        while time.monotonic() < self.end and not self.failures:
            self.change(source, chance)
            code, output = self.disturbed(
                chance, "backup", "--layout", "folder", "--root", source.name, "--repo", "repo",
                "--json", home=f"home{number}")
            if code != 0:
                continue
            self.count("backups")
            found = [json.loads(line).get("snapshot") for line in output.splitlines()]
            identity = next((name for name in reversed(found) if name), None)
            if not identity:
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

    def verify(self, identity, name, home="home"):
        """Restores a snapshot and compares it, unless it was forgotten meanwhile."""
        source, wanted = self.reported[identity]
        target = self.folder / name
        process = self.start("restore", f"{identity}:folders/{source}", "--to", name, "--repo",
                             "repo", "--quiet", home=home)
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
        while time.monotonic() < self.end and not self.failures:
            with self.lock:
                names = list(self.reported)
                gone = [name for name in names[:-WRITERS] if chance.random() < 0.4]
                for name in gone:
                    del self.reported[name]
            if gone:
                self.run("forget", *gone, "--allow-last", "--repo", "repo", "--quiet")
                self.count("forgotten", len(gone))
            code, output = self.disturbed(chance, "prune", "--repo", "repo", "--json")
            if code == 0:
                self.count("prunes")
                self.count("removed packs", json.loads(output)["removed_packs"])

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
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.set_leases_back()
        self.run("prune", "--repo", "repo")
        for number, identity in enumerate(list(self.reported)):
            self.verify(identity, f"last{number}")
        if not self.failures:
            self.run("check", "--read-data", "--repo", "repo")
        return not self.failures


def main():
    program = os.path.abspath(sys.argv[1])
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    seed = int(os.environ.get("SANDBOXCTL_SEED", random.randrange(1 << 32)))
    print(f"soak: seed {seed} (SANDBOXCTL_SEED={seed} repeats the choices)", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-prune-"))
    soak = Soak(program, folder, random.Random(seed))
    is_good = soak.soak(minutes)
    print("soak: " + ", ".join(f"{number} {what}" for what, number in soak.counts.items()))
    for failure in soak.failures[:5]:
        print(f"soak: error: {failure}", file=sys.stderr)
    needed = ["backups", "prunes", "removed packs", "killed", "slept", "restored"]
    missing = [what for what in needed if not soak.counts[what]]
    if missing:
        print(f"soak: error: no {', no '.join(missing)}: the run was too short", file=sys.stderr)
    if is_good and not missing:
        shutil.rmtree(folder)
        return 0
    print(f"soak: the directory is {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
