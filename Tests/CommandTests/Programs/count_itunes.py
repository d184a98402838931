"""Counts the entries of a plain iTunes backup by its manifest: count_itunes.py DIRECTORY

Prints a JSON object with the number of directories, links, files, and of files that are lost: without
a content, or with one that does not have the SHA-1 in the manifest.
"""

import hashlib
import json
import pathlib
import plistlib
import sqlite3
import sys


def is_sound(content, archive):
    """Whether a file has a content, and the recorded SHA-1 if one is recorded."""
    if not content.exists():
        return False
    objects = plistlib.loads(archive)["$objects"]
    digest = objects[1].get("Digest")
    return digest is None or objects[digest.data] == hashlib.sha1(content.read_bytes()).digest()


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
