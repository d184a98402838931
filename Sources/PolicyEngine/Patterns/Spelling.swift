// The normal forms are those of the standard library, which has no public name for them yet.
// Foundation, which has one, is not used here.
@_spi(_Unicode) internal import Swift

/// The spellings of Unicode text: letters composed with their accents, or decomposed.
enum Spelling: CaseIterable {
  /// As written.
  case written
  /// Normalization form C, as most systems write names.
  case composed
  /// Normalization form D, as HFS+ and its successors write names.
  case decomposed

  /// Returns the bytes in this spelling; bytes that are not UTF-8 are unchanged.
  func spell(_ bytes: [UInt8]) -> [UInt8] {
    guard self != .written, bytes.contains(where: { $0 >= 0x80 }),
      let text = String(validating: bytes, as: UTF8.self)
    else { return bytes }
    var scalars = String.UnicodeScalarView()
    if self == .composed {
      scalars.append(contentsOf: text._nfc)
    } else {
      scalars.append(contentsOf: text._nfd)
    }
    return Array(String(scalars).utf8)
  }
}
