"""Packs an Android backup again with android_backup: pack_android.py FILE OUTPUT [PASSWORD]

FILE is not encrypted; OUTPUT is if a password is given.
"""

import os
import sys
import tempfile

from android_backup import AndroidBackup, CompressionType, EncryptionType


def main():
    path, output, *password = sys.argv[1:]
    output = os.path.abspath(output)
    with tempfile.TemporaryDirectory() as scratch:
        files, members = os.path.join(scratch, "files"), os.path.join(scratch, "members")
        with AndroidBackup(path, stream=False) as backup:
            backup.unpack(files, pickle_fname=members)
        packed = AndroidBackup()
        packed.version = 4
        packed.compression = CompressionType.ZLIB
        packed.encryption = EncryptionType.AES256 if password else EncryptionType.NONE
        packed.pack(output, files, *password, pickle_fname=members)


main()
