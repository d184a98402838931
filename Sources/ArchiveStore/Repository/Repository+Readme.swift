extension Repository {
  /// `README.txt`: how to get one's files back without this program.
  static let readme = """
    This directory is a backup repository of sandboxctl, format version 1.
    Do not change, rename or remove anything in it by hand.

    With sandboxctl:

      sandboxctl snapshots --repo .
      sandboxctl restore latest --to /some/folder --repo .

    Without it, recover.py reads everything here. It needs Python 3.8 and the program zstd:

      python3 recover.py . list
      python3 recover.py . verify --read-data
      python3 recover.py . restore latest --to /some/folder

    Run it only if nobody else could write to this folder: a program that lies in a store
    is never run from a store that is not trusted. The same file is in sandboxctl's sources
    (Tools/recover.py), and reads this directory from anywhere.

    Without that, everything here opens with standard programs:

      packs/??/*.tar.zst   your files: ordinary tar archives, compressed by zstd
      index/*.index        where each piece of a file lies; can be made again from the packs
      snapshots/*.json     one backup each: JSON

    Is everything whole? Each pack, index and snapshot is named by its own checksum:

      b2sum -l 256 packs/ab/abcd....tar.zst        prints the name
      zstd -t packs/??/*.tar.zst                   finds damage

    What is in the packs, and getting it out:

      for p in packs/??/*.tar.zst; do zstd -dc "$p" | tar -tv; done
      for p in packs/??/*.tar.zst; do zstd -dc "$p" | tar -x -C /some/folder; done

    Files of up to 8 MiB that were new when they were stored come out at their paths
    (apps/..., groups/..., folders/...). If a file is in several packs, each is one of
    its versions: extract the packs in the order of their times to end with the newest.
    Larger files come out in parts, each named by its place in the file, in hexadecimal. This
    puts them there, for one pack before the next is extracted:

      (cd .sandboxctl/parts && find . -type f) | while IFS= read -r part; do
        file=${part%/*}; place=$((0x${part##*/})); mkdir -p "${file%/*}"
        dd if=".sandboxctl/parts/$part" of="$file" bs=64K oflag=seek_bytes seek=$place conv=notrunc status=none
      done; rm -rf .sandboxctl/parts

    What lies between parts and in none is zeros: a hole. Zeros at a file's end are not stored
    either: only the trees say how long such a file is.

    .sandboxctl/trees holds the directories (names, owners, modes, times, and which pieces
    a file is made of) as CBOR, RFC 8949. .sandboxctl/contents lists each pack's pieces.

    """
}
