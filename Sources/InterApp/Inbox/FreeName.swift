internal import SandboxModel
internal import SystemIO

/// A name that is free in a directory: the requested one, or one with `-1`, `-2` before the
/// extension, as the system names copies in an inbox.
struct FreeName {
  /// The names in use, folded: Apple's volumes do not distinguish case.
  private var used: Set<ByteString>
  /// The maximum length of a name in bytes.
  private static let limit = 255

  /// Creates names for an empty directory.
  init() { used = [] }

  /// Creates names for a directory.
  init(in directory: borrowing Directory) throws(SystemError) {
    used = Set(try directory.names().map(Self.folded))
  }

  /// Returns a free name, which then counts as used. A name that would be too long is shortened
  /// before its extension, between two characters.
  mutating func take(_ wanted: ByteString) -> ByteString {
    let (stem, suffix) = Self.parts(wanted)
    var (number, name) = (0, Self.joined(stem, number: "", suffix))
    while !used.insert(Self.folded(name)).inserted {
      number += 1
      name = Self.joined(stem, number: "-\(number)", suffix)
    }
    return name
  }

  private static func parts(_ name: ByteString) -> (stem: ByteString, suffix: ByteString) {
    guard let last = TypeTree.filenameExtension(of: name), last.count < 64 else {
      return (name, "")
    }
    return (
      ByteString(name.bytes.dropLast(last.count + 1)), ByteString(name.bytes.suffix(last.count + 1))
    )
  }

  private static func joined(
    _ stem: ByteString, number: String, _ suffix: ByteString
  ) -> ByteString {
    let room = limit - number.utf8.count - suffix.count
    var kept = stem.bytes
    if kept.count > room {
      kept = kept.prefix(room)
      // A cut in the middle of a character would leave invalid UTF-8.
      let isUTF8 = stem.utf8 != nil
      while isUTF8, !kept.isEmpty, String(validating: kept, as: UTF8.self) == nil {
        kept = kept.dropLast()
      }
    }
    return ByteString(Array(kept) + Array(number.utf8) + Array(suffix.bytes))
  }

  private static func folded(_ name: ByteString) -> ByteString {
    name.folded
  }
}
