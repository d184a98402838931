/// A SQLite database with one table, as the pages of its file (SQLite file format, section 1).
///
/// Page 1 has the file's header and the schema, page 2 is the table's root: a leaf, or where the
/// rows need several, an interior page above leaves from page 3 on. One interior page leads to some
/// 500 leaves, 2 MiB of rows; more are not written, nor overflow pages, free pages or indices.
struct SQLiteImage {
  /// How a database's transactions are made safe; its file says so in two bytes (section 1.3.3).
  enum Journal: UInt8 {
    case rollback = 1
    case log = 2
  }

  /// The pages' bytes, page 1 first.
  private(set) var pages: [[UInt8]]

  /// The database's file.
  var file: [UInt8] { Array(pages.joined()) }

  /// Makes the database of a table, its columns as `CREATE TABLE` takes them, and its rows in the
  /// order of their numbers.
  init(table: String, columns: String, rows: [SQLiteRow], journal: Journal = .rollback) {
    let leaves = SQLitePage.pages(of: rows.map(\.leafCell))
    let tree = leaves.count == 1 ? leaves : [Self.root(of: leaves, rows)] + leaves
    let schema: [SQLiteValue] = [
      .text("table"), .text(table), .text(table), .integer(2),
      .text("CREATE TABLE \(table) (\(columns))"),
    ]
    let first = SQLitePage(cells: [SQLiteRow(1, schema).leafCell], start: 100)
    pages = [first.bytes] + tree.map(\.bytes)
    pages[0].replaceSubrange(0..<100, with: Self.header(pages: pages.count, journal))
  }

  /// The interior page above the leaves: for all but the last its number and its greatest key.
  private static func root(of leaves: [SQLitePage], _ rows: [SQLiteRow]) -> SQLitePage {
    var root = SQLitePage(rightmost: UInt32(leaves.count + 2))
    var row = 0
    for (index, leaf) in leaves.dropLast().enumerated() {
      row += leaf.cells.count
      let cell = UInt32(index + 3).bigEndianBytes() + SQLiteRow.varint(UInt64(rows[row - 1].id))
      precondition(root.hasRoom(for: cell), "one interior page is written")
      root.cells.append(cell)
    }
    return root
  }

  /// The file's header (section 1.3). What a program that never writes has no need of is zero.
  private static func header(pages: Int, _ journal: Journal) -> [UInt8] {
    var header = Array("SQLite format 3\0".utf8)
    header += UInt16(SQLitePage.size).bigEndianBytes() + [journal.rawValue, journal.rawValue]
    header += [0, 64, 32, 32]  // no reserved bytes; fixed payload fractions
    let changes: UInt32 = 1
    header += changes.bigEndianBytes() + UInt32(pages).bigEndianBytes()
    header += [UInt8](repeating: 0, count: 8)  // no free pages
    header += UInt32(1).bigEndianBytes() + UInt32(4).bigEndianBytes()  // schema's change and format
    header += [UInt8](repeating: 0, count: 8)  // cache size as usual; no automatic vacuum
    header += UInt32(1).bigEndianBytes()  // text is UTF-8
    header += [UInt8](repeating: 0, count: 32)
    // The page count holds for this change; written as SQLite 3.40.1 would.
    return header + changes.bigEndianBytes() + UInt32(3_040_001).bigEndianBytes()
  }
}
