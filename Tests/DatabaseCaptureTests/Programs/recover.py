"""Has SQLite recover databases: reads paths from standard input, and writes for each `ok`, or why not."""

import sqlite3
import sys

for path in sys.stdin.read().splitlines():
    try:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()
        print("ok")
    except sqlite3.DatabaseError as error:
        print(error)
