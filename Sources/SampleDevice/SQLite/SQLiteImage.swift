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
    let leaves = Page.pages(of: rows.map(\.leafCell))
    let tree = leaves.count == 1 ? leaves : [Self.root(of: leaves, rows)] + leaves
    let schema: [SQLiteRow.Value] = [
      .text("table"), .text(table), .text(table), .integer(2),
      .text("CREATE TABLE \(table) (\(columns))"),
    ]
    let first = Page(cells: [SQLiteRow(1, schema).leafCell], start: 100)
    pages = [first.bytes] + tree.map(\.bytes)
    pages[0].replaceSubrange(0..<100, with: Self.header(pages: pages.count, journal))
  }

  /// Returns the interior page above the leaves: the number and the greatest key of all but the
  /// last.
  private static func root(of leaves: [Page], _ rows: [SQLiteRow]) -> Page {
    var root = Page(rightmost: UInt32(leaves.count + 2))
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
    header += UInt16(Page.size).bigEndianBytes() + [journal.rawValue, journal.rawValue]
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

extension SQLiteImage {
  /// A page of a table's B-tree (SQLite file format, section 1.6): a leaf with rows, or an interior
  /// page with the numbers of its child pages.
  struct Page {
    /// The size of a page in bytes.
    static let size = 4096

    /// The cells in the order of their keys.
    var cells: [[UInt8]] = []
    /// On an interior page, the page with all keys greater than those of the cells.
    var rightmost: UInt32?
    /// The number of bytes before the page header: 100 on page 1, which begins with the file
    /// header.
    var start = 0

    private var headerSize: Int { rightmost == nil ? 8 : 12 }

    /// The number of bytes used by the start, the header, the cells and their pointers.
    private var used: Int { start + headerSize + cells.reduce(0) { $0 + $1.count + 2 } }

    /// Whether another cell fits.
    func hasRoom(for cell: [UInt8]) -> Bool { used + cell.count + 2 <= Self.size }

    /// The bytes of the page: header, cell pointers, and the cells from the end of the page
    /// backwards. The bytes before the header are zeros.
    var bytes: [UInt8] {
      var page = [UInt8](repeating: 0, count: Self.size)
      var pointers: [UInt8] = []
      var content = Self.size
      for cell in cells {
        content -= cell.count
        page.replaceSubrange(content..<(content + cell.count), with: cell)
        pointers += UInt16(content).bigEndianBytes()
      }
      var header: [UInt8] = [rightmost == nil ? 13 : 5, 0, 0]
      header += UInt16(cells.count).bigEndianBytes() + UInt16(content).bigEndianBytes() + [0]
      if let rightmost { header += rightmost.bigEndianBytes() }
      header += pointers
      page.replaceSubrange(start..<(start + header.count), with: header)
      return page
    }

    /// Distributes cells in order over as few pages as possible.
    static func pages(of cells: [[UInt8]]) -> [Page] {
      var pages = [Page()]
      for cell in cells {
        if !pages[pages.count - 1].hasRoom(for: cell) { pages.append(Page()) }
        pages[pages.count - 1].cells.append(cell)
      }
      return pages
    }
  }
}

/// A write-ahead log with committed transactions that the database file lacks (SQLite file format,
/// section 4).
struct SQLiteLog {
  /// The bytes of the log.
  private(set) var bytes: [UInt8] = []
  private let salts: [UInt8]
  private var checksum: (UInt32, UInt32) = (0, 0)

  /// Creates the log of `commits` after `base`: for each commit the pages that differ from the
  /// previous state, the last one marked with the size of the database. The database never shrinks.
  init(after base: SQLiteImage, commits: [SQLiteImage], salt: UInt64) {
    salts = salt.bigEndianBytes()
    addHeader()
    var before = base.pages
    for commit in commits {
      add(commit.pages, changedFrom: before)
      before = commit.pages
    }
  }

  /// Appends the header (section 4.1): magic for big-endian checksums, version, page size,
  /// checkpoint number, salts and the checksum of all these.
  private mutating func addHeader() {
    bytes = UInt32(0x377f_0683).bigEndianBytes() + UInt32(3_007_000).bigEndianBytes()
    bytes += UInt32(SQLiteImage.Page.size).bigEndianBytes() + UInt32(0).bigEndianBytes() + salts
    sum(bytes[...])
    bytes += checksum.0.bigEndianBytes() + checksum.1.bigEndianBytes()
  }

  private mutating func add(_ pages: [[UInt8]], changedFrom before: [[UInt8]]) {
    precondition(pages.count >= before.count)
    let changed = pages.indices.filter { $0 >= before.count || pages[$0] != before[$0] }
    for index in changed {
      let isLast = index == changed.last
      addFrame(page: index + 1, size: isLast ? pages.count : 0, pages[index])
    }
  }

  /// Appends a frame: page number, size of the database after a commit or 0, salts, the checksum of
  /// everything before except the salts, and the page.
  private mutating func addFrame(page: Int, size: Int, _ content: [UInt8]) {
    let head = UInt32(page).bigEndianBytes() + UInt32(size).bigEndianBytes()
    sum(head[...])
    sum(content[...])
    bytes += head + salts + checksum.0.bigEndianBytes() + checksum.1.bigEndianBytes() + content
  }

  /// Continues the checksum over pairs of big-endian words (section 4.2).
  private mutating func sum(_ bytes: ArraySlice<UInt8>) {
    var at = bytes.startIndex
    func word(_ at: Int) -> UInt32 {
      UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16
        | UInt32(bytes[at + 2]) << 8 | UInt32(bytes[at + 3])
    }
    while at < bytes.endIndex {
      checksum.0 = checksum.0 &+ word(at) &+ checksum.1
      checksum.1 = checksum.1 &+ word(at + 4) &+ checksum.0
      at += 8
    }
  }
}

/// A row: its ID, which is also the value of an `INTEGER PRIMARY KEY` column, and the values of its
/// columns; the value of such a column is `null` (SQLite file format, section 2.1).
struct SQLiteRow: Hashable, Sendable {
  let id: Int64
  let values: [Value]

  init(_ id: Int64, _ values: [Value]) {
    self.id = id
    self.values = values
  }
}

extension SQLiteRow {
  /// A value in a row of a sample database.
  enum Value: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
  }

  /// The record of the values: header size, types, values (section 2.1).
  var record: [UInt8] {
    let columns = values.map(\.stored)
    let types = columns.flatMap { Self.varint($0.type) }
    precondition(types.count < 127, "the header size is one byte and includes itself")
    return [UInt8(types.count + 1)] + types + columns.flatMap(\.bytes)
  }

  /// The leaf cell of a table: record size, row ID, record (section 1.6). The record must fit on a
  /// page because overflow pages are not supported.
  var leafCell: [UInt8] {
    let record = record
    precondition(record.count <= SQLiteImage.Page.size - 35, "overflow pages are not supported")
    return Self.varint(UInt64(record.count)) + Self.varint(UInt64(id)) + record
  }

  /// Returns a number in groups of seven bits, the highest first; all bytes but the last have the
  /// high bit set (section 1.6). Numbers of more than 56 bits, which take nine bytes, are not
  /// supported.
  static func varint(_ number: UInt64) -> [UInt8] {
    precondition(number < 1 << 56)
    var bytes = [UInt8(number & 0x7f)]
    var rest = number >> 7
    while rest > 0 {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    return bytes.reversed()
  }
}

extension SQLiteRow.Value {
  /// The serial type and the bytes of the value (table in section 2.1).
  fileprivate var stored: (type: UInt64, bytes: [UInt8]) {
    switch self {
    case .null: return (0, [])
    case .integer(let number): return Self.stored(number)
    case .real(let number): return (7, number.bitPattern.bigEndianBytes(8))
    case .text(let text): return (13 + 2 * UInt64(text.utf8.count), Array(text.utf8))
    case .blob(let bytes): return (12 + 2 * UInt64(bytes.count), bytes)
    }
  }

  /// Returns an integer in the smallest of 0, 1, 2, 3, 4, 6 and 8 bytes.
  private static func stored(_ number: Int64) -> (type: UInt64, bytes: [UInt8]) {
    if number == 0 || number == 1 { return (8 + UInt64(number), []) }
    let bits = 65 - (number < 0 ? ~number : number).leadingZeroBitCount
    let widths = [1, 2, 3, 4, 6, 8]
    let index = widths.firstIndex { bits <= 8 * $0 } ?? 5
    return (UInt64(index + 1), UInt64(bitPattern: number).bigEndianBytes(widths[index]))
  }
}

extension FixedWidthInteger {
  /// Returns the lowest `count` bytes in big-endian order.
  func bigEndianBytes(_ count: Int = Self.bitWidth / 8) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: self >> Self(8 * $0)) }
  }
}
