"""Counts the entries of a plain iTunes backup by its manifest: count_itunes.py DIRECTORY

Prints a JSON object with the number of directories, links, files, and of files that are lost: without
a content, with one that does not have the SHA-1 in the manifest, or without a SHA-1 and shorter than
recorded there, unless it is a database or the log of one.
"""

import hashlib
import json
import pathlib
import plistlib
import sqlite3
import sys


def is_sound(content, archive):
    """Whether a file has a content, with the recorded SHA-1, otherwise with the recorded size."""
    if not content.exists():
        return False
    objects = plistlib.loads(archive)["$objects"]
    file, stored = objects[1], content.read_bytes()
    if "Digest" in file:
        return objects[file["Digest"].data] == hashlib.sha1(stored).digest()
    if len(stored) >= file.get("Size", 0) or stored.startswith(b"SQLite format 3\0"):
        return True
    return objects[file["RelativePath"].data].endswith(("-wal", "-journal", "-shm"))


def main():
    backup = pathlib.Path(sys.argv[1]).resolve()
    # As it is: a database with a journal would be changed by opening it.
    database = sqlite3.connect(f"{(backup / 'Manifest.db').as_uri()}?immutable=1", uri=True)
    counts = {"files": 0, "lost": 0, "directories": 0, "links": 0}
    for name, flags, archive in database.execute("SELECT fileID, flags, file FROM Files"):
        if flags == 1:
            counts["files" if is_sound(backup / name[:2] / name, archive) else "lost"] += 1
        else:
            counts[{2: "directories", 4: "links"}[flags]] += 1
    print(json.dumps(counts))


main()
