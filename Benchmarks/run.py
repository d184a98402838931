#!/usr/bin/env python3
"""Measures parts of the program, beside the system's own programs where there are some.

usage: run.py [--runs N] [--corpus DIR] [--folders N] [--files N] [--keep] [--check]

The walk: `walkbench TREE` against `find TREE -printf '%s%T@'`, both in one thread, output to
nowhere, page cache warm. The tree is made below a temporary folder (4,000 folders of 50 files of
100 bytes), or is that of --corpus. The runs are paired and interleaved, in turned order; the result
is the median of each and of the ratios within a pair, by the clock and by processor seconds. Both
programs are one thread that never waits for the disk, so that the processor seconds are the time
that they take, and the clock's are those and what other programs take of the machine: the budget is
held against the former.

The classifier: `classifybench 1000000`, the seconds that it gives itself.

With --check the exit code is 1 when a budget is not kept.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
WALK_BUDGET = 0.8  # of find's time
CLASSIFY_BUDGET = 1.0  # seconds
PATHS = 1_000_000


def build(product):
    """Builds a benchmark and gives the path of the program."""
    command = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--product", product,
               "--package-path", str(PACKAGE)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    shown = subprocess.run(command + ["--show-bin-path"], check=True, capture_output=True, text=True)
    return os.path.join(shown.stdout.strip(), product)


def make_tree(root, folders, files):
    """Makes folders in folders, about 64 in each, with small files in every one of them."""
    content = b"x" * 100
    places = []
    for number in range(folders):
        above = places[(number - 64) // 64] if number >= 64 else root
        place = os.path.join(above, f"folder-{number:04}")
        os.mkdir(place)
        places.append(place)
        for file in range(files):
            handle = os.open(os.path.join(place, f"file-{number:04}-{file:02}.dat"),
                             os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(handle, content)
            os.close(handle)


def seconds(command):
    """Runs a command with its output to nowhere; gives its seconds by clock and by processor."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    clock = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"run: error: exit code {process.returncode} of {command}")
    return clock, usage.ru_utime + usage.ru_stime


def paired(ours, theirs, runs):
    """The seconds of each, run in pairs of turned order after one pair to warm the cache."""
    pairs = []
    for run in range(runs + 1):
        if run % 2:
            second = seconds(theirs)
            first = seconds(ours)
        else:
            first = seconds(ours)
            second = seconds(theirs)
        if run:
            pairs.append((first, second))
    return pairs


def report(title, pairs, budget):
    """Prints medians and ratios; whether the ratio of the processor seconds keeps the budget."""
    kept = True
    for place, name in enumerate(("clock", "processor")):
        ours = statistics.median(pair[0][place] for pair in pairs)
        theirs = statistics.median(pair[1][place] for pair in pairs)
        ratios = sorted(pair[0][place] / pair[1][place] for pair in pairs)
        ratio = statistics.median(ratios)
        print(f"{title}, {name}: {ours:.3f} s against {theirs:.3f} s, ratio {ratio:.3f} "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {len(pairs)} pairs; budget {budget})")
        kept = ratio <= budget
    return kept


def walk(program, tree, runs):
    """The walk against find."""
    own = subprocess.run([program, tree], check=True, capture_output=True, text=True)
    counted = subprocess.run(["find", tree, "-mindepth", "1", "-printf", "."], check=True,
                             capture_output=True, text=True)
    entries = int(own.stdout.split()[0].removeprefix("entries="))
    if entries != len(counted.stdout):
        sys.exit(f"run: error: {entries} entries walked, find counts {len(counted.stdout)}")
    pairs = paired([program, tree], ["find", tree, "-printf", "%s%T@"], runs)
    return report(f"walk of {entries} entries", pairs, WALK_BUDGET)


def classify(program, runs):
    """Paths classified in one thread."""
    taken = []
    for _ in range(runs):
        out = subprocess.run([program, str(PATHS)], check=True, capture_output=True,
                             text=True)
        taken.append(float(out.stdout.split("seconds=")[1].split()[0]))
    median = statistics.median(taken)
    print(f"classify {PATHS} paths: {median:.3f} s ({min(taken):.3f} to {max(taken):.3f} in "
          f"{runs} runs; budget {CLASSIFY_BUDGET} s)")
    return median <= CLASSIFY_BUDGET


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=15, help="pairs of runs (default 15)")
    parser.add_argument("--corpus", help="a tree that is there already")
    parser.add_argument("--folders", type=int, default=4000)
    parser.add_argument("--files", type=int, default=50, help="in each folder")
    parser.add_argument("--keep", action="store_true", help="keep the tree and print its path")
    parser.add_argument("--check", action="store_true", help="fail when a budget is not kept")
    options = parser.parse_args()

    program = build("walkbench")
    scratch = None
    tree = options.corpus
    try:
        if tree is None:
            scratch = tempfile.mkdtemp(prefix="sandboxctl-bench-")
            tree = os.path.join(scratch, "tree")
            os.mkdir(tree)
            make_tree(tree, options.folders, options.files)
        kept = walk(program, tree, options.runs)
    finally:
        if scratch and options.keep:
            print(f"kept: {tree}")
        elif scratch:
            shutil.rmtree(scratch)
    kept = classify(build("classifybench"), max(1, options.runs // 3)) and kept
    return 1 if options.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
