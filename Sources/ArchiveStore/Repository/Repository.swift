public import Codecs
internal import RecoverScript
internal import SystemIO

/// An open repository: its settings and its storage, and the entry point for writing and reading.
///
/// A value that any thread may use. It holds no open file and no lock: a writer takes a lease, and
/// a reader handles objects that others remove in the meantime.
public struct Repository: Sendable {
  public let storage: any Storage
  public let settings: RepositorySettings

  /// The unique id of the repository.
  public var id: Digest { settings.id }

  /// The location of the repository, for messages.
  public var location: String { storage.location }

  /// Opens a repository for reading. Writing checks more.
  ///
  /// - Throws: `noRepository` if there is none, `damaged`, `unsupported` for another version or
  ///   method, `unknownFeature`.
  public static func open(_ storage: any Storage) throws(StoreError) -> Repository {
    let text: [UInt8]
    do {
      text = try storage.load(RepositoryLayout.settings, limit: FormatLimit.repositoryFile)
    } catch {
      guard error.code == .missing else { throw error }
      throw noRepository(storage, error.cause)
    }
    let settings = try RepositorySettings(text)
    try settings.requireKnown(settings.features.read, for: "read", location: storage.location)
    return Repository(storage: storage, settings: settings)
  }

  private static func noRepository(_ storage: any Storage, _ cause: SystemError?) -> StoreError {
    let names = (try? storage.list(.root)) ?? []
    let hasPacks = names.contains(RepositoryLayout.packs.name)
    return StoreError(
      .noRepository, "open the repository", subject: storage.location,
      reason: "there is no repository.json",
      hint: hasPacks
        ? "its packs exist: " + RepositorySettings.lossHint
        : "run 'sandboxctl init' to create one, or give another path", cause: cause)
  }

  /// Creates a new, unencrypted repository in an empty storage. `repository.json` is written last:
  /// without it there is no repository.
  ///
  /// - Throws: `notEmpty` if the storage is not empty.
  public static func create(
    in storage: any Storage, program: String
  ) throws(StoreError) -> Repository {
    guard try storage.list(.root).isEmpty else {
      throw StoreError(
        .notEmpty, "create a repository in", subject: storage.location,
        reason: "the directory is not empty",
        hint: "give a new or an empty directory")
    }
    let id = Blake2b.hash(Host.random(count: 64))
    let settings = RepositorySettings(id: id, program: program, features: .init())
    try storage.makeDirectories(RepositoryLayout.directories, in: .root)
    try storage.makeDirectories(RepositoryLayout.packDirectories, in: RepositoryLayout.packs)
    let lease = try Lease(storage)
    defer { lease.release() }
    try storage.save(Array(readme.utf8), as: RepositoryLayout.readme, by: lease.path)
    try storage.save(RecoverScript.bytes, as: RepositoryLayout.recoverScript, by: lease.path)
    let reserve = [UInt8](repeating: 0, count: RepositoryLayout.reserveSize)
    try storage.save(reserve, as: RepositoryLayout.reserve, by: lease.path)
    try storage.save(settings.encode(), as: RepositoryLayout.settings, by: lease.path)
    return Repository(storage: storage, settings: settings)
  }
}

extension Repository {
  /// The text of `README.txt`: how to recover files without this program.
  static let readme = """
    This directory is a backup repository of sandboxctl, format version 1.
    Do not change, rename or remove anything in it by hand.

    With sandboxctl:

      sandboxctl snapshots --repo .
      sandboxctl restore latest --to /some/directory --repo .

    Without it, recover.py reads everything here. It needs Python 3.8 and the program zstd:

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

    To check for damage: the name of each pack, index and snapshot is its own checksum:

      b2sum -l 256 packs/ab/abcd....tar.zst        prints the name
      zstd -t packs/??/*.tar.zst                   reports damage

    To list and extract the packs:

      for p in packs/??/*.tar.zst; do zstd -dc "$p" | tar -tv; done
      for p in packs/??/*.tar.zst; do zstd -dc "$p" | tar -x -C /some/directory; done

    Files of up to 8 MiB that were new when they were stored are extracted to their paths
    (apps/..., groups/..., folders/...). If a file is in several packs, each is one of
    its versions: extract the packs in the order of their times to end up with the newest.
    Larger files are extracted in parts, each named by its hexadecimal offset in the file. This
    assembles them, for one pack before the next is extracted:

      (cd .sandboxctl/parts && find . -type f) | while IFS= read -r part; do
        file=${part%/*}; place=$((0x${part##*/})); mkdir -p "${file%/*}"
        dd if=".sandboxctl/parts/$part" of="$file" bs=64K oflag=seek_bytes seek=$place conv=notrunc status=none
      done; rm -rf .sandboxctl/parts

    Gaps between parts are holes, which read as zeros. Zeros at the end of a file are not
    stored: only the trees record the size of such a file.

    .sandboxctl/trees holds the directories (names, owners, modes, times, and the pieces of
    each file) as CBOR, RFC 8949. .sandboxctl/contents lists each pack's pieces.

    """
}
