internal import SystemIO

/// The part of Flatpak's deployment record that is used: the file `deploy`, a serialized GVariant
/// with the type `(ssasta{sv})`: origin, commit, and further data by name.
///
/// The framing of the type is not parsed. The record begins with two strings, and text values of
/// the dictionary start at the next multiple of 8 after their key.
struct FlatpakDeployment {
  let origin: ByteString
  let commit: ByteString
  private let bytes: [UInt8]

  /// Reads a record, or returns nil if it does not begin with two strings.
  init?(_ bytes: [UInt8]) {
    guard let first = bytes.firstIndex(of: 0), first > 0, first < 256,
      let second = bytes[(first + 1)...].firstIndex(of: 0), second > first + 1,
      bytes[(first + 1)..<second].allSatisfy({ Self.isHexadecimal($0) })
    else { return nil }
    origin = ByteString(bytes[..<first])
    commit = ByteString(bytes[(first + 1)..<second])
    self.bytes = bytes
  }

  /// Returns the text for a key of the dictionary: `appdata-name`, `appdata-version`.
  func text(_ key: StaticString) -> ByteString? {
    let wanted = key.withUTF8Buffer { Array($0) } + [0]
    var at = 0
    while at + wanted.count <= bytes.count {
      defer { at += 8 }
      guard bytes[at...].starts(with: wanted) else { continue }
      let start = (at + wanted.count + 7) & ~7
      guard start < bytes.count, let end = bytes[start...].firstIndex(of: 0),
        bytes[end...].starts(with: [0, 0, UInt8(ascii: "s")])
      else { return nil }
      return end > start ? ByteString(bytes[start..<end]) : nil
    }
    return nil
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }
}
