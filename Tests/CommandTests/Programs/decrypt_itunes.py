"""Decrypts an iTunes backup: decrypt_itunes.py DIRECTORY PASSWORD OUTPUT

Writes each file as OUTPUT/DOMAIN/PATH. Written by the description of the format, with Python's
hashlib and the command `openssl`, as another implementation than the program's writer and reader.
Fails if a key, a padding, a size or an SHA-1 is wrong.
"""

import hashlib
import pathlib
import plistlib
import sqlite3
import struct
import subprocess
import sys


def aes(data, key, mode, *options):
    words = ["openssl", "enc", "-d", f"-aes-256-{mode}", "-K", key.hex(), *options]
    return subprocess.run(words, input=data, stdout=subprocess.PIPE, check=True).stdout


def decrypted(data, key):
    """Decrypts a content; openssl checks the padding."""
    return aes(data, key, "cbc", "-iv", "0" * 32)


def unwrapped(secret, key):
    """Unwraps a key by RFC 3394, 2.2.2."""
    check, *parts = [secret[start:start + 8] for start in range(0, len(secret), 8)]
    for step in reversed(range(6)):
        for index in reversed(range(len(parts))):
            count = len(parts) * step + index + 1
            check = (int.from_bytes(check, "big") ^ count).to_bytes(8, "big")
            block = aes(check + parts[index], key, "ecb", "-nopad")
            check, parts[index] = block[:8], block[8:]
    assert check == b"\xa6" * 8, "a key was wrapped with another one"
    return b"".join(parts)


def items(keybag):
    while keybag:
        tag, size = struct.unpack(">4sI", keybag[:8])
        yield tag, keybag[8:8 + size]
        keybag = keybag[8 + size:]


def class_keys(keybag, password):
    own, classes = {}, []
    for tag, value in items(keybag):
        if tag == b"UUID" and tag in own:
            classes.append({})
        (classes[-1] if classes else own)[tag] = value
    number = lambda value: int.from_bytes(value, "big")
    first = hashlib.pbkdf2_hmac("sha256", password, own[b"DPSL"], number(own[b"DPIC"]), 32)
    key = hashlib.pbkdf2_hmac("sha1", first, own[b"SALT"], number(own[b"ITER"]), 32)
    assert number(own[b"DPIC"]) == 10_000_000 and number(own[b"ITER"]) == 10_000
    assert len(own[b"HMCK"]) == 40 and len(own[b"UUID"]) == 16 and number(own[b"TYPE"]) == 1
    return {
        number(row[b"CLAS"]): unwrapped(row[b"WPKY"], key)
        for row in classes if number(row[b"WRAP"]) & 2
    }


def main():
    directory, password, output = pathlib.Path(sys.argv[1]), sys.argv[2].encode(), sys.argv[3]
    output = pathlib.Path(output)
    output.mkdir()
    manifest = plistlib.loads((directory / "Manifest.plist").read_bytes())
    assert manifest["IsEncrypted"] is True
    keys = class_keys(manifest["BackupKeyBag"], password)

    def file_key(wrapped):
        return unwrapped(wrapped[4:], keys[struct.unpack("<I", wrapped[:4])[0]])

    plain = output / "Manifest.db"
    plain.write_bytes(
        decrypted((directory / "Manifest.db").read_bytes(), file_key(manifest["ManifestKey"])))
    database = sqlite3.connect(plain)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    used = set()
    for name, domain, path, archive in database.execute(
            "SELECT fileID, domain, relativePath, file FROM Files WHERE flags = 1"):
        objects = plistlib.loads(archive)["$objects"]
        root = objects[1]
        wrapped = objects[root["EncryptionKey"].data]["NS.data"]
        assert wrapped[0] == root["ProtectionClass"], "the key is of another class"
        assert wrapped not in used, "a key is used twice"
        used.add(wrapped)
        stored = (directory / name[:2] / name).read_bytes()
        content = decrypted(stored, file_key(wrapped))
        assert len(content) == root["Size"], path
        if "Digest" in root:
            assert objects[root["Digest"].data] == hashlib.sha1(stored).digest(), path
        target = output / domain / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


main()
