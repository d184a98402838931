internal import Codecs
internal import SystemIO

/// The manifest of a backup, read entry by entry.
enum MobileSyncManifest: ~Copyable {
  case database(ManifestDatabase)
  case records(MBDBReader)

  /// Whether the contents of files are in directories named by the first two digits of their names.
  var hasDirectories: Bool {
    switch self {
    case .database: true
    case .records: false
    }
  }

  /// Returns the next entry; nil after the last one.
  mutating func next() throws(ManifestFault) -> ManifestEntry? {
    switch consume self {
    case .database(var database):
      let result: Result<ManifestEntry?, ManifestFault>
      do throws(ManifestFault) { result = .success(try database.next().map { .row($0) }) } catch {
        result = .failure(error)
      }
      self = .database(database)
      return try result.get()
    case .records(var records):
      let result: Result<ManifestEntry?, ManifestFault>
      do throws(ManifestFault) { result = .success(try records.next().map { .record($0) }) } catch {
        result = .failure(error)
      }
      self = .records(records)
      return try result.get()
    }
  }
}

/// An entry of a manifest. Any thread can decode its record.
enum ManifestEntry: Sendable {
  case row(ManifestRow)
  case record(MobileRecord)

  /// Returns the record, or the reason why it cannot be used.
  func record() -> Result<MobileRecord, SkippedRow> {
    switch self {
    case .row(let row): row.record()
    case .record(let record): .success(record)
    }
  }
}

extension MobileSyncBackup {
  /// Opens the manifest: Manifest.db, otherwise Manifest.mbdb.
  ///
  /// - Parameters:
  ///   - apps: Receives the apps that have data, because a backup's property lists may not name
  ///     them.
  ///   - skipped: Receives the logs of the database that cannot be merged into it.
  func openManifest(
    addingAppsTo apps: inout Set<ByteString>, skipping skipped: inout SkippedEntries
  ) throws(InterchangeError) -> MobileSyncManifest {
    if try has(Self.database) {
      do throws(ManifestFault) {
        let database = try openDatabase(skipping: &skipped)
        apps.formUnion(database.apps())
        return .database(database)
      } catch {
        throw error.error(in: path.appending(Self.database))
      }
    }
    guard try has(Self.records) else {
      let isOld = try has("Manifest.mbdx")
      throw InterchangeError(
        isOld ? .unsupported : .unknownFormat, Self.action, subject: path,
        reason: isOld
          ? "it is a backup of iOS 3 or older, whose manifest has another form"
          : "it has neither Manifest.db nor Manifest.mbdb",
        hint: "name the directory of one backup of iOS 4 or later")
    }
    do throws(ManifestFault) {
      apps.formUnion(try MBDBReader.apps(in: open(Self.records)))
      return .records(try MBDBReader(open(Self.records)))
    } catch {
      throw error.error(in: path.appending(Self.records))
    }
  }

  private func has(_ name: ByteString) throws(InterchangeError) -> Bool {
    do throws(SystemError) { return try directory.statusIfPresent(name)?.kind == .file } catch {
      throw InterchangeError(error, Self.action, subject: path.appending(name))
    }
  }

  private func open(_ name: ByteString) throws(ManifestFault) -> Descriptor {
    do throws(SystemError) { return try directory.file(name) } catch { throw ManifestFault(error) }
  }

  // MARK: - The database

  private func openDatabase(
    skipping skipped: inout SkippedEntries
  ) throws(ManifestFault) -> ManifestDatabase {
    let file = try open(Self.database)
    guard let keys, let manifestKey else {
      if let merged = try mergedDatabase(file, skipping: &skipped) {
        return try Self.database(in: merged)
      }
      let size = try Self.system { () throws(SystemError) in try file.status().size }
      return try Self.database(size) { () throws(SQLiteError) in
        try SQLiteDatabase.openImmutable(path: path.appending(Self.database))
      }
    }
    reportLogsOfEncryptedDatabase(in: &skipped)
    return try Self.database(in: decrypt(file, with: try Self.unwrap(manifestKey, keys)))
  }

  /// Opens a private copy.
  private static func database(
    in copy: borrowing Descriptor
  ) throws(ManifestFault) -> ManifestDatabase {
    let memory = try system { () throws(SystemError) in try MappedFile(copy) }
    return try database(UInt64(memory.count)) { () throws(SQLiteError) in
      try SQLiteDatabase.open(memory)
    }
  }

  private static func system<Value: ~Copyable>(
    _ body: () throws(SystemError) -> Value
  ) throws(ManifestFault) -> Value {
    do throws(SystemError) { return try body() } catch { throw ManifestFault(error) }
  }

  private static func database(
    _ size: UInt64, _ open: () throws(SQLiteError) -> SQLiteDatabase
  ) throws(ManifestFault) -> ManifestDatabase {
    let database: SQLiteDatabase
    do throws(SQLiteError) { database = try open() } catch {
      throw ManifestFault(reason: "it is not a valid database: \(error.reason)")
    }
    return try ManifestDatabase(database, size: size)
  }

  private static func unwrap(
    _ bytes: [UInt8], _ keys: ClassKeys
  ) throws(ManifestFault) -> ClassKeys.Key {
    guard let wrapped = WrappedKey(bytes) else {
      throw ManifestFault(reason: "its key in Manifest.plist has \(bytes.count) bytes, not 44")
    }
    do throws(UnwrapFault) { return try keys.unwrap(wrapped).get() } catch {
      throw ManifestFault(reason: error.reason)
    }
  }

  /// The number of bytes that are decrypted at once.
  private static let portion = 1 << 20

  /// Decrypts the database into an unnamed file that only this user can read, without its padding.
  ///
  /// Apple's programs pad the database with a block; other writers do not. SQLite writes whole
  /// pages, so everything after the last one is padding.
  private func decrypt(
    _ file: borrowing Descriptor, with key: ClassKeys.Key
  ) throws(ManifestFault) -> Descriptor {
    let plain = try Self.system { () throws(SystemError) in try TemporaryFile.make() }
    var cipher = BlockCipher(.decrypt, key: key.bytes)
    var (buffer, output, size, pageSize): ([UInt8], [UInt8], UInt64, Int) = ([], [], 0, 0)
    while true {
      do throws(SystemError) {
        try file.read(count: Self.portion, at: size, into: &buffer)
      } catch { throw ManifestFault(error) }
      buffer.removeLast(buffer.count % BlockCipher.blockSize)
      if buffer.isEmpty { break }
      output.removeAll(keepingCapacity: true)
      cipher.process(buffer.span, appendingTo: &output)
      if size == 0 {
        guard let found = SQLiteDatabase.pageSize(header: output) else {
          throw ManifestFault(reason: "it is not a database after its decryption")
        }
        pageSize = found
        SQLiteDatabase.clearLogMode(header: &output)
      }
      do throws(SystemError) { try plain.write(output) } catch { throw ManifestFault(error) }
      size += UInt64(output.count)
    }
    guard pageSize > 0, size >= UInt64(pageSize) else {
      throw ManifestFault(reason: "it is truncated")
    }
    do throws(SystemError) {
      try plain.truncate(to: size - size % UInt64(pageSize))
    } catch { throw ManifestFault(error) }
    return plain
  }
}

extension ManifestFault {
  /// Wraps a failed system call.
  init(_ error: SystemError) {
    self.init(reason: error.reason, offset: nil, cause: error)
  }

  /// The error for a manifest.
  func error(in path: ByteString) -> InterchangeError {
    if let cause {
      return InterchangeError(cause, MobileSyncBackup.action, subject: path)
    }
    return InterchangeError(
      .damaged, MobileSyncBackup.action, subject: path, reason: reason, offset: offset)
  }
}
