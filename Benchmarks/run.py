#!/usr/bin/env python3
"""Compares the program with its peers and reports which budgets are met.

usage: run.py [--profiles apps many bigdb media] [--scale 1] [--reps 3] [--seed 1] [--days 10]
              [--folder DIR] [--no-parts] [--parts-scale 1] [--keep] [--check]

Makes a release build of the program. Measures single parts first (the walk, the classifier,
startup, a purge, an update, an import, inter-app commands, scenarios), then for each profile
restic, tar+zstd, find, cp -a and sandboxctl, in one run on one corpus. The exit status is 1 if a
step failed, and with --check if a budget is missed.
See README.md in this directory.
"""

import argparse
import os
import pathlib
import shutil
import sys

import budgets
import encryption
import extras
import parts
import peers
import programs
import repeats
import retention

PROFILES = ["apps", "many", "bigdb", "media"]
# The profiles whose files change from day to day.
RETENTION_PROFILES = ["apps", "many", "bigdb"]


def profile_lines(profile, program, options):
    """Yields all lines of one profile. Removes everything except the corpus."""
    folder = pathlib.Path(options.folder).absolute()
    source = peers.corpus(folder, profile, options)
    work = folder / f"run-{source.name}"
    try:
        runs = peers.run(work, source, profile, program, options)
        runs.rows += repeats.rows(work, profile, program, options.reps - 1)
        yield from budgets.of_runs(profile, runs)
        yield from extras.Extras(work, profile, program, options.reps).lines()
        yield from encryption.Encryption(work, profile, program, options.reps).lines()
        if profile in RETENTION_PROFILES:
            yield from retention.Retention(work, profile, program, options).lines()
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


def show(title, lines):
    """Prints a table. Returns its lines."""
    lines = list(lines)
    print(f"\n{title}\n\n{budgets.table(lines)}", flush=True)
    return lines


def status(lines, checks):
    """Returns the exit status: 1 if a step failed, and with `checks` if a budget is missed."""
    failed = [line.operation for line in lines if line.has_failed]
    if failed:
        print(f"run: error: failed: {', '.join(failed)}", file=sys.stderr)
    missed = checks and any(line.kept is False for line in lines)
    return 1 if failed or missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--profiles", nargs="*", choices=PROFILES, default=PROFILES)
    parser.add_argument("--scale", type=float, default=1.0,
                        help="the scale of the corpora (default: 1)")
    parser.add_argument("--reps", type=int, default=3, help="the number of repetitions (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the corpora (default: 1)")
    parser.add_argument("--folder", default="/tmp/bench",
                        help="the directory for corpora and working files (default: /tmp/bench)")
    parser.add_argument("--no-parts", dest="parts", action="store_false",
                        help="skip the single parts")
    parser.add_argument("--parts-scale", type=float, default=1.0,
                        help="the scale of the single parts (default: 1)")
    parser.add_argument("--days", type=int, default=10,
                        help="the days of changes before the prune; three times as many precede the "
                             "last restore (default: 10)")
    parser.add_argument("--keep", action="store_true", help="keep the working files")
    parser.add_argument("--check", action="store_true", help="fail if a budget is missed")
    options = parser.parse_args()

    lines = []
    if options.parts:
        lines += show("parts", parts.lines(5 * options.reps, options.parts_scale))
    if options.profiles and not peers.harness():
        print("run: error: no bench/run_peers.py in ../shared, which provides the corpora\n"
              "run: hint: set SANDBOXCTL_SHARED, or use --profiles without a name",
              file=sys.stderr)
        return 2
    program = programs.build("sandboxctl") if options.profiles else None
    for profile in options.profiles:
        title = f"{profile}, scale {options.scale:g}, seed {options.seed}, {options.reps} " \
                f"repetitions, {len(os.sched_getaffinity(0))} processors"
        lines += show(title, profile_lines(profile, program, options))
    return status(lines, options.check)


if __name__ == "__main__":
    sys.exit(main())
