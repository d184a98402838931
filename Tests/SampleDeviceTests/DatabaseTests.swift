import Foundation
import SystemIO
import TestSupport
import Testing

@testable import SampleDevice

@Suite("The sample's databases", .enabled(if: hasSQLite, "sqlite3 or python3 is required"))
struct DatabaseTests {
  @Test(
    "are sound and have the reported rows, with and without the log", arguments: [0, 1, 30])
  func databasesAreSound(day: Int) throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"), day: day)
    let databases = try SampleDevice.databases(day: day)
    #expect(databases.count == 6)
    for database in databases {
      let path = scratch.path("a").appending(database.path).description
      let count = "SELECT count(*) FROM \(database.table)"
      let alone = scratch.path("alone.sqlite").description
      try FileManager.default.copyItem(atPath: path, toPath: alone)
      defer {
        for ending in ["", "-wal", "-shm"] {
          _ = try? FileManager.default.removeItem(atPath: alone + ending)
        }
      }
      #expect(try query(alone, "PRAGMA integrity_check") == "ok", "\(path)")
      #expect(try query(alone, count) == String(database.rowsInFile), "\(path)")
      #expect(try query(path, "PRAGMA integrity_check") == "ok", "\(path)")
      #expect(try query(path, count) == String(database.rowsWithLog), "\(path)")
    }
    #expect(databases.filter { $0.rowsInFile < $0.rowsWithLog }.count == 1)
  }

  @Test("store every kind of value")
  func everyKindOfValueIsStored() throws {
    let numbers: [Int64] = [
      0, 1, 2, -1, 127, 128, -128, -129, 32_767, -32_769, 8_388_607, 8_388_608, -8_388_609,
      2_147_483_648, 140_737_488_355_327, 140_737_488_355_328, .max, .min,
    ]
    let rows = numbers.enumerated().map { index, number in
      SQLiteRow(
        Int64(index) * 50_000 + 1,
        [.null, .integer(number), .real(Double(index) / 3), .text("n\u{e9} \(number)"), .blob([9])])
    }
    let scratch = try TemporaryDirectory("sample")
    let path = scratch.path("values.sqlite").description
    let image = SQLiteImage(
      table: "t", columns: "id INTEGER PRIMARY KEY, n, r REAL, s TEXT, b BLOB", rows: rows)
    try Data(image.file).write(to: URL(fileURLWithPath: path))
    #expect(try query(path, "PRAGMA integrity_check") == "ok")
    let found = try query(path, "SELECT id, n, s, hex(b) FROM t ORDER BY id")
    let expected = rows.map { row in
      guard case .integer(let number) = row.values[1] else { return "" }
      return "\(row.id)|\(number)|n\u{e9} \(number)|09"
    }
    #expect(found == expected.joined(separator: "\n"))
    #expect(try query(path, "SELECT sum(r * 3) FROM t") == "153.0")
  }

  @Test(
    "may have as many rows as one interior page has leaves for", arguments: [0, 1, 9_000])
  func tablesMayHaveManyRows(count: Int) throws {
    let rows = (0..<count).map { SQLiteRow(Int64($0 + 1), [.null, .text("row \($0) of many")]) }
    let image = SQLiteImage(table: "t", columns: "id INTEGER PRIMARY KEY, s", rows: rows)
    let scratch = try TemporaryDirectory("sample")
    let path = scratch.path("many.sqlite").description
    try Data(image.file).write(to: URL(fileURLWithPath: path))
    #expect(try query(path, "PRAGMA integrity_check") == "ok")
    #expect(try query(path, "SELECT count(*) FROM t") == String(count))
    #expect(
      try query(path, "SELECT s FROM t WHERE id = \(count)")
        == (count == 0 ? "" : "row \(count - 1) of many"))
  }

  @Test("lose exactly the last transaction if their log is truncated within it")
  func aTruncatedLogLosesTheLastTransaction() throws {
    func image(_ count: Int) -> SQLiteImage {
      let rows = (1...count).map { SQLiteRow(Int64($0), [.null, .text("row \($0)")]) }
      return SQLiteImage(
        table: "t", columns: "id INTEGER PRIMARY KEY, s TEXT", rows: rows, journal: .log)
    }
    let log = SQLiteLog(after: image(3), commits: [image(5), image(900)], salt: 42).bytes
    let scratch = try TemporaryDirectory("sample")
    let path = scratch.path("t.sqlite").description
    try Data(image(3).file).write(to: URL(fileURLWithPath: path))
    try Data(log.dropLast(1)).write(to: URL(fileURLWithPath: path + "-wal"))
    #expect(try query(path, "SELECT count(*) FROM t") == "5")
    for ending in ["-wal", "-shm"] {
      _ = try? FileManager.default.removeItem(atPath: path + ending)
    }
    try Data(image(3).file).write(to: URL(fileURLWithPath: path))
    try Data(log).write(to: URL(fileURLWithPath: path + "-wal"))
    #expect(try query(path, "SELECT count(*) FROM t") == "900")
  }
}
