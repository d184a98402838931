internal import ArchiveStore
internal import DatabaseCapture
internal import SystemIO

/// A database's stored log, copied as far as it counts into a file that is gone when this value is.
final class SpooledLog {
  /// Which of its pages hold.
  let overlay: PageOverlay
  private let file: Descriptor

  private init(_ overlay: PageOverlay, in file: consuming Descriptor) {
    self.overlay = overlay
    self.file = file
  }

  /// Reads and verifies a log until the parser wants no more of it; nil when it counts for nothing.
  ///
  /// - Throws: `LogRefusal` of the parser, `StoreError` for what cannot be read, and `SystemError`
  ///   where there is no room in the directory.
  static func read(
    _ content: Content, by parser: some LogParser, from reader: RepositoryReader,
    in directory: borrowing Directory
  ) throws -> SpooledLog? {
    var parser = parser
    let file = try directory.createUnnamed()
    do {
      try reader.readContent(content) { offset, bytes in
        try file.write(bytes, at: offset)
        try feed(&parser, from: file, until: offset + UInt64(bytes.count))
        if parser.next == nil { throw Enough() }
      }
      try feed(&parser, from: file, until: content.size)
    } catch is Enough {
      // What follows is of an earlier use of the file.
    }
    guard let overlay = parser.overlay() else { return nil }
    return SpooledLog(overlay, in: file)
  }

  private struct Enough: Error {}

  /// Gives a parser what it wants, as long as that lies before `end`.
  private static func feed(
    _ parser: inout some LogParser, from file: borrowing Descriptor, until end: UInt64
  ) throws {
    var buffer: [UInt8] = []
    while let range = parser.next, range.upperBound <= end {
      try read(range.count, at: range.lowerBound, of: file, into: &buffer)
      try parser.take(buffer.span)
    }
  }

  /// Puts bytes of the log in the place of what a buffer holds.
  func read(count: Int, at offset: UInt64, into buffer: inout [UInt8]) throws(SystemError) {
    try Self.read(count, at: offset, of: file, into: &buffer)
  }

  /// A hole at the log's end is not in the copy.
  private static func read(
    _ count: Int, at offset: UInt64, of file: borrowing Descriptor, into buffer: inout [UInt8]
  ) throws(SystemError) {
    try file.read(count: count, at: offset, into: &buffer)
    buffer.append(contentsOf: repeatElement(0, count: count - buffer.count))
  }
}
