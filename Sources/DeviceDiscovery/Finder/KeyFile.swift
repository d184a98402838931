internal import Codecs
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
      let text = line.trimmed
      if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
        group = ByteString(text.dropFirst().dropLast())
      } else if text.first != UInt8(ascii: "#"),
        let equals = text.firstIndex(of: UInt8(ascii: "="))
      {
        let key = ByteString(text[..<equals].trimmed)
        let value = ByteString(text[(equals + 1)...].trimmed)
        if values[group]?[key] == nil { values[group, default: [:]][key] = value }
      }
    }
  }

  /// Returns the value for a key, or nil if it is missing or empty.
  package func value(_ key: ByteString, in group: ByteString) -> ByteString? {
    values[group]?[key].flatMap { $0.isEmpty ? nil : $0 }
  }
}
