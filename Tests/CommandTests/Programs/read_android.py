"""Reads all files of an Android backup with another program: read_android.py PEER FILE [PASSWORD]

Prints a JSON list for each file, in the order of the archive: the name in it, the size and the
SHA-256. The peers are libraries of the Python package index (`make peers`).
"""

import hashlib
import io
import json
import pathlib
import sys
import tarfile


def android_backup(path, password):
    from android_peer import AndroidBackup
    # Its decryption of a stream ends at the padding of a block in the middle: it reads as a whole.
    with AndroidBackup(path, password=password, stream=False) as backup:
        assert backup.is_encrypted() == (password is not None)
        return backup.read_data()


def mvt(path, password):
    from mvt.android.parsers.backup import parse_ab_header, parse_backup_file
    data = pathlib.Path(path).read_bytes()
    assert parse_ab_header(data)["encryption"] == ("none" if password is None else "AES-256")
    return tarfile.open(fileobj=io.BytesIO(parse_backup_file(data, password)))


def main():
    peer, path, *password = sys.argv[1:]
    password = password[0] if password else None
    with {"android_backup": android_backup, "mvt": mvt}[peer](path, password) as archive:
        for member in archive:
            if member.isfile():
                content = archive.extractfile(member).read()
                assert len(content) == member.size
                digest = hashlib.sha256(content).hexdigest()
                print(json.dumps([member.name, member.size, digest]))


main()
