// The two normal forms are the standard library's own, which compares strings by them; it has no
// public name for them yet, and Foundation, which has one, is not used here.
@_spi(_Unicode) internal import Swift

/// How Unicode text can be spelled: letters composed with their accents, or decomposed.
enum Spelling: CaseIterable {
  /// As it is written.
  case written
  /// Normalisation form C, as most systems write names.
  case composed
  /// Normalisation form D, as HFS+ and its heirs write names.
  case decomposed

  /// The bytes in this spelling; bytes that are not UTF-8 stay as they are.
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
