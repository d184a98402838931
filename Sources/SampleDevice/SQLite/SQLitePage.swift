/// A page of a table's B-tree (SQLite file format, section 1.6): a leaf with rows, or an interior
/// page with the numbers of its child pages.
struct SQLitePage {
  /// The size of a page in bytes.
  static let size = 4096

  /// The cells in the order of their keys.
  var cells: [[UInt8]] = []
  /// On an interior page, the page with all keys greater than those of the cells.
  var rightmost: UInt32?
  /// The number of bytes before the page header: 100 on page 1, which begins with the file header.
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
  static func pages(of cells: [[UInt8]]) -> [SQLitePage] {
    var pages = [SQLitePage()]
    for cell in cells {
      if !pages[pages.count - 1].hasRoom(for: cell) { pages.append(SQLitePage()) }
      pages[pages.count - 1].cells.append(cell)
    }
    return pages
  }
}
