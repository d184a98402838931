extension Repository {
  /// Returns the text of `README.txt`: how to recover files without this program.
  static func readme(isEncrypted: Bool) -> String {
    (isEncrypted ? encryptedReadme : plainReadme) + commonReadme
  }

  private static let plainReadme = """
    This directory is a backup repository of sandboxctl, format version 1.
    Do not change, rename or remove anything in it by hand.

    With sandboxctl:

      sandboxctl snapshots --repo .
      sandboxctl restore latest --to /some/directory --repo .

    Without sandboxctl, recover.py reads everything here. It needs Python 3.8 and the program zstd:

      python3 recover.py . list
      python3 recover.py . verify --read-data
      python3 recover.py . restore latest --to /some/directory

    Run this copy only if no other user could write to this directory. Otherwise use the
    same file from sandboxctl's sources (Tools/recover.py), which reads a repository at
    any path.

    Standard programs can open everything here as well:

      packs/??/*.tar.zst   your files: tar archives compressed with zstd
      index/*.index        the location of each piece of a file; can be rebuilt from the packs
      snapshots/*.json     one backup each, as JSON

    To check for damage (the name of each pack, index and snapshot is its checksum):

      b2sum -l 256 packs/ab/abcd....tar.zst        prints the name
      zstd -t packs/??/*.tar.zst                   reports damage

    To list and extract the packs:

      for p in packs/??/*.tar.zst; do zstd -dc "$p" | tar -tv; done
      for p in packs/??/*.tar.zst; do zstd -dc "$p" | tar -x -C /some/directory; done


    """

  private static let encryptedReadme = """
    This directory is an encrypted backup repository of sandboxctl, format version 1.
    Do not change, rename or remove anything in it by hand.

    Nothing here can be read without a key. A key is the passphrase of one of the files in keys/, or
    the recovery key that `sandboxctl init` printed, a line that begins with AGE-SECRET-KEY-1.
    Below, KEY is a file with that line that only you can read (chmod 600 KEY).

    With sandboxctl:

      sandboxctl snapshots --repo . --identity KEY
      sandboxctl restore latest --to /some/directory --repo . --identity KEY

    Without --identity, both commands ask for a passphrase.

    Without sandboxctl, recover.py reads everything here. It needs Python 3.8 and the program zstd,
    and is faster if the program age is installed. Without --identity it asks for a passphrase:

      python3 recover.py --identity KEY . list
      python3 recover.py --identity KEY . verify --read-data
      python3 recover.py --identity KEY . restore latest --to /some/directory

    Run this copy only if no other user could write to this directory: it gets your key.
    Otherwise use the same file from sandboxctl's sources (Tools/recover.py), which reads a
    repository at any path.

    Standard programs can open everything here as well, after age (https://age-encryption.org)
    has decrypted it:

      packs/??/*.tar.zst.age   your files: tar archives compressed with zstd
      index/*.index.age        the location of each piece of a file; can be rebuilt from the packs
      snapshots/*.json.age     one backup each, as JSON
      keys/*.age               the identity that decrypts all others, as JSON; one file for each
                               passphrase

    To get the key with a passphrase, for which age asks:

      (umask 077; age -d keys/NAME.age | grep -o 'AGE-SECRET-KEY-1[0-9A-Z]*' > KEY)

    To check for damage (no key is needed; the name of each pack, index and snapshot is its
    checksum):

      b2sum -l 256 packs/ab/abcd....tar.zst.age        prints the name

    To list and extract the packs:

      for p in packs/??/*.tar.zst.age; do age -d -i KEY "$p" | zstd -dc | tar -tv; done
      for p in packs/??/*.tar.zst.age; do age -d -i KEY "$p" | zstd -dc | tar -x -C DIRECTORY; done


    """

  /// The extracted files, which are equal.
  private static let commonReadme = """
    Files of up to 8 MiB that were new when they were stored are extracted to their paths
    (apps/..., groups/..., folders/...). If a file is in several packs, each pack has another
    version of it: extract the packs in the order of their times to end up with the newest one.
    Larger files are extracted in parts, each named by its hexadecimal offset in the file. These
    commands assemble them; run them after each pack, before the next one is extracted:

      (cd .sandboxctl/parts && find . -type f) | while IFS= read -r part; do
        file=${part%/*}; place=$((0x${part##*/})); mkdir -p "${file%/*}"
        dd if=".sandboxctl/parts/$part" of="$file" bs=64K oflag=seek_bytes seek=$place conv=notrunc status=none
      done; rm -rf .sandboxctl/parts

    Gaps between parts are holes, which read as zeros. Zeros at the end of a file are not
    stored: only the trees record the size of such a file.

    .sandboxctl/trees contains the directories (names, owners, modes, times, and the pieces of
    each file) as CBOR, RFC 8949. .sandboxctl/contents lists each pack's pieces.

    """
}
