#!/usr/bin/env python3
"""Makes the snapshot of a snap as snapd does (overlord/snapshotstate/backend in its source).

usage: make_snap.py FILE NAME REVISION SYSTEM_DIR USER USER_DIR

SYSTEM_DIR and USER_DIR have the directories REVISION and common. The snapshot has a configuration.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import zipfile


def archive(directory, revision):
    parts = [part for part in (revision, "common") if (pathlib.Path(directory) / part).is_dir()]
    words = ["tar", "--create", "--sparse", "--gzip", "--format", "gnu", "--anchored",
             "--no-wildcards-match-slash"]
    for part in parts:
        words += ["--directory", str(pathlib.Path(directory).absolute()), part]
    return subprocess.run(words, check=True, capture_output=True).stdout


def main():
    path, name, revision, system, user, home = sys.argv[1:]
    archives = {"archive.tgz": archive(system, revision), f"user/{user}.tgz": archive(home, revision)}
    meta = {
        "set": 7, "time": "2024-05-06T07:08:09.123456789+02:00", "snap": name, "revision": revision,
        "snap-id": "abcdefghijklmnopqrstuvwxyz012345", "epoch": {"read": [1, 2], "write": [2]},
        "summary": "", "version": "2.0", "conf": {"port": 8080, "name": "a<b"},
        "sha3-384": {key: hashlib.sha3_384(value).hexdigest() for key, value in archives.items()},
        "size": sum(map(len, archives.values())),
    }
    text = json.dumps(meta).encode() + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for key, value in archives.items():
            file.writestr(key, value)
        file.writestr("meta.json", text, zipfile.ZIP_DEFLATED)
        file.writestr("meta.sha3_384", hashlib.sha3_384(text).hexdigest() + "\n")


main()
