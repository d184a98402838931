#!/usr/bin/env python3
"""Checks that no Swift file of the program has more than 400 lines, and that comments wrap at 100
characters.

usage: check-sizes.py [PACKAGE]

A larger file has more than one responsibility: `Type.swift` contains the storage and the
invariants, `Type+Topic.swift` the rest. Rows of tables and addresses may be longer lines.
"""

import pathlib
import statistics
import sys

LIMIT = 400
WIDTH = 100
# The directories with Swift files, and those whose files have a limit.
ALL = ("Sources", "Tests", "Tools", "policies", "Benchmarks", "Fuzzers")
LIMITED = ("Sources", "Tools", "policies")


def files(package, directories):
    """Yields the Swift files below directories with their lines."""
    for top in directories:
        for file in sorted((package / top).rglob("*.swift")):
            yield file, file.read_text(encoding="utf-8").splitlines()


def wide_comments(lines):
    """Yields the numbers of the comment lines that are too long and could be wrapped."""
    for number, line in enumerate(lines, 1):
        text = line.lstrip()
        if len(line) > WIDTH and text.startswith("//") and "|" not in text and "://" not in text:
            yield number


def main(arguments):
    package = pathlib.Path(arguments[1] if len(arguments) > 1 else ".")
    found = [(file, len(lines)) for file, lines in files(package, LIMITED)]
    if not found:
        print(f"check-sizes: error: no Swift files below {package}/Sources", file=sys.stderr)
        return 2
    too_long = [(file, lines) for file, lines in found if lines > LIMIT]
    for file, lines in too_long:
        print(f"{file}:{LIMIT + 1}: {lines} lines, at most {LIMIT}: split it", file=sys.stderr)
    wide = [(file, number) for file, lines in files(package, ALL)
            for number in wide_comments(lines)]
    for file, number in wide:
        print(f"{file}:{number}: a comment of more than {WIDTH} characters: wrap it",
              file=sys.stderr)
    if not too_long and not wide:
        median = statistics.median(lines for _, lines in found)
        print(f"check-sizes: {len(found)} files, at most {LIMIT} lines each, median {median:g}")
    return 1 if too_long or wide else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
