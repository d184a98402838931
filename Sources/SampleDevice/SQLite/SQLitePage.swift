/// A page of a table's tree (SQLite file format, section 1.6): a leaf with rows, or an interior page
/// with the numbers of the pages below it.
struct SQLitePage {
  /// Bytes of every page.
  static let size = 4096

  /// The cells in the order of their keys.
  var cells: [[UInt8]] = []
  /// The page with all that is greater than the cells' keys, of an interior page.
  var rightmost: UInt32?
  /// Bytes before the page's header: 100 on page 1, which begins with the file's header.
  var start = 0

  private var headerSize: Int { rightmost == nil ? 8 : 12 }

  /// Bytes in use: what stands before, the header, and for each cell itself and its pointer.
  private var used: Int { start + headerSize + cells.reduce(0) { $0 + $1.count + 2 } }

  /// Whether a further cell fits.
  func hasRoom(for cell: [UInt8]) -> Bool { used + cell.count + 2 <= Self.size }

  /// The page: header, pointers to the cells, and the cells from the page's end downwards. What
  /// stands before the header is zeros.
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

  /// Divides cells into as few pages as hold them in their order.
  static func pages(of cells: [[UInt8]]) -> [SQLitePage] {
    var pages = [SQLitePage()]
    for cell in cells {
      if !pages[pages.count - 1].hasRoom(for: cell) { pages.append(SQLitePage()) }
      pages[pages.count - 1].cells.append(cell)
    }
    return pages
  }
}
