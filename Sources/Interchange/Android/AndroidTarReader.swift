internal import SystemIO

/// A member of the tar archive in an Android backup.
struct AndroidTarMember: Hashable {
  /// The name as the archive has it.
  var path: ByteString
  /// The type flag of the header: `0` for a file, `5` for a directory.
  var type: UInt8
  var size: UInt64
  var permissions: UInt16
  var owner: UInt32
  var group: UInt32
  var modified: Timestamp
  /// The target of a link; empty for other types.
  var link: ByteString
  /// Whether the content is a map of data and the data without its holes, as GNU tar stores sparse
  /// files.
  var isSparse = false

  static let blockSize = 512
  /// The largest extended header in bytes: twice what Android accepts.
  static let extensionLimit: UInt64 = 64 << 10
}

/// Reads the tar archive in an Android backup, one member after the other.
///
/// Android writes files (`0`) and directories (`5`) with POSIX headers and, for long names, for
/// names that are not ASCII and for sizes from 8 GiB, pax headers (`x`) with the records `path` and
/// `size`. Other programs pack backups with any `tar`, so GNU long names (`L`, `K`) and numbers,
/// links and the other records of a pax header are read as well. Memory is bounded by the extended
/// headers.
///
/// Source: AOSP, `BackupHelpers.cpp` (`write_tarfile`), `TarBackupReader.java`; POSIX.1-2001, pax.
struct AndroidTarReader {
  private let input: any AndroidBackupInput
  private let subject: ByteString
  /// The position in the archive in bytes.
  private var position: UInt64 = 0
  /// The unread content of the current member, and the zeros after it.
  private var remaining: UInt64 = 0
  private var padding: UInt64 = 0
  private var isAtEnd = false

  /// The most bytes that may follow the end of the archive: tar fills the last record with zeros.
  private static let trailerLimit: UInt64 = 1 << 20

  init(_ input: any AndroidBackupInput, subject: ByteString) {
    self.input = input
    self.subject = subject
  }

  /// Returns the next member, or nil at the end of the archive.
  mutating func next() throws(InterchangeError) -> AndroidTarMember? {
    var extra = TarExtension()
    while !isAtEnd {
      try skipContent()
      let start = position
      guard let block = try readBlock() else { return nil }
      guard let header = TarHeader(block) else { throw damage("a header is damaged", at: start) }
      if TarExtension.types.contains(header.type) {
        try readExtension(header, into: &extra)
      } else {
        let member = extra.applied(to: header)
        remaining = member.size
        padding = Self.padding(after: member.size)
        return member
      }
    }
    return nil
  }

  /// Reads the next bytes of the member's content and returns their number, 0 at its end.
  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    let wanted = Int(min(UInt64(buffer.count), remaining))
    if wanted == 0 { return 0 }
    let count = try input.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
    guard count > 0 else { throw damage("it is truncated within a file", at: position) }
    remaining -= UInt64(count)
    position += UInt64(count)
    return count
  }

  private static func padding(after size: UInt64) -> UInt64 {
    let rest = size % UInt64(AndroidTarMember.blockSize)
    return rest == 0 ? 0 : UInt64(AndroidTarMember.blockSize) - rest
  }

  // MARK: - Blocks

  /// Returns the next header, or nil at the end: two blocks of zeros, or the end of a stream that
  /// marks its end itself.
  private mutating func readBlock() throws(InterchangeError) -> [UInt8]? {
    var block = [UInt8](repeating: 0, count: AndroidTarMember.blockSize)
    let start = position
    let count = try fill(&block)
    if count == 0 && input.marksEnd {
      isAtEnd = true
      return nil
    }
    guard count == block.count else { throw damage("it is truncated", at: start) }
    if block.contains(where: { $0 != 0 }) { return block }
    isAtEnd = true
    try readTrailer()
    return nil
  }

  /// Reads to the end of the input, which verifies its checksum or padding.
  private mutating func readTrailer() throws(InterchangeError) {
    var scratch = [UInt8](repeating: 0, count: 32 << 10)
    let start = position
    while true {
      let count = try fill(&scratch)
      if position - start < UInt64(AndroidTarMember.blockSize) && !input.marksEnd {
        throw damage("it is truncated at its end", at: start)
      }
      if count < scratch.count { return }
      if position - start > Self.trailerLimit {
        throw damage("more data follows its end", at: start)
      }
    }
  }

  private mutating func fill(_ bytes: inout [UInt8]) throws(InterchangeError) -> Int {
    let input = input
    let count = try bytes.withUnsafeMutableBufferPointer {
      (buffer: inout UnsafeMutableBufferPointer<UInt8>) throws(InterchangeError) in
      try input.fill(UnsafeMutableRawBufferPointer(buffer))
    }
    position += UInt64(count)
    return count
  }

  private mutating func skipContent() throws(InterchangeError) {
    (remaining, padding) = (remaining &+ padding, 0)
    if remaining == 0 { return }
    var scratch = [UInt8](repeating: 0, count: Int(min(remaining, 64 << 10)))
    while remaining > 0 {
      let wanted = Int(min(UInt64(scratch.count), remaining))
      if wanted < scratch.count { scratch.removeLast(scratch.count - wanted) }
      guard try fill(&scratch) == wanted else {
        throw damage("it is truncated within a file", at: position)
      }
      remaining -= UInt64(wanted)
    }
  }

  // MARK: - Extended headers

  private mutating func readExtension(
    _ header: TarHeader, into extra: inout TarExtension
  ) throws(InterchangeError) {
    let start = position
    guard header.size <= AndroidTarMember.extensionLimit else {
      throw InterchangeError(
        .limitExceeded, AndroidBackupHeader.action, subject: subject,
        reason: "an extended header has \(header.size) bytes", offset: start)
    }
    padding = Self.padding(after: header.size)
    var bytes = [UInt8](repeating: 0, count: Int(header.size))
    guard try fill(&bytes) == bytes.count else {
      throw damage("it is truncated within an extended header", at: start)
    }
    if let fault = extra.read(bytes, of: header.type) { throw damage(fault, at: start) }
  }

  private func damage(_ reason: String, at offset: UInt64) -> InterchangeError {
    var error = InterchangeError(
      .damaged, AndroidBackupHeader.action, subject: subject,
      reason: "\(reason) (byte \(offset) of its archive)")
    // Damage of compressed data moves what follows, and its checksum is not reached.
    error.isSuspect = input is InflatedInput
    return error
  }
}

/// The fields of a header block.
struct TarHeader {
  let path: ByteString
  let type: UInt8
  /// The size of the content, which only members with content have.
  let size: UInt64
  let permissions: UInt16
  let owner: UInt32
  let group: UInt32
  let modified: Int64
  let link: ByteString

  /// Whether content follows. In headers of links, devices and directories a size means nothing.
  var hasContent: Bool { !(UInt8(ascii: "1")...UInt8(ascii: "6")).contains(type) }

  /// Decodes a block, or returns nil if its checksum or a number is wrong.
  init?(_ block: [UInt8]) {
    guard let sum = Self.number(block, 148..<156), Self.sums(of: block).contains(sum),
      let mode = Self.number(block, 100..<108), let size = Self.number(block, 124..<136),
      let modified = Self.time(block, 136..<148), let owner = Self.number(block, 108..<116),
      let group = Self.number(block, 116..<124), size <= UInt64(Int64.max) - 1024
    else { return nil }
    let isPOSIX = block[257..<263].elementsEqual("ustar\0".utf8)
    let prefix = isPOSIX ? Self.text(block, 345..<500) : ""
    path = prefix.appending(Self.text(block, 0..<100))
    // The forms of old tar and of contiguous files, which are files as well.
    let isFile = block[156] == 0 || block[156] == UInt8(ascii: "7")
    type = isFile ? UInt8(ascii: "0") : block[156]
    self.size = size
    permissions = UInt16(mode & 0o7777)
    self.owner = UInt32(clamping: owner)
    self.group = UInt32(clamping: group)
    self.modified = modified
    link = Self.text(block, 157..<257)
  }

  /// Returns the valid checksums: the sum of the bytes, with spaces for the checksum itself, and
  /// its low 16 bits, in which Android counts.
  private static func sums(of block: [UInt8]) -> [UInt64] {
    var sum: UInt64 = 8 * 0x20
    for index in block.indices where !(148..<156).contains(index) { sum += UInt64(block[index]) }
    return [sum, sum & 0xffff]
  }

  private static func text(_ block: [UInt8], _ field: Range<Int>) -> ByteString {
    ByteString(block[field].prefix { $0 != 0 })
  }

  /// Returns an octal number, or one in base 256 as GNU tar writes large ones; nil if it is
  /// neither.
  static func number(_ block: [UInt8], _ field: Range<Int>) -> UInt64? {
    if block[field.lowerBound] == 0x80 {
      let bytes = block[field].dropFirst()
      guard bytes.dropLast(8).allSatisfy({ $0 == 0 }) else { return nil }
      return bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
    let digits = block[field].drop { $0 == 0x20 }.prefix { $0 != 0 && $0 != 0x20 }
    return digits.isEmpty ? 0 : UInt64(String(decoding: digits, as: UTF8.self), radix: 8)
  }
}

extension TarHeader {
  /// Returns the seconds since 1970; those of a time before it are in base 256, as GNU tar writes
  /// negative numbers.
  private static func time(_ block: [UInt8], _ field: Range<Int>) -> Int64? {
    guard block[field.lowerBound] == 0xff else {
      return number(block, field).map { Int64(clamping: $0) }
    }
    let bytes = block[field].dropFirst()
    guard bytes.dropLast(8).allSatisfy({ $0 == 0xff }) else { return nil }
    let bits = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    let seconds = Int64(bitPattern: bits)
    return seconds < 0 ? seconds : nil
  }
}

/// The values of extended headers, which apply to the next member.
struct TarExtension {
  private var path: ByteString?
  private var link: ByteString?
  private var size: UInt64?
  private var owner: UInt32?
  private var group: UInt32?
  private var modified: Timestamp?
  private var isSparse = false

  /// The types of extended headers: of pax for one member and for all, and GNU's long names.
  static let types = Array("xgLK".utf8)

  /// Reads the content of an extended header. Returns the reason why it is invalid, or nil.
  mutating func read(_ bytes: [UInt8], of type: UInt8) -> String? {
    let name = ByteString(bytes.prefix { $0 != 0 })
    switch type {
    case UInt8(ascii: "L"): path = name
    case UInt8(ascii: "K"): link = name
    case UInt8(ascii: "x"): return readRecords(bytes)
    // Records for all members say nothing that this reader uses.
    default: break
    }
    return nil
  }

  /// Reads records `<length> <key>=<value>\n`.
  private mutating func readRecords(_ bytes: [UInt8]) -> String? {
    var rest = bytes[...]
    while let first = rest.first, first != 0 {
      let digits = rest.prefix(8).prefix { $0 != 0x20 }
      guard let length = Int(String(decoding: digits, as: UTF8.self)), length <= rest.count,
        length > digits.count + 2, rest[rest.startIndex + length - 1] == UInt8(ascii: "\n")
      else { return "a record of an extended header is damaged" }
      let record = rest[(rest.startIndex + digits.count + 1)..<(rest.startIndex + length - 1)]
      guard let equals = record.firstIndex(of: UInt8(ascii: "=")) else {
        return "a record of an extended header has no value"
      }
      let key = String(decoding: record[..<equals], as: UTF8.self)
      if !set(key, to: record[(equals + 1)...]) {
        return "the record '\(ByteString(key))' of an extended header is invalid"
      }
      rest = rest.dropFirst(length)
    }
    return nil
  }

  /// Sets a value. Returns false if it is invalid. Unknown keys are ignored, as pax requires.
  private mutating func set(_ key: String, to value: ArraySlice<UInt8>) -> Bool {
    let text = String(decoding: value, as: UTF8.self)
    switch key {
    case "path": path = ByteString(value)
    case "linkpath": link = ByteString(value)
    case "size":
      size = UInt64(text)
      return size.map { $0 <= UInt64(Int64.max) - 1024 } ?? false
    case "uid":
      owner = UInt32(text)
      return owner != nil
    case "gid":
      group = UInt32(text)
      return group != nil
    case "mtime":
      modified = Self.time(text)
      return modified != nil
    default: if key.hasPrefix("GNU.sparse.") { isSparse = true }
    }
    return true
  }

  /// Returns the time of decimal seconds with a fraction, rounded down to nanoseconds.
  private static func time(_ text: String) -> Timestamp? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first, let seconds = Int64(whole) else { return nil }
    let fraction = parts.count > 1 ? parts[1].prefix(9) : ""
    guard fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    let padded = fraction + String(repeating: "0", count: 9 - fraction.utf8.count)
    guard let nanoseconds = UInt32(padded) else { return nil }
    if nanoseconds == 0 || !whole.hasPrefix("-") {
      return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }
    guard seconds > Int64.min else { return nil }
    return Timestamp(seconds: seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds)
  }

  /// Returns the member of a header with the values of the extended headers before it.
  func applied(to header: TarHeader) -> AndroidTarMember {
    AndroidTarMember(
      path: path ?? header.path, type: header.type,
      size: header.hasContent ? size ?? header.size : 0,
      permissions: header.permissions, owner: owner ?? header.owner, group: group ?? header.group,
      modified: modified ?? Timestamp(seconds: header.modified), link: link ?? header.link,
      isSparse: isSparse)
  }
}
