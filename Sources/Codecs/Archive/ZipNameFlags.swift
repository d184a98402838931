/// The flags of a zip archive by which its names are UTF-8 (APPNOTE.TXT 4.4.4, bit 11).
///
/// libarchive converts a name with this flag to Unicode's form NFC, and copies the bytes of one without
/// it (archive_read_support_format_zip.c, `zip_read_local_file_header`). There is no option for it, so
/// the flags are cleared in the bytes that libarchive reads. Only headers of names that are not ASCII
/// count. They are found by the central directory, so only in files: in a stream the names are converted.
struct ZipNameFlags {
  /// The offsets of the bytes with the flag in the archive, ascending.
  private var offsets: [UInt64] = []
  /// The offsets of the local headers to look at.
  private var localHeaders: [UInt64] = []

  /// Bit 11 in the second byte of the flags.
  private static let mask: UInt8 = 0x08
  /// The maximum length of the end of an archive: the record with a comment.
  private static let maximumEnd = 22 + 65_535

  /// Finds the flags, and continues at the start of the input. Returns nil for a stream, and if there is
  /// no sound central directory.
  init?(in input: any ArchiveInput) {
    guard let size = input.size else { return nil }
    defer { input.seek(to: 0) }
    var window = Window(input)
    // Another archive may end with a zip archive, whose bytes are content.
    guard let head = window.bytes(4, at: 0, ahead: 4), head.starts(with: [0x50, 0x4B, 3, 4]),
      let directory = Self.directory(in: &window, size: size),
      readDirectory(directory.range, shift: directory.shift, in: &window)
    else { return nil }
    localHeaders.sort()
    for offset in localHeaders {
      // A header that is none must not change what is there.
      guard let bytes = window.bytes(8, at: offset, ahead: 8),
        bytes.starts(with: [0x50, 0x4B, 3, 4]), bytes[bytes.startIndex + 7] & Self.mask != 0
      else { continue }
      offsets.append(offset + 7)
    }
    localHeaders = []
    offsets.sort()
  }

  /// Clears the flags in a part of the archive.
  ///
  /// - Parameters:
  ///   - count: The number of bytes of the part.
  ///   - start: The offset of the first byte.
  func clear(in bytes: inout [UInt8], count: Int, at start: UInt64) {
    var (low, high) = (0, offsets.count)
    while low < high {
      let middle = (low + high) / 2
      if offsets[middle] < start { low = middle + 1 } else { high = middle }
    }
    while low < offsets.count, offsets[low] - start < UInt64(count) {
      bytes[Int(offsets[low] - start)] &= ~Self.mask
      low += 1
    }
  }

  // MARK: - The central directory

  /// Returns the range of the central directory, and the number of bytes before the archive in its file;
  /// nil if the end of the archive is not sound (APPNOTE.TXT 4.3.14 to 4.3.16).
  private static func directory(
    in window: inout Window, size: UInt64
  ) -> (range: Range<UInt64>, shift: UInt64)? {
    let count = Int(min(size, UInt64(maximumEnd)))
    let tailStart = size - UInt64(count)
    guard count >= 22, let tail = window.bytes(count, at: tailStart, ahead: count),
      let index = (tail.startIndex...(tail.endIndex - 22)).last(where: {
        tail[$0...].starts(with: [0x50, 0x4B, 5, 6])
          && number(tail, at: $0 - tail.startIndex + 20, size: 2) == UInt64(tail.endIndex - $0 - 22)
      })
    else { return nil }
    var end = tailStart + UInt64(index - tail.startIndex)
    var length = number(tail, at: index - tail.startIndex + 12, size: 4)
    var offset = number(tail, at: index - tail.startIndex + 16, size: 4)
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
    return ((end - length)..<end, end - length - offset)
  }

  /// Reads the headers of the directory (APPNOTE.TXT 4.3.12). Returns false if one is not sound.
  private mutating func readDirectory(
    _ range: Range<UInt64>, shift: UInt64, in window: inout Window
  ) -> Bool {
    var position = range.lowerBound
    while position < range.upperBound {
      guard let fixed = window.bytes(46, at: position, ahead: Window.portion),
        fixed.starts(with: [0x50, 0x4B, 1, 2])
      else { return false }
      let name = Int(Self.number(fixed, at: 28, size: 2))
      let extra = Int(Self.number(fixed, at: 30, size: 2))
      let comment = Self.number(fixed, at: 32, size: 2)
      let isFlagged = fixed[fixed.startIndex + 9] & Self.mask != 0
      guard let header = window.bytes(46 + name + extra, at: position, ahead: Window.portion) else {
        return false
      }
      if isFlagged, header.dropFirst(46).prefix(name).contains(where: { $0 >= 0x80 }),
        let local = Self.localOffset(header, extra: header.dropFirst(46 + name))
      {
        offsets.append(position + 9)
        let (offset, isTooLarge) = local.addingReportingOverflow(shift)
        if !isTooLarge, offset < range.lowerBound { localHeaders.append(offset) }
      }
      position += UInt64(46 + name + extra) + comment
    }
    return true
  }

  /// Returns the offset of the local header, which is in an extra field if it or the archive is large
  /// (APPNOTE.TXT 4.5.3); nil if that is missing.
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

extension ZipNameFlags {
  /// Reads parts of an input, ahead in portions.
  private struct Window {
    private let input: any ArchiveInput
    private var buffer: [UInt8] = []
    private var start: UInt64 = 0

    static let portion = 256 << 10

    init(_ input: any ArchiveInput) { self.input = input }

    /// Returns bytes, or nil if the input does not have them.
    ///
    /// - Parameter ahead: The number of bytes to read if they are not there yet.
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
