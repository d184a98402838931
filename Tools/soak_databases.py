#!/usr/bin/env python3
"""Backs up a large SQLite database during writes, and checks each restored copy.

usage: soak_databases.py PROGRAM [MEGABYTES [BACKUPS]]

A database in WAL mode of MEGABYTES (3000) receives 50 transactions a second, each of which
increments a counter and rewrites random rows. It is backed up BACKUPS (10) times, and each snapshot
is restored: the copy must pass `PRAGMA integrity_check` and must contain every transaction that was
committed before its backup began. A backup with an exit status other than 0 fails the run: the
database is never busy for too long to take a consistent copy.

A second, small database is written to in the journal modes DELETE, TRUNCATE, PERSIST, MEMORY and
OFF. Its backup may exit with status 3, which reports a possibly inconsistent copy; with status 0 the
same is required of the copy, and at least one of the backups must have status 0. In the modes MEMORY
and OFF, another writer pauses for 15 seconds within each transaction, part of which is then already
in the database file.
"""

import multiprocessing
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

RATE = 50
ROW = 8 << 10
PAUSE = 15
PAUSED_MODES = ["MEMORY", "OFF"]
OTHER_MODES = ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"]


def fail(what):
    sys.exit(f"soak_databases: FAILED: {what}")


def make(path, megabytes, mode):
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.execute("CREATE TABLE counter (n INTEGER)")
        database.execute("INSERT INTO counter VALUES (0)")
        database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, key INTEGER, body BLOB)")
        database.execute("CREATE INDEX keys ON rows (key)")
        for start in range(0, megabytes * (1 << 20) // ROW, 1000):
            rows = ((random.getrandbits(40), os.urandom(ROW)) for _ in range(1000))
            database.executemany("INSERT INTO rows (key, body) VALUES (?, ?)", rows)
            database.commit()


def write(path, mode, committed, stop):
    """Writes RATE transactions a second, and publishes the number of committed ones."""
    database = sqlite3.connect(path, isolation_level=None, timeout=60)
    database.execute(f"PRAGMA journal_mode={mode}")
    count, = database.execute("SELECT max(id) FROM rows").fetchone()
    n, = database.execute("SELECT n FROM counter").fetchone()
    due = time.monotonic()
    while not stop.is_set():
        database.execute("BEGIN IMMEDIATE")
        n += 1
        database.execute("UPDATE counter SET n = ?", (n,))
        for _ in range(3):
            row = random.randint(1, count)
            if random.random() < 0.3:
                database.execute("DELETE FROM rows WHERE id = ?", (row,))
            database.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)",
                             (row, random.getrandbits(40), os.urandom(random.randint(1, 2 * ROW))))
        database.execute("COMMIT")
        committed.value = n
        due = max(due + 1 / RATE, time.monotonic() - 1)
        time.sleep(max(0, due - time.monotonic()))
    database.close()


def write_with_pauses(path, mode, committed, stop):
    """Writes transactions that pause when their first half is in the database file."""
    database = sqlite3.connect(path, isolation_level=None, timeout=60)
    for pragma in (f"journal_mode={mode}", "cache_size=1", "cache_spill=1"):
        database.execute(f"PRAGMA {pragma}")
    count, = database.execute("SELECT max(id) FROM rows").fetchone()
    n, = database.execute("SELECT n FROM counter").fetchone()
    while not stop.is_set():
        n += 1
        database.execute("BEGIN IMMEDIATE")
        for half in range(2):
            for _ in range(200):
                database.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", (
                    random.randint(1, count), random.getrandbits(40), os.urandom(ROW)))
            if half == 0:
                stop.wait(PAUSE)
        database.execute("UPDATE counter SET n = ?", (n,))
        database.execute("COMMIT")
        committed.value = n
        stop.wait(0.2)
    database.close()


class Soak:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = dict(os.environ, HOME=str(folder / "home"),
                                XDG_CACHE_HOME=str(folder / "cache"),
                                XDG_CONFIG_HOME=str(folder / "config"))

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], env=self.environment,
                              capture_output=True, text=True)

    def rounds(self, name, megabytes, mode, backups, may_be_torn, write=write, least=1):
        source, repository = self.folder / name, self.folder / f"{name}-repository"
        source.mkdir()
        path = source / "app.db"
        make(path, megabytes, mode)
        self.expect(self.run("init", repository, "--plain"), 0)
        committed, stop = multiprocessing.Value("q", 0), multiprocessing.Event()
        writer = multiprocessing.Process(target=write, args=(path, mode, committed, stop))
        writer.start()
        whole, longest = 0, 0.0
        try:
            while committed.value == 0:
                time.sleep(0.01)
            for _ in range(backups):
                whole += self.round(name, source, repository, committed, may_be_torn)
                longest = max(longest, self.seconds)
                if not writer.is_alive():
                    fail(f"{name}: the writer exited with status {writer.exitcode}")
        finally:
            stop.set()
            writer.join()
        if whole < least:
            fail(f"{name}: only {whole} of {backups} backups are consistent")
        print(f"soak_databases: {name}: {megabytes} MB, {committed.value} transactions, {whole} of "
              f"{backups} backups consistent, the longest in {longest:.1f} s", flush=True)

    def round(self, name, source, repository, committed, may_be_torn):
        before, start = committed.value, time.monotonic()
        backup = self.run("backup", "--layout", "folder", "--root", source, "--repo", repository)
        self.seconds = time.monotonic() - start
        if may_be_torn and backup.returncode == 3:
            return 0
        self.expect(backup, 0)
        back = self.folder / "back"
        self.expect(self.run("restore", f"latest:folders/{source.name}", "--to", back, "--repo",
                             repository), 0)
        database = sqlite3.connect(back / "app.db")
        verdict = database.execute("PRAGMA integrity_check(5)").fetchall()
        n, = database.execute("SELECT n FROM counter").fetchone()
        database.close()
        if verdict != [("ok",)]:
            fail(f"{name}: a backup with exit status 0 is inconsistent: {verdict}")
        if n < before:
            fail(f"{name}: the copy has {n} transactions, but {before} were committed before")
        shutil.rmtree(back)
        return 1

    def expect(self, outcome, status):
        if outcome.returncode != status:
            fail(f"{outcome.args} exited with status {outcome.returncode}:\n"
                 f"{outcome.stdout}{outcome.stderr}")


def main():
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    backups = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-databases-"))
    try:
        soak = Soak(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        soak.rounds("wal", megabytes, "WAL", backups, may_be_torn=False)
        for mode in OTHER_MODES:
            soak.rounds(mode.lower(), 20, mode, 5, may_be_torn=True)
        for mode in PAUSED_MODES:
            soak.rounds(f"{mode.lower()}-paused", 20, mode, 5, may_be_torn=True,
                        write=write_with_pauses, least=0)
    finally:
        shutil.rmtree(folder)
    print("soak_databases: no copy was inconsistent or outdated")


if __name__ == "__main__":
    main()
