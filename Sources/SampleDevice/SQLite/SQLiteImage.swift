/// A SQLite database with one table, as the pages of its file (SQLite file format, section 1).
///
/// Page 1 contains the file header and the schema. Page 2 is the root of the table: a leaf or, if
/// the rows need several, an interior page above leaves from page 3 on. One interior page
/// references about 500 leaves, 2 MiB of rows; larger tables, overflow pages, free pages and
/// indexes are not supported.
struct SQLiteImage {
  /// The journal mode, stored in two bytes of the file (section 1.3.3).
  enum Journal: UInt8 {
    case rollback = 1
    case log = 2
  }

  /// The bytes of the pages, page 1 first.
  private(set) var pages: [[UInt8]]

  /// The bytes of the database file.
  var file: [UInt8] { Array(pages.joined()) }

  /// Creates a database from a table name, columns in the syntax of `CREATE TABLE`, and rows in the
  /// order of their IDs.
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

  /// Returns the interior page above the leaves: the number and the greatest key of all but the
  /// last.
  private static func root(of leaves: [SQLitePage], _ rows: [SQLiteRow]) -> SQLitePage {
    var root = SQLitePage(rightmost: UInt32(leaves.count + 2))
    var row = 0
    for (index, leaf) in leaves.dropLast().enumerated() {
      row += leaf.cells.count
      let cell = UInt32(index + 3).bigEndianBytes() + SQLiteRow.varint(UInt64(rows[row - 1].id))
      precondition(root.hasRoom(for: cell), "only one interior page is supported")
      root.cells.append(cell)
    }
    return root
  }

  /// Returns the file header (section 1.3). Fields that matter only to writers are zero.
  private static func header(pages: Int, _ journal: Journal) -> [UInt8] {
    var header = Array("SQLite format 3\0".utf8)
    header += UInt16(SQLitePage.size).bigEndianBytes() + [journal.rawValue, journal.rawValue]
    header += [0, 64, 32, 32]  // no reserved bytes; fixed payload fractions
    let changes: UInt32 = 1
    header += changes.bigEndianBytes() + UInt32(pages).bigEndianBytes()
    header += [UInt8](repeating: 0, count: 8)  // no free pages
    header += UInt32(1).bigEndianBytes() + UInt32(4).bigEndianBytes()  // schema cookie and format
    header += [UInt8](repeating: 0, count: 8)  // default cache size; no auto-vacuum
    header += UInt32(1).bigEndianBytes()  // text is UTF-8
    header += [UInt8](repeating: 0, count: 32)
    // The page count is valid for this change counter; the version is SQLite 3.40.1.
    return header + changes.bigEndianBytes() + UInt32(3_040_001).bigEndianBytes()
  }
}
