"""Reads all files of an iTunes backup with another program: read_itunes.py PEER DIRECTORY [PASSWORD]

Prints a JSON list for each file, ordered: domain, path, size, SHA-256. The peers are libraries of
the Python package index (`make peers`), each used as its documentation describes. An error of one is
an error here. Files whose contents a peer does not extract from a plain backup are read under the
name that it gives.
"""

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import sys
import tempfile


def below(directory):
    """Returns the extracted files, which are named DIRECTORY/DOMAIN/PATH."""
    found = {}
    for path in directory.rglob("*"):
        if path.is_file():
            domain, inner = str(path.relative_to(directory)).split("/", 1)
            found[domain, inner] = path.read_bytes()
    return found


def pyiosbackup(backup, password, scratch):
    import pyiosbackup
    opened = pyiosbackup.Backup.from_path(backup, password)
    assert opened.is_encrypted == bool(password)
    opened.unback(scratch, strict=True)
    found = below(scratch)
    entries = list(opened.iter_entries())
    sizes = {(entry.domain, entry.relative_path): entry.size for entry in entries if entry.is_file()}
    assert sizes == {name: len(content) for name, content in found.items()}
    directories = {(entry.domain, entry.relative_path) for entry in entries if entry.is_dir()}
    for entry in entries:
        parent = os.path.dirname(entry.relative_path)
        assert (entry.domain, parent) in directories, f"no row of the directory of {entry}"
    assert opened.installed_apps is not None and opened.target_identifier and opened.date
    return found


def dissect(backup, password, scratch):
    from dissect.target.helpers import keychain
    from dissect.target.loaders.itunes import ITunesLoader
    from dissect.target.target import Target
    if password:
        keychain.register_key(keychain.KeyType.PASSPHRASE, password)
    target = Target()
    loader = ITunesLoader(backup)
    loader.map(target)
    system = target.filesystems[0]
    found, linked = {}, 0
    for row in loader.backup.files():
        entry = system.get(row.translated_path)
        if row.flags == 1:
            assert entry.is_file() and entry.lstat().st_size == row.size
            found[row.domain, row.relative_path] = entry.open().read()
        elif row.flags == 4:
            assert entry.is_symlink() and entry.readlink()
            linked += 1
        else:
            assert entry.is_dir()
    return found


def iosbackup(backup, password, scratch):
    from iOSbackup import iOSbackup
    assert iOSbackup.getDeviceBasicInfo(backup.name, str(backup.parent))["encrypted"] == bool(password)
    opened = iOSbackup(
        udid=backup.name, backuproot=str(backup.parent), cleartextpassword=password or None)
    for domain in opened.getDomains():
        opened.getFolderDecryptedCopy(targetFolder=str(scratch), includeDomains=domain)
    found = below(scratch)
    for row in opened.getBackupFilesList():
        # Without a key it takes an empty file for a directory.
        if row["flags"] == 1 and not password:
            found.setdefault((row["domain"], row["name"]), b"")
    return found


def iphone_backup_decrypt(backup, password, scratch):
    from iphone_backup_decrypt import EncryptedBackup, utils
    if password:
        opened = EncryptedBackup(backup_directory=str(backup), passphrase=password)
        assert opened.test_decryption()
        count = opened.extract_files(
            relative_paths_like="%", output_folder=str(scratch), preserve_folders=True,
            domain_subfolders=True)
        found = below(scratch)
        assert count == len(found)
        return found
    # It opens encrypted backups only: of a plain one it reads the rows and names the contents.
    found = {}
    for name, domain, path, archive in rows(backup / "Manifest.db"):
        record = utils.FilePlist(archive)
        content = pathlib.Path(utils.backup_file_path(str(backup), name)).read_bytes()
        assert record.encryption_key is None and record.filesize == len(content)
        found[domain, path] = content
    return found


def rows(database):
    import sqlite3
    return sqlite3.connect(database).execute(
        "SELECT fileID, domain, relativePath, file FROM Files WHERE flags = 1").fetchall()


def mvt(backup, password, scratch):
    from mvt.ios.decrypt import DecryptBackup
    from mvt.ios.modules.backup.manifest import Manifest
    assert DecryptBackup.is_encrypted(str(backup)) == bool(password)
    if password:
        decryption = DecryptBackup(str(backup), str(scratch))
        decryption.decrypt_with_password(password)
        assert decryption.can_process()
        decryption.process_backup()
        backup = scratch
    module = Manifest(target_path=str(backup), log=logging.getLogger("mvt"))
    module.run()
    found = {}
    for record in module.results:
        assert "missing" not in record and "mode" in record, record
        if record["flags"] == 1:
            content = pathlib.Path(module._get_backup_file_from_id(record["file_id"])).read_bytes()
            assert len(content) == record["size"], record
            found[record["domain"], record["relative_path"]] = content
    return found


def pymobiledevice3(backup, password, scratch):
    import shutil
    from pymobiledevice3.services.mobilebackup2 import Mobilebackup2Service as Service
    # Extracts beside the backup, and filters in place: both in a copy.
    copy = scratch / "copy"
    shutil.copytree(backup, copy)
    assert Service._is_encrypted_backup(copy) == bool(password)
    found = below(Service.unback_with_pyiosbackup(copy, password))
    wanted = set(found)
    names = set()

    def filtered(row):
        names.add((row.domain, row.relative_path))
        return (row.domain, row.relative_path) in wanted

    # Decrypts the manifest, deletes the rows of directories and links, and encrypts it again.
    kept = Service.prune_backup_manifest(copy, filtered, password)
    assert wanted <= names and len(kept) == len(wanted)
    return found


PEERS = {function.__name__: function for function in (
    dissect, iosbackup, iphone_backup_decrypt, mvt, pyiosbackup, pymobiledevice3)}


def main():
    peer, backup, password = sys.argv[1], pathlib.Path(sys.argv[2]), "".join(sys.argv[3:])
    logging.basicConfig(level=logging.WARNING)
    # Some peers print messages.
    with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(sys.stderr):
        found = PEERS[peer](backup.resolve(), password, pathlib.Path(scratch))
    for (domain, path), content in sorted(found.items()):
        print(json.dumps([domain, path, len(content), hashlib.sha256(content).hexdigest()]))


main()
