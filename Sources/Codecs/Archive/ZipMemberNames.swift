/// The names of a zip archive's members in its central directory.
///
/// libarchive takes each name from the local header and does not compare it. If the two differ, one
/// of them is damaged, and the member may have got a wrong name. Only sums of the names are kept,
/// in the order of the members.
struct ZipMemberNames {
  private var sums: [UInt32] = []
  private var last: UInt64?
  /// Whether the headers are in the order of the members, in which libarchive returns them.
  private var isOrdered = true

  /// The sum of a name that is not compared.
  private static let unknown: UInt32 = 0
  /// The extra field with the name in UTF-8, which libarchive takes (APPNOTE.TXT 4.6.9).
  private static let textField: UInt16 = 0x7075

  /// Adds the next header.
  mutating func add(_ header: ZipCentralDirectory.Header) {
    guard isOrdered else { return }
    if let local = header.local, last.map({ $0 < local }) ?? true {
      last = local
      sums.append(header.nameSum)
    } else {
      (sums, isOrdered) = ([], false)
    }
  }

  /// Whether the member with a number has another name here.
  func differs(_ name: [UInt8], at number: Int) -> Bool {
    guard sums.indices.contains(number), sums[number] != Self.unknown else { return false }
    return sums[number] != Self.sum(name[...])
  }

  /// Returns the sum of a name in a header with an extra field.
  static func sum(_ name: ArraySlice<UInt8>, extra: ArraySlice<UInt8>) -> UInt32 {
    textName(in: extra)?.isText == true ? unknown : sum(name)
  }

  /// Returns the offset of the extra field with the name in UTF-8, and whether it is UTF-8; nil if
  /// there is none. Info-ZIP writes one for a name with the byte 7F, in two bytes, as no UTF-8 is.
  static func textName(in extra: ArraySlice<UInt8>) -> (offset: Int, isText: Bool)? {
    var rest = extra
    while rest.count >= 4 {
      let numbers = rest.prefix(4).map { UInt16($0) }
      let size = Int(numbers[2] | numbers[3] << 8)
      if numbers[0] | numbers[1] << 8 == textField {
        // The version and the checksum of the other name come first.
        let name = rest.dropFirst(4).prefix(size).dropFirst(5)
        let isText = String(validating: name, as: UTF8.self) != nil
        return (rest.startIndex - extra.startIndex, isText)
      }
      rest = rest.dropFirst(4 + size)
    }
    return nil
  }

  /// Returns the sum (FNV-1a) of a name. libarchive may add a slash to the name of a directory, and
  /// replace backslashes by slashes.
  private static func sum(_ name: ArraySlice<UInt8>) -> UInt32 {
    var end = name.endIndex
    while end > name.startIndex, isSlash(name[end - 1]) { end -= 1 }
    let sum = name[..<end].reduce(UInt32(2_166_136_261)) { sum, byte in
      (sum ^ UInt32(isSlash(byte) ? UInt8(ascii: "/") : byte)) &* 16_777_619
    }
    return max(sum, unknown + 1)
  }

  private static func isSlash(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\")
  }
}
