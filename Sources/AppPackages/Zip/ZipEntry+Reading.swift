internal import SystemIO

extension ZipEntry {
  private static let signature: UInt32 = 0x0201_4b50
  private static let length = 46

  /// Parses an entry of the central directory and advances past it, or returns nil if it is
  /// invalid.
  init?(reading bytes: [UInt8], at place: inout Int) {
    let fields = Fields(bytes, at: place)
    guard bytes.count - place >= Self.length, fields.number32(0) == Self.signature else {
      return nil
    }
    let names = place + Self.length
    let extras = names + Int(fields.number16(28))
    let comment = extras + Int(fields.number16(30))
    let end = comment + Int(fields.number16(32))
    guard end <= bytes.count, fields.number16(34) == 0 || fields.number16(34) == 0xffff else {
      return nil
    }
    var wide = ZipExtra(bytes[extras..<comment])
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
      ?? ZipTime.timestamp(time: fields.number16(12), date: fields.number16(14))
    place = end
  }
}

/// The extra fields of an entry (APPNOTE.TXT 4.5; Info-ZIP's extrafld.txt for the times).
struct ZipExtra {
  private var wide: [UInt64] = []
  private(set) var modified: Timestamp?

  init(_ bytes: ArraySlice<UInt8>) {
    var at = bytes.startIndex
    let all = Array(bytes)
    while at - bytes.startIndex + 4 <= all.count {
      let fields = Fields(all, at: at - bytes.startIndex)
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
enum ZipTime {
  static func timestamp(time: UInt16, date: UInt16) -> Timestamp {
    let (year, month, day) = (Int64(date >> 9) + 1980, Int64(date >> 5 & 15), Int64(date & 31))
    let seconds = Int64(time >> 11) * 3600 + Int64(time >> 5 & 63) * 60 + Int64(time & 31) * 2
    return Timestamp(
      seconds: days(year: year, month: max(1, min(12, month)), day: max(1, day)) * 86_400 + seconds)
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
