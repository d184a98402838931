internal import Codecs
internal import SystemIO

/// The rows of Manifest.db, the manifest of backups since iOS 10.
struct ManifestDatabase: ~Copyable {
  private let rows: SQLiteStatement
  private let domains: SQLiteStatement
  /// The number of rows that are still accepted. Pages that are referenced repeatedly can give a
  /// small file any number of them.
  private var rest: UInt64

  /// The minimum number of bytes that the name of a row's content takes.
  private static let bytesPerRow: UInt64 = 40

  /// Begins to read the table of files.
  ///
  /// - Parameter size: The size of the database in bytes.
  init(_ database: SQLiteDatabase, size: UInt64) throws(ManifestFault) {
    rest = size / Self.bytesPerRow
    let statements: (rows: SQLiteStatement, domains: SQLiteStatement)?
    do throws(SQLiteError) {
      let rows = try Self.select(from: database)
      statements = try rows.map { rows throws(SQLiteError) in
        // The index of the domains has them in their order.
        (rows, try database.prepare("SELECT domain FROM Files"))
      }
    } catch { throw ManifestFault(reason: "it is not a valid database: \(error.reason)") }
    guard let statements else { throw ManifestFault(reason: "it has no table of files") }
    (rows, domains) = statements
  }

  /// Returns the apps that have data. Damage ends the list: the rows themselves report it.
  ///
  /// The rows are counted and filtered here instead of by SQLite, which would not end on a damaged
  /// table.
  func apps() -> Set<ByteString> {
    var (apps, last, rest): (Set<ByteString>, [UInt8], UInt64) = ([], [], self.rest)
    while rest > 0, (try? domains.step()) == true {
      rest -= 1
      guard let domain = domains.bytes(0), domain != last else { continue }
      last = domain
      if let app = MobileSyncDomains.app(of: ByteString(domain)) { apps.insert(app) }
    }
    return apps
  }

  /// Returns the query of all rows, or nil if the database has no table of files.
  private static func select(
    from database: SQLiteDatabase
  ) throws(SQLiteError) -> SQLiteStatement? {
    guard try hasTable(database) else { return nil }
    return try database.prepare("SELECT fileID, domain, relativePath, flags, file FROM Files")
  }

  /// Whether `Files` is a table, rather than a view or a virtual table, which can execute code.
  private static func hasTable(_ database: SQLiteDatabase) throws(SQLiteError) -> Bool {
    let found = try database.prepare(
      "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = 'Files'")
    return try found.step() && found.integer(0) ?? 0 > 0
  }

  /// Returns the next row, or nil after the last one.
  mutating func next() throws(ManifestFault) -> ManifestRow? {
    do throws(SQLiteError) {
      guard try rows.step() else { return nil }
    } catch {
      throw ManifestFault(reason: "its table of files is damaged: \(error.reason)")
    }
    guard rest > 0 else {
      throw ManifestFault(reason: "it has more rows than its size permits")
    }
    rest -= 1
    return ManifestRow(
      fileID: rows.bytes(0), domain: rows.bytes(1) ?? [], path: rows.bytes(2) ?? [],
      flags: rows.integer(3) ?? 0, archive: rows.bytes(4))
  }
}

/// A row of Manifest.db as stored. Any thread can decode its record.
struct ManifestRow: Sendable {
  let fileID: [UInt8]?
  let domain: [UInt8]
  let path: [UInt8]
  let flags: Int64
  let archive: [UInt8]?

  /// Returns the record, or the reason why it cannot be used.
  func record() -> Result<MobileRecord, SkippedRow> {
    let shown = { ByteString(domain).appending(ByteString(path)) }
    guard let id = fileID.map({ ByteString($0) }), MobileRecord.isFileID(id) else {
      return .failure(
        SkippedRow(path: shown(), reason: "its file ID is not 40 hexadecimal digits"))
    }
    guard !domain.isEmpty else {
      return .failure(SkippedRow(path: shown(), reason: "it has no domain"))
    }
    guard let archive else {
      return .failure(SkippedRow(path: shown(), reason: "it has no metadata"))
    }
    do throws(RecordFault) {
      let file = try MobileFile(archive: archive)
      return .success(
        MobileRecord(
          domain: ByteString(domain), relativePath: ByteString(path), fileID: id, flags: flags,
          file: file))
    } catch {
      return .failure(SkippedRow(path: shown(), reason: error.reason))
    }
  }
}

/// A row of a manifest that cannot be used.
struct SkippedRow: Error, Hashable, Sendable {
  let path: ByteString
  let reason: String
}
