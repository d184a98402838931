internal import SystemIO

/// Replaces the paths in Mozilla's `profiles.ini` and `installs.ini`.
///
/// The files have sections of `Key=Value` lines (nsINIParser). A profile's `Path` is absolute if
/// `IsRelative` is 0, otherwise relative to the directory of the file, and is left unchanged.
/// `Default` of an installation (`[InstallHASH]`, in installs.ini `[HASH]`) is absolute or relative
/// by its form.
struct ProfileListEditor {
  private let rule: RewriteRule
  private var lines: [ArraySlice<UInt8>]
  private var findings: RewritingFindings
  private var edits: [Int: [UInt8]] = [:]

  /// The maximum number of lines.
  private static let maximumLines = 50_000

  init(_ bytes: [UInt8], rule: RewriteRule, _ mapping: PathMapping) throws(RewriteRefusal) {
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
      throw RewriteRefusal(reason: "it is UTF-16")
    }
    if bytes.contains(0) { throw RewriteRefusal(reason: "it contains a NUL byte") }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw RewriteRefusal(reason: "it is not valid UTF-8")
    }
    lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard lines.count <= Self.maximumLines else {
      throw RewriteRefusal(reason: "it has more than \(Self.maximumLines) lines")
    }
    self.rule = rule
    findings = RewritingFindings(mapping)
  }

  /// Returns the new content.
  ///
  /// - Throws: `RewriteRefusal` if a section has a path twice, so that its meaning depends on the
  ///   reader.
  consuming func rewriting() throws(RewriteRefusal) -> Rewriting {
    var section = Section()
    var others: [(key: String, value: String, line: Int)] = []
    for index in lines.indices {
      let text = Self.trimmed(lines[index])
      if text.first == UInt8(ascii: "[") {
        finish(section)
        section = Section(name: Self.name(of: text))
      } else if let (key, value) = Self.pair(text) {
        try section.add(key, value, line: index)
        others.append((section.name.isEmpty ? key : "\(section.name).\(key)", value, index))
      }
    }
    finish(section)
    for other in others
    where edits[other.line] == nil && findings.pointsToOldPlace(other.value) {
      findings.keepOld(other.value, at: other.key)
    }
    return Rewriting(
      bytes: joined, changes: findings.changes, outside: findings.outside, left: findings.left)
  }

  /// Replaces the path of a complete section.
  private mutating func finish(_ section: Section) {
    if rule == .mozillaProfiles, section.name.hasPrefix("Profile") {
      guard let path = section.path else { return }
      if section.isRelative == "0" || path.value.hasPrefix("/") {
        replace(path, key: "\(section.name).Path")
      } else if path.value.split(separator: "/").contains("..") {
        findings.leave(path.value, at: "\(section.name).Path")
      }
    } else if rule == .mozillaInstalls || section.name.hasPrefix("Install") {
      guard let path = section.defaultProfile, path.value.hasPrefix("/") else { return }
      replace(path, key: "\(section.name).Default")
    }
  }

  private mutating func replace(_ entry: Section.Entry, key: String) {
    guard entry.value.hasPrefix("/") else {
      findings.leave(entry.value, at: key)
      return
    }
    guard let new = findings.replacement(of: entry.value, at: key) else { return }
    let line = lines[entry.line]
    let start = (line.firstIndex(of: UInt8(ascii: "=")) ?? line.startIndex) + 1
    let ending = line.last == UInt8(ascii: "\r") ? [UInt8(ascii: "\r")] : []
    edits[entry.line] = line[..<start] + Array(new.utf8) + ending
  }

  private var joined: [UInt8] {
    var bytes: [UInt8] = []
    for (index, line) in lines.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: "\n")) }
      bytes += edits[index].map { $0[...] } ?? line
    }
    return bytes
  }
}

extension ProfileListEditor {
  /// A section with the values that matter.
  private struct Section {
    /// A value with its line.
    struct Entry {
      let value: String
      let line: Int
    }

    var name = ""
    var path: Entry?
    var defaultProfile: Entry?
    var isRelative: String?

    mutating func add(_ key: String, _ value: String, line: Int) throws(RewriteRefusal) {
      switch key {
      case "Path":
        try refuseSecond(path, key)
        path = Entry(value: value, line: line)
      case "Default":
        try refuseSecond(defaultProfile, key)
        defaultProfile = Entry(value: value, line: line)
      case "IsRelative": isRelative = value
      default: break
      }
    }

    private func refuseSecond(_ entry: Entry?, _ key: String) throws(RewriteRefusal) {
      guard entry != nil else { return }
      throw RewriteRefusal(reason: "the section '\(ByteString(name))' has '\(key)' twice")
    }
  }

  /// Returns the name of a section, without brackets.
  private static func name(of header: ArraySlice<UInt8>) -> String {
    String(decoding: header.dropFirst().prefix { $0 != UInt8(ascii: "]") }, as: UTF8.self)
  }

  /// Returns the key and the value of a line, or nil for comments and other lines.
  private static func pair(_ line: ArraySlice<UInt8>) -> (String, String)? {
    guard let first = line.first, first != UInt8(ascii: ";"), first != UInt8(ascii: "#"),
      let equals = line.firstIndex(of: UInt8(ascii: "="))
    else { return nil }
    return (
      String(decoding: trimmed(line[..<equals]), as: UTF8.self),
      String(decoding: line[(equals + 1)...], as: UTF8.self)
    )
  }

  /// Returns a line without spaces at its ends, a carriage return and a byte order mark.
  private static func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var line = line.starts(with: [0xEF, 0xBB, 0xBF]) ? line.dropFirst(3) : line
    while let last = line.last, last == 0x20 || last == 0x09 || last == 0x0D { line.removeLast() }
    return line.drop { $0 == 0x20 || $0 == 0x09 }
  }
}
