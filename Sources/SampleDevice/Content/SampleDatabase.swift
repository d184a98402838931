public import SystemIO

/// A database of the sample: where it is, and what a program that opens it must find.
public struct SampleDatabase: Hashable, Sendable {
  /// The path of its file below the device's directory.
  public let path: ByteString
  /// The name of its table.
  public let table: String
  /// Rows in the database's file alone.
  public let rowsInFile: Int
  /// Rows with the write-ahead log beside it; the same where there is none.
  public let rowsWithLog: Int
}

/// The states of a database: what its file holds, and each further state that only its log holds.
struct DatabasePlan {
  let path: ByteString
  let table: String
  let columns: String
  let rows: [SQLiteRow]
  var commits: [[SQLiteRow]] = []

  /// The bytes of the file.
  var file: [UInt8] { image(rows).file }

  /// The bytes of the log that holds the commits.
  var log: [UInt8] {
    SQLiteLog(after: image(rows), commits: commits.map(image), salt: 0x5a4d_504c_0000_0001).bytes
  }

  private func image(_ rows: [SQLiteRow]) -> SQLiteImage {
    SQLiteImage(
      table: table, columns: columns, rows: rows, journal: commits.isEmpty ? .rollback : .log)
  }
}
