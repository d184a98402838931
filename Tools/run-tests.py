#!/usr/bin/env python3
"""Runs the tests of a bundle in several processes, and prints the slowest tests and suites.

usage: run-tests.py BUNDLE [--suites PATTERN|@FILE | --trait NAME] [--sample N|--rest-of N] [--processes N] [--count 20]

Each process runs some of the suites, one test after the other, so that the time of a test does not
include others, and static fixtures are made once for all suites of a process. More processes than
processors run at once, because many tests wait for a program, a lock or a clock. Prints the output
of each process when it ends, and each failed test with its messages once more at the end. The exit
status is 1 if a test failed or a process ended without its summary.

A FILE lists all suites of some modules in sections: those in the section 'both kinds' are run, and
the titles of the other sections say why their suites are not. It is an error if a suite of these
modules is only in the bundle or only in the file. `--trait spreadScans` runs the suites that are
declared with this trait.

The suites that start the program thousands of times take two thirds of the time. They are divided
into five samples: `--sample 3` runs those of the third and all other suites, `--sample 0` those of
a random one, and `--rest-of 3` the suites that `--sample 3` omits.
"""

import argparse
import collections
import json
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib

TESTS = pathlib.Path(__file__).resolve().parents[1] / "Tests"
# The number of suites in one process: enough to share static fixtures, few enough to occupy all
# processors.
SUITES_IN_A_PROCESS = 14
EVENT = re.compile(r'"kind":\s?"(?:test(?:Started|Ended|Skipped)|issueRecorded)"')
# The maximum length of a failure's messages that are repeated at the end, and the number of failures.
MESSAGE_LIMIT = 500
FAILURE_LIMIT = 20
# These modules have the tests that take longest: they are started first.
SLOW_MODULES = ("CommandTests.", "OperationTests.")
# The module whose suites are divided into samples, and the number of samples.
SAMPLED_MODULE = "CommandTests."
SAMPLES = 5
# The suites that take longest when every point of their sweeps runs, the longest first. Each runs in
# its own process, before all others, so that the last process to end is a short one.
SLOW_SUITES = (
    "CommandTests.KeyKillTests",
    "CommandTests.ITunesPeersTests",
    "CommandTests.ImportPeerTests",
    "CommandTests.UpdateKillTests",
    "OperationTests.BackupFaultTests",
    "CommandTests.PruneKillTests",
    "CommandTests.CopyKillTests",
    "CommandTests.InterruptedCommandTests",
    "CommandTests.SignalTests",
    "ArchiveStoreTests.PruneModelTests",
    "CommandTests.CorpusTests",
    "CommandTests.HelpTests",
    "OperationTests.RollbackTests",
)


def suite(test):
    """Returns the suite of a test: the part of its ID before the first slash."""
    return test.split("/", 1)[0]


def groups(tests):
    """Divides tests into groups by suite: each suite is in one group, the slow ones first."""
    suites = {suite(test) for test in tests}
    slow = [name for name in SLOW_SUITES if name in suites]
    others = sorted(suites.difference(slow),
                    key=lambda name: (not name.startswith(SLOW_MODULES), name))
    return [[name] for name in slow] + [
        others[first:first + SUITES_IN_A_PROCESS]
        for first in range(0, len(others), SUITES_IN_A_PROCESS)]


def sample_of(name):
    """Returns the number of a suite's sample, from 1, or None if it is in no sample."""
    if not name.startswith(SAMPLED_MODULE):
        return None
    return zlib.crc32(name.encode()) % SAMPLES + 1


class Sample:
    """Chooses the suites of one sample and those in none, or all suites that this choice omits; None
    chooses all."""

    def __init__(self, number, rest):
        self.number = rest or number or (None if number is None else random.randint(1, SAMPLES))
        self.is_rest = rest is not None

    def has(self, name):
        """Whether a suite is chosen."""
        if self.number is None:
            return True
        return (sample_of(name) in (None, self.number)) != self.is_rest

    def note(self, suites):
        """Returns the line that says which of all suites are chosen."""
        chosen = sum(map(self.has, suites))
        what = f"all but sample {self.number}" if self.is_rest else f"sample {self.number}"
        other = "" if self.is_rest else f"; 'make test-rest SAMPLE={self.number}' runs the others"
        return f"== {what} of {SAMPLES}: {chosen} of {len(suites)} suites{other}"


def pattern(suites):
    """Returns a regular expression for the IDs of the tests of some suites."""
    return "^(" + "|".join(map(re.escape, suites)) + ")(/|$)"


class SuiteList:
    """The suites that a file chooses, and those that it omits, with the reason."""

    CHOSEN = "both kinds"

    def __init__(self, path):
        self.path = path
        # The section of each suite.
        self.sections = {}
        # The lines that are neither a title nor the name of one suite, and suites named twice.
        self.faults = []
        section = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            text = line.split("#", 1)[0].strip()
            if text.endswith(":"):
                section = text[:-1]
            elif text and (section is None or not re.fullmatch(r"\w+\.\w+", text)):
                self.faults.append(f"line {number} is neither the title of a section nor a suite")
            elif text and text in self.sections:
                self.faults.append(f"line {number} names {text} again")
            elif text:
                self.sections[text] = section

    def pattern(self):
        """Returns a regular expression for the chosen suites."""
        chosen = [name for name, section in self.sections.items() if section == self.CHOSEN]
        return "|".join(map(re.escape, chosen)) or "(?!)"

    def differences(self, suites):
        """Yields the differences from the suites that exist."""
        modules = {name.split(".")[0] for name in self.sections}
        known = {name for name in suites if name.split(".")[0] in modules}
        yield from self.faults
        for name in sorted(known - self.sections.keys()):
            yield f"{name} is missing: add it to '{self.CHOSEN}', or to a section with the reason"
        for name in sorted(self.sections.keys() - known):
            yield f"there is no suite {name}"


def suites_with(trait, sources):
    """Returns a regular expression for the suites in `sources` that are declared with a trait."""
    declaration = re.compile(r"@Suite\(([^{]*?)\)\s+(?:final )?(?:struct|class) (\w+)")
    found = [f"{path.relative_to(sources).parts[0]}.{name}"
             for path in sources.rglob("*.swift")
             for traits, name in declaration.findall(path.read_text(encoding="utf-8"))
             if re.search(rf"\.{re.escape(trait)}\b", traits)]
    return "|".join(map(re.escape, sorted(found))) or "(?!)"


class Times:
    """The seconds of tests and suites, read from the files of --event-stream-output-path."""

    def __init__(self):
        self.tests = collections.Counter()
        self.suites = collections.Counter()
        # Tests that have begun and not ended: the process crashed or was killed.
        self.unfinished = []
        # Tests and suites that were skipped because of a condition.
        self.skipped = set()
        # The messages of each failed test.
        self.failures = collections.defaultdict(list)

    def add(self, lines):
        """Adds the tests of a process."""
        begun = {}
        for line in lines:
            if not EVENT.search(line):
                continue
            payload = json.loads(line)["payload"]
            # An issue outside of any test has no ID.
            test = self.title(payload.get("testID", "outside of the tests"))
            now = payload["instant"]["absolute"]
            if payload["kind"] == "issueRecorded":
                if not payload.get("issue", {}).get("isKnown"):
                    self.failures[test].append(self.message(payload))
            elif payload["kind"] == "testSkipped":
                self.skipped.add(test)
            # Suites have IDs without a function.
            elif "(" not in test:
                continue
            elif payload["kind"] == "testStarted":
                begun[test] = now
            elif test in begun:
                seconds = now - begun.pop(test)
                self.tests[test] += seconds
                self.suites[suite(test)] += seconds
        self.unfinished += begun

    def missing(self, listed):
        """Returns the tests that neither ran nor were skipped."""
        return [test for test in listed if test not in self.tests and test not in self.unfinished
                and not self.skipped & {test, suite(test)}]

    @staticmethod
    def title(test):
        """Returns the ID of a test without the position in the source."""
        parts = test.split("/")
        return "/".join(parts[:-1] if ".swift:" in parts[-1] else parts)

    @staticmethod
    def message(payload):
        """Returns the place and the messages of a recorded issue as one shortened line."""
        place = payload.get("issue", {}).get("sourceLocation", {})
        texts = [" ".join(message["text"].split()) for message in payload.get("messages", [])]
        line = f"{place.get('fileID', '?')}:{place.get('line', '?')}: {'; '.join(texts)}"
        return line if len(line) <= MESSAGE_LIMIT else line[:MESSAGE_LIMIT] + " …"

    def failed(self):
        """Yields the lines about failed tests."""
        failures = list(self.failures.items())
        for test, messages in failures[:FAILURE_LIMIT]:
            yield f"run-tests: error: {test} failed: {messages[0]}"
            if len(messages) > 1:
                yield f"  and {len(messages) - 1} more messages"
        if len(failures) > FAILURE_LIMIT:
            yield f"run-tests: error: {len(failures) - FAILURE_LIMIT} more tests failed"

    def table(self, count):
        """Yields the lines of the report."""
        for name, found in (("tests", self.tests), ("suites", self.suites)):
            yield f"\n== the {count} slowest of {len(found)} {name}"
            for title, seconds in found.most_common(count):
                yield f"{seconds:8.1f} s  {title}"
        yield f"{sum(self.tests.values()):8.1f} s  in total"
        for title in self.unfinished:
            yield f"run-tests: error: {title} did not end"
        yield from self.failed()


class Runner:
    """Runs groups of suites in several processes."""

    def __init__(self, bundle, processes, suites, sample):
        self.sample = sample
        self.command = [bundle, "--testing-library", "swift-testing"]
        self.file = SuiteList(pathlib.Path(suites[1:])) if suites.startswith("@") else None
        self.suites = re.compile(self.file.pattern() if self.file else suites)
        self.processes = processes
        self.running = set()
        self.lock = threading.Lock()
        self.times = Times()
        self.passed = True

    def list(self):
        """Returns the IDs of the tests of all chosen suites."""
        listed = subprocess.run([*self.command, "--list-tests"], check=True, capture_output=True,
                                text=True)
        tests = [line for line in listed.stdout.splitlines() if "." in line]
        if self.file:
            for difference in self.file.differences({suite(line) for line in tests}):
                print(f"run-tests: error: {self.file.path}: {difference}")
                self.passed = False
        suites = {suite(line) for line in tests if self.suites.fullmatch(suite(line))}
        if self.sample.number is not None:
            print(self.sample.note(suites), flush=True)
        return [line for line in tests if suite(line) in suites and self.sample.has(suite(line))]

    def run(self, directory):
        """Runs the tests. Returns whether all have passed; false if there are none."""
        waiting, listed = queue.SimpleQueue(), self.list()
        for number, suites in enumerate(groups(listed)):
            waiting.put((pathlib.Path(directory) / f"{number}", suites))
        lanes = [threading.Thread(target=self.work, args=(waiting,), daemon=True)
                 for _ in range(self.processes)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        missing = self.times.missing(listed)
        for test in missing:
            print(f"run-tests: error: {test} did not run")
        return self.passed and bool(listed) and not missing

    def work(self, waiting):
        while True:
            try:
                place, suites = waiting.get_nowait()
            except queue.Empty:
                return
            self.run_group(place, suites)

    def run_group(self, place, suites):
        events = place.with_suffix(".events")
        with open(place, "wb") as output:
            process = subprocess.Popen(
                [*self.command, "--no-parallel", "--event-stream-version", "0",
                 "--event-stream-output-path", events, "--filter", pattern(suites)],
                stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            self.running.add(process)
            begun = time.monotonic()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status = os.waitstatus_to_exitcode(status)
            self.running.discard(process)
        with self.lock:
            with open(place, "rb") as output:
                sys.stdout.flush()
                while part := output.read(1 << 20):
                    sys.stdout.buffer.write(part)
            if events.exists():
                with open(events, encoding="utf-8", errors="replace") as lines:
                    self.times.add(lines)
            if status != 0:
                self.passed = False
                print(f"run-tests: error: status {status} of the tests of {', '.join(suites)}")
            print(f"== {suites[0]} to {suites[-1]}: {time.monotonic() - begun:.0f} s, processor "
                  f"{usage.ru_utime:.0f} s and {usage.ru_stime:.0f} s in the system")
            sys.stdout.flush()

    def end(self):
        """Ends all processes."""
        for process in list(self.running):
            process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("bundle")
    parser.add_argument("--suites", metavar="PATTERN|@FILE", default=".*",
                        help="a regular expression for the suites to run, or a file with their names "
                        "(default: all)")
    parser.add_argument("--trait", metavar="NAME",
                        help="run the suites that are declared with a trait")
    parser.add_argument("--sample", type=int, choices=range(SAMPLES + 1), metavar="N",
                        help=f"run one of {SAMPLES} samples of the slowest module, and all others "
                        "(0: a random one)")
    parser.add_argument("--rest-of", type=int, choices=range(1, SAMPLES + 1), metavar="N",
                        help="run what the sample N omits")
    parser.add_argument("--processes", type=int, default=3 * len(os.sched_getaffinity(0)),
                        help="the number of processes at once (default: three for each processor)")
    parser.add_argument("--count", type=int, default=20,
                        help="the length of the lists of slow tests and suites (default: 20)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sample = Sample(options.sample, options.rest_of)
    suites = suites_with(options.trait, TESTS) if options.trait else options.suites
    runner = Runner(options.bundle, options.processes, suites, sample)
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as directory:
            passed = runner.run(directory)
    finally:
        runner.end()
    print("\n".join(runner.times.table(options.count)))
    print(f"== {len(runner.times.tests)} tests, {time.monotonic() - begun:.0f} s: "
          f"{'all passed' if passed else 'some failed'}")
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
