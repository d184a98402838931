"""Makes databases with valid logs, as a killed program leaves them.

usage: logs.py DIRECTORY

Writes DIRECTORY/log (a write-ahead log) and DIRECTORY/journal-N (a rollback journal of one segment,
of several, and one that was never synced), each with a file `db`.
"""

import os
import shutil
import sqlite3
import sys


def connect(path):
    return sqlite3.connect(path, isolation_level=None)


def keep(path, place):
    """Copies a database with its logs."""
    os.makedirs(place)
    for name in os.listdir(os.path.dirname(path)):
        if name in ("db", "db-wal", "db-journal"):
            shutil.copy(os.path.join(os.path.dirname(path), name), place)


def fill(connection, rows, size=300):
    for _ in range(rows):
        connection.execute(
            "INSERT INTO t VALUES (abs(random()) % 1000, randomblob(?))", (size,))


def log(folder):
    path = os.path.join(folder, "work-log", "db")
    os.makedirs(os.path.dirname(path))
    connection = connect(path)
    connection.execute("PRAGMA page_size=1024")
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute("CREATE TABLE t (n, pad)")
    fill(connection, 40)
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    # The log is restarted: old frames remain after its end.
    fill(connection, 8)
    connection.execute("DELETE FROM t WHERE n < 500")
    connection.execute("VACUUM")
    fill(connection, 5)
    keep(path, os.path.join(folder, "log"))


def journal(folder, number, synchronous, cache, updates):
    path = os.path.join(folder, f"work-{number}", "db")
    os.makedirs(os.path.dirname(path))
    connection = connect(path)
    connection.execute("PRAGMA page_size=1024")
    connection.execute("CREATE TABLE t (n, pad)")
    connection.execute("BEGIN")
    fill(connection, 100)
    connection.execute("COMMIT")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute(f"PRAGMA cache_size={cache}")
    connection.execute("BEGIN")
    for _ in range(updates):
        connection.execute("UPDATE t SET n = n + 1, pad = randomblob(300) WHERE rowid % 3 = 0")
    fill(connection, 60)
    keep(path, os.path.join(folder, f"journal-{number}"))


log(sys.argv[1])
journal(sys.argv[1], 0, "full", 20, 1)
journal(sys.argv[1], 1, "full", 2, 2)
journal(sys.argv[1], 2, "off", 2, 1)
