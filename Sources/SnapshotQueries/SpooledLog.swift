internal import ArchiveStore
internal import DatabaseCapture
internal import SystemIO

/// The valid part of a database's stored log, copied to a temporary file that is deleted with this
/// value.
final class SpooledLog {
  /// The valid pages of the log.
  let overlay: PageOverlay
  private let file: Descriptor

  private init(_ overlay: PageOverlay, in file: consuming Descriptor) {
    self.overlay = overlay
    self.file = file
  }

  /// Reads and verifies a log until the parser needs no more of it. Returns nil if the log changes
  /// nothing.
  ///
  /// - Throws: `LogRefusal` from the parser; `StoreError` if the log cannot be read; `SystemError`
  ///   if the directory has no space.
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
        if parser.next == nil { throw EndOfInterest() }
      }
      try feed(&parser, from: file, until: content.size)
    } catch is EndOfInterest {
      // The rest of the log is from an earlier use of the file.
    }
    guard let overlay = parser.overlay() else { return nil }
    return SpooledLog(overlay, in: file)
  }

  private struct EndOfInterest: Error {}

  /// Passes the requested ranges to a parser as long as they lie before `end`.
  private static func feed(
    _ parser: inout some LogParser, from file: borrowing Descriptor, until end: UInt64
  ) throws {
    var buffer: [UInt8] = []
    while let range = parser.next, range.upperBound <= end {
      try read(range.count, at: range.lowerBound, of: file, into: &buffer)
      try parser.parse(buffer.span)
    }
  }

  /// Replaces the content of a buffer with bytes of the log.
  func read(count: Int, at offset: UInt64, into buffer: inout [UInt8]) throws(SystemError) {
    try Self.read(count, at: offset, of: file, into: &buffer)
  }

  /// Reads bytes of the copy. A hole at the end of the log is not in the copy and reads as zeros.
  private static func read(
    _ count: Int, at offset: UInt64, of file: borrowing Descriptor, into buffer: inout [UInt8]
  ) throws(SystemError) {
    try file.read(count: count, at: offset, into: &buffer)
    buffer.append(contentsOf: repeatElement(0, count: count - buffer.count))
  }
}
