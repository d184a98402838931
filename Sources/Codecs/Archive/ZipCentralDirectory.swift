/// Reads the central directory of a zip archive in a file, header by header (APPNOTE.TXT 4.3.12).
struct ZipCentralDirectory {
  /// The range of the headers in the file.
  let range: Range<UInt64>
  /// The number of bytes before the archive in its file.
  let shift: UInt64
  /// Whether libarchive finds the end of the archive, which it looks for in the last 16 KiB of the
  /// file (archive_read_support_format_zip.c, `archive_read_format_zip_seekable_bid`). It otherwise
  /// reads an archive as a stream: without permissions, and links as files.
  let isInReach: Bool
  private var window: Window
  /// The offset of the next header.
  private(set) var position: UInt64

  /// A header of a member.
  struct Header {
    /// The offset of the header in the file.
    let start: UInt64
    /// Whether the name is not ASCII and is marked as UTF-8.
    let hasFlaggedName: Bool
    /// The number of the system that made the member (APPNOTE.TXT 4.4.2).
    let system: UInt8
    /// Whether the name has a backslash and no slash, and comes from a system where a backslash is
    /// a character of names.
    let hasBackslash: Bool
    /// Whether the name contains a NUL.
    let hasNUL: Bool
    /// Whether the extra field with the name in UTF-8 is no UTF-8.
    let hasInvalidText: Bool
    /// The offset of the local header in the file; nil if it is missing.
    let local: UInt64?
    /// The sum of the name (`ZipMemberNames`).
    let nameSum: UInt32
  }

  /// Bit 11 in the second byte of the flags: the name is UTF-8 (APPNOTE.TXT 4.4.4).
  static let nameFlag: UInt8 = 0x08
  /// The numbers of Unix and macOS (APPNOTE.TXT 4.4.2.2).
  private static let unixSystems: [UInt8] = [3, 19]
  /// The first bytes of a local header.
  static let localSignature: [UInt8] = [0x50, 0x4B, 3, 4]
  /// The first bytes of the record at the end of an archive.
  static let endSignature: [UInt8] = [0x50, 0x4B, 5, 6]
  /// The first bytes of a header.
  private static let headerSignature: [UInt8] = [0x50, 0x4B, 1, 2]
  /// The size of the record at the end of an archive without its comment.
  static let endSize = 22
  /// The maximum length of the end of an archive: the record with a comment.
  private static let maximumEnd = endSize + 65_535
  /// The size of a header without its name, extra field and comment.
  private static let fixedSize = 46

  /// Finds the directory. Returns nil for a file that is not a zip archive from its start, and if
  /// the end of the archive is invalid.
  init?(in input: any ArchiveInput, size: UInt64) {
    var window = Window(input)
    // Another archive may end with a zip archive as content.
    guard let head = window.bytes(4, at: 0, ahead: 4), head.starts(with: Self.localSignature),
      let found = Self.directory(in: &window, size: size)
    else { return nil }
    (range, shift, isInReach) = found
    position = found.range.lowerBound
    self.window = window
  }

  /// The bytes before a zip archive in its file: their number, and whether they are, or end with,
  /// another archive.
  struct Lead: Equatable {
    let count: UInt64
    let isArchive: Bool

    /// Returns a sentence about the bytes. A program that extracts the archive may precede it.
    ///
    /// - Throws: `malformed` for another archive, which libarchive does not read.
    func remark() throws(CodecError) -> String {
      guard isArchive else { return "\(count) bytes precede the archive, and were not imported" }
      throw CodecError(
        .malformed, in: .archive,
        reason: "its first \(count) bytes are another archive, and the entries of that are missing")
    }
  }

  /// Returns the bytes before the archive that libarchive reads by the directory at the end of a
  /// file; nil if there are none, or no valid end.
  static func lead(in input: any ArchiveInput, size: UInt64) -> Lead? {
    var window = Window(input)
    guard let found = directory(in: &window, size: size), found.shift > 0 else { return nil }
    let head = window.bytes(4, at: 0, ahead: 4)
    let isArchive =
      head?.starts(with: localSignature) == true || endsArchive(at: found.shift, in: &window)
    return Lead(count: found.shift, isArchive: isArchive)
  }

  /// Whether an archive with members ends at an offset.
  private static func endsArchive(at offset: UInt64, in window: inout Window) -> Bool {
    let count = Int(min(offset, UInt64(maximumEnd)))
    guard count >= endSize,
      let tail = window.bytes(count, at: offset - UInt64(count), ahead: count)
    else { return false }
    return (tail.startIndex...(tail.endIndex - endSize)).contains { index in
      tail[index...].starts(with: endSignature)
        && number(tail, at: index - tail.startIndex + 20, size: 2)
          == UInt64(tail.endIndex - index - endSize)
        && number(tail, at: index - tail.startIndex + 10, size: 2) > 0
    }
  }

  /// Whether all headers were read.
  var isAtEnd: Bool { position >= range.upperBound }

  /// Returns the next header; nil after the last one, and if the next one is invalid.
  mutating func next() -> Header? {
    guard position < range.upperBound,
      let fixed = window.bytes(Self.fixedSize, at: position, ahead: Window.portion),
      fixed.starts(with: Self.headerSignature)
    else { return nil }
    let name = Int(Self.number(fixed, at: 28, size: 2))
    let extra = Int(Self.number(fixed, at: 30, size: 2))
    let comment = Self.number(fixed, at: 32, size: 2)
    let isFlagged = fixed[fixed.startIndex + 9] & Self.nameFlag != 0
    let size = Self.fixedSize + name + extra
    guard let header = window.bytes(size, at: position, ahead: Window.portion) else { return nil }
    let names = header.dropFirst(Self.fixedSize).prefix(name)
    let fields = header.dropFirst(Self.fixedSize + name)
    let system = fixed[fixed.startIndex + 5]
    let found = Header(
      start: position, hasFlaggedName: isFlagged && names.contains { $0 >= 0x80 }, system: system,
      hasBackslash: Self.unixSystems.contains(system) && names.contains(UInt8(ascii: "\\"))
        && !names.contains(UInt8(ascii: "/")),
      hasNUL: names.contains(0),
      hasInvalidText: ZipMemberNames.textName(in: fields)?.isText == false,
      local: Self.localOffset(header, extra: fields).flatMap { offset in
        let (local, isTooLarge) = offset.addingReportingOverflow(shift)
        return isTooLarge ? nil : local
      },
      nameSum: ZipMemberNames.sum(names, extra: fields))
    position += UInt64(size) + comment
    return found
  }

  /// Returns bytes of the file, or nil if it does not have them.
  mutating func bytes(_ count: Int, at offset: UInt64) -> ArraySlice<UInt8>? {
    // Reading a page costs no more than reading some bytes, and small members are close together.
    window.bytes(count, at: offset, ahead: max(count, 4096))
  }

  /// The number of bytes at the end of a file in which libarchive looks for the end of an archive.
  static let reach = 16 << 10

  private typealias Place = (range: Range<UInt64>, shift: UInt64)

  /// Returns the range of the central directory, the number of bytes before the archive in its
  /// file, and whether its end is within libarchive's reach; nil if there is no valid end. Other
  /// bytes may follow it, such as zeros on a tape.
  private static func directory(
    in window: inout Window, size: UInt64
  ) -> (range: Range<UInt64>, shift: UInt64, isInReach: Bool)? {
    let count = Int(min(size, UInt64(maximumEnd)))
    let tailStart = size - UInt64(count)
    guard count >= endSize, let tail = window.bytes(count, at: tailStart, ahead: count) else {
      return nil
    }
    let records = endRecords(in: tail)
    for index in records {
      let end = tailStart + UInt64(index - tail.startIndex)
      guard let place = place(ofRecord: tail[index...], at: end, in: &window) else { continue }
      // libarchive takes the last one with the signature.
      let isInReach = index == records.max() && tail.endIndex - index < reach
      return (place.range, place.shift, isInReach)
    }
    return nil
  }

  /// Returns the indexes of possible records at the end of an archive, the likeliest first: those
  /// that extend to the end of the file, then the others, the last one first. A comment may contain
  /// anything.
  private static func endRecords(in tail: ArraySlice<UInt8>) -> [Int] {
    var (exact, followed): ([Int], [Int]) = ([], [])
    for index in (tail.startIndex...(tail.endIndex - endSize)).reversed()
    where tail[index...].starts(with: endSignature) {
      let comment = number(tail, at: index - tail.startIndex + 20, size: 2)
      let rest = UInt64(tail.endIndex - index - endSize)
      if comment == rest { exact.append(index) } else { followed.append(index) }
    }
    return exact + followed
  }

  /// Returns the location of the central directory by the record at the end of the archive; nil if
  /// it is invalid (APPNOTE.TXT 4.3.14 to 4.3.16).
  private static func place(
    ofRecord record: ArraySlice<UInt8>, at position: UInt64, in window: inout Window
  ) -> Place? {
    var end = position
    var length = number(record, at: 12, size: 4)
    var offset = number(record, at: 16, size: 4)
    if end >= 20, let locator = window.bytes(20, at: end - 20, ahead: 20),
      locator.starts(with: [0x50, 0x4B, 6, 7])
    {
      let record = number(locator, at: 8, size: 8)
      guard record <= end, let found = window.bytes(56, at: record, ahead: 56),
        found.starts(with: [0x50, 0x4B, 6, 6])
      else { return nil }
      (length, offset) = (number(found, at: 40, size: 8), number(found, at: 48, size: 8))
      end = record
    }
    guard length <= end, offset <= end - length else { return nil }
    let start = end - length
    guard length == 0 || window.bytes(4, at: start, ahead: 4)?.starts(with: headerSignature) == true
    else { return nil }
    return (start..<end, start - offset)
  }

  /// Returns the offset of the local header, which is in an extra field if it or the archive is
  /// large (APPNOTE.TXT 4.5.3); nil if that is missing.
  private static func localOffset(
    _ header: ArraySlice<UInt8>, extra: ArraySlice<UInt8>
  ) -> UInt64? {
    let offset = number(header, at: 42, size: 4)
    guard offset == 0xFFFF_FFFF else { return offset }
    // The sizes come before the offset if they are there, too.
    let skipped = [20, 24].count { number(header, at: $0, size: 4) == 0xFFFF_FFFF } * 8
    var rest = extra
    while rest.count >= 4 {
      let length = Int(number(rest, at: 2, size: 2))
      let field = rest.dropFirst(4).prefix(length)
      if number(rest, at: 0, size: 2) == 1 {
        return field.count >= skipped + 8 ? number(field, at: skipped, size: 8) : nil
      }
      rest = rest.dropFirst(4 + length)
    }
    return nil
  }

  /// Returns a little-endian number at a position of bytes that are long enough.
  private static func number(_ bytes: ArraySlice<UInt8>, at position: Int, size: Int) -> UInt64 {
    let start = bytes.startIndex + position
    return bytes[start..<start + size].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension ZipCentralDirectory {
  /// Reads parts of an input, and reads ahead in portions.
  private struct Window {
    private let input: any ArchiveInput
    private var buffer: [UInt8] = []
    private var start: UInt64 = 0

    static let portion = 256 << 10

    init(_ input: any ArchiveInput) { self.input = input }

    /// Returns bytes, or nil if the input does not have them.
    ///
    /// - Parameter ahead: The number of bytes to read if they were not read yet.
    mutating func bytes(_ count: Int, at offset: UInt64, ahead: Int) -> ArraySlice<UInt8>? {
      let isInBuffer = offset >= start && offset - start <= UInt64(buffer.count)
      if !isInBuffer || buffer.count - Int(offset - start) < count {
        guard load(max(count, ahead), at: offset), buffer.count >= count else { return nil }
      }
      let index = Int(offset - start)
      return buffer[index..<index + count]
    }

    /// Reads up to a number of bytes. Returns false if reading failed.
    private mutating func load(_ count: Int, at offset: UInt64) -> Bool {
      input.seek(to: offset)
      (buffer, start) = ([], offset)
      while buffer.count < count {
        var part = [UInt8](repeating: 0, count: count - buffer.count)
        let found = input.read(into: &part)
        if found < 0 { return false }
        if found == 0 { break }
        buffer += part.prefix(found)
      }
      return true
    }
  }
}
