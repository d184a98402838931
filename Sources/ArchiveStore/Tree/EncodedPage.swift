internal import Codecs
internal import SystemIO

/// A page of a directory, with the bytes of each of its entries.
///
/// Versions of a directory have most entries in common, and an entry has only one encoding. A page
/// is therefore decoded by comparing its bytes with those of the previous version: only the entries
/// that differ are decoded.
struct EncodedPage {
  private let bytes: [UInt8]
  /// The range of each entry.
  private let ranges: [Range<Int>]

  /// A page without entries.
  static let empty = EncodedPage(bytes: [], ranges: [])

  private init(bytes: [UInt8], ranges: [Range<Int>]) {
    (self.bytes, self.ranges) = (bytes, ranges)
  }

  /// The number of entries.
  var count: Int { ranges.count }

  /// Returns the size of an entry in bytes.
  func size(_ number: Int) -> Int { ranges[number].count }

  /// Returns the bytes of an entry.
  func entry(_ number: Int) -> ByteString { ByteString(bytes[ranges[number]]) }
}

extension EncodedPage {
  /// A page, and its differences from the version before.
  struct Version {
    let page: EncodedPage
    /// For each entry the number of the equal one in the version before, or nil if there is none.
    let known: [Int?]
    /// The entries without an equal one, in order.
    let others: [TreeEntry]
  }

  /// Decodes the bytes of the next version of this page. Refuses the same bytes as
  /// `TreeCoding.decode`, and tables.
  ///
  /// - Parameter name: returns the name of an entry of this page by its number.
  func next(
    _ bytes: [UInt8], range: Range<Int>, object: @autoclosure () -> String,
    name: (Int) -> ByteString
  ) throws(StoreError) -> Version {
    try StoreError.wrap(coding: object()) { () throws(CodecError) in
      var decoder = CBORDecoder(bytes, range: range)
      guard try TreeCoding.beginPage(&decoder) > 0 else {
        try decoder.finish()
        return Version(page: EncodedPage(bytes: bytes, ranges: []), known: [], others: [])
      }
      var comparison = Comparison(of: bytes, in: range, with: self)
      while try decoder.nextElement() { try comparison.read(&decoder, name) }
      try TreeCoding.finishPage(&decoder)
      return Version(
        page: EncodedPage(bytes: bytes, ranges: comparison.ranges), known: comparison.known,
        others: comparison.others)
    }
  }

  /// The entries of a version that were read so far.
  private struct Comparison {
    private(set) var ranges: [Range<Int>] = []
    private(set) var known: [Int?] = []
    private(set) var others: [TreeEntry] = []
    private let bytes: [UInt8]
    /// The range of the page in the bytes.
    private let page: Range<Int>
    private let before: EncodedPage
    /// The first entry of the version before that was not compared yet.
    private var next = 0

    init(of bytes: [UInt8], in page: Range<Int>, with before: EncodedPage) {
      (self.bytes, self.page, self.before) = (bytes, page, before)
      ranges.reserveCapacity(before.count)
      known.reserveCapacity(before.count)
    }

    /// Reads the next entry.
    ///
    /// - Parameter name: returns the name of an entry of the version before.
    mutating func read(
      _ decoder: inout CBORDecoder, _ name: (Int) -> ByteString
    ) throws(CodecError) {
      let first = page.lowerBound + decoder.offset
      if next < before.count, isEqual(to: next, from: first) {
        decoder.skip(byteCount: before.size(next))
        // If it follows the entry before it, the order is known.
        if known.last != .some(next - 1), let last = last(name) {
          try TreeCoding.requireOrder(last, name(next))
        }
        return add(next, first..<(first + before.size(next)))
      }
      let entry = try TreeEntryCoding.decode(&decoder)
      let range = first..<(page.lowerBound + decoder.offset)
      if let last = last(name) { try TreeCoding.requireOrder(last, entry.name) }
      while next < before.count, name(next) < entry.name { next += 1 }
      if next < before.count {
        if isEqual(to: next, from: first) { return add(next, range) }
        if name(next) == entry.name { next += 1 }
      }
      ranges.append(range)
      known.append(nil)
      others.append(entry)
    }

    /// Whether an entry of the previous version begins at an offset. Its bytes are one item, so an
    /// item that begins with them equals it.
    private func isEqual(to number: Int, from first: Int) -> Bool {
      let (known, end) = (before.ranges[number], first + before.size(number))
      return end <= page.upperBound
        && bytes.span.extracting(first..<end)
          .hasSameBytes(as: before.bytes.span.extracting(known))
    }

    private mutating func add(_ number: Int, _ range: Range<Int>) {
      ranges.append(range)
      known.append(number)
      next = number + 1
    }

    /// The name of the last entry, or nil before the first.
    private func last(_ name: (Int) -> ByteString) -> ByteString? {
      guard let last = known.last else { return nil }
      return last.map(name) ?? others.last?.name
    }
  }
}
