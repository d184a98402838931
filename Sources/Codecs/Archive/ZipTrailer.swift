/// The bytes of a zip archive from its central directory on, in a stream: libarchive reads the
/// members before it, and nothing after it (APPNOTE.TXT 4.3.6).
struct ZipTrailer {
  private var bytes: ArraySlice<UInt8>
  /// Returns the next bytes; none at the end.
  private let next: () -> [UInt8]

  /// The maximum number of bytes before the directory: a record with the sizes of the last member.
  private static let lead = 1 << 20
  /// The maximum size of a record.
  private static let recordLimit = 1 << 20

  /// - Parameter bytes: those from a position before the directory on.
  init(_ bytes: [UInt8], next: @escaping () -> [UInt8]) {
    (self.bytes, self.next) = (bytes[...], next)
  }

  /// Whether another archive follows this one.
  mutating func isFollowed() -> Bool {
    var skipped = 0
    while skipped < Self.lead, has(4), size == nil {
      bytes.removeFirst()
      skipped += 1
    }
    while has(4), let size {
      let isEnd = bytes.starts(with: ZipCentralDirectory.endSignature)
      guard size <= Self.recordLimit, has(size) else { return false }
      bytes.removeFirst(size)
      if isEnd { return has(4) && bytes.starts(with: ZipCentralDirectory.localSignature) }
    }
    return false
  }

  /// The size of the record at the start; nil if it is not a record of a directory.
  private var size: Int? {
    mutating get {
      guard bytes.starts(with: "PK".utf8) else { return nil }
      let type = bytes.dropFirst(2).prefix(2)
      switch (type.first, type.last) {
      case (1, 2): return has(46) ? 46 + number(28, 2) + number(30, 2) + number(32, 2) : nil
      case (5, 5): return has(6) ? 6 + number(4, 2) : nil
      case (5, 6): return has(22) ? 22 + number(20, 2) : nil
      case (6, 6): return has(12) ? 12 + number(4, 4) : nil
      case (6, 7): return 20
      default: return nil
      }
    }
  }

  /// Whether there are at least `count` bytes.
  private mutating func has(_ count: Int) -> Bool {
    while bytes.count < count {
      let more = next()
      if more.isEmpty { return false }
      bytes = ArraySlice(Array(bytes) + more)
    }
    return true
  }

  private func number(_ position: Int, _ size: Int) -> Int {
    bytes.dropFirst(position).prefix(size).reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
