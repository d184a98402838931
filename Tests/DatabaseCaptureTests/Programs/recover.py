"""Has SQLite recover the databases named on standard input; prints `ok` or an error for each."""

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
