internal import Codecs
internal import SystemIO

/// The content of a tree blob: all entries of a directory, or the table of its pages.
enum TreeBlob: Hashable, Sendable {
  case page([TreeEntry])
  case table([TreeBlob.Page])
}

extension TreeBlob {
  /// A page in a directory's table.
  struct Page: Hashable, Sendable {
    /// The name of its last entry.
    let last: ByteString
    let digest: Digest
  }
}

/// Directories as tree blobs: pages of entries, and tables of pages (docs/repository-format.md,
/// "Tree").
///
/// Each directory has exactly one encoding: entries sorted by name, defaults omitted, pages cut by
/// names. Any other encoding is refused.
enum TreeCoding {
  private enum Key {
    static let entries: Int64 = 0
    static let pages: Int64 = 1
  }

  /// The number of leading zero bits in the hash of a name after which a page ends, once it has
  /// `minimumEntries`. An insertion therefore changes one page or two.
  static let boundaryBits = 12
  static let minimumEntries = 256
  static let maximumEntries = 16_384
  /// A page ends before an entry with which its entries would exceed this number of bytes.
  static let pageBytes = 4 << 20

  /// Returns the blob of a page of encoded entries.
  static func encodePage(_ entries: some Collection<some Collection<UInt8>>) -> [UInt8] {
    var encoder = CBOREncoder(capacity: 16 + entries.reduce(0) { $0 + $1.count })
    encoder.beginMap()
    if !entries.isEmpty {
      encoder.key(Key.entries)
      encoder.beginArray(count: entries.count)
      for entry in entries { encoder.encoded(entry) }
      encoder.endArray()
    }
    encoder.endMap()
    return encoder.finish()
  }

  /// Returns the blob of a page table: for each page, the name of its last entry and its hash.
  static func encodeTable(_ pages: [TreeBlob.Page]) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.beginMap()
    encoder.key(Key.pages)
    encoder.beginArray(count: pages.count)
    for page in pages {
      encoder.beginArray(count: 2)
      encoder.bytes(page.last.bytes)
      encoder.digest(page.digest)
      encoder.endArray()
    }
    encoder.endArray()
    encoder.endMap()
    return encoder.finish()
  }

  /// Returns the ranges of the pages of a directory.
  static func pages(of directory: EncodedDirectory) -> [Range<Int>] {
    var pages: [Range<Int>] = []
    var start = 0
    var size = 0
    for number in 0..<directory.count {
      if number > start && size + directory.size(number) > pageBytes {
        pages.append(start..<number)
        (start, size) = (number, 0)
      }
      size += directory.size(number)
      let count = number + 1 - start
      if count == maximumEntries || count >= minimumEntries && isBoundary(number, directory) {
        pages.append(start..<(number + 1))
        (start, size) = (number + 1, 0)
      }
    }
    if start < directory.count || pages.isEmpty { pages.append(start..<directory.count) }
    return pages
  }

  private static func isBoundary(_ number: Int, _ directory: borrowing EncodedDirectory) -> Bool {
    directory.nameHash(number).leadingZeroBitCount >= boundaryBits
  }
}

// MARK: - Decoding

extension TreeCoding {
  /// Decodes a tree blob from all bytes or from a range, and refuses violations of the format.
  static func decode(
    _ bytes: [UInt8], range: Range<Int>? = nil, object: @autoclosure () -> String
  ) throws(StoreError) -> TreeBlob {
    do throws(CodecError) {
      return try decode(CBORDecoder(bytes, range: range))
    } catch { throw .codec(error, object()) }
  }

  private static func decode(_ start: CBORDecoder) throws(CodecError) -> TreeBlob {
    var decoder = start
    var blob = TreeBlob.page([])
    try decoder.beginMap()
    while let key = try decoder.nextKey() {
      switch (key, blob) {
      case (Key.entries, _): blob = .page(try entries(&decoder))
      case (Key.pages, .page([])): blob = .table(try table(&decoder))
      default: throw ContentCoding.fault("a tree has the unexpected key \(key)")
      }
    }
    try decoder.finish()
    return blob
  }

  /// Opens the array of the entries of a page and returns their number.
  private static func beginEntries(_ decoder: inout CBORDecoder) throws(CodecError) -> Int {
    let count = try decoder.beginArray()
    guard (1...maximumEntries).contains(count) else {
      throw ContentCoding.fault("a page of \(count) entries")
    }
    return count
  }

  private static func entries(_ decoder: inout CBORDecoder) throws(CodecError) -> [TreeEntry] {
    let count = try beginEntries(&decoder)
    var entries: [TreeEntry] = []
    entries.reserveCapacity(count)
    while try decoder.nextElement() {
      let entry = try TreeEntryCoding.decode(&decoder)
      if let last = entries.last?.name { try requireOrder(last, entry.name) }
      entries.append(entry)
    }
    return entries
  }

  static func requireOrder(_ last: ByteString, _ name: ByteString) throws(CodecError) {
    if last < name { return }
    throw ContentCoding.fault(
      last == name ? "the name '\(last)' is a duplicate" : "the name '\(name)' is out of order")
  }

  private static func table(_ decoder: inout CBORDecoder) throws(CodecError) -> [TreeBlob.Page] {
    let count = try decoder.beginArray()
    guard count >= 2 else { throw ContentCoding.fault("a table of \(count) pages") }
    var pages: [TreeBlob.Page] = []
    pages.reserveCapacity(count)
    while try decoder.nextElement() {
      guard try decoder.beginArray() == 2, try decoder.nextElement() else {
        throw ContentCoding.fault("a page in a table is not an array of a name and a hash")
      }
      let last = ByteString(try decoder.slice(limit: 255))
      _ = try decoder.nextElement()
      let digest = try ContentCoding.digest(&decoder)
      _ = try decoder.nextElement()
      guard PathRules.fault(inName: last) == nil, pages.last.map({ $0.last < last }) ?? true else {
        throw ContentCoding.fault("the names in a table are invalid or out of order")
      }
      pages.append(TreeBlob.Page(last: last, digest: digest))
    }
    return pages
  }
}

// MARK: - Single entries

extension TreeCoding {
  /// Whether the bytes of a tree blob begin like a table of pages.
  static func isTable(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    range.count > 2 && bytes[range.lowerBound] == 0xA1
      && bytes[range.lowerBound + 1] == UInt8(Key.pages)
  }

  /// Opens a page and its array of entries. Returns their number, or 0 for an empty page.
  static func beginPage(_ decoder: inout CBORDecoder) throws(CodecError) -> Int {
    try decoder.beginMap()
    guard let key = try decoder.nextKey() else { return 0 }
    guard key == Key.entries else {
      throw ContentCoding.fault("a tree has the unexpected key \(key)")
    }
    return try beginEntries(&decoder)
  }

  /// Checks that nothing follows the entries of a page.
  static func finishPage(_ decoder: inout CBORDecoder) throws(CodecError) {
    if let key = try decoder.nextKey() {
      throw ContentCoding.fault("a tree has the unexpected key \(key)")
    }
    try decoder.finish()
  }

  /// Returns the entry of a name on a page, or nil if there is none. Of the entries before it only
  /// the names are decoded, and those after it are not read.
  static func entry(
    named name: ByteString, in bytes: [UInt8], range: Range<Int>, object: @autoclosure () -> String
  ) throws(StoreError) -> TreeEntry? {
    try StoreError.wrap(coding: object()) { () throws(CodecError) in
      var decoder = CBORDecoder(bytes, range: range)
      guard try beginPage(&decoder) > 0 else { return nil }
      while try decoder.nextElement() {
        let item = try decoder.skip()
        let found = try TreeEntryCoding.name(of: bytes, item)
        let order = name.withSpan { bytes.span.extracting(found).order($0) }
        if order > 0 { return nil }
        if order < 0 { continue }
        var entry = CBORDecoder(bytes, range: item)
        return try TreeEntryCoding.decode(&entry)
      }
      return nil
    }
  }
}

/// The encoded entries of a directory, ordered by name.
///
/// They share one arena, so a directory of a million entries takes little more memory than their
/// bytes.
public struct EncodedDirectory: Sendable {
  private var names = SpillableArray<UInt8>()
  private var nameEnds = SpillableArray<Int>()
  private var bytes = SpillableArray<UInt8>()
  private var ends = SpillableArray<Int>()

  /// Creates an empty directory.
  public init() {}

  /// Encodes entries in any order.
  ///
  /// - Throws: `invalid` for two entries of the same name, and for an invalid entry.
  init(_ entries: [TreeEntry]) throws(StoreError) {
    let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.name < $1.name }
    for entry in isSorted ? entries : entries.sorted(by: { $0.name < $1.name }) {
      let encoded = try entry.encoded()
      try entry.name.withSpan { name throws(StoreError) in try append(name, encoded) }
    }
  }

  /// The number of entries.
  public var count: Int { ends.count }

  /// Appends an entry.
  ///
  /// - Parameter name: the name of the entry.
  /// - Parameter entry: the result of `TreeEntry.encoded()` for the entry.
  /// - Throws: `invalid` if the name does not come after the last one.
  public mutating func append(
    _ name: Span<UInt8>, _ entry: some Collection<UInt8>
  ) throws(StoreError) {
    if count > 0, names.withSpan({ !$0.extracting(nameRange(count - 1)).precedes(name) }) {
      throw .invalid("the entry \(Self.text(name))", "its name is a duplicate or out of order")
    }
    names.append(name)
    nameEnds.append(names.count)
    bytes.append(contentsOf: entry)
    ends.append(bytes.count)
  }

  private static func text(_ name: Span<UInt8>) -> String {
    ByteString(name.indices.map { name[$0] }).description
  }

  private func nameRange(_ index: Int) -> Range<Int> {
    (index == 0 ? 0 : nameEnds[index - 1])..<nameEnds[index]
  }

  /// Returns the name of an entry.
  func name(_ index: Int) -> ByteString { ByteString(names.copy(nameRange(index))) }

  /// Returns the hash of an entry's name, which determines page boundaries.
  func nameHash(_ index: Int) -> Digest {
    names.withSpan { Blake2b.hash($0.extracting(nameRange(index))) }
  }

  /// Returns the size of an entry in bytes.
  func size(_ index: Int) -> Int { ends[index] - (index == 0 ? 0 : ends[index - 1]) }

  /// Returns an encoded entry.
  func entry(_ index: Int) -> ArraySlice<UInt8> {
    bytes.copy((index == 0 ? 0 : ends[index - 1])..<ends[index])
  }
}
