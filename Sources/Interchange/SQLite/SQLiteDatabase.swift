internal import CSQLite
internal import SystemIO

/// A database file of another program's backup, by SQLite's library.
///
/// For the manifests of backups only: databases of apps are captured without SQLite
/// (DatabaseCapture). A database that is read is untrusted: nothing in its schema is executed, and
/// it can have no views, triggers, functions or recursive queries.
final class SQLiteDatabase {
  let handle: OpaquePointer
  /// The memory of a database that is not read from its file.
  private let memory: MappedFile?

  /// The largest text or BLOB that is read, in bytes.
  static let valueLimit = 4 << 20

  /// Opens a file for reading. It is not locked, and a log or journal beside it is not read.
  ///
  /// - Parameter path: An absolute path without symbolic links.
  static func openImmutable(path: ByteString) throws(SQLiteError) -> SQLiteDatabase {
    let flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW
    let database = try SQLiteDatabase(uri(of: path) + "?immutable=1", flags: flags)
    try database.restrict()
    return database
  }

  /// Opens the content of a file that is mapped into memory. Its header must not require a log
  /// (`clearLogMode`).
  static func open(_ memory: MappedFile) throws(SQLiteError) -> SQLiteDatabase {
    let database = try SQLiteDatabase(
      ":memory:", flags: SQLITE_OPEN_READWRITE, memory: memory)
    let status = memory.withBytes { bytes in
      bytes.withUnsafeBytes { all in
        // SQLite does not write to a database that it opens as read-only.
        sqlite3_deserialize(
          database.handle, "main",
          UnsafeMutablePointer(mutating: all.bindMemory(to: UInt8.self).baseAddress),
          Int64(all.count), Int64(all.count), UInt32(SQLITE_DESERIALIZE_READONLY))
      }
    }
    try database.check(status)
    try database.restrict()
    return database
  }

  /// Creates or opens a file for writing.
  static func create(path: ByteString) throws(SQLiteError) -> SQLiteDatabase {
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW
    return try SQLiteDatabase(uri(of: path), flags: flags)
  }

  private init(_ name: String, flags: Int32, memory: MappedFile? = nil) throws(SQLiteError) {
    var opened: OpaquePointer?
    let status = sqlite3_open_v2(name, &opened, flags, nil)
    guard let opened else { throw SQLiteError(status: SQLITE_NOMEM, reason: "out of memory") }
    handle = opened
    self.memory = memory
    try check(status)
  }

  deinit { sqlite3_close_v2(handle) }

  private func restrict() throws(SQLiteError) {
    sandboxctl_sqlite_restrict(handle)
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Int32(Self.valueLimit))
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0)
    sqlite3_limit(handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
    try execute("PRAGMA cell_size_check = ON")
    let status = sqlite3_set_authorizer(
      handle,
      { _, action, _, _, _, _ in
        action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY
      }, nil)
    try check(status)
  }

  /// Runs statements without results.
  func execute(_ statements: String) throws(SQLiteError) {
    try check(sqlite3_exec(handle, statements, nil, nil, nil))
  }

  /// Returns a compiled statement.
  func prepare(_ statement: String) throws(SQLiteError) -> SQLiteStatement {
    var compiled: OpaquePointer?
    try check(sqlite3_prepare_v2(handle, statement, -1, &compiled, nil))
    guard let compiled else {
      throw SQLiteError(status: SQLITE_ERROR, reason: "an empty statement")
    }
    return SQLiteStatement(compiled, of: self)
  }

  /// Throws the error of a call unless it succeeded.
  fileprivate func check(_ status: Int32) throws(SQLiteError) {
    guard status != SQLITE_OK else { return }
    throw SQLiteError(status: status, reason: String(cString: sqlite3_errmsg(handle)))
  }

  /// Returns the URI of a path (https://sqlite.org/uri.html), with every byte escaped that could
  /// have a meaning.
  private static func uri(of path: ByteString) -> String {
    let digits = Array("0123456789ABCDEF")
    var text = "file:"
    for byte in path.bytes {
      let isPlain =
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || "/._-".utf8.contains(byte)
      if isPlain {
        text.unicodeScalars.append(UnicodeScalar(byte))
      } else {
        text += ["%", digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return text
  }
}

extension SQLiteDatabase {
  /// The bytes at the start of a database file (https://sqlite.org/fileformat2.html, section 1.3).
  static let magic = Array("SQLite format 3\0".utf8)
  /// The size of the header in bytes.
  static let headerSize = 100

  /// Returns the size of a page in bytes, or nil if this is not the header of a database.
  static func pageSize(header: [UInt8]) -> Int? {
    guard header.count >= headerSize, header.starts(with: magic) else { return nil }
    let size = Int(header[16]) << 8 | Int(header[17])
    let pageSize = size == 1 ? 65_536 : size
    return pageSize >= 512 && pageSize.nonzeroBitCount == 1 ? pageSize : nil
  }

  /// Returns the size of a database in bytes, or nil if the header does not have it: a program
  /// before SQLite 3.7 changed the database without it (section 1.3.7).
  static func size(header: [UInt8]) -> UInt64? {
    guard let pageSize = pageSize(header: header), header[24..<28] == header[92..<96] else {
      return nil
    }
    let pages = header[28..<32].reduce(0) { $0 << 8 | UInt64($1) }
    return pages > 0 ? pages * UInt64(pageSize) : nil
  }

  /// Changes the header of a database with a write-ahead log to one without: SQLite opens no
  /// database in memory that has one. The log must be merged before.
  static func clearLogMode(header: inout [UInt8]) {
    if header.count >= headerSize, header[18] == 2, header[19] == 2 {
      header[18] = 1
      header[19] = 1
    }
  }
}

/// A compiled statement with its current row.
final class SQLiteStatement {
  private let statement: OpaquePointer
  private let database: SQLiteDatabase

  fileprivate init(_ statement: OpaquePointer, of database: SQLiteDatabase) {
    self.statement = statement
    self.database = database
  }

  deinit { sqlite3_finalize(statement) }

  /// Advances to the next row. Returns false after the last one.
  func step() throws(SQLiteError) -> Bool {
    let status = sqlite3_step(statement)
    if status == SQLITE_ROW { return true }
    if status != SQLITE_DONE { try database.check(status) }
    return false
  }

  /// The text or the bytes in a column of the current row; nil for NULL, numbers and other types.
  func bytes(_ column: Int32) -> [UInt8]? {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_TEXT, SQLITE_BLOB:
      let start = sqlite3_column_blob(statement, column)
      let count = Int(sqlite3_column_bytes(statement, column))
      return Array(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    default: return nil
    }
  }

  /// The integer in a column of the current row; nil for other types.
  func integer(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_INTEGER
      ? sqlite3_column_int64(statement, column) : nil
  }

  /// Binds a text to a parameter, from 1.
  func bind(_ text: String, to parameter: Int32) throws(SQLiteError) {
    try database.check(
      sqlite3_bind_text(
        statement, parameter, text, Int32(text.utf8.count), sandboxctl_sqlite_transient()))
  }

  /// Binds bytes to a parameter, from 1.
  func bind(_ bytes: [UInt8], to parameter: Int32) throws(SQLiteError) {
    let status = bytes.withUnsafeBytes {
      sqlite3_bind_blob(
        statement, parameter, $0.baseAddress, Int32($0.count), sandboxctl_sqlite_transient())
    }
    try database.check(status)
  }

  /// Binds an integer to a parameter, from 1.
  func bind(_ number: Int64, to parameter: Int32) throws(SQLiteError) {
    try database.check(sqlite3_bind_int64(statement, parameter, number))
  }

  /// Runs a statement without rows, and prepares it for the next values.
  func run() throws(SQLiteError) {
    _ = try step()
    try reset()
  }

  /// Prepares a statement for the next values.
  func reset() throws(SQLiteError) { try database.check(sqlite3_reset(statement)) }
}

/// A failed call of SQLite.
struct SQLiteError: Error, Hashable, Sendable {
  /// The result code (https://sqlite.org/rescode.html).
  let status: Int32
  /// The library's message.
  let reason: String

  /// Whether the content of the database is invalid, so that another copy of it could be read.
  var isDamage: Bool {
    let code = status & 0xff
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR
      || code == SQLITE_TOOBIG || code == SQLITE_AUTH
  }
}
