#!/usr/bin/env python3
"""Opens captured databases, which recovers them, and checks them.

Reads lines from its standard input: a directory with `db` and its logs, then WRITER=NUMBER for each
transaction that was committed before the capture began. Prints a line for each fault.
"""

import os
import sqlite3
import sys


def faults(folder, committed):
    connection = sqlite3.connect(os.path.join(folder, "db"), timeout=1)
    result = connection.execute("PRAGMA integrity_check(3)").fetchall()
    if result != [("ok",)]:
        yield f"integrity_check: {result}"
    rows = connection.execute("SELECT writer, count(*), max(number), sum(number) FROM entries"
                              " WHERE writer <> 'first' GROUP BY writer").fetchall()
    sums = dict(connection.execute("SELECT writer, sum FROM sums").fetchall())
    for writer, count, last, total in rows:
        if count != last or total != sums.get(writer):
            yield f"{writer}: {count} rows up to {last}, sum {total}, kept {sums.get(writer)}"
    found = {writer: last for writer, _, last, _ in rows}
    for writer, number in committed.items():
        if found.get(writer, 0) < number:
            yield f"{writer}: has {found.get(writer, 0)}, committed before: {number}"
    connection.close()


def main():
    for line in sys.stdin:
        folder, *rest = line.split()
        committed = {name: int(number) for name, number in (part.split("=") for part in rest)}
        try:
            for fault in faults(folder, committed):
                print(f"{folder}: {fault}")
        except sqlite3.DatabaseError as error:
            print(f"{folder}: {error}")


if __name__ == "__main__":
    main()
