internal import Codecs
package import SystemIO

/// Writes a backup in the form of iOS 10 and later, plain or encrypted, which `MobileSyncSource`,
/// the Finder and `idevicebackup2` read.
///
/// No plain data of an encrypted backup is ever on the disk under a name: the database of the
/// manifest is built in an unnamed file, and encrypted at the end.
///
/// The directory appears in `finish`, with `Status.plist`, which marks the backup as finished, as
/// its last entry. Without `finish`, nothing of it remains.
package struct MobileSyncSink: ~Copyable, EntrySink {
  /// The path of the backup, for messages, and the directory to write into.
  private let path: ByteString
  private let output: AtomicDirectory
  private let device: MobileSyncDevice
  /// The keys of an encrypted backup.
  private let keys: MobileSyncKeys?
  /// The database of an encrypted backup, before its encryption.
  private var plainDatabase: Descriptor?
  private let database: SQLiteDatabase
  private let insert: SQLiteStatement
  private let select: SQLiteStatement
  package private(set) var skipped = SkippedEntries()
  /// The number of bytes of the files, without copies of hard-linked ones.
  package private(set) var size: UInt64 = 0

  /// The directories above the last entry that have a row: those of one domain, by depth.
  private var open: (domain: ByteString, directories: [ByteString])?
  /// The domains that have a row, with the container whose data they have.
  private var domains: [ByteString: [ByteString]] = [:]
  /// The file whose content is being written.
  private var content: OpenContent?
  /// The number of bytes of a skipped file that are still to come.
  private var ignored: UInt64 = 0

  static let action = "write the backup"
  /// The domains whose files have no SHA-1 in the backups of Apple's programs.
  private static let withoutDigests = [
    "AppDomain", "AppDomainGroup", "AppDomainPlugin", "CameraRollDomain", "MediaDomain",
    "SysContainerDomain", "SysSharedContainerDomain",
  ]

  /// A file with its record, until its last byte is written.
  private struct OpenContent: ~Copyable {
    let file: Descriptor
    var record: MobileRecord
    var rest: UInt64
    /// The SHA-1 of the stored content.
    var digest: MessageDigest?
    var cipher: PaddedCipher?

    /// Writes stored bytes.
    mutating func store(_ bytes: [UInt8]) throws(SystemError) {
      try file.write(bytes)
      digest?.update(bytes.span)
    }
  }

  /// Creates the backup in a directory that does not exist or is empty.
  ///
  /// - Parameters:
  ///   - device: The device that the backup describes. Its time is the backup's.
  ///   - keys: The keys with which it is encrypted; nil for a plain backup.
  /// - Throws: `unrepresentable` if the directory is not empty.
  package init(
    path: ByteString, device: MobileSyncDevice, keys: MobileSyncKeys? = nil
  ) throws(InterchangeError) {
    let output = try AtomicDirectory.make(path: path, Self.action)
    let statements = try Self.statements(in: output, path, isHidden: keys != nil)
    var hidden: Descriptor?
    if keys != nil { hidden = try Self.hideDatabase(in: output.directory, path) }
    (database, insert, select) = (statements.database, statements.insert, statements.select)
    (self.device, self.keys) = (device, keys)
    plainDatabase = hidden
    (self.path, self.output) = (path, output)
  }

  /// Opens the database and removes its name.
  private static func hideDatabase(
    in directory: borrowing Directory, _ path: ByteString
  ) throws(InterchangeError) -> Descriptor {
    do throws(SystemError) {
      let file = try directory.file(MobileSyncBackup.database)
      try directory.remove(MobileSyncBackup.database)
      return file
    } catch {
      throw InterchangeError(error, action, subject: path.appending(MobileSyncBackup.database))
    }
  }

  /// Creates the database.
  ///
  /// - Parameter isHidden: whether its file loses its name. Then SQLite writes no journal, which
  ///   would have a name, and before which SQLite checks the database's name (pager.c,
  ///   `pager_open_journal`).
  private static func statements(
    in output: AtomicDirectory, _ path: ByteString, isHidden: Bool
  ) throws(InterchangeError) -> (
    database: SQLiteDatabase, insert: SQLiteStatement, select: SQLiteStatement
  ) {
    let resolved: ByteString
    do throws(SystemError) { resolved = try output.realPath() } catch {
      throw InterchangeError(error, action, subject: path)
    }
    do throws(SQLiteError) {
      let database = try SQLiteDatabase.create(
        path: resolved.appending(MobileSyncBackup.database))
      if isHidden {
        try database.execute("PRAGMA journal_mode = OFF; PRAGMA temp_store = MEMORY")
      }
      try database.execute(schema)
      let insert = try database.prepare("INSERT OR REPLACE INTO Files VALUES (?, ?, ?, ?, ?)")
      return (database, insert, try database.prepare("SELECT file FROM Files WHERE fileID = ?"))
    } catch {
      throw InterchangeError(.system, action, subject: path, reason: error.reason)
    }
  }

  /// The statements of Apple's programs.
  private static let schema = """
    BEGIN;
    CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, \
    file BLOB);
    CREATE INDEX FilesDomainIdx ON Files(domain);
    CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
    CREATE INDEX FilesFlagsIdx ON Files(flags);
    CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
    PRAGMA user_version = 2;
    """

  // MARK: - Entries

  package mutating func add(_ entry: ForeignEntry) throws(InterchangeError) {
    try endContent()
    if case .file(let size) = entry.kind { ignored = size }
    guard let (domain, inner) = MobileSyncDomains.domain(of: entry.path) else {
      if Self.isOfBundle(entry.path) { return skipped.appendExpected() }
      // The directories above the containers have no entry of their own.
      if entry.kind != .directory || !MobileSyncDomains.isAboveContainers(entry.path) {
        skipped.append(path: entry.joinedPath, reason: "a backup contains no such container")
      }
      return
    }
    guard let text = ByteString(joining: inner).utf8, domain.utf8 != nil else {
      skipped.append(path: entry.joinedPath, reason: "its name is not valid UTF-8")
      return
    }
    if case .symlink(let target) = entry.kind, target.utf8 == nil {
      skipped.append(path: entry.joinedPath, reason: "the target of the link is not valid UTF-8")
      return
    }
    let container = Array(entry.path.dropLast(inner.count))
    // A device can have several containers with the same identifier; a backup can have only one.
    if let other = domains[domain], other != container {
      skipped.append(
        path: entry.joinedPath,
        reason: "a backup contains one container of this identifier, and "
          + "'\(ByteString(joining: other))' is in it")
      return
    }
    var record = MobileRecord(
      domain: domain, relativePath: ByteString(text),
      fileID: MobileRecord.fileID(domain: domain, relativePath: ByteString(text)), flags: nil,
      file: file(of: entry))
    domains[domain] = container
    try addParents(domain, inner)
    switch entry.kind {
    case .directory:
      record.file.mode = 0o040000 | entry.permissions
      try insert(record, flags: 2)
      open?.directories.append(contentsOf: inner.suffix(1))
    case .symlink(let target):
      record.file.mode = 0o120000 | entry.permissions
      record.file.target = target
      try insert(record, flags: 4)
    case .file(let size):
      record.file.mode = 0o100000 | entry.permissions
      record.file.size = size
      try begin(record)
    case .hardLink(let other): try addLink(record, to: other)
    case .fifo, .characterDevice, .blockDevice:
      skipped.append(path: entry.joinedPath, reason: "a backup contains no such files")
    }
  }

  /// Whether an entry is an app's bundle or in it: an iTunes backup contains only the data of apps,
  /// which are installed again from the store.
  private static func isOfBundle(_ path: [ByteString]) -> Bool {
    path.count >= 3 && path[0] == "apps" && path[2] == "bundle"
  }

  private mutating func file(of entry: ForeignEntry) -> MobileFile {
    let metadata = MobileSyncMetadata(of: entry, isEncrypted: keys != nil)
    for reason in metadata.remarks {
      skipped.append(path: entry.joinedPath, reason: reason, isPropertyOnly: true)
    }
    return metadata.file
  }

  /// Adds rows for the directories above an entry that have none, because every reader expects
  /// them.
  private mutating func addParents(
    _ domain: ByteString, _ inner: [ByteString]
  ) throws(InterchangeError) {
    if open?.domain != domain {
      open = (domain, [])
      if !inner.isEmpty { try addDirectory(domain, []) }
    }
    guard var directories = open?.directories else { return }
    let parents = Array(inner.dropLast())
    while !parents.starts(with: directories) { directories.removeLast() }
    for depth in directories.count..<parents.count {
      try addDirectory(domain, Array(parents[...depth]))
    }
    open = (domain, parents)
  }

  private func addDirectory(
    _ domain: ByteString, _ inner: [ByteString]
  ) throws(InterchangeError) {
    var file = MobileFile()
    (file.mode, file.owner, file.group) = (0o040755, 501, 501)
    file.protectionClass = MobileFile.usualProtectionClass
    let path = ByteString(joining: inner)
    try insert(
      MobileRecord(
        domain: domain, relativePath: path,
        fileID: MobileRecord.fileID(domain: domain, relativePath: path), flags: nil, file: file),
      flags: 2)
  }

  private func insert(_ record: MobileRecord, flags: Int64) throws(InterchangeError) {
    let archive: [UInt8]
    do throws(CodecError) {
      archive = try record.file.archive(relativePath: record.relativePath)
    } catch { throw InterchangeError(error, Self.action, subject: record.shownPath) }
    do throws(SQLiteError) {
      try insert.bind(record.fileID.utf8 ?? "", to: 1)
      try insert.bind(record.domain.utf8 ?? "", to: 2)
      try insert.bind(record.relativePath.utf8 ?? "", to: 3)
      try insert.bind(flags, to: 4)
      try insert.bind(archive, to: 5)
      try insert.run()
    } catch { throw failure(error) }
  }

  private func failure(_ error: SQLiteError) -> InterchangeError {
    InterchangeError(
      .system, Self.action, subject: path.appending(MobileSyncBackup.database),
      reason: error.reason)
  }

  private func failure(_ error: SystemError) -> InterchangeError {
    InterchangeError(error, Self.action, subject: path)
  }

  // MARK: - Contents

  private mutating func begin(_ record: MobileRecord) throws(InterchangeError) {
    let kind = ByteString(record.domain.bytes.prefix { $0 != UInt8(ascii: "-") })
    let hasDigest = !Self.withoutDigests.contains { kind == ByteString($0) }
    do throws(SystemError) {
      content = OpenContent(
        file: try create(record.fileID), record: record, rest: record.file.size,
        digest: hasDigest ? MessageDigest(.sha1) : nil)
    } catch { throw failure(error) }
    if let keys {
      let (key, wrapped) = keys.makeKey(class: record.file.protectionClass)
      content?.record.file.key = wrapped
      content?.cipher = PaddedCipher(key: key.bytes)
    }
    ignored = 0
  }

  private func create(_ id: ByteString) throws(SystemError) -> Descriptor {
    let prefix = try output.directory.makeDirectory(
      ByteString(id.bytes.prefix(2)), permissions: 0o700)
    return try prefix.create(id, permissions: 0o600)
  }

  package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(InterchangeError) {
    guard content != nil else {
      ignored -= min(ignored, UInt64(bytes.count))
      return
    }
    let portion = bytes.withMemoryRebound(to: UInt8.self) { Array($0) }
    let stored = content?.cipher?.encrypt(portion) ?? portion
    do throws(SystemError) { try content?.store(stored) } catch { throw failure(error) }
    content?.rest -= UInt64(portion.count)
    size += UInt64(portion.count)
  }

  /// Adds the row of the file whose content is complete.
  private mutating func endContent() throws(InterchangeError) {
    guard var ended = content.take() else { return }
    guard ended.rest == 0 else {
      throw InterchangeError(
        .unrepresentable, Self.action, subject: ended.record.shownPath,
        reason: "its content is \(ended.rest) bytes shorter than its size")
    }
    if let last = ended.cipher?.finish() {
      do throws(SystemError) { try ended.store(last) } catch { throw failure(error) }
    }
    if let digest = ended.digest.take() { ended.record.file.digest = digest.finish() }
    try insert(ended.record, flags: 1)
  }

  /// Adds another name of a file or link as a copy: a backup has no hard links. In an encrypted
  /// backup, the copy has the same key, so that the same bytes have the same encrypted form.
  private mutating func addLink(
    _ record: MobileRecord, to other: [ByteString]
  ) throws(InterchangeError) {
    guard let (domain, inner) = MobileSyncDomains.domain(of: other),
      domains[domain] == Array(other.dropLast(inner.count)),
      case let id = MobileRecord.fileID(domain: domain, relativePath: ByteString(joining: inner)),
      let first = try metadata(of: id)
    else {
      skipped.append(path: record.shownPath, reason: "the file that it is a link to is missing")
      return
    }
    var copy = record
    (copy.file.mode, copy.file.size) = (first.mode, first.size)
    if first.kind == .symlink {
      copy.file.target = first.target
      return try insert(copy, flags: 4)
    }
    (copy.file.protectionClass, copy.file.key) = (first.protectionClass, first.key)
    do throws(SystemError) {
      let source = try output.directory.directory(ByteString(id.bytes.prefix(2))).file(id)
      let target = try create(copy.fileID)
      var (buffer, offset): ([UInt8], UInt64) = ([], 0)
      repeat {
        try source.read(count: 1 << 20, at: offset, into: &buffer)
        try target.write(buffer)
        offset += UInt64(buffer.count)
      } while !buffer.isEmpty
    } catch { throw failure(error) }
    copy.file.digest = first.digest
    try insert(copy, flags: 1)
  }

  /// Returns the metadata of a file that was added, or nil if there is none.
  private func metadata(of id: ByteString) throws(InterchangeError) -> MobileFile? {
    do throws(SQLiteError) {
      try select.bind(id.utf8 ?? "", to: 1)
      let bytes = try select.step() ? select.bytes(0) : nil
      try select.reset()
      return bytes.flatMap { try? MobileFile(archive: $0) }
    } catch { throw failure(error) }
  }

  // MARK: - The end

  package mutating func finish() throws(InterchangeError) {
    try endContent()
    do throws(SQLiteError) { try database.execute("COMMIT") } catch { throw failure(error) }
    if let keys, let plain = plainDatabase.take() {
      do throws(SystemError) {
        let target = try output.directory.create(MobileSyncBackup.database, permissions: 0o600)
        try keys.encryptDatabase(plain, to: target)
      } catch { throw failure(error) }
    }
    let lists = MobileSyncLists(device: device, domains: Set(domains.keys), keys: keys)
    for (name, list) in lists.all {
      let bytes: [UInt8]
      do throws(CodecError) { bytes = try list.binary() } catch {
        throw InterchangeError(error, Self.action, subject: path.appending(name))
      }
      try writeList(name, bytes)
    }
    do throws(SystemError) { try output.commit(last: MobileSyncBackup.status) } catch {
      throw failure(error)
    }
  }

  private func writeList(_ name: ByteString, _ bytes: [UInt8]) throws(InterchangeError) {
    do throws(SystemError) {
      let file = try output.directory.create(name, permissions: 0o600)
      try file.write(bytes)
      try file.sync()
    } catch { throw failure(error) }
  }
}
