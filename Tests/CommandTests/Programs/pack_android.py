"""Packs an Android backup again with android_backup: pack_android.py FILE OUTPUT [PASSWORD]

FILE is not encrypted; OUTPUT is if a password is given, with a master key that has a backslash.
"""

import os
import sys
import tempfile

import android_backup.android_backup as library

from android_peer import AndroidBackup, CompressionType, EncryptionType


def random_bytes(count, original=library.Random.get_random_bytes):
    """Random bytes that begin like an escape, which no reader may take them for."""
    return b"\\u" + original(count - 2)


def main():
    path, output, *password = sys.argv[1:]
    output = os.path.abspath(output)
    with tempfile.TemporaryDirectory() as scratch:
        files, members = os.path.join(scratch, "files"), os.path.join(scratch, "members")
        with AndroidBackup(path, stream=False) as backup:
            backup.unpack(files, pickle_fname=members)
        library.Random.get_random_bytes = random_bytes
        packed = AndroidBackup()
        packed.version = 4
        packed.compression = CompressionType.ZLIB
        packed.encryption = EncryptionType.AES256 if password else EncryptionType.NONE
        packed.pack(output, files, *password, pickle_fname=members)


main()
