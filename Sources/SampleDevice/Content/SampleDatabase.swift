package import SystemIO

/// A database of the sample: its location and the expected content.
package struct SampleDatabase: Hashable, Sendable {
  /// The path of its file below the device's directory.
  package let path: ByteString
  /// The name of its table.
  package let table: String
  /// The number of rows in the database file alone.
  package let rowsInFile: Int
  /// The number of rows including the write-ahead log; the same without a log.
  package let rowsWithLog: Int
}

/// The states of a database: the content of its file, and each further state in its log.
struct DatabasePlan {
  let path: ByteString
  let table: String
  let columns: String
  let rows: [SQLiteRow]
  var commits: [[SQLiteRow]] = []

  /// The bytes of the database file.
  var file: [UInt8] { image(rows).file }

  /// The bytes of the log with the commits.
  var log: [UInt8] {
    SQLiteLog(after: image(rows), commits: commits.map(image), salt: 0x5a4d_504c_0000_0001).bytes
  }

  private func image(_ rows: [SQLiteRow]) -> SQLiteImage {
    SQLiteImage(
      table: table, columns: columns, rows: rows, journal: commits.isEmpty ? .rollback : .log)
  }
}
