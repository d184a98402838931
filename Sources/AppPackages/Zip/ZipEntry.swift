internal import SystemIO

/// An entry of a zip archive, from its central directory (APPNOTE.TXT 4.3.12).
struct ZipEntry {
  /// The name's bytes as stored; a directory's name ends with a slash.
  let name: ByteString
  let madeBy: UInt16
  let flags: UInt16
  let method: UInt16
  /// The modification time from an extra field; without one, the stored local time as UTC.
  let modified: Timestamp
  let checksum: UInt32
  let packedSize: UInt64
  let size: UInt64
  let attributes: UInt32
  /// The offset of the local header.
  let offset: UInt64

  /// The type of an entry.
  enum Kind { case directory, file, link, special }

  /// The supported methods, stored and deflated.
  static let methods: Set<UInt16> = [0, 8]

  /// Whether the data or the names are encrypted (APPNOTE.TXT 4.4.4).
  var isEncrypted: Bool { flags & (1 | 1 << 6 | 1 << 13) != 0 || method == 99 }

  /// Whether sizes and checksum follow the data, so that they can be 0 in the local header.
  var hasDescriptor: Bool { flags & 1 << 3 != 0 }

  private var endsInSlash: Bool { name.bytes.last == UInt8(ascii: "/") }

  /// The Unix mode, in archives created on Unix (3) or on a Mac (19).
  private var mode: UInt32? {
    let system = madeBy >> 8
    let mode = attributes >> 16
    return (system == 3 || system == 19) && mode != 0 ? mode : nil
  }

  var kind: Kind {
    switch (mode ?? 0) & 0o170000 {
    case 0: endsInSlash ? .directory : .file
    case 0o100000: endsInSlash ? .special : .file
    case 0o040000: .directory
    case 0o120000: endsInSlash ? .special : .link
    default: .special
    }
  }

  /// The permission bits of the mode; without one, the defaults for new files and directories.
  var permissions: UInt16 {
    guard let mode, mode & 0o777 != 0 else { return kind == .directory ? 0o755 : 0o644 }
    return UInt16(mode & 0o777)
  }

  /// The name without a directory's trailing slash.
  var path: ByteString { endsInSlash ? ByteString(name.bytes.dropLast()) : name }
}

// MARK: - Reading

extension ZipEntry {
  private static let signature: UInt32 = 0x0201_4b50
  private static let length = 46

  /// Parses an entry of the central directory and advances past it, or returns nil if it is
  /// invalid.
  init?(reading bytes: [UInt8], at position: inout Int) {
    let fields = ZipDirectory.Fields(bytes, at: position)
    guard bytes.count - position >= Self.length, fields.number32(0) == Self.signature else {
      return nil
    }
    let names = position + Self.length
    let extras = names + Int(fields.number16(28))
    let comment = extras + Int(fields.number16(30))
    let end = comment + Int(fields.number16(32))
    guard end <= bytes.count, fields.number16(34) == 0 || fields.number16(34) == 0xffff else {
      return nil
    }
    var wide = ExtraFields(bytes[extras..<comment])
    name = ByteString(bytes[names..<extras])
    madeBy = fields.number16(4)
    flags = fields.number16(8)
    method = fields.number16(10)
    checksum = fields.number32(16)
    // The order is significant: the extra field contains a number only if the regular field is all
    // ones.
    guard let size = wide.number(or: fields.number32(24)),
      let packed = wide.number(or: fields.number32(20)),
      let offset = wide.number(or: fields.number32(42))
    else { return nil }
    (self.size, packedSize, self.offset) = (size, packed, offset)
    attributes = fields.number32(38)
    modified =
      wide.modified
      ?? DOSTime.timestamp(time: fields.number16(12), date: fields.number16(14))
    position = end
  }
}

extension ZipEntry {
  /// The extra fields of an entry (APPNOTE.TXT 4.5; Info-ZIP's extrafld.txt for the times).
  private struct ExtraFields {
    private var wide: [UInt64] = []
    private(set) var modified: Timestamp?

    init(_ bytes: ArraySlice<UInt8>) {
      var at = bytes.startIndex
      let all = Array(bytes)
      while at - bytes.startIndex + 4 <= all.count {
        let fields = ZipDirectory.Fields(all, at: at - bytes.startIndex)
        let size = Int(fields.number16(2))
        let next = at + 4 + size
        guard next <= bytes.endIndex else { return }
        switch fields.number16(0) {
        case 0x0001: wide = (0..<(size / 8)).map { fields.number64(4 + 8 * $0) }
        case 0x5455 where size >= 5 && all[at - bytes.startIndex + 4] & 1 != 0:
          modified = Timestamp(seconds: Int64(Int32(bitPattern: fields.number32(5))))
        default: break
        }
        at = next
      }
    }

    /// Returns the regular number, or the Zip64 one if that is all ones; nil if the latter is
    /// missing.
    mutating func number(or small: UInt32) -> UInt64? {
      guard small == 0xffff_ffff else { return UInt64(small) }
      return wide.isEmpty ? nil : wide.removeFirst()
    }
  }

  /// MS-DOS timestamps: two bytes of date, two of time.
  private enum DOSTime {
    static func timestamp(time: UInt16, date: UInt16) -> Timestamp {
      let (year, month, day) = (Int64(date >> 9) + 1980, Int64(date >> 5 & 15), Int64(date & 31))
      let seconds = Int64(time >> 11) * 3600 + Int64(time >> 5 & 63) * 60 + Int64(time & 31) * 2
      return Timestamp(
        seconds: days(year: year, month: max(1, min(12, month)), day: max(1, day)) * 86_400
          + seconds)
    }

    /// Returns the days since 1970-01-01 in the Gregorian calendar, with years that start in March.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
      let shifted = month > 2 ? year : year - 1
      let era = shifted / 400
      let ofEra = shifted - era * 400
      let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
      return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }
  }
}
