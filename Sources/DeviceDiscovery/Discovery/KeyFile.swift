internal import SandboxModel
package import SystemIO

/// A file of groups and keys such as Flatpak's metadata, OSTree's configuration and desktop
/// entries: `[Group]`, `Key=value`, comments with `#`.
package struct KeyFile: Sendable {
  private var values: [ByteString: [ByteString: ByteString]] = [:]

  /// Parses the lines and ignores those that are not a group, key or comment. The first of several
  /// values for a key takes precedence.
  package init(_ bytes: [UInt8]) {
    var group: ByteString = ""
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let text = Self.trimmed(line)
      if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
        group = ByteString(text.dropFirst().dropLast())
      } else if text.first != UInt8(ascii: "#"),
        let equals = text.firstIndex(of: UInt8(ascii: "="))
      {
        let key = ByteString(Self.trimmed(text[..<equals]))
        let value = ByteString(Self.trimmed(text[(equals + 1)...]))
        if values[group]?[key] == nil { values[group, default: [:]][key] = value }
      }
    }
  }

  /// Returns the value for a key, or nil if it is missing or empty.
  package func value(_ key: ByteString, in group: ByteString) -> ByteString? {
    values[group]?[key].flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var rest = text.drop { XMLPropertyListReader.isSpace($0) }
    while let last = rest.last, XMLPropertyListReader.isSpace(last) { rest.removeLast() }
    return rest
  }
}
