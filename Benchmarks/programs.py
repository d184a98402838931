"""Builds and runs programs: seconds, memory, pairs."""

import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
# The minimum number of runs for operations of milliseconds, whose single measurements vary.
RUNS_OF_SHORT = 5


class Failed(Exception):
    """A program that exited with a status other than 0."""


def build(product):
    """Makes a release build of a product and returns its path. With $TESTED it is that of the tests
    (Makefile), which is slower."""
    kind = ["-Xswiftc", "-enable-testing", "--disable-dead-strip", "--scratch-path",
            str(PACKAGE / ".build-test")] if os.environ.get("TESTED") else [
                "--static-swift-stdlib", "--scratch-path", str(PACKAGE / ".build")]
    command = ["swift", "build", "-c", "release", "--product", product, "--package-path",
               str(PACKAGE), *kind]
    subprocess.run(command, check=True, stdout=sys.stderr)
    shown = subprocess.run(command + ["--show-bin-path"], check=True, capture_output=True, text=True)
    return os.path.join(shown.stdout.strip(), product)


def seconds(command, environment=None):
    """Runs a command, discarding its output. Returns its wall and processor time in seconds."""
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


def set_aside(path):
    """Moves a tree, if it exists, into the directory `trash` next to it, which is deleted with the
    scratch directory: creating files after the deletion of many others takes several times as long
    (aside.py explains why)."""
    trash = pathlib.Path(path).parent / "trash"
    trash.mkdir(exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, trash / str(time.time_ns()))


def median_seconds(command, runs, environment=None, prepare=lambda: None):
    """Returns the median wall time of a command in seconds. `prepare` precedes each run."""
    taken = []
    for _ in range(runs):
        prepare()
        taken.append(seconds(command, environment)[0])
    return statistics.median(taken)


def paired(ours, theirs, runs, environment=None):
    """Runs both in pairs of alternating order, after a warm-up pair. Returns their times."""
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
    """Returns the peak anonymous memory (RssAnon) of a command in bytes."""
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
