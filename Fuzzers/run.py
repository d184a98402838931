#!/usr/bin/env python3
"""Builds the fuzzers and runs each on its corpus for a limited time, one on each processor.

usage: run.py [--seconds N] [--seeds] [--build] [TARGET ...]

  --seconds N  the time to run each target (default: 60); 0 only replays the corpus
  --build      only build the fuzzers, and exit
  --seeds      regenerate the seeds of the corpus from the golden repository, and exit

The targets are defined in Fuzzers/Sources; by default all are run. Fuzzers/Corpus/TARGET has the seeds
and earlier findings, Fuzzers/Dictionaries/TARGET.dict the words of a format. New inputs that reach new
code are collected in Fuzzers/.build/grown, and later runs continue with them. An input that crashes,
hangs or exceeds the memory limit is saved in Fuzzers/.build/found, and the exit status is 1.

The target `canary` crashes on certain bytes. A run that does not find that crash would not find others
either, so it fails.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = [
    "swift", "build", "--package-path", str(HERE.parent), "--scratch-path", str(HERE / ".build"),
    "-c", "release", "--product", "fuzz",
    # All modules are instrumented, including C; -enable-testing makes internal declarations
    # visible.
    "-Xswiftc", "-sanitize=fuzzer,address", "-Xswiftc", "-enable-testing",
    "-Xcc", "-fsanitize=fuzzer-no-link,address", "-Xswiftc", "-use-ld=lld",
]
LIMITS = [
    "-timeout=10", "-rss_limit_mb=1024", "-malloc_limit_mb=512", "-max_len=65536",
    "-print_final_stats=1", "-use_value_profile=1",
]
CANARY = "canary"
# Sufficient even on a busy machine: the crash is usually found within ten seconds.
CANARY_SECONDS = 300


def build():
    """Builds the program and returns its path."""
    target = dict(os.environ, SANDBOXCTL_FUZZ="1")
    subprocess.run(BUILD, check=True, env=target)
    place = subprocess.run(
        BUILD + ["--show-bin-path"], check=True, capture_output=True, text=True, env=target)
    return pathlib.Path(place.stdout.strip()) / "fuzz"


def environment(target):
    return dict(
        os.environ, FUZZ_TARGET=target, SWIFT_BACKTRACE="enable=no", ASAN_OPTIONS="detect_leaks=0")


def drive(program, target, seconds):
    """Runs one target and returns libFuzzer's exit status and output."""
    grown = HERE / ".build/grown" / target
    found = HERE / ".build/found"
    grown.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    words = [program, *LIMITS, f"-artifact_prefix={found}/{target}-", grown]
    corpus = HERE / "Corpus" / target
    if corpus.is_dir():
        words.append(corpus)
    dictionary = HERE / "Dictionaries" / f"{target}.dict"
    if dictionary.is_file():
        words.append(f"-dict={dictionary}")
    words.append("-runs=0" if seconds == 0 else f"-max_total_time={seconds}")
    done = subprocess.run(
        words, env=environment(target), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.returncode, done.stderr.decode(errors="replace")


def coverage(text):
    """Returns the first and the last coverage that libFuzzer reported."""
    reported = [int(number) for number in re.findall(r"\bcov: (\d+)", text)]
    return (reported[0], reported[-1]) if reported else (0, 0)


def executions(text):
    reported = re.findall(r"number_of_executed_units: *(\d+)", text)
    return int(reported[-1]) if reported else 0


def check_canary(program):
    """Returns whether the planted crash is found."""
    code, text = drive(program, CANARY, CANARY_SECONDS)
    for file in (HERE / ".build/found").glob(f"{CANARY}-*"):
        file.unlink()
    if code == 0:
        print(f"fuzz: error: the crash of the target '{CANARY}' was not found", file=sys.stderr)
        return False
    print(f"{CANARY:14} found after {executions(text)} executions")
    return True


def check(program, target, code, text):
    """Prints the result of one target and returns whether it passed."""
    first, last = coverage(text)
    print(f"{target:14} {executions(text):9} executions, coverage {first} to {last}", flush=True)
    if code == 0 and last > 0:
        return True
    print("\n".join(text.splitlines()[-60:]), file=sys.stderr)
    if code == 0:
        print(f"fuzz: error: {target} reached no instrumented code", file=sys.stderr)
        return False
    print(f"fuzz: error: {target} failed: the input is in {HERE}/.build/found", file=sys.stderr)
    print(f"fuzz: hint: run 'FUZZ_TARGET={target} {program} FILE' to reproduce it", file=sys.stderr)
    return False


def make_seeds(program):
    corpus = HERE / "Corpus"
    for seed in corpus.glob("*/seed-*"):
        seed.unlink()
    subprocess.run([program, "--seeds", HERE.parent, corpus], check=True)
    size = sum(file.stat().st_size for file in corpus.rglob("*") if file.is_file())
    print(f"{size} bytes in {corpus}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    program = build()
    if options.build:
        return 0
    if options.seeds:
        make_seeds(program)
        return 0
    listed = subprocess.run([program, "--targets"], check=True, capture_output=True, text=True)
    targets = [name for name in listed.stdout.split() if name != CANARY]
    unknown = set(options.targets) - set(targets)
    if unknown:
        print(f"fuzz: error: no target {', '.join(sorted(unknown))}", file=sys.stderr)
        print(f"fuzz: hint: the targets are {', '.join(targets)}", file=sys.stderr)
        return 2
    good = check_canary(program)
    chosen = options.targets or targets
    # One for each processor: a target has one thread.
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        results = threads.map(lambda target: drive(program, target, options.seconds), chosen)
        for target, (code, text) in zip(chosen, results, strict=True):
            good = check(program, target, code, text) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
