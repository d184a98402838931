/// A member of a POSIX archive (pax, POSIX.1-2001) with all metadata of a file.
///
/// The header is a plain ustar header if everything fits. Anything else (long names, fractions of
/// seconds, large numbers, extended attributes) is in an extended header before it. Names are
/// written byte for byte.
public struct PaxMember: Sendable, Hashable {
  /// The bytes of the name: relative, not empty, without NUL and without a trailing slash.
  public var path: [UInt8]
  public var kind: Kind
  /// The permission bits, at most 07777.
  public var mode: UInt16
  public var owner: UInt32 = 0
  public var group: UInt32 = 0
  /// The names of owner and group, which archive programs prefer to the numbers.
  public var userName = ""
  public var groupName = ""
  /// The modification time in seconds since 1970, with nanoseconds.
  public var modified: Int64 = 0
  public var nanoseconds: UInt32 = 0
  /// The extended attributes, stored with the prefix `SCHILY.xattr.` of GNU tar and bsdtar
  /// (`PaxAttributeName`).
  public var attributes: [Attribute] = []
  /// The ranges of a file that are stored, ascending and apart from each other; nil to store all of
  /// it. The others are holes. `header()` contains the map of the ranges, and only their bytes
  /// follow, padded as `storedSize` bytes.
  public var dataRanges: [Range<UInt64>]?

  /// An extended attribute.
  public struct Attribute: Sendable, Hashable {
    public var name: [UInt8]
    public var value: [UInt8]

    /// Creates an attribute.
    public init(name: [UInt8], value: [UInt8]) {
      self.name = name
      self.value = value
    }
  }

  /// The kinds of members.
  public enum Kind: Sendable, Hashable {
    /// A file with `size` bytes of content, which follow the header, padded.
    case file(size: UInt64)
    case directory
    case symbolicLink(target: [UInt8])
    /// A hard link to an earlier member.
    case hardLink(target: [UInt8])
    case fifo
    case characterDevice(major: UInt32, minor: UInt32)
    case blockDevice(major: UInt32, minor: UInt32)
  }

  /// Creates a member.
  public init(path: [UInt8], kind: Kind, mode: UInt16) {
    self.path = path
    self.kind = kind
    self.mode = mode
  }

  /// Returns the number of zeros after content of `size` bytes.
  public static func padding(after size: UInt64) -> Int {
    let rest = Int(size % UInt64(TarMember.blockSize))
    return rest == 0 ? 0 : TarMember.blockSize - rest
  }

  /// The end of an archive.
  public static let end = [UInt8](repeating: 0, count: TarMember.endSize)
}

extension PaxMember {
  /// The number of bytes that follow the header, without padding.
  public var storedSize: UInt64 {
    dataRanges.map { $0.reduce(0) { $0 + UInt64($1.count) } } ?? fileSize
  }

  private var fileSize: UInt64 { if case .file(let size) = kind { size } else { 0 } }

  /// The size in the header: of the map and the stored bytes.
  var contentSize: UInt64 { storedSize + UInt64(sparseMap.count) }

  /// The map of the data before the content, padded to a block: the number of ranges, and offset
  /// and length of each, a decimal number per line (GNU tar manual, "PAX Format, Version 1.0").
  /// Empty for a file without holes.
  var sparseMap: [UInt8] {
    guard let dataRanges else { return [] }
    var ranges = dataRanges
    // As in GNU tar, a hole at the end is followed by an empty range.
    if ranges.last?.upperBound != fileSize { ranges.append(fileSize..<fileSize) }
    var map = Array("\(ranges.count)\n".utf8)
    for range in ranges { map += Array("\(range.lowerBound)\n\(range.count)\n".utf8) }
    return map + [UInt8](repeating: 0, count: Self.padding(after: UInt64(map.count)))
  }

  var linkTarget: [UInt8] {
    switch kind {
    case .symbolicLink(let target), .hardLink(let target): target
    default: []
    }
  }

  var device: (major: UInt32, minor: UInt32) {
    switch kind {
    case .characterDevice(let major, let minor), .blockDevice(let major, let minor):
      (major, minor)
    default: (0, 0)
    }
  }

  /// The name in the header, which ends with a slash for a directory. The name of a file with holes
  /// is in a separate record; this one is for programs that do not support holes, which extract the
  /// map and the data under it.
  var headerPath: [UInt8] {
    if kind == .directory { return path + [UInt8(ascii: "/")] }
    guard dataRanges != nil else { return path }
    return Array("GNUSparseFile.0/".utf8) + (path.split(separator: 0x2f).last ?? [])
  }

  var typeFlag: UInt8 {
    switch kind {
    case .file: UInt8(ascii: "0")
    case .hardLink: UInt8(ascii: "1")
    case .symbolicLink: UInt8(ascii: "2")
    case .characterDevice: UInt8(ascii: "3")
    case .blockDevice: UInt8(ascii: "4")
    case .directory: UInt8(ascii: "5")
    case .fifo: UInt8(ascii: "6")
    }
  }
}

// MARK: - Encoding

extension PaxMember {
  /// Returns everything before the content: the header, preceded by an extended header if needed.
  public func header() -> [UInt8] {
    var bytes: [UInt8] = []
    let records = extendedRecords()
    if !records.isEmpty {
      var extended = PaxMember(
        path: Array("PaxHeaders/".utf8) + (path.suffix(80).filter { $0 != 0x2f }),
        kind: .file(size: UInt64(records.count)), mode: 0o644)
      extended.modified = max(0, modified)
      extended.appendBlock(type: UInt8(ascii: "x"), to: &bytes)
      bytes += records
      bytes += [UInt8](repeating: 0, count: Self.padding(after: UInt64(records.count)))
    }
    appendBlock(type: typeFlag, to: &bytes)
    return bytes + sparseMap
  }

  // MARK: - Extended header

  private func extendedRecords() -> [UInt8] {
    var records: [UInt8] = []
    let longPath = TarBlock.split(headerPath) == nil
    let longLink = linkTarget.count > Field.link.count
    if longPath && !Self.isText(headerPath) || longLink && !Self.isText(linkTarget)
      || dataRanges != nil && !Self.isText(path)
    {
      Self.append("hdrcharset", Array("BINARY".utf8), to: &records)
    }
    if longPath { Self.append("path", headerPath, to: &records) }
    if dataRanges != nil {
      Self.append("GNU.sparse.major", Array("1".utf8), to: &records)
      Self.append("GNU.sparse.minor", Array("0".utf8), to: &records)
      Self.append("GNU.sparse.name", path, to: &records)
      Self.append("GNU.sparse.realsize", Array("\(fileSize)".utf8), to: &records)
    }
    if longLink { Self.append("linkpath", linkTarget, to: &records) }
    if nanoseconds > 0 || !(0...Field.time.largest).contains(modified) {
      Self.append("mtime", Array(timeText.utf8), to: &records)
    }
    for (key, number, field) in [
      ("size", contentSize, Field.size), ("uid", UInt64(owner), .owner),
      ("gid", UInt64(group), .group),
    ] where number > UInt64(field.largest) {
      Self.append(key, Array("\(number)".utf8), to: &records)
    }
    for attribute in attributes {
      let key = Array("SCHILY.xattr.".utf8) + PaxAttributeName.encode(attribute.name)
      Self.append(key, attribute.value, to: &records)
      if let (key, text) = AccessListText.record(of: attribute, mode: mode) {
        Self.append(key, Array(text.utf8), to: &records)
      }
    }
    return records
  }

  /// The modification time in seconds as a decimal number with fraction.
  private var timeText: String {
    if nanoseconds == 0 { return "\(modified)" }
    let isNegative = modified < 0
    let whole = isNegative ? -(modified + 1) : modified
    let fraction = isNegative ? 1_000_000_000 - nanoseconds : nanoseconds
    let digits = "\(fraction)"
    let zeros = String(repeating: "0", count: 9 - digits.utf8.count)
    return "\(isNegative ? "-" : "")\(whole).\(zeros)\(digits)"
  }

  /// Whether a name can be in a record as UTF-8. One with characters of Unicode's block of tags
  /// (U+E0000 to U+E007F) is marked as bytes: glibc, with which libarchive converts names, drops
  /// these (iconv/loop.h, `UNICODE_TAG_HANDLER`).
  private static func isText(_ bytes: [UInt8]) -> Bool {
    guard let text = String(validating: bytes, as: UTF8.self) else { return false }
    return !text.unicodeScalars.contains { $0.value >> 7 == 0xe0000 >> 7 }
  }

  private static func append(_ key: String, _ value: [UInt8], to records: inout [UInt8]) {
    append(Array(key.utf8), value, to: &records)
  }

  /// Appends `<length> <key>=<value>\n`. The length includes its own digits.
  private static func append(_ key: [UInt8], _ value: [UInt8], to records: inout [UInt8]) {
    let rest = key.count + value.count + 3
    var length = rest
    while "\(length)".utf8.count + rest != length { length = "\(length)".utf8.count + rest }
    records += Array("\(length) ".utf8)
    records += key
    records.append(UInt8(ascii: "="))
    records += value
    records.append(UInt8(ascii: "\n"))
  }

  // MARK: - Header block

  /// The fields of a header block.
  private struct Field {
    let offset: Int
    let count: Int

    static let name = Field(offset: 0, count: 100)
    static let mode = Field(offset: 100, count: 8)
    static let owner = Field(offset: 108, count: 8)
    static let group = Field(offset: 116, count: 8)
    static let size = Field(offset: 124, count: 12)
    static let time = Field(offset: 136, count: 12)
    static let checksum = Field(offset: 148, count: 8)
    static let type = Field(offset: 156, count: 1)
    static let link = Field(offset: 157, count: 100)
    static let magic = Field(offset: 257, count: 8)
    static let userName = Field(offset: 265, count: 32)
    static let groupName = Field(offset: 297, count: 32)
    static let major = Field(offset: 329, count: 8)
    static let minor = Field(offset: 337, count: 8)
    static let prefix = Field(offset: 345, count: 155)

    /// The largest number that fits in octal digits with a terminating NUL.
    var largest: Int64 { 1 << (3 * Int64(count - 1)) - 1 }

    func write(_ value: some Collection<UInt8>, into block: inout [UInt8]) {
      for (index, byte) in value.prefix(count).enumerated() { block[offset + index] = byte }
    }

    /// Writes a number in octal. A number that does not fit is in the extended header, and 0 here.
    func write(_ number: UInt64, into block: inout [UInt8]) {
      let digits = String(number > UInt64(largest) ? 0 : number, radix: 8)
      let zeros = String(repeating: "0", count: count - 1 - digits.utf8.count)
      write((zeros + digits).utf8, into: &block)
    }
  }

  private func appendBlock(type: UInt8, to bytes: inout [UInt8]) {
    var block = [UInt8](repeating: 0, count: TarMember.blockSize)
    let (prefix, name) = TarBlock.split(headerPath) ?? ([], headerPath[...])
    Field.name.write(name, into: &block)
    Field.prefix.write(prefix, into: &block)
    Field.mode.write(UInt64(mode & 0o7777), into: &block)
    Field.owner.write(UInt64(owner), into: &block)
    Field.group.write(UInt64(group), into: &block)
    Field.size.write(contentSize, into: &block)
    Field.time.write(UInt64(max(0, modified)), into: &block)
    Field.type.write([type], into: &block)
    Field.link.write(linkTarget, into: &block)
    Field.magic.write("ustar\u{0}00".utf8, into: &block)
    if userName.utf8.count < Field.userName.count {
      Field.userName.write(userName.utf8, into: &block)
    }
    if groupName.utf8.count < Field.groupName.count {
      Field.groupName.write(groupName.utf8, into: &block)
    }
    Field.major.write(UInt64(device.major), into: &block)
    Field.minor.write(UInt64(device.minor), into: &block)
    Field.checksum.write([UInt8](repeating: UInt8(ascii: " "), count: 8), into: &block)
    let sum = block.reduce(0) { $0 + UInt64($1) }
    let digits = String(sum, radix: 8)
    let zeros = String(repeating: "0", count: 6 - digits.utf8.count)
    Field.checksum.write((zeros + digits + "\u{0} ").utf8, into: &block)
    bytes += block
  }
}
