#!/usr/bin/env python3
"""Measures the cost of many snapshots and of many changes of the data class.

usage: scale_growth.py PROGRAM

Prints two Markdown tables: the commands that list or search snapshots, with 10, 100 and 1,000
snapshots of a small directory; and backup, ls and restore of a snapshot with 3,000, 30,000 and
300,000 changes of the data class. Each cell contains seconds and peak anonymous memory (RssAnon) in
MB. Fails if a step takes more than three times as long as n log n allows, from the second size to
the third.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from scale import Scale, allowed_growth

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

    def __init__(self, program):
        self.program = program
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-growth-")).resolve()
        self.tree = self.root / "tree"
        self.tree.mkdir()
        self.environment = {"HOME": str(self.root), "PATH": "/usr/bin:/bin", "TZ": "UTC",
                            "SANDBOXCTL_REPOSITORY": str(self.root / "repo")}
        self.run("init", self.root / "repo", "--plain")

    def run(self, *words):
        """Runs a command. Returns seconds and bytes of anonymous memory."""
        with open(self.root / "errors", "wb") as errors:
            begun = time.monotonic()
            process = subprocess.Popen([self.program, *map(str, words)], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=errors,
                                       stdin=subprocess.DEVNULL)
            memory = Scale.watch(process)
        taken = time.monotonic() - begun
        if process.returncode != 0:
            sys.exit(f"scale_growth: error: {' '.join(map(str, words))}: status "
                     f"{process.returncode}\n" + (self.root / "errors").read_text()[-2000:])
        return taken, memory

    def backup(self, *words):
        return self.run("backup", "--root", self.tree, "--layout", "folder", "--quiet", *words)

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
        print(f"| {step} | " + " | ".join(f"{taken:.2f} | {memory / 1e6:.0f}"
                                            for taken, memory in rows) + " |", flush=True)
        before, after = rows[-2][0], rows[-1][0]
        least, most = sizes[-2:]
        if after > 1 and after / max(before, 0.02) > allowed_growth(least, most):
            sys.exit(f"scale_growth: error: {step}: {before:.2f} s for {least}, {after:.2f} s for "
                     f"{most}: more than n log n")
    print()


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: scale_growth.py PROGRAM")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    os.umask(0o022)
    table("snapshots", list(snapshots(program, (10, 100, 1000))))
    table("changes of class", list(classes(program, (3_000, 30_000, 300_000))))


if __name__ == "__main__":
    main()
