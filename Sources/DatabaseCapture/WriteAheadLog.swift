internal import Codecs
package import SystemIO

/// Finds the committed pages of a write-ahead log (fileformat2, section 4; wal.c, walIndexRecover).
///
/// A log has a header and frames, each with a frame header and a page. A frame is effective if its
/// salts match the header, the checksum over everything before it is correct, and it ends a
/// transaction or is followed by a frame that does. Later frames belong to an interrupted
/// transaction or to an earlier use of the file.
package struct WriteAheadLog: LogParser {
  package private(set) var next: Range<UInt64>?
  private let size: UInt64
  private var header: Header?
  private var sum = Sum()
  private var pages = PageOverlay.Builder()
  private var pageCount: UInt32?

  private static let headerSize = 32
  private static let frameHeaderSize = 24
  private static let version: UInt32 = 3_007_000

  private struct Header {
    let pageSize: Int
    let salts: (UInt32, UInt32)
    let isBigEndian: Bool
  }

  /// Starts to read a log of `size` bytes.
  package init(size: UInt64) {
    self.size = min(size, UInt64(Int64.max))
    // A log without a frame has no effect.
    if size > Self.headerSize { next = 0..<UInt64(Self.headerSize) }
  }

  package mutating func parse(_ bytes: Span<UInt8>) throws(LogRefusal) {
    guard let range = next else { return }
    next = nil
    guard bytes.count == range.count else { return }
    if let header {
      guard parseFrame(bytes, header, at: range.lowerBound) else { return }
    } else {
      header = try parseHeader(bytes)
    }
    guard let header else { return }
    let frame = UInt64(Self.frameHeaderSize + header.pageSize)
    guard size - range.upperBound >= frame else { return }
    next = range.upperBound..<(range.upperBound + frame)
  }

  package mutating func overlay() -> PageOverlay? {
    guard let header, let pageCount else { return nil }
    return pages.finish(pageSize: header.pageSize, pageCount: pageCount)
  }

  /// Returns the header, or nil if SQLite would treat the log as empty.
  private mutating func parseHeader(_ bytes: Span<UInt8>) throws(LogRefusal) -> Header? {
    let magic = bytes.word(at: 0)
    guard magic & ~1 == 0x377f_0682, let pageSize = DatabaseUnit.pageSize(stored: bytes.word(at: 8))
    else { return nil }
    let isBigEndian = magic & 1 == 1
    sum.add(bytes, 0..<24, isBigEndian: isBigEndian)
    guard sum.isStored(in: bytes, at: 24) else { return nil }
    let version = bytes.word(at: 4)
    guard version == Self.version else { throw .unknownVersion(version) }
    return Header(
      pageSize: pageSize, salts: (bytes.word(at: 16), bytes.word(at: 20)),
      isBigEndian: isBigEndian)
  }

  /// Whether a complete frame at `offset` belongs to the current use of the log.
  private mutating func parseFrame(
    _ bytes: Span<UInt8>, _ header: Header, at offset: UInt64
  ) -> Bool {
    let number = bytes.word(at: 0)
    let salts = (bytes.word(at: 8), bytes.word(at: 12))
    guard number > 0, salts == header.salts else { return false }
    sum.add(bytes, 0..<8, isBigEndian: header.isBigEndian)
    sum.add(bytes, Self.frameHeaderSize..<bytes.count, isBigEndian: header.isBigEndian)
    guard sum.isStored(in: bytes, at: 16) else { return false }
    pages.append(number, at: offset + UInt64(Self.frameHeaderSize))
    let count = bytes.word(at: 4)
    if count > 0 {
      pageCount = count
      pages.commit()
    }
    return true
  }

  /// The cumulative checksum of the log (fileformat2, section 4.2).
  private struct Sum {
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    /// Adds a range whose length is a multiple of 8.
    mutating func add(_ bytes: Span<UInt8>, _ range: Range<Int>, isBigEndian: Bool) {
      var at = range.lowerBound
      while at < range.upperBound {
        let words = LittleEndian.integer(bytes, at: at, as: UInt64.self)
        let low = UInt32(truncatingIfNeeded: words)
        let high = UInt32(truncatingIfNeeded: words >> 32)
        first &+= (isBigEndian ? low.byteSwapped : low) &+ second
        second &+= (isBigEndian ? high.byteSwapped : high) &+ first
        at += 8
      }
    }

    /// Whether the checksum is stored at an offset, big-endian in any log.
    func isStored(in bytes: Span<UInt8>, at offset: Int) -> Bool {
      bytes.word(at: offset) == first && bytes.word(at: offset + 4) == second
    }
  }
}

/// A parser for a database's log or journal that requests one range after another, so that the
/// caller need not hold the file in memory.
///
/// The input may be arbitrary. The parser decides as SQLite does when it opens the database, and
/// holds 16 bytes for each effective page, at most twice that.
package protocol LogParser {
  /// The next range of the log to pass to `parse`, within its size and shorter than 66 KiB, or nil
  /// at the end.
  var next: Range<UInt64>? { get }

  /// Receives all bytes of the requested range.
  ///
  /// - Throws: `LogRefusal` if SQLite would refuse the log, or would need another file to decide.
  mutating func parse(_ bytes: Span<UInt8>) throws(LogRefusal)

  /// Returns the pages that SQLite would transfer to the database, once nothing more is requested,
  /// or nil if the log has no effect. Must be called only once.
  mutating func overlay() -> PageOverlay?
}

/// The reason a log cannot be merged into its database.
package enum LogRefusal: Error, Hashable, Sendable {
  /// The log has a valid checksum and an unknown format version.
  case unknownVersion(UInt32)
  /// The journal belongs to a transaction over several databases, which was committed unless the
  /// file of this name exists.
  case severalDatabases(superJournal: ByteString)
  /// The page size of the log differs from that of the database, in bytes.
  case otherPageSize(log: Int, database: Int)
  /// The database would have this size in bytes, which the two files cannot provide.
  case tooLarge(UInt64)

  /// A sentence about the log: "it is …".
  package var reason: String {
    switch self {
    case .unknownVersion(let version): "it has the unknown version \(version)"
    case .severalDatabases(let name):
      """
      it belongs to a transaction over several databases, and another file determines whether it was \
      committed: '\(name)'
      """
    case .otherPageSize(let log, let database):
      "its pages have \(log) bytes, but those of the database have \(database)"
    case .tooLarge(let size):
      "it gives the database a size of \(size) bytes, more than both files hold"
    }
  }
}

extension Span<UInt8> {
  /// Returns the 32-bit number at an offset, whose bytes must exist. Numbers in SQLite's files are
  /// big-endian.
  @inline(__always)
  func word(at offset: Int) -> UInt32 {
    LittleEndian.integer(self, at: offset, as: UInt32.self).byteSwapped
  }
}
