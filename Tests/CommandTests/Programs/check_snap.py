#!/usr/bin/env python3
"""Checks a snapshot of snapd by the description of its format, and unpacks it.

usage: check_snap.py FILE DIR

FILE is a zip archive of one snap, or a tar archive of several as `snap import-snapshot` reads it. What
snapd checks when it imports and restores is checked: the names, the metadata, each SHA3-384
(overlord/snapshotstate/backend in its source). The data is unpacked into DIR/SNAP/system and
DIR/SNAP/USER. Prints the names of the snaps.
"""

import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile


def require(condition, text):
    if not condition:
        sys.exit(f"check_snap: {text}")


def check_metadata(meta, name):
    for key, kind in (("set", int), ("time", str), ("snap", str), ("revision", str), ("epoch", dict),
                      ("summary", str), ("version", str), ("sha3-384", dict), ("size", int)):
        require(isinstance(meta.get(key), kind), f"{name}: {key} is {meta.get(key)!r}")
    require(meta["set"] > 0, f"{name}: the set is not positive")
    require(re.fullmatch(r"x?[1-9][0-9]*", meta["revision"]), f"{name}: the revision")
    require(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", meta["time"]), f"{name}: the time")
    require(meta["sha3-384"], f"{name}: no archives")
    for list_name in ("read", "write"):
        require(meta["epoch"][list_name], f"{name}: the epoch has no list {list_name}")


def check_zip(data, name, target):
    """Checks the snapshot of a snap, unpacks it, and returns the snap's name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        require(archive.testzip() is None, f"{name}: a checksum of the zip archive is wrong")
        text = archive.read("meta.json")
        found = archive.read("meta.sha3_384").decode().strip()
        require(hashlib.sha3_384(text).hexdigest() == found, f"{name}: the sum of meta.json")
        meta = json.loads(text)
        check_metadata(meta, name)
        size = 0
        for member, wanted in meta["sha3-384"].items():
            content = archive.read(member)
            size += len(content)
            require(hashlib.sha3_384(content).hexdigest() == wanted, f"{name}: the sum of {member}")
            unpack(content, member, meta, target)
        require(size == meta["size"], f"{name}: the size is {meta['size']}, not {size}")
        others = set(archive.namelist()) - {"meta.json", "meta.sha3_384", *meta["sha3-384"]}
        require(not others, f"{name}: unknown members {others}")
    return meta["snap"]


def unpack(content, member, meta, target):
    """Unpacks an archive with the program and the options of snapd."""
    match = re.fullmatch(r"archive\.tgz|user/([^/]+)\.tgz", member)
    require(match, f"snapd skips the archive {member}")
    place = target / meta["snap"] / (match.group(1) or "system")
    place.mkdir(parents=True)
    subprocess.run(
        ["tar", "--extract", "--preserve-permissions", "--preserve-order", "--gunzip",
         "--directory", str(place)], input=content, check=True)
    tops = {path.name for path in place.iterdir()}
    require(tops <= {"common", meta["revision"]}, f"{member} has the directories {tops}")


def check_export(path, target):
    """Checks a tar archive of snapshots and returns the names of the snaps."""
    snaps, files, listed = [], [], None
    with tarfile.open(path) as archive:
        for member in archive:
            require(member.isfile() and "../" not in member.name, f"the member {member.name}")
            require(listed is None, "export.json is not the last member")
            data = archive.extractfile(member).read()
            if member.name == "export.json":
                listed = json.loads(data)
            elif member.name != "content.json":
                require(re.fullmatch(r"[0-9]+_[^/]+\.zip", member.name), f"the name {member.name}")
                files.append(member.name)
                snaps.append(check_zip(data, member.name, target))
    require(listed is not None, "there is no export.json")
    require(listed["format"] == 1 and listed["files"] == files, f"export.json has {listed}")
    return snaps


def main():
    path, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if zipfile.is_zipfile(path) and not tarfile.is_tarfile(path):
        snaps = [check_zip(path.read_bytes(), path.name, target)]
    else:
        snaps = check_export(path, target)
    print(" ".join(sorted(snaps)))


main()
