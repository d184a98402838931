/// The initial bytes of an item: major type and argument (RFC 8949, section 3).
enum CBORHead {
  enum Major: UInt8 {
    case unsigned = 0
    case negative, bytes, text, array, map, tag, simple
  }

  static let `false`: UInt8 = 0xF4
  static let `true`: UInt8 = 0xF5
  static let null: UInt8 = 0xF6

  /// Appends a head in its shortest form.
  static func append(_ major: Major, _ argument: UInt64, to bytes: inout [UInt8]) {
    let type = major.rawValue << 5
    if argument < 24 {
      bytes.append(type | UInt8(argument))
      return
    }
    let width =
      argument <= 0xFF ? 1 : argument <= 0xFFFF ? 2 : argument <= 0xFFFF_FFFF ? 4 : 8
    bytes.append(type | UInt8(24 + width.trailingZeroBitCount))
    for index in (0..<width).reversed() {
      bytes.append(UInt8(truncatingIfNeeded: argument >> UInt64(8 * index)))
    }
  }

  /// A map key in the order of its encoded bytes: 0, 1, 2 and so on, then -1, -2 and so on.
  struct Key: Comparable, Sendable {
    let isNegative: Bool
    let argument: UInt64

    init(_ value: Int64) {
      isNegative = value < 0
      argument = UInt64(bitPattern: value < 0 ? ~value : value)
    }

    static func < (left: Key, right: Key) -> Bool {
      left.isNegative == right.isNegative ? left.argument < right.argument : right.isNegative
    }
  }
}
