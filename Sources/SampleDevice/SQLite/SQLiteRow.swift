/// A row: its ID, which is also the value of an `INTEGER PRIMARY KEY` column, and the values of its
/// columns; the value of such a column is `null` (SQLite file format, section 2.1).
struct SQLiteRow: Hashable, Sendable {
  let id: Int64
  let values: [Value]

  init(_ id: Int64, _ values: [Value]) {
    self.id = id
    self.values = values
  }
}

extension SQLiteRow {
  /// A value in a row of a sample database.
  enum Value: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case blob([UInt8])
  }

  /// The record of the values: header size, types, values (section 2.1).
  var record: [UInt8] {
    let columns = values.map(\.stored)
    let types = columns.flatMap { Self.varint($0.type) }
    precondition(types.count < 127, "the header size is one byte and includes itself")
    return [UInt8(types.count + 1)] + types + columns.flatMap(\.bytes)
  }

  /// The leaf cell of a table: record size, row ID, record (section 1.6). The record must fit on a
  /// page because overflow pages are not supported.
  var leafCell: [UInt8] {
    let record = record
    precondition(record.count <= SQLiteImage.Page.size - 35, "overflow pages are not supported")
    return Self.varint(UInt64(record.count)) + Self.varint(UInt64(id)) + record
  }

  /// Returns a number in groups of seven bits, the highest first; all bytes but the last have the
  /// high bit set (section 1.6). Numbers of more than 56 bits, which take nine bytes, are not
  /// supported.
  static func varint(_ number: UInt64) -> [UInt8] {
    precondition(number < 1 << 56)
    var bytes = [UInt8(number & 0x7f)]
    var rest = number >> 7
    while rest > 0 {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    return bytes.reversed()
  }
}

extension SQLiteRow.Value {
  /// The serial type and the bytes of the value (table in section 2.1).
  fileprivate var stored: (type: UInt64, bytes: [UInt8]) {
    switch self {
    case .null: return (0, [])
    case .integer(let number): return Self.stored(number)
    case .real(let number): return (7, number.bitPattern.bigEndianBytes(8))
    case .text(let text): return (13 + 2 * UInt64(text.utf8.count), Array(text.utf8))
    case .blob(let bytes): return (12 + 2 * UInt64(bytes.count), bytes)
    }
  }

  /// Returns an integer in the smallest of 0, 1, 2, 3, 4, 6 and 8 bytes.
  private static func stored(_ number: Int64) -> (type: UInt64, bytes: [UInt8]) {
    if number == 0 || number == 1 { return (8 + UInt64(number), []) }
    let bits = 65 - (number < 0 ? ~number : number).leadingZeroBitCount
    let widths = [1, 2, 3, 4, 6, 8]
    let index = widths.firstIndex { bits <= 8 * $0 } ?? 5
    return (UInt64(index + 1), UInt64(bitPattern: number).bigEndianBytes(widths[index]))
  }
}

extension FixedWidthInteger {
  /// Returns the lowest `count` bytes in big-endian order.
  func bigEndianBytes(_ count: Int = Self.bitWidth / 8) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: self >> Self(8 * $0)) }
  }
}
