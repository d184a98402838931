"""Encrypts a plain iTunes backup in place: encrypt_itunes.py DIRECTORY PASSWORD

Written by the description of the format, with Python's hashlib and the command `openssl`, as another
implementation than the program's reader: an own key for each file and for Manifest.db, wrapped (RFC
3394) with the key of protection class 3, and that with a key of the password.
"""

import hashlib
import os
import pathlib
import plistlib
import sqlite3
import struct
import subprocess
import sys

CLASS = 3
FIRST_ROUNDS, ROUNDS = 1000, 500


def aes(data, key, mode, *options):
    words = ["openssl", "enc", "-e", f"-aes-256-{mode}", "-K", key.hex(), *options]
    return subprocess.run(words, input=data, stdout=subprocess.PIPE, check=True).stdout


def encrypted(data, key):
    return aes(data, key, "cbc", "-iv", "0" * 32)


def wrapped(secret, key):
    """Wraps a key by RFC 3394, 2.2.1."""
    check = b"\xa6" * 8
    parts = [secret[start:start + 8] for start in range(0, len(secret), 8)]
    for step in range(6):
        for index, part in enumerate(parts):
            block = aes(check + part, key, "ecb", "-nopad")
            count = len(parts) * step + index + 1
            check = (int.from_bytes(block[:8], "big") ^ count).to_bytes(8, "big")
            parts[index] = block[8:]
    return check + b"".join(parts)


def keybag(class_key, password):
    salts = os.urandom(20), os.urandom(20)
    first = hashlib.pbkdf2_hmac("sha256", password, salts[0], FIRST_ROUNDS, 32)
    key = hashlib.pbkdf2_hmac("sha1", first, salts[1], ROUNDS, 32)
    number = struct.Struct(">I").pack
    items = [
        (b"VERS", number(3)), (b"TYPE", number(1)), (b"UUID", os.urandom(16)),
        (b"HMCK", os.urandom(40)), (b"WRAP", number(0)), (b"SALT", salts[1]),
        (b"ITER", number(ROUNDS)), (b"DPWT", number(0)), (b"DPIC", number(FIRST_ROUNDS)),
        (b"DPSL", salts[0]), (b"UUID", os.urandom(16)), (b"CLAS", number(CLASS)),
        (b"WRAP", number(2)), (b"KTYP", number(0)), (b"WPKY", wrapped(class_key, key)),
    ]
    return b"".join(tag + number(len(value)) + value for tag, value in items)


def with_key(archive, key, digest):
    """Adds the key of a file to its metadata, and replaces its SHA-1, which is of stored bytes."""
    archive = plistlib.loads(archive)
    objects = archive["$objects"]
    root = objects[archive["$top"]["root"].data]
    objects.append({"NS.data": key})
    root["EncryptionKey"] = plistlib.UID(len(objects) - 1)
    if "Digest" in root:
        objects[root["Digest"].data] = digest
    return plistlib.dumps(archive, fmt=plistlib.FMT_BINARY, sort_keys=False)


def main():
    directory, password = pathlib.Path(sys.argv[1]), sys.argv[2].encode()
    class_key, database_key = os.urandom(32), os.urandom(32)
    path = directory / "Manifest.db"
    database = sqlite3.connect(path)
    for name, archive in database.execute("SELECT fileID, file FROM Files WHERE flags = 1").fetchall():
        content = directory / name[:2] / name
        key = os.urandom(32)
        stored = encrypted(content.read_bytes(), key)
        content.write_bytes(stored)
        entry = struct.pack("<I", CLASS) + wrapped(key, class_key)
        database.execute(
            "UPDATE Files SET file = ? WHERE fileID = ?",
            (with_key(archive, entry, hashlib.sha1(stored).digest()), name))
    database.commit()
    database.close()
    path.write_bytes(encrypted(path.read_bytes(), database_key))
    manifest = plistlib.loads((directory / "Manifest.plist").read_bytes())
    manifest["IsEncrypted"] = True
    manifest["BackupKeyBag"] = keybag(class_key, password)
    manifest["ManifestKey"] = struct.pack("<I", CLASS) + wrapped(database_key, class_key)
    (directory / "Manifest.plist").write_bytes(
        plistlib.dumps(manifest, fmt=plistlib.FMT_BINARY))


main()
