/// A shared configuration or credentials file of the AWS tools: sections with settings.
///
/// Source: AWS SDKs and Tools Reference Guide, "Shared config and credentials files". Settings are
/// read as `key = value`; comments begin with `#` or `;`. Indented lines are nested settings, none
/// of which is used here.
package struct AWSProfileFile: Sendable {
  /// The maximum size of a file in bytes.
  package static let limit = 1 << 20

  private var sections: [String: [String: String]] = [:]

  /// Reads a file. Lines that are not settings are skipped, as in the AWS tools.
  package init(_ bytes: [UInt8]) {
    var section: String?
    for line in bytes.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
      guard let first = line.first, !Self.isSpace(first) else { continue }
      if first == UInt8(ascii: "#") || first == UInt8(ascii: ";") { continue }
      if first == UInt8(ascii: "[") {
        let inside = line.dropFirst().prefix { $0 != UInt8(ascii: "]") }
        // A section that is not closed has no settings.
        section = inside.endIndex < line.endIndex ? Self.name(Self.text(inside)) : nil
        continue
      }
      guard let section, let equals = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let key = Self.text(line[..<equals]).lowercased()
      let value = Self.value(Self.text(line[line.index(after: equals)...]))
      sections[section, default: [:]][key] = value
    }
  }

  /// Returns a setting of a profile, or nil if it is not set or empty.
  package func setting(_ key: String, of profile: String) -> String? {
    sections[profile]?[key].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Whether the file has a profile.
  package func has(_ profile: String) -> Bool { sections[profile] != nil }

  /// Returns the profile of a section: `[profile NAME]`, or `[NAME]` as in the credentials file.
  private static func name(_ text: String) -> String {
    let words = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    guard words.count == 2, words[0] == "profile" else { return text }
    return Self.text(Array(words[1].utf8)[...])
  }

  /// Returns a value without a comment, which begins with white space and `#` or `;`.
  private static func value(_ text: String) -> String {
    for mark in [" #", " ;", "\t#", "\t;"] {
      if let range = text.firstRange(of: mark) { return value(String(text[..<range.lowerBound])) }
    }
    return Self.text(Array(text.utf8)[...])
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    let trimmed = bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
    return String(decoding: Array(trimmed), as: UTF8.self)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
