"""Reads a report in the Test Anything Protocol with the package tap-py.

usage: read_tap.py < REPORT

Prints each line as the package understands it: its category and, of a result, its number, whether
it is ok, whether it is skipped, and its description.
"""

import sys

from tap.parser import Parser

for line in Parser().parse(sys.stdin):
    if line.category == "test":
        print(line.category, line.number, "ok" if line.ok else "not ok",
              "skipped" if line.skip else "run", line.description)
    elif line.category == "plan":
        print(line.category, line.expected_tests)
    else:
        print(line.category)
