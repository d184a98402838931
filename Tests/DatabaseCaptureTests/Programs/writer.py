#!/usr/bin/env python3
"""Writes to a SQLite database continuously, as apps do, and logs its commits.

usage: writer.py DIRECTORY WRITER MODE SEED

The database is DIRECTORY/db. After each commit the number of the transaction is written to
DIRECTORY/WRITER: a later capture of the database must have it. A transaction inserts one row with
its number, changes some older rows, and updates the sum of the numbers, so that a partial
transaction shows.

MODE is a journal mode (wal, delete, truncate, persist), followed by `-exclusive` for a connection
that never releases its lock, or `checkpoint`: no transactions, but checkpoints of every kind. The
program ends with its standard input. WRITER may be `prepare`, which creates the database with SEED
rows and ends.
"""

import os
import random
import select
import sqlite3
import sys
import time


def connect(path, mode):
    """A connection with small caches and a small log, so that it writes frequently."""
    connection = sqlite3.connect(path, timeout=20, isolation_level=None)
    kind, _, exclusive = mode.partition("-")
    if exclusive:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    if kind != "checkpoint":
        connection.execute(f"PRAGMA journal_mode={kind}")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA cache_size=20")
    connection.execute(f"PRAGMA wal_autocheckpoint={random.choice([10, 50, 200])}")
    return connection


def prepare(path, mode, rows):
    """Creates the tables and the first rows."""
    connection = connect(path, mode)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, writer TEXT,"
                       " number INTEGER, pad BLOB, UNIQUE (writer, number))")
    connection.execute("CREATE TABLE IF NOT EXISTS sums (writer TEXT PRIMARY KEY, sum INTEGER)")
    if not connection.execute("SELECT count(*) FROM entries").fetchone()[0]:
        connection.executemany("INSERT INTO entries (writer, number, pad) VALUES ('first', ?, ?)",
                               ((n, os.urandom(3000)) for n in range(rows)))
        connection.execute("INSERT INTO sums SELECT 'first', sum(number) FROM entries")
    connection.execute("COMMIT")
    connection.close()


def transaction(connection, writer, number):
    """One transaction. Returns whether it was committed."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO entries (writer, number, pad) VALUES (?, ?, ?)",
                           (writer, number, os.urandom(random.randrange(2000))))
        for _ in range(random.choice([0, 1, 5, 60])):
            connection.execute("UPDATE entries SET pad = ? WHERE id = ?",
                               (os.urandom(random.randrange(5000)), random.randrange(1, 1000)))
        connection.execute("INSERT INTO sums VALUES (?, ?) ON CONFLICT (writer)"
                           " DO UPDATE SET sum = sum + excluded.sum", (writer, number))
        connection.execute("ROLLBACK" if random.random() < 0.05 else "COMMIT")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error) and "busy" not in str(error):
            raise
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    return connection.execute("SELECT count(*) FROM entries WHERE writer = ? AND number = ?",
                              (writer, number)).fetchone()[0] == 1


def checkpoint(connection):
    kind = random.choice(["PASSIVE", "FULL", "RESTART", "TRUNCATE"])
    try:
        connection.execute(f"PRAGMA wal_checkpoint({kind})").fetchall()
    except sqlite3.OperationalError:
        pass  # another connection is writing


def ended(wait):
    """Whether the standard input ends within `wait` seconds."""
    return bool(select.select([sys.stdin], [], [], wait)[0])


def main():
    folder, writer, mode, seed = sys.argv[1:]
    random.seed(seed)
    path = os.path.join(folder, "db")
    if writer == "prepare":
        return prepare(path, mode, int(seed))
    log = os.open(os.path.join(folder, writer), os.O_CREAT | os.O_RDWR, 0o600)
    connection, number = connect(path, mode), 0
    print("ready", flush=True)
    while not ended(random.choice([0, 0, 0, 0, 0.003, 0.03])):
        if mode == "checkpoint":
            checkpoint(connection)
            time.sleep(0.002)
        elif transaction(connection, writer, number + 1):
            number += 1
            os.pwrite(log, b"%20d" % number, 0)
        if random.random() < 0.01:
            connection.close()
            connection = connect(path, mode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
