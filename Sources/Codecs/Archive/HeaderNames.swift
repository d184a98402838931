/// The names with a NUL in the headers of a member of a tar or cpio archive, or of a zip archive in
/// a stream.
///
/// libarchive ends a name at a NUL, which may make it the name of another member. It has no call
/// that returns the whole name, so this is read from the bytes that libarchive has read.
struct HeaderNames {
  /// The format of the archive.
  enum Format { case tar, cpio, zip }

  /// Returns a number of bytes from an offset in the headers, or nil if they are unknown.
  typealias Bytes = (_ offset: Int, _ count: Int) -> [UInt8]?

  /// The name of the member, if it contains a NUL.
  private(set) var path: [UInt8]?
  /// The target of a link, if it contains a NUL.
  private(set) var link: [UInt8]?
  /// Whether the list of a directory in an incremental archive of GNU tar names files that are not
  /// in the archive.
  private(set) var listsUnchanged = false

  /// The maximum size in bytes of an extended header to examine, which is libarchive's limit.
  private static let extensionLimit = 1 << 20
  /// The maximum number of extended headers of a member. Writers use three at most.
  private static let extensionCount = 8

  init(_ format: Format, _ bytes: Bytes) {
    switch format {
    case .tar: readTar(bytes)
    case .cpio: path = Self.cpioName(bytes).flatMap(Self.withNUL)
    case .zip: path = Self.zipName(bytes).flatMap(Self.withNUL)
    }
  }

  private static func withNUL(_ name: [UInt8]) -> [UInt8]? { name.contains(0) ? name : nil }

  // MARK: - Tar

  /// Reads the extended headers: GNU's long names and the records of pax. In the header of the
  /// member itself a NUL ends the name.
  private mutating func readTar(_ bytes: Bytes) {
    var offset = 0
    for _ in 0..<Self.extensionCount {
      guard let header = bytes(offset, TarMember.blockSize),
        Self.extensionTypes.contains(header[156]),
        let size = Self.number(header[124..<136], radix: 8), size <= Self.extensionLimit,
        let content = bytes(offset + TarMember.blockSize, size)
      else { return }
      switch header[156] {
      case UInt8(ascii: "L"): path = Self.withNUL(Self.trimmed(content))
      case UInt8(ascii: "K"): link = Self.withNUL(Self.trimmed(content))
      case UInt8(ascii: "x"): readRecords(content)
      default: break
      }
      offset += TarMember.blockSize + size + PaxMember.padding(after: UInt64(size))
    }
  }

  /// The types of headers that precede the member's own: of pax for one member and for all, and
  /// GNU's long names.
  private static let extensionTypes = Array("xgLK".utf8)

  /// Returns a name without the NULs at its end.
  private static func trimmed(_ content: [UInt8]) -> [UInt8] {
    Array(content[..<((content.lastIndex { $0 != 0 } ?? -1) + 1)])
  }

  /// Reads records `<length> <key>=<value> ` as long as they are valid.
  private mutating func readRecords(_ content: [UInt8]) {
    // Almost no header has one.
    guard content.contains(0) else { return }
    var rest = content[...]
    while !rest.isEmpty {
      let digits = rest.prefix(8).prefix { $0 != 0x20 }
      guard let length = Self.number(digits, radix: 10), length > digits.count + 2,
        length <= rest.count
      else { return }
      let record = rest.prefix(length).dropFirst(digits.count + 1).dropLast()
      if let equals = record.firstIndex(of: UInt8(ascii: "=")) {
        set(record[..<equals], to: Array(record[(equals + 1)...]))
      }
      rest = rest.dropFirst(length)
    }
  }

  private mutating func set(_ key: ArraySlice<UInt8>, to value: [UInt8]) {
    switch String(decoding: key, as: UTF8.self) {
    // GNU tar gives a sparse file another name in `path`.
    case "path", "GNU.sparse.name": path = Self.withNUL(value) ?? path
    case "linkpath": link = Self.withNUL(value) ?? link
    case "GNU.dumpdir":
      listsUnchanged = value.split(separator: 0).contains { $0.first == Self.unchanged }
    default: break
    }
  }

  /// The code of an unchanged file in the list of a directory: each name has one before it and a
  /// NUL after it (GNU tar's manual, "Dumpdir").
  static let unchanged = UInt8(ascii: "N")

  // MARK: - Other formats

  /// Returns the name of a member of a cpio archive of characters, without the NULs that end it:
  /// Linux's gen_init_cpio aligns contents with more than one.
  private static func cpioName(_ bytes: Bytes) -> [UInt8]? {
    guard let magic = bytes(0, 6) else { return nil }
    let (size, start, radix): (Range<Int>, Int, Int)
    switch String(decoding: magic, as: UTF8.self) {
    case "070701", "070702": (size, start, radix) = (94..<102, 110, 16)
    case "070707": (size, start, radix) = (59..<65, 76, 8)
    default: return nil
    }
    guard let digits = bytes(size.lowerBound, size.count),
      let count = number(digits[...], radix: radix), count > 0, count <= extensionLimit
    else { return nil }
    return bytes(start, count).map(trimmed)
  }

  /// Returns the name in the local header of a zip archive. It may follow the record with the sizes
  /// of the previous member, of at most 24 bytes, which libarchive leaves for the next header.
  private static func zipName(_ bytes: Bytes) -> [UInt8]? {
    let start = (0...24).first { bytes($0, 4) == ZipCentralDirectory.localSignature }
    guard let start, let header = bytes(start, 30) else { return nil }
    return bytes(start + 30, Int(header[26]) | Int(header[27]) << 8)
  }

  private static func number(_ digits: ArraySlice<UInt8>, radix: Int) -> Int? {
    let digits = digits.drop { $0 == 0x20 }.prefix { $0 != 0 && $0 != 0x20 }
    let number = Int(String(decoding: digits, as: UTF8.self), radix: radix)
    return number.flatMap { $0 >= 0 ? $0 : nil }
  }
}
