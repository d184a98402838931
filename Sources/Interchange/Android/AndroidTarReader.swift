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
  /// The extended attributes, ordered by name.
  var attributes: [ForeignEntry.Attribute] = []
  /// Properties that could not be read, each as a clause.
  var omissions: [String] = []
  /// The number of bytes of an extended header that is too large to be read; nil for none.
  var unreadExtension: UInt64?

  static let blockSize = 512
  /// The largest extended header in bytes. Android accepts 32 KiB; others can have attributes.
  static let extensionLimit: UInt64 = 1 << 20
}

/// Reads the tar archive in an Android backup, one member after the other.
///
/// Android writes files (`0`) and directories (`5`) with POSIX headers and, for long names, for
/// names that are not ASCII and for sizes from 8 GiB, pax headers (`x`) with the records `path` and
/// `size`. Other programs pack backups with any `tar`, so GNU long names (`L`, `K`) and numbers,
/// links, attributes and the other records of a pax header are read as well. Memory is bounded by
/// the extended headers.
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

  /// The maximum number of bytes after the end of the archive: tar fills the last record with
  /// zeros.
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
        if header.hasMoreBlocks { try skipSparseMap(from: start) }
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
    var (isBlank, isFollowed) = (true, false)
    while true {
      let count = try fill(&scratch)
      if isBlank, let first = scratch[..<count].firstIndex(where: { $0 != 0 }) {
        (isBlank, isFollowed) = (false, Self.hasArchive(scratch[..<count], after: first))
      }
      if position - start < UInt64(AndroidTarMember.blockSize) && !input.marksEnd {
        throw damage("it is truncated at its end", at: start)
      }
      if count < scratch.count { break }
      if position - start > Self.trailerLimit {
        throw damage("more data follows its end", at: start)
      }
    }
    guard isFollowed else { return }
    var error = damage(
      "another archive follows its end, and that archive's entries are missing", at: start)
    // The checksum was reached.
    error.isSuspect = false
    throw error
  }

  /// Whether another archive or backup begins where zeros end, as after `cat`. Other data does not
  /// count: old programs wrote the rest of their buffer.
  private static func hasArchive(_ bytes: ArraySlice<UInt8>, after zeros: Int) -> Bool {
    if bytes.dropFirst(zeros).starts(with: AndroidBackupHeader.magic) { return true }
    let start = zeros - zeros % AndroidTarMember.blockSize
    let block = Array(bytes.dropFirst(start).prefix(AndroidTarMember.blockSize))
    return block.count == AndroidTarMember.blockSize && TarHeader(block) != nil
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
      extra.skip(header)
      (remaining, padding) = (header.size, Self.padding(after: header.size))
      return
    }
    padding = Self.padding(after: header.size)
    var bytes = [UInt8](repeating: 0, count: Int(header.size))
    guard try fill(&bytes) == bytes.count else {
      throw damage("it is truncated within an extended header", at: start)
    }
    if let fault = extra.read(bytes, of: header.type) { throw damage(fault, at: start) }
  }

  /// Skips the blocks with the rest of the map of a sparse file, which follow its header.
  private mutating func skipSparseMap(from start: UInt64) throws(InterchangeError) {
    var block = [UInt8](repeating: 0, count: AndroidTarMember.blockSize)
    repeat {
      guard try fill(&block) == block.count else {
        throw damage("it is truncated within a sparse file", at: start)
      }
    } while block[TarHeader.nextMapMark] != 0
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
  /// Whether blocks with the rest of a sparse file's map follow, in the old form of GNU tar.
  let hasMoreBlocks: Bool

  /// The position of the mark of a further block in a block of a map (GNU tar, `struct
  /// sparse_header`).
  static let nextMapMark = 504

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
    hasMoreBlocks = type == UInt8(ascii: "S") && block[482] != 0
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
