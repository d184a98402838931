internal import Codecs
internal import SystemIO

/// Consecutive entries in the order of their names' bytes.
///
/// All of them are checked once, so that access to one needs no further checks.
struct EntryPage: Sendable {
  /// The bytes; those before `start` belong to the record.
  let bytes: [UInt8]
  let start: Int
  let count: Int

  /// The size in bytes at which a page is closed.
  static let size = 256 << 10
  /// The maximum size of an entry in bytes. Longer entries are not recorded and are read in each
  /// run.
  static let entryLimit = 1 << 20

  /// Reads the entries from an offset on; returns nil if they are incomplete or out of order.
  init?(_ bytes: [UInt8], from start: Int) {
    self.bytes = bytes
    self.start = start
    var (place, last, count) = (start, Range<Int>?.none, 0)
    let span = bytes.span
    while place < span.count {
      guard let name = Self.name(of: span, at: place) else { return nil }
      if let last, !Self.isAscending(in: span, from: last, to: name) { return nil }
      place += Int(LittleEndian.integer(span, at: place, as: UInt32.self))
      last = name
      count += 1
    }
    self.count = count
  }

  /// Returns the range of the name of a complete and valid entry, or nil if there is none.
  private static func name(of bytes: Span<UInt8>, at place: Int) -> Range<Int>? {
    guard bytes.count - place >= EntryLayout.name else { return nil }
    let length = Int(LittleEndian.integer(bytes, at: place, as: UInt32.self))
    let name = Int(
      LittleEndian.integer(bytes, at: place + EntryLayout.nameLength, as: UInt16.self))
    let flags = EntryFlags(rawValue: bytes[place + EntryLayout.flags])
    let fixed = EntryLayout.name + name + (flags.contains(.hasDirectory) ? RecordPointer.size : 0)
    guard length >= fixed, length <= bytes.count - place, EntryFlags.all.isSuperset(of: flags),
      FileKind(rawValue: bytes[place + EntryLayout.kind]) != nil
    else { return nil }
    let start = place + EntryLayout.name
    return start..<(start + name)
  }

  private static func isAscending(
    in bytes: Span<UInt8>, from first: Range<Int>, to second: Range<Int>
  ) -> Bool {
    for index in 0..<min(first.count, second.count) {
      let (left, right) = (bytes[first.lowerBound + index], bytes[second.lowerBound + index])
      if left != right { return left < right }
    }
    return first.count < second.count
  }
}
