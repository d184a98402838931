"""Building and running programs: seconds, memory, pairs."""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
# What takes some milliseconds is measured at least so often: one reading of it says little.
RUNS_OF_SHORT = 5


class Failed(Exception):
    """A program that ended with another exit code than 0."""


def build(product):
    """Builds a product as it is released, below $RELEASE_SCRATCH, and returns the program's path."""
    command = ["swift", "build", "-c", "release", "--static-swift-stdlib", "--product", product,
               "--package-path", str(PACKAGE), "--scratch-path",
               os.environ.get("RELEASE_SCRATCH") or str(PACKAGE / ".build")]
    subprocess.run(command, check=True, stdout=sys.stderr)
    shown = subprocess.run(command + ["--show-bin-path"], check=True, capture_output=True, text=True)
    return os.path.join(shown.stdout.strip(), product)


def seconds(command, environment=None):
    """Runs a command with its output to nowhere; gives its seconds by clock and by processor."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=environment)
    with process.stderr:
        errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    clock = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = errors.decode(errors="replace").strip().split("\n")[0]
        raise Failed(f"exit code {process.returncode}: {said}")
    return clock, usage.ru_utime + usage.ru_stime


def median_seconds(command, runs, environment=None, prepare=lambda: None):
    """The median of a command's seconds by the clock; `prepare` runs before each."""
    taken = []
    for _ in range(runs):
        prepare()
        taken.append(seconds(command, environment)[0])
    return statistics.median(taken)


def paired(ours, theirs, runs, environment=None):
    """The seconds of each, run in pairs of turned order after one pair to warm the cache."""
    pairs = []
    for run in range(runs + 1):
        if run % 2:
            second = seconds(theirs, environment)
            first = seconds(ours, environment)
        else:
            first = seconds(ours, environment)
            second = seconds(theirs, environment)
        if run:
            pairs.append((first, second))
    return pairs


ANONYMOUS = re.compile(rb"^RssAnon:\s+(\d+) kB$", re.MULTILINE)


def peak_memory(command, environment=None):
    """The most anonymous memory (RssAnon) that a command was seen with, in bytes."""
    peak = 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment)
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_bytes()
        except OSError:
            break
        found = ANONYMOUS.search(status)
        peak = max(peak, int(found.group(1)) * 1024 if found else 0)
        time.sleep(0.002)
    if process.wait():
        raise Failed(f"exit code {process.returncode}")
    return peak
