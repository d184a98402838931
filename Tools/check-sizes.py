#!/usr/bin/env python3
"""Checks that no Swift file of the program has more than 400 lines.

usage: check-sizes.py [PACKAGE]

A larger file has more than one responsibility: `Type.swift` contains the storage and the
invariants, `Type+Topic.swift` the rest.
"""

import pathlib
import statistics
import sys

LIMIT = 400


def sizes(package):
    """Yields each Swift file below Sources, Tools and policies with its number of lines."""
    for top in ("Sources", "Tools", "policies"):
        for file in sorted((package / top).rglob("*.swift")):
            yield file, len(file.read_bytes().splitlines())


def main(arguments):
    package = pathlib.Path(arguments[1] if len(arguments) > 1 else ".")
    found = list(sizes(package))
    if not found:
        print(f"check-sizes: error: no Swift files below {package}/Sources", file=sys.stderr)
        return 2
    too_long = [(file, lines) for file, lines in found if lines > LIMIT]
    for file, lines in too_long:
        print(f"{file}:{LIMIT + 1}: {lines} lines, at most {LIMIT}: split it", file=sys.stderr)
    if not too_long:
        median = statistics.median(lines for _, lines in found)
        print(f"check-sizes: {len(found)} files, at most {LIMIT} lines each, median {median:g}")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
