"""Reduces an encrypted iTunes backup to a domain with pymobiledevice3, which decrypts its manifest,
deletes rows and encrypts it again: filter_itunes.py DIRECTORY PASSWORD DOMAIN

Prints a JSON list for each file that is left: domain, path, and the size and SHA-256 of what is
stored.
"""

import hashlib
import json
import pathlib
import sys

from pymobiledevice3.services.mobilebackup2 import Mobilebackup2Service


def main():
    backup, password, domain = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    kept = {}

    def is_kept(row):
        if row.domain == domain:
            kept[row.file_id] = row.relative_path
        return row.domain == domain

    Mobilebackup2Service.prune_backup_directory(backup, is_kept, password)
    for name, path in kept.items():
        # Rows of directories and links have no content.
        content = backup / name[:2] / name
        if content.exists():
            stored = content.read_bytes()
            print(json.dumps([domain, path, len(stored), hashlib.sha256(stored).hexdigest()]))


main()
