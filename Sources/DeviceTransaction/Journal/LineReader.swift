package import SystemIO

/// A reader of the lines of a text file that holds only a few lines in memory. Empty lines are
/// skipped.
package struct LineReader: ~Copyable {
  private let file: Descriptor
  private var buffer: [UInt8] = []
  /// The offset of the next line in the buffer.
  private var start = 0
  private var offset: UInt64 = 0
  private var isAtEnd = false

  private static let step = 256 << 10

  package init(_ file: consuming Descriptor) { self.file = file }

  /// Returns the next line without its newline, or nil at the end of the file.
  package mutating func next() throws(SystemError) -> ArraySlice<UInt8>? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        if end > start { return buffer[start..<end] }
        searched = end + 1
        continue
      }
      if isAtEnd {
        defer { start = buffer.endIndex }
        return start < buffer.endIndex ? buffer[start...] : nil
      }
      searched = buffer.count - start
      try fill()
    }
  }

  private mutating func fill() throws(SystemError) {
    buffer.removeFirst(start)
    start = 0
    let before = buffer.count
    try file.read(count: Self.step, at: offset, appendingTo: &buffer)
    offset += UInt64(buffer.count - before)
    isAtEnd = buffer.count == before
  }
}
