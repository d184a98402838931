#!/usr/bin/env python3
"""Commits numbers to a SQLite database in bursts, like an app that does not expect to be blocked.

usage: bursts.py DIRECTORY MODE SEED

The database is DIRECTORY/db, as prepared by writer.py, in a journal mode (wal, delete, truncate,
persist). After COMMIT has returned, the number is written to DIRECTORY/bursts. Between bursts the
program runs a checkpoint, each kind in turn, or closes the database and opens it again. It waits at
most a minute for a lock; any error of SQLite ends it with a message and the exit code 1. It ends
with its standard input, and then prints the number of commits and what it did.
"""

import os
import random
import select
import sqlite3
import sys

KINDS = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"]


def connect(path, mode):
    """A connection with a small cache, so that pages are also written before the commit."""
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    found = connection.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
    if found != mode:
        raise sqlite3.OperationalError(f"the journal mode is {found}")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=20")
    connection.execute("PRAGMA wal_autocheckpoint=50")
    return connection


def commit(connection, number, rows):
    """One transaction: a row with the number, others changed, and the sum of all numbers."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO entries (writer, number, pad) VALUES ('bursts', ?, ?)",
                       (number, os.urandom(random.randrange(1500))))
    for _ in range(random.choice([0, 1, 5, 40])):
        connection.execute("UPDATE entries SET pad = ? WHERE id = ?",
                           (os.urandom(3000), random.randrange(1, rows)))
    connection.execute("INSERT INTO sums VALUES ('bursts', ?) ON CONFLICT (writer)"
                       " DO UPDATE SET sum = sum + excluded.sum", (number,))
    connection.execute("COMMIT")


def ended(wait):
    """Whether the standard input ends within `wait` seconds."""
    return bool(select.select([sys.stdin], [], [], wait)[0])


def main():
    folder, mode, seed = sys.argv[1:]
    random.seed(seed)
    path = os.path.join(folder, "db")
    log = os.open(os.path.join(folder, "bursts"), os.O_CREAT | os.O_RDWR, 0o600)
    connection, number, done = connect(path, mode), 0, {"bursts": 0, "reopened": 0}
    rows = connection.execute("SELECT max(id) FROM entries").fetchone()[0]
    print("ready", flush=True)
    while not ended(random.choice([0.001, 0.005, 0.02, 0.1, 0.2])):
        for _ in range(random.choice([1, 3, 10, 30])):
            commit(connection, number + 1, rows)
            number += 1
            os.pwrite(log, b"%20d" % number, 0)
        done["bursts"] += 1
        if mode == "wal":
            kind = KINDS[done["bursts"] % len(KINDS)]
            connection.execute(f"PRAGMA wal_checkpoint({kind})").fetchall()
            done[kind] = done.get(kind, 0) + 1
        if done["bursts"] % 7 == 0:
            connection.close()
            connection = connect(path, mode)
            done["reopened"] += 1
    connection.close()
    print(number, " ".join(f"{name}={count}" for name, count in done.items()), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except sqlite3.Error as error:
        print(f"the writer failed: {error}", flush=True)
        sys.exit(1)
