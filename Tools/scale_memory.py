#!/usr/bin/env python3
"""Measures time, anonymous memory and temporary disk space of the main commands by entries.

usage: scale_memory.py PROGRAM [ENTRIES…] [--formats]

Creates a directory of each size (100000 1000000 3000000): nine tenths of the files in directories
of 100, a tenth in one directory (`--flat 1`: all). Runs the commands that read or write every entry
and prints a Markdown table: processor seconds, peak anonymous memory (RssAnon) and peak size of the
unnamed temporary file, both in MB. The exports and imports of Android backups, packages and snap
snapshots have the files as the data of one app; `--formats` runs only commands that read or write
formats of other programs. `--limit MB` fails if a command exceeds it at up to 1,000,000 entries.
Fails as well if the processor time of a command grows by more than three times n log n from the
second largest size to the largest. The files are created in the directory for temporary files; the
default sizes need 40 GB and an hour.
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from scale import ANONYMOUS, LEAST_COMPARED, allowed_growth

# The largest number of entries at which the limit of memory holds.
LIMITED_ENTRIES = 1_000_000

SUITE = (
    ("first backup", "backup --root {tree} --layout folder --quiet"),
    ("unchanged backup", "backup --root {tree} --layout folder --quiet"),
    ("backup after changes", "backup --root {tree} --layout folder --quiet"),
    ("classify", "classify --root {tree} --layout folder --json"),
    ("purge --query", "purge --root {tree} --layout folder --query"),
    ("ls --recursive", "ls latest --recursive"),
    ("find", "find file-0000001 --snapshot latest"),
    ("diff", "diff latest~1 latest"),
    ("stats", "stats latest"),
    ("check", "check --quiet"),
    ("check --read-data", "check --read-data --quiet"),
    ("restore --in-place --dry-run", "restore latest --in-place --overwrite always --dry-run"),
    ("restore --to", "restore latest --to {back} --quiet"),
    ("restore --in-place", "restore latest --in-place --overwrite always --quiet"),
    ("export itunes", "export itunes latest {phone} --quiet"),
    ("import itunes", "import itunes {phone} --repo {second} --quiet"),
    ("export tar", "export tar latest {phone}.tar --quiet"),
    ("import tar", "import tar {phone}.tar --repo {second} --quiet"),
    ("export zip", "export zip latest {phone}.zip --quiet"),
    ("import zip", "import zip {phone}.zip --repo {second} --quiet"),
    ("backup android", "backup --root {device} --layout android --repo {apps} --quiet"),
    ("export android", "export android latest {phone}.ab --repo {apps} --quiet"),
    ("import android", "import android {phone}.ab --repo {second} --quiet"),
    ("export ipa", "export ipa latest {phone}.ipa --app com.example.big --repo {apps} --quiet"),
    ("import ipa", "import ipa {phone}.ipa --repo {second} --quiet"),
    ("export xcappdata",
     "export xcappdata latest {phone}.xcappdata --app com.example.big --repo {apps} --quiet"),
    ("import xcappdata", "import xcappdata {phone}.xcappdata --repo {second} --quiet"),
    ("backup snap", "backup --root {home}/snap --layout snap --repo {snaps} --quiet"),
    ("export snap", "export snap latest {phone}.snapshot --repo {snaps} --quiet"),
    ("import snap", "import snap {phone}.snapshot --repo {second} --quiet"),
)

# The steps with formats of other programs, and the backups that their exports need.
FORMATS = tuple(step for step, _ in SUITE if step.startswith(("export ", "import "))
                or step in ("first backup", "backup android", "backup snap"))


def make_tree(root, entries, share):
    flat = root / "flat"
    flat.mkdir(parents=True)
    in_flat = int(entries * share)
    for number in range(in_flat):
        write(flat / f"file-{number:07}", number)
    for first in range(in_flat, entries, 100):
        place = root / f"group-{first // 10000}" / f"directory-{first:08}"
        place.mkdir(parents=True)
        for number in range(first, min(entries, first + 100)):
            write(place / f"file-{number:07}", number)


def write(path, number):
    with open(path, "wb", buffering=0) as file:
        file.write(b"%d\n" % number)


def change(root):
    """Changes one percent of the flat directory, and adds a file."""
    for path in sorted((root / "flat").iterdir())[::100]:
        path.write_bytes(b"changed since\n")
    (root / "flat/new").write_bytes(b"new\n")


def prepare(step, names):
    """Changes the files before a step: one percent of them, or moves them to an app's data."""
    if step == "backup after changes":
        change(names["tree"])
    elif step == "backup android":
        data = names["device"] / "data/data/com.example.big"
        data.mkdir(parents=True)
        names["tree"].rename(data / "files")
    elif step == "backup snap":
        app = names["home"] / "snap/editor"
        (app / "1").mkdir(parents=True)
        (app / "current").symlink_to("1")
        (names["device"] / "data/data/com.example.big/files").rename(app / "common")


def measure(program, entries, only, share):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sandboxctl-memory-")).resolve()
    names = {name: directory / name for name in
             ("tree", "back", "phone", "second", "device", "home", "apps", "snaps")}
    environment = {"HOME": str(directory), "PATH": "/usr/bin:/bin", "TZ": "UTC",
                   "SANDBOXCTL_REPOSITORY": str(directory / "repo")}
    try:
        make_tree(names["tree"], entries, share)
        for words in (("repo",), *((name, "--no-default") for name in ("second", "apps", "snaps"))):
            subprocess.run([program, "init", "--plain", *words], check=True, cwd=directory,
                           env=environment, stdout=subprocess.DEVNULL)
        for step, words in SUITE:
            prepare(step, names)
            if only and step not in only:
                continue
            yield step, run(program, words.format(**names).split(), directory, environment)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def spilled(process):
    """Returns the bytes on disk of a process's unnamed temporary files."""
    total = 0
    for descriptor in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            if re.match(r"(/var)?/tmp/#\d+ \(deleted\)$", os.readlink(descriptor)):
                total += os.stat(descriptor).st_blocks * 512
        except OSError:
            continue
    return total


def watch(process):
    """Waits for a process. Returns its peak anonymous memory and temporary disk space in bytes."""
    memory, disk = 0, 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            disk = max(disk, spilled(process.pid))
        except OSError:
            continue
        found = ANONYMOUS.search(status)
        memory = max(memory, int(found[1]) * 1024 if found else 0)
        time.sleep(0.005)
    return memory, disk


def run(program, words, directory, environment):
    """Runs a command. Returns processor seconds and bytes of memory and temporary disk space."""
    with open(directory / "errors", "wb") as errors:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen([program, *words], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=errors, stdin=subprocess.DEVNULL)
        memory, disk = watch(process)
    if process.returncode != 0:
        sys.exit(f"scale_memory: error: {' '.join(words)}: status {process.returncode}\n"
                 + (directory / "errors").read_text(errors="replace")[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, memory, disk


def faults(found, sizes, limit):
    """Yields the commands that need too much memory or whose processor time grows too fast. `found`
    has a row of seconds, memory and disk for each size, by command."""
    for step, rows in found.items():
        for size, (_, memory, _) in zip(sizes, rows, strict=True):
            if limit and size <= LIMITED_ENTRIES and memory > limit * 1e6:
                yield f"{step}: {memory / 1e6:.0f} MB for {size} entries, more than {limit:g} MB"
        if len(rows) < 2:
            continue
        (before, after), (least, most) = (row[0] for row in rows[-2:]), sizes[-2:]
        if after > LEAST_COMPARED and after / max(before, 0.01) > allowed_growth(least, most):
            yield (f"{step}: {before:.2f} s of processor time for {least} entries, {after:.2f} s "
                   f"for {most}: more than n log n")


def main():
    parser = argparse.ArgumentParser(
        usage="scale_memory.py PROGRAM [ENTRIES…] [--limit MB] [--formats]")
    parser.add_argument("program")
    parser.add_argument("entries", nargs="*", type=int, default=[100_000, 1_000_000, 3_000_000])
    parser.add_argument("--limit", type=float,
                        help="the maximum anonymous memory in MB at up to 1,000,000 entries")
    parser.add_argument("--flat", type=float, default=0.1,
                        help="the share of files in one directory")
    parser.add_argument("--only", action="append", help="run only this step")
    parser.add_argument("--formats", action="store_const", const=list(FORMATS), dest="only",
                        help="run only the exports and imports, and the backups that they need")
    options = parser.parse_args()
    program, found = str(pathlib.Path(options.program).resolve()), {}
    for entries in options.entries:
        for step, row in measure(program, entries, options.only, options.flat):
            found.setdefault(step, []).append(row)
            print(f"{entries:>9} {step:30} {row[0]:8.2f} s {row[1] / 1e6:6.0f} MB"
                  f" {row[2] / 1e6:6.0f} MB on disk", file=sys.stderr, flush=True)
    sizes = [f"{entries:,}" for entries in options.entries]
    print("| | " + " | ".join(f"{size}: s | MB | disk" for size in sizes) + " |")
    print("| --- |" + " ---: | ---: | ---: |" * len(sizes))
    for step, rows in found.items():
        print(f"| {step} | " + " | ".join(
            f"{row[0]:.2f} | {row[1] / 1e6:.0f} | {row[2] / 1e6:.0f}" for row in rows) + " |")
    over = list(faults(found, options.entries, options.limit))
    if over:
        sys.exit("\n".join(f"scale_memory: error: {fault}" for fault in over))


if __name__ == "__main__":
    main()
