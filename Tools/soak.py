#!/usr/bin/env python3
"""Backs up a changing directory for some minutes and kills the program at random times.

usage: soak.py PROGRAM [MINUTES]

Each round changes a directory, backs it up, and often kills the backup with SIGKILL. Then `check
--read-data` must report nothing, every previous snapshot must still exist, and a random snapshot
must restore to the state of the directory when it was made. Another one is restored over existing
files, and that restore is killed as often: then each file must be either old or new, and the next
restore must complete it. A third one is restored in place, which is killed as often: replaced files
must be in the trash, and `recover` must recover the operation. The seed is printed; SANDBOXCTL_SEED
repeats the changes (the times of the kills also depend on the machine). The directory of a failed
run is kept.
"""

import filecmp
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


# The program's own directory on a device, and the prefix of the names of staging directories.
OWN = ".sandboxctl"


class Soak:
    """A run: the program, its directory, and a copy of the source for each snapshot."""

    def __init__(self, program, folder, chance):
        self.program, self.folder, self.chance = program, folder, chance
        self.source = folder / "tree"
        self.source.mkdir()
        self.known = {}
        self.kills = self.restore_kills = self.place_kills = self.rounds = 0
        self.recovered = {"finished": 0, "taken-back": 0}
        self.durations = {"backup": 0.3, "restore": 0.3}
        self.run("init", "repo", "--plain")

    def start(self, *words):
        environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "TZ": "UTC"}
        return subprocess.Popen([self.program, *words], cwd=self.folder, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        process = self.start(*words)
        output, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"soak: error: {' '.join(words)} exited with status "
                             f"{process.returncode}\n"
                             f"{output}{errors}")
        return output

    def change(self):
        """Writes, rewrites and removes files; some large, some in subdirectories."""
        for _ in range(self.chance.randint(1, 200)):
            folder = self.source / f"folder {self.chance.randint(0, 20)}"
            path = folder / f"file {self.chance.randint(0, 60)}"
            if path.exists() and self.chance.random() < 0.2:
                path.unlink()
                continue
            folder.mkdir(exist_ok=True)
            path.write_bytes(self.chance.randbytes(self.chance.randint(0, 20_000)))
        if self.chance.random() < 0.5:
            size = self.chance.randint(1, 6_000_000)
            large = self.source / f"large {self.chance.randint(0, 3)}"
            large.write_bytes(self.chance.randbytes(size))

    def snapshots(self):
        lines = self.run("snapshots", "--json", "--repo", "repo").splitlines()
        return [json.loads(line)["id"] for line in lines]

    def run_or_kill(self, *words):
        """Runs the program and kills it at random. Returns whether it was killed."""
        process = self.start(*words)
        began = time.monotonic()
        if self.chance.random() < 0.6:
            try:
                moment = self.chance.uniform(0.001, self.durations[words[0]])
                process.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        if process.returncode == -signal.SIGKILL:
            return True
        if process.returncode != 0:
            raise SystemExit(f"soak: error: {words[0]} exited with status {process.returncode}\n"
                             f"{errors}")
        self.durations[words[0]] = max(0.05, time.monotonic() - began)
        return False

    def backup(self):
        """Runs a backup that may be killed."""
        if self.run_or_kill("backup", "--layout", "folder", "--root", "tree", "--repo", "repo",
                            "--quiet"):
            self.kills += 1

    def merge(self):
        """Restores one snapshot over the files of another; the restore may be killed and is then
        completed."""
        if not self.known:
            return
        snapshot, wanted = self.chance.choice(sorted(self.known.items()))
        before = self.chance.choice(sorted(self.known.values()))
        into = self.folder / "into"
        shutil.copytree(before, into)
        words = ("restore", f"{snapshot}:folders/tree", "--to", "into", "--repo", "repo",
                 "--overwrite", "if-changed", "--delete", "--quiet")
        if self.run_or_kill(*words):
            self.restore_kills += 1
            torn = neither(into, before, wanted)
            if torn:
                raise SystemExit(f"soak: error: neither old nor new: {torn[:5]}")
            self.run(*words)
        differences = compare(wanted, into)
        if differences:
            raise SystemExit(f"soak: error: {snapshot} is merged incorrectly: {differences[:5]}")
        shutil.rmtree(into)

    def merge_in_place(self):
        """Restores one snapshot in place, which may be killed: no file is torn or lost, `recover`
        recovers the operation, and the same command completes it."""
        if not self.known:
            return
        snapshot, wanted = self.chance.choice(sorted(self.known.items()))
        before = self.folder / "before"
        shutil.copytree(self.source, before)
        words = ("restore", snapshot, "--in-place", "--repo", "repo", "--no-snapshot", "--delete",
                 "--quiet")
        if self.run_or_kill(*words):
            self.place_kills += 1
            self.expect_kept(before, wanted)
            answer = json.loads(self.run("recover", "--layout", "folder", "--root", "tree", "--json"))
            for operation in answer["operations"]:
                self.recovered[operation["outcome"]] += 1
            self.expect_kept(before, wanted)
            self.run(*words)
        differences = [path for path in compare(wanted, self.source) if path != OWN]
        if differences:
            raise SystemExit(f"soak: error: {snapshot} is restored in place incorrectly: "
                             f"{differences[:5]}")
        shutil.rmtree(self.source / OWN, ignore_errors=True)
        shutil.rmtree(before)

    def expect_kept(self, before, wanted):
        """Checks that each file is old or new, and that missing files are in the trash."""
        torn = neither(self.source, before, wanted)
        if torn:
            raise SystemExit(f"soak: error: neither old nor new: {torn[:5]}")
        trash = self.source / OWN / "trash"
        for path in before.rglob("*"):
            relative = path.relative_to(before)
            places = [self.source / relative, *trash.glob(f"*/folders/tree/{relative}")]
            if path.is_file() and not any(
                    place.is_file() and filecmp.cmp(path, place, shallow=False) for place in places):
                raise SystemExit(f"soak: error: lost: {relative}")

    def verify(self):
        """Checks that nothing is damaged or missing, and that a random snapshot restores
        correctly."""
        self.run("check", "--read-data", "--quiet", "--repo", "repo")
        listed = self.snapshots()
        gone = set(self.known) - set(listed)
        if gone:
            raise SystemExit(f"soak: error: snapshots are missing: {sorted(gone)}")
        for snapshot in set(listed) - set(self.known):
            self.known[snapshot] = self.folder / "copies" / snapshot
            shutil.copytree(self.source, self.known[snapshot])
        if not listed:
            return
        chosen = self.chance.choice(listed)
        back = self.folder / "back"
        self.run("restore", f"{chosen}:folders/tree", "--to", "back", "--repo", "repo", "--quiet")
        differences = compare(self.known[chosen], back)
        if differences:
            raise SystemExit(f"soak: error: {chosen} is restored incorrectly: {differences[:5]}")
        shutil.rmtree(back)

    def round(self):
        self.rounds += 1
        self.change()
        self.backup()
        self.verify()
        self.merge()
        self.merge_in_place()


def compare(wanted, found):
    """Returns the paths that differ between two directories."""
    pair = filecmp.dircmp(wanted, found)
    _, mismatched, failed = filecmp.cmpfiles(wanted, found, pair.common_files, shallow=False)
    paths = pair.left_only + pair.right_only + mismatched + failed + pair.common_funny
    for name in pair.common_dirs:
        paths += [f"{name}/{path}" for path in compare(wanted / name, found / name)]
    return paths


def neither(found, before, wanted):
    """Returns the files that are neither old nor new, and those that are missing although both
    versions have them."""
    paths = []
    for path in found.rglob("*"):
        relative = path.relative_to(found)
        if relative.parts[0].startswith(OWN) or not path.is_file():
            continue
        others = [folder / relative for folder in (before, wanted)]
        if not any(other.is_file() and filecmp.cmp(path, other, shallow=False) for other in others):
            paths.append(str(relative))
    for path in wanted.rglob("*"):
        relative = path.relative_to(wanted)
        if (before / relative).is_file() and path.is_file() and not (found / relative).is_file():
            paths.append(str(relative))
    return paths


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: soak.py PROGRAM [MINUTES]")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    end = time.monotonic() + 60 * float(sys.argv[2] if len(sys.argv) > 2 else 10)
    seed = int(os.environ.get("SANDBOXCTL_SEED") or random.randrange(1 << 32))
    print(f"soak: seed {seed} (SANDBOXCTL_SEED={seed} repeats its changes)", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-soak-"))
    try:
        soak = Soak(program, folder, random.Random(seed))
        while time.monotonic() < end:
            soak.round()
    except BaseException:
        print(f"soak: kept: {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    print(f"soak: {soak.rounds} rounds, {soak.kills} backups and {soak.restore_kills} restores "
          f"killed, {soak.place_kills} more in place ({soak.recovered['finished']} finished, "
          f"{soak.recovered['taken-back']} rolled back), {len(soak.known)} snapshots: all correct")


if __name__ == "__main__":
    main()
