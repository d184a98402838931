#!/usr/bin/env python3
"""Measures the cost of many snapshots and of many changes of the data class.

usage: scale_growth.py PROGRAM [PART…]

Prints a Markdown table for each part (default: all but `small`):

- `snapshots`: the commands that list or search snapshots, with 10, 100 and 1,000 snapshots of a
  small directory;
- `device`: the same for a device of 20,000 entries on which a few files change before each backup,
  with a prune after each seventh, and the numbers of index objects and packs;
- `small`: `device` with 2,000 entries and 10 and 300 snapshots, in half a minute, with processor
  time, which depends less on other programs than elapsed time, and limits on ratios that are half as
  high again;
- `heads`: the commands that list and choose snapshots, with 100, 1,000 and 10,000 of them;
- `classes`: backup, ls and restore of a snapshot with 3,000, 30,000 and 300,000 changes of the data
  class.

Each cell contains seconds and peak anonymous memory (RssAnon) in MB. Fails if the time of a step
grows by more than three times n log n from the second size to the third, or exceeds a limit of
LIMITS with the largest number of snapshots. A limit on a ratio compares the shortest of several
runs that alternate with those of the reference.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from scale import Scale, allowed_growth, processor_seconds

# The limits for many snapshots, in seconds or as a ratio of another step (docs/scale.md).
LIMITS = (
    ("device", "snapshots list", 0.1, None),
    ("device", "unchanged backup", 1.2, "unchanged backup of a copy with few snapshots"),
    ("device", "find", 3.0, "find in one"),
    ("device", "versions", 3.0, "find in one"),
    ("device", "index objects", 12, None),
    ("device", "packs below 16 MiB", 96, None),
    ("heads", "forget --dry-run", 1.0, None),
    ("heads", "forget --dry-run --json", 1.0, None),
    ("heads", "forget --dry-run of one", 1.0, None),
    ("heads", "snapshots list", 1.0, None),
)
ENTRIES, TIMES = 20_000, 5
FAILED = []
SMALL_PACK = 16 << 20

POLICY = """\
policy: alternating
schema: 1
title: Every other file is of another class
layout: folder
rules:
  - id: odd
    in: [folder]
    match: "**/*.odd"
    class: support
    why: each change of class is a row in the snapshot
    source: this test
"""


class Place:
    """A directory with its own repository."""

    def __init__(self, program, clock=time.monotonic):
        self.program, self.clock = program, clock
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-growth-")).resolve()
        self.tree = self.root / "tree"
        self.tree.mkdir()
        self.environment = {"HOME": str(self.root), "PATH": "/usr/bin:/bin", "TZ": "UTC",
                            "SANDBOXCTL_REPOSITORY": str(self.root / "repo")}
        self.run("init", self.root / "repo", "--plain")

    def run(self, *words):
        """Runs a command. Returns seconds and bytes of anonymous memory."""
        with open(self.root / "errors", "wb") as errors:
            begun = self.clock()
            process = subprocess.Popen([self.program, *map(str, words)], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=errors,
                                       stdin=subprocess.DEVNULL)
            memory = Scale.watch(process)
        taken = self.clock() - begun
        if process.returncode != 0:
            sys.exit(f"scale_growth: error: {' '.join(map(str, words))}: status "
                     f"{process.returncode}\n" + (self.root / "errors").read_text()[-2000:])
        return taken, memory

    def best(self, *words):
        """Runs a command several times and returns its shortest time and that run's memory."""
        return min(self.run(*words) for _ in range(TIMES))

    def backup(self, *words):
        return self.run("backup", "--root", self.tree, "--layout", "folder", "--quiet", *words)

    def copy(self):
        """Returns a place with the same tree, and a copy of the repository and of the caches."""
        other = Place.__new__(Place)
        other.program, other.clock, other.tree = self.program, self.clock, self.tree
        other.root = self.root / "copy"
        shutil.copytree(self.root / "repo", other.root / "repo")
        shutil.copytree(self.root / ".cache", other.root / ".cache")
        other.environment = self.environment | {
            "HOME": str(other.root), "SANDBOXCTL_REPOSITORY": str(other.root / "repo")}
        return other

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)


def snapshots(program, sizes):
    place, made = Place(program), 0
    for number in range(20):
        (place.tree / f"file-{number}").write_text(f"{number}\n")
    for size in sizes:
        while made < size:
            (place.tree / "changed").write_text(f"{made}\n")
            place.backup()
            made += 1
        yield size, {
            "backup": place.backup(),
            "snapshots list": place.run("snapshots", "list"),
            "ls latest": place.run("ls", "latest"),
            "diff latest~1 latest": place.run("diff", "latest~1", "latest"),
            "find changed": place.run("find", "changed"),
            "versions changed": place.run("versions", place.tree / "changed"),
            "stats": place.run("stats", "latest"),
            "check": place.run("check", "--quiet"),
        }
        made += 1
    place.remove()


def alternating(*steps):
    """Runs steps in turn, several times, and returns the best result of each."""
    return [min(results) for results in zip(*[[step() for step in steps] for _ in range(2 * TIMES)])]


def device(program, sizes, entries=ENTRIES, clock=time.monotonic, margin=1.0):
    place, made, few = Place(program, clock), 0, None
    for number in range(0, entries, 100):
        directory = place.tree / f"group-{number // 2000}" / f"directory-{number:05}"
        directory.mkdir(parents=True)
        for file in range(number, number + 100):
            (directory / f"file-{file:05}.txt").write_text(f"{file}\n" * 20)
    marked = entries // 3
    name = f"file-{marked:05}.txt"
    path = f"group-{marked // 2000}/directory-{marked // 100 * 100:05}/{name}"
    for size in sizes:
        while made < size:
            for number in (marked, marked + 1, 100 * (made % (entries // 100))):
                group = place.tree / f"group-{number // 2000}"
                file = f"directory-{number // 100 * 100:05}/file-{number:05}.txt"
                (group / file).write_text(f"{made} {number}\n" * 20)
            place.backup()
            made += 1
            if made % 7 == 0:
                place.run("prune", "--quiet")
        few = few or place.copy()
        place.backup()
        few.backup()
        backup, with_few = alternating(place.backup, few.backup)
        made += 1 + 2 * TIMES
        one, every = alternating(
            lambda: place.run("find", name, "--snapshot", "latest"),
            lambda: place.run("find", name))
        path_in_one, versions = alternating(
            lambda: place.run("ls", f"latest:folders/{place.tree.name}/{path}"),
            lambda: place.run("versions", place.tree / path))
        rows = {
            "unchanged backup": backup,
            "snapshots list": place.best("snapshots", "list"),
            "ls latest": place.best("ls", "latest"),
            "find in one": one,
            "find": every,
            "ls of the path in one": path_in_one,
            "versions": versions,
            "stats": place.best("stats"),
            "stats --growth": place.best("stats", "--growth"),
            "check": place.best("check", "--quiet"),
            "forget --dry-run": place.best("forget", "--keep-daily", "7", "--dry-run"),
            "forget --dry-run --sizes": place.best(
                "forget", "--keep-last", "5", "--dry-run", "--sizes"),
            "prune --dry-run": place.best("prune", "--dry-run"),
        }
        rows.update(objects(place.root / "repo"))
        if size == sizes[-1]:
            references = {"unchanged backup of a copy with few snapshots": with_few}
            check_limits("device", size, rows | references, margin)
        yield size, rows
    place.remove()


def small(program, sizes):
    # Runs of 20 ms vary by a quarter, but a cost for each snapshot would exceed that.
    yield from device(program, sizes, entries=2000, clock=processor_seconds, margin=1.5)


def objects(repository):
    """Returns the numbers of index objects, of packs and of small packs, and their bytes."""
    packs = [pack.stat().st_size for pack in (repository / "packs").glob("*/*")]
    return {
        "index objects": (len(list((repository / "index").iterdir())), 0),
        "packs": (len(packs), sum(packs)),
        "packs below 16 MiB": (sum(size < SMALL_PACK for size in packs), 0),
    }


def heads(program, sizes):
    place = Place(program)
    # A device, whose snapshots have the usual tables.
    place.run("sample", place.root / "sample")
    place.run("backup", "--root", place.root / "sample", "--quiet")
    directory = place.root / "repo/snapshots"
    head = json.loads(next(directory.iterdir()).read_bytes().split(b"\n")[0])
    made = 1
    for size in sizes:
        while made < size:
            made += 1
            head["sequence"] = made
            head["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1.2e9 + made * 25_000))
            line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
            name = hashlib.blake2b(line, digest_size=32).hexdigest()
            (directory / f"{name}.json").write_bytes(line)
        rules = ("--keep-daily", 30, "--keep-monthly", 12)
        rows = {
            "first list": place.run("snapshots", "list"),
            "snapshots list": place.best("snapshots", "list"),
            "snapshots list --json": place.best("snapshots", "list", "--json"),
            "forget --dry-run": place.best("forget", *rules, "--dry-run"),
            "forget --dry-run --json": place.best("forget", *rules, "--dry-run", "--json"),
            "forget --dry-run of one": place.best("forget", "--keep-last", size - 1, "--dry-run"),
            "ls latest": place.best("ls", "latest"),
        }
        if size == sizes[-1]:
            check_limits("heads", size, rows)
        yield size, rows
    place.remove()


def exceeded(part, rows, margin=1.0):
    """Yields each step of a part that exceeds a limit, and the reason. A limit on a ratio is
    multiplied by the margin."""
    for name, step, most, reference in LIMITS:
        if name != part:
            continue
        found = rows[step][0] / (rows[reference][0] if reference else 1)
        of = f" times '{reference}'" if reference else ""
        if reference:
            most *= margin
        if found > most:
            yield step, f"{found:.2f}{of}, at most {most} allowed"


def check_limits(part, size, rows, margin=1.0):
    """Fails if a step of the largest size exceeds a limit."""
    for step, reason in exceeded(part, rows, margin):
        print(f"scale_growth: error: {step} with {size} snapshots: {reason}", file=sys.stderr)
        FAILED.append(step)


def classes(program, sizes):
    for size in sizes:
        place = Place(program)
        policy = place.root / "alternating.yaml"
        policy.write_text(POLICY)
        for first in range(0, size, 1000):
            directory = place.tree / f"directory-{first}"
            directory.mkdir()
            for number in range(first, min(first + 1000, size)):
                name = f"{number:07}" + (".odd" if number % 2 else ".even")
                (directory / name).write_bytes(b"x")
        yield size, {
            "backup": place.backup("--policy", policy),
            "unchanged backup": place.backup("--policy", policy),
            "ls latest --recursive": place.run("ls", "latest", "--recursive"),
            "snapshots show": place.run("snapshots", "show", "latest"),
            "restore --to": place.run("restore", "latest", "--to", place.root / "back", "--quiet"),
        }
        place.remove()


def table(title, found):
    sizes = [size for size, _ in found]
    print(f"| {title} | " + " | ".join(f"{size:,}: s | MB" for size in sizes) + " |")
    print("| --- |" + " ---: | ---: |" * len(sizes))
    for step in found[0][1]:
        rows = [rows[step] for _, rows in found]
        cells = [f"{row[0]} | {row[1] / 1e6:.0f}" if isinstance(row[0], int)
                 else f"{row[0]:.3f} | {row[1] / 1e6:.0f}" for row in rows]
        print(f"| {step} | " + " | ".join(cells) + " |", flush=True)
        before, after = rows[-2][0], rows[-1][0]
        least, most = sizes[-2:]
        if after > 1 and after / max(before, 0.02) > allowed_growth(least, most):
            if not isinstance(after, int):
                sys.exit(f"scale_growth: error: {step}: {before:.2f} s for {least}, {after:.2f} s "
                         f"for {most}: more than n log n")
    print()


PARTS = {
    "snapshots": ("snapshots", snapshots, (10, 100, 1000)),
    "device": ("snapshots of a device", device, (10, 100, 1000)),
    "small": ("snapshots of a small device", small, (10, 300)),
    "heads": ("snapshots", heads, (100, 1000, 10_000)),
    "classes": ("changes of class", classes, (3_000, 30_000, 300_000)),
}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(PARTS):
        sys.exit(f"usage: scale_growth.py PROGRAM [{'|'.join(PARTS)} ...]")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    os.umask(0o022)
    for part in sys.argv[2:] or [part for part in PARTS if part != "small"]:
        title, measure, sizes = PARTS[part]
        table(title, list(measure(program, sizes)))
    if FAILED:
        sys.exit(1)


if __name__ == "__main__":
    main()
